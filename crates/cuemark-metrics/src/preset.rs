//! One preset per published evaluator.

use std::fmt;
use std::str::FromStr;

use cuemark_core::nearest::nearest;
use cuemark_core::{Iou, Nms};

use crate::name::MAP_THRESHOLDS;
use crate::{
    Comparison, EvalError, Gain, Group, Grouping, HighlightLevel, Judge, LengthRange, Matching, Metric, MetricName,
    Missing, Step, Ties,
};

/// A published evaluator whose numbers the preset gives to the digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// QVHighlights' `standalone_eval` (Moment-DETR).
    QvHighlights,
    /// TVR's `standalone_eval`, in single precision as published.
    Tvr,
    /// 2D-TAN's `core/eval.py`.
    Tan2d,
    /// The bias papers' dR tables: normalised, clipped, inclusive.
    CharadesCd,
    /// TVR-Ranking's `ndcg_iou.py`: exponential gain, strict threshold.
    TvrRanking,
    /// TVR-Ranking as its text defines it: linear gain, inclusive threshold.
    TvrRankingPaper,
    /// MVMR: recall over a pool of videos with several right moments.
    Mvmr,
    /// MoLEF's `utils/metric.py`: suppression depends on the threshold.
    Molef,
    /// DiDeMo's own evaluator.
    Didemo,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 9] = [
        Self::QvHighlights,
        Self::Tvr,
        Self::Tan2d,
        Self::CharadesCd,
        Self::TvrRanking,
        Self::TvrRankingPaper,
        Self::Mvmr,
        Self::Molef,
        Self::Didemo,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::QvHighlights => "qvhighlights",
            Self::Tvr => "tvr",
            Self::Tan2d => "2d-tan",
            Self::CharadesCd => "charades-cd",
            Self::TvrRanking => "tvr-ranking",
            Self::TvrRankingPaper => "tvr-ranking-paper",
            Self::Mvmr => "mvmr",
            Self::Molef => "molef",
            Self::Didemo => "didemo",
        }
    }

    /// What the evaluator reports, in its order.
    pub fn metrics(self) -> Vec<MetricName> {
        let recalls = |ns: &[usize], ms: &[f64], make: fn(usize, f64) -> Metric| -> Vec<MetricName> {
            ms.iter().flat_map(|m| ns.iter().map(|n| make(*n, *m).into()).collect::<Vec<_>>()).collect()
        };
        match self {
            Self::QvHighlights => qvhighlights(),
            Self::Tvr => [
                recalls(&[1, 5, 10, 100], &[0.5, 0.7], |n, m| Metric::Vcmr { n, m }),
                recalls(&[1, 5, 10, 100], &[0.5, 0.7], |n, m| Metric::Svmr { n, m }),
                [1, 5, 10, 100].map(|n| Metric::Vr { n }.into()).to_vec(),
            ]
            .concat(),
            Self::Tan2d | Self::Molef => {
                [recalls(&[1, 5], &[0.1, 0.3, 0.5, 0.7], |n, m| Metric::Recall { n, m }), vec![Metric::MeanIou.into()]]
                    .concat()
            }
            Self::CharadesCd => [
                recalls(&[1], &[0.1, 0.3, 0.5, 0.7, 0.9], |n, m| Metric::DiscountedRecall { n, m }),
                recalls(&[1], &[0.1, 0.3, 0.5, 0.7, 0.9], |n, m| Metric::Recall { n, m }),
            ]
            .concat(),
            Self::TvrRanking | Self::TvrRankingPaper => {
                recalls(&[10, 20, 40], &[0.3, 0.5, 0.7], |k, m| Metric::Ndcg { k, m })
            }
            Self::Mvmr => recalls(&[1, 5, 20, 50], &[0.3, 0.5, 0.7], |n, m| Metric::Mvmr { n, m }),
            Self::Didemo => {
                vec![Metric::DidemoRank { n: 1 }.into(), Metric::DidemoRank { n: 5 }.into(), Metric::DidemoMiou.into()]
            }
        }
    }

    /// The divisions of the queries that the evaluator reports too.
    pub(crate) fn groupings(self) -> Vec<Grouping> {
        if self == Self::Tvr { vec![Grouping::Type] } else { Vec::new() }
    }

    /// What the evaluator does with unanswered queries.
    pub fn missing(self) -> Missing {
        match self {
            Self::QvHighlights | Self::Tvr | Self::Didemo => Missing::Refuse,
            Self::TvrRanking | Self::TvrRankingPaper => Missing::Skip,
            Self::Tan2d | Self::CharadesCd | Self::Mvmr | Self::Molef => Missing::Miss,
        }
    }

    /// The steps and the judge that the evaluator uses for `metric`.
    pub(crate) fn conventions(self, metric: &Metric) -> (Vec<Step>, Judge) {
        let judge = Judge::default();
        let hull = Judge { iou: Iou::Hull, ..judge };
        let nms = |threshold| Step::Suppress(Nms::new(threshold));
        match (self, metric) {
            // The ten first windows are kept before sorting; R1 takes the first listed window whatever its score.
            (Self::QvHighlights, Metric::MeanAp { .. }) => {
                (vec![Step::TakeFirst(10), Step::SortByScore(Ties::FileOrder)], judge)
            }
            (Self::QvHighlights, _) => (vec![], hull),
            (Self::Tvr, _) => {
                let single = Judge { iou: Iou::HullSingle, matching: Matching::TwoOfFour, ..judge };
                (vec![Step::TakeFirst(100)], single)
            }
            (Self::Tan2d, _) => (vec![nms(0.5)], Judge { comparison: Comparison::Strict, ..hull }),
            (Self::CharadesCd, _) => (vec![Step::Normalise], hull),
            (Self::TvrRanking, _) => {
                (vec![], Judge { comparison: Comparison::Strict, gain: Gain::Exponential, ..judge })
            }
            (Self::TvrRankingPaper | Self::Didemo, _) => (vec![], judge),
            (Self::Mvmr, _) => (vec![Step::OnlyPool, Step::SortByScore(Ties::ByPlace), nms(0.5)], hull),
            (Self::Molef, metric) => {
                let mut steps = vec![Step::SortByScore(Ties::LastFirst)];
                if let Metric::Recall { m, .. } = metric {
                    steps.push(nms(m - 0.05));
                }
                (steps, Judge { iou: Iou::HullEps, ..judge })
            }
        }
    }
}

fn qvhighlights() -> Vec<MetricName> {
    let ranges = std::iter::once(None).chain(LengthRange::ALL.map(Some));
    let moments = ranges.flat_map(|range| {
        let group = range.map(Group::Moments);
        let recalls = MAP_THRESHOLDS.map(|m| Metric::Recall { n: 1, m });
        let precisions = MAP_THRESHOLDS.map(|m| Metric::MeanAp { m: Some(m) });
        let all = recalls.into_iter().chain([Metric::MeanAp { m: None }]).chain(precisions);
        all.map(|metric| MetricName { metric, group: group.clone() }).collect::<Vec<_>>()
    });
    let highlights = HighlightLevel::ALL.into_iter().flat_map(|level| {
        [Metric::HighlightMap { level: Some(level) }.into(), Metric::HighlightHit { level: Some(level) }.into()]
    });
    moments.chain(highlights).collect()
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = EvalError;

    fn from_str(name: &str) -> Result<Self, EvalError> {
        Self::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| {
            let nearest = nearest(name, Self::ALL.into_iter().map(Self::name)).map(str::to_owned);
            EvalError::UnknownPreset { name: name.to_owned(), nearest }
        })
    }
}
