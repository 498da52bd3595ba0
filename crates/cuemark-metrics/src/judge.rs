//! When a prediction counts: the conventions in which published evaluators differ.

use cuemark_core::Iou;

/// Whether an overlap that equals the threshold counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threshold {
    /// `overlap >= threshold`, as most papers write it. Default.
    #[default]
    Inclusive,
    /// `overlap > threshold`, as 2D-TAN's and TVR-Ranking's scripts have it.
    Strict,
}

impl Threshold {
    /// Whether `overlap` reaches `threshold`.
    pub fn passes(self, overlap: f64, threshold: f64) -> bool {
        match self {
            Self::Inclusive => overlap >= threshold,
            Self::Strict => overlap > threshold,
        }
    }
}

/// What a grade is worth in NDCG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gain {
    /// The grade itself: the paper's equation. Default.
    #[default]
    Linear,
    /// `2^grade - 1`: the published code.
    Exponential,
}

impl Gain {
    /// The worth of `grade`.
    pub fn of(self, grade: f64) -> f64 {
        match self {
            Self::Linear => grade,
            Self::Exponential => grade.exp2() - 1.0,
        }
    }
}

/// Which of several right moments a prediction has to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matching {
    /// The one it overlaps most. Default.
    #[default]
    Best,
    /// Two of them when there are four or more (DiDeMo's annotators in TVR's evaluator), else the best.
    TwoOfFour,
}

/// Everything about "counts" in one place.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Judge {
    /// How overlap is measured.
    pub iou: Iou,
    /// Whether a tie with the threshold counts.
    pub threshold: Threshold,
    /// Which right moments have to be met.
    pub matching: Matching,
    /// What a grade is worth.
    pub gain: Gain,
}

impl Judge {
    /// Whether `overlap` counts at threshold `m`, in the precision that the overlap was computed in.
    pub fn passes(self, overlap: f64, m: f64) -> bool {
        self.threshold.passes(overlap, self.iou.threshold(m))
    }
}
