//! What a question scores against moments that have nothing to do with it.

use std::sync::OnceLock;

use super::common::Common;
use crate::Embedding;

/// A best name that stands less above what is usual tells nothing apart.
const LEAST_HEIGHT: f64 = 0.05;

/// A sample of an index's moments.
#[derive(Debug, Default)]
pub(crate) struct Background {
    moments: Vec<Embedding>,
    /// What they have in common, sought when it is first asked for.
    common: OnceLock<Option<Box<Common>>>,
}

/// How a question's scores are spread over a background.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    mean: f64,
    deviation: f64,
    best: f64,
}

impl Background {
    /// Moments that are enough to know a mean and a deviation to a few percent.
    pub(crate) const SIZE: usize = 2000;

    pub(crate) fn new(moments: Vec<Embedding>) -> Self {
        Self { moments, common: OnceLock::new() }
    }

    /// What its moments have in common; `None` where they lean nowhere.
    pub(super) fn common(&self) -> Option<&Common> {
        self.common.get_or_init(|| Common::of(&self.moments).map(Box::new)).as_deref()
    }

    /// How the scores of `query` are spread.
    pub(crate) fn spread(&self, query: &Embedding) -> Spread {
        let scores: Vec<f64> = self.moments.iter().map(|moment| f64::from(moment.cosine(query))).collect();
        let count = scores.len().max(1) as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / count;
        let best = scores.iter().copied().fold(0.0, f64::max);
        Spread { mean, deviation: variance.sqrt().max(1e-6), best }
    }
}

impl Spread {
    /// What the question scores on anything.
    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    /// A score as a share of what the best of the background has, both above `floor`; 0 where even that has nothing. A question that
    /// one name says exactly must find just that; one that no name says well may do with less.
    pub(crate) fn share(&self, score: f32, floor: f64) -> f64 {
        if self.best > 0.0 { (f64::from(score) - floor) / (self.best - floor).max(LEAST_HEIGHT) } else { 0.0 }
    }

    /// The z-score of a score: how many deviations it lies above the background's mean.
    pub(crate) fn surprise(&self, score: f32) -> f64 {
        (f64::from(score) - self.mean) / self.deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_held_against_the_best_of_the_background() {
        let unit = |numbers: [f32; 2]| Embedding::unit(numbers.to_vec()).unwrap();
        let background = Background::new(vec![unit([0.6, 0.8]), unit([0.0, 1.0])]);
        let spread = background.spread(&unit([1.0, 0.0]));
        assert!((spread.share(0.3, 0.0) - 0.5).abs() < 1e-6 && (spread.mean() - 0.3).abs() < 1e-6);
        assert!((spread.share(0.3, 0.2) - 0.25).abs() < 1e-6 && spread.share(0.1, 0.2) < 0.0);
        assert!(spread.share(0.6, 0.6).abs() < 1e-6, "nothing stands above the best name");
        assert_eq!(Background::new(Vec::new()).spread(&unit([1.0, 0.0])).share(0.3, 0.0), 0.0);
    }
}
