//! One preset per published evaluator.

use std::fmt;
use std::str::FromStr;

use cuemark_core::nearest::nearest;
use cuemark_core::{Iou, Nms};

use crate::name::MAP_THRESHOLDS;
use crate::{
    EvalError, Gain, Group, Grouping, HighlightLevel, Judge, LengthRange, Matching, Metric, MetricName, Missing,
    NoHighlight, Step, Threshold, Ties,
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
    /// TVSum: the first five clips against each rater's median, by domain.
    Tvsum,
    /// YouTube Highlights: all clips, by domain; videos without a highlight left out (lighthouse), then counted as 0 (UniVTG).
    YoutubeHighlights,
    /// The same as [`Preset::QvHighlights`], by the name of the paper it came with.
    MomentDetr,
    /// lighthouse: QVHighlights' evaluator for every dataset, with R@1 at 0.3 too.
    Lighthouse,
    /// UniVTG: windows sorted, suppressed at 0.7 and cut to ten before QVHighlights' evaluator sees them.
    UniVtg,
    /// What papers on video language models print: mIoU and R@1, only the first span counts.
    VideoLlm,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 15] = [
        Self::QvHighlights,
        Self::Tvr,
        Self::Tan2d,
        Self::CharadesCd,
        Self::TvrRanking,
        Self::TvrRankingPaper,
        Self::Mvmr,
        Self::Molef,
        Self::Didemo,
        Self::Tvsum,
        Self::YoutubeHighlights,
        Self::MomentDetr,
        Self::Lighthouse,
        Self::UniVtg,
        Self::VideoLlm,
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
            Self::Tvsum => "tvsum",
            Self::YoutubeHighlights => "youtube-highlights",
            Self::MomentDetr => "moment-detr",
            Self::Lighthouse => "lighthouse",
            Self::UniVtg => "univtg",
            Self::VideoLlm => "video-llm",
        }
    }

    /// Whose numbers it gives, in one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::QvHighlights => "QVHighlights' standalone_eval: R@1 of the first listed window, mAP of the ten first",
            Self::Tvr => "TVR's standalone_eval: VCMR, SVMR and VR, by type of query, in single precision",
            Self::Tan2d => "2D-TAN's evaluator: NMS at 0.5, overlaps above the threshold",
            Self::CharadesCd => "the bias papers: discounted recall, times divided by the duration",
            Self::TvrRanking => "TVR-Ranking's code: exponential gain, overlaps above the threshold",
            Self::TvrRankingPaper => "TVR-Ranking's text: linear gain, overlaps from the threshold on",
            Self::Mvmr => "MVMR: recall over a pool of videos, NMS at 0.5",
            Self::Molef => "MoLEF: NMS just below each threshold",
            Self::Didemo => "DiDeMo's evaluator: ranks and overlaps of chunks",
            Self::Tvsum => "TVSum: the five best-scored clips against each rater's median, by domain",
            Self::YoutubeHighlights => "YouTube Highlights: all clips, by domain",
            Self::MomentDetr => "Moment-DETR's evaluator, which is QVHighlights'",
            Self::Lighthouse => "lighthouse: QVHighlights' evaluator, R@1 at 0.3 too, for every dataset",
            Self::UniVtg => "UniVTG: sorted, NMS at 0.7, ten windows, then QVHighlights' evaluator",
            Self::VideoLlm => "papers on video language models: mIoU and R@1 of the first span",
        }
    }

    /// What its numbers differ in from those of the preset that people take it for.
    pub(crate) fn differs(self) -> Option<&'static str> {
        match self {
            Self::MomentDetr => Some("the same conventions and numbers as preset qvhighlights"),
            Self::Lighthouse => Some(
                "as preset qvhighlights, with R@1 at 0.3; lighthouse's models clamp and round windows to the clip length \
                 before they are written, which no evaluator can do for them",
            ),
            Self::UniVtg => Some(
                "as preset qvhighlights, but windows are sorted by score, suppressed at 0.7 and cut to ten first, as \
                 UniVTG does when it writes them; on a file that UniVTG wrote this changes nothing",
            ),
            Self::VideoLlm => Some("one span a query; a query without a span counts as 0"),
            _ => None,
        }
    }

    /// The metrics that stand in tables of papers, at the most a screenful; the evaluator reports more.
    pub fn headline(self) -> Vec<MetricName> {
        let recall = |n, m| Metric::Recall { n, m }.into();
        let level = Some(HighlightLevel::VeryGood);
        let highlights =
            || -> [MetricName; 2] { [Metric::HighlightMap { level }.into(), Metric::HighlightHit { level }.into()] };
        let precisions = || -> [MetricName; 3] { [Some(0.5), Some(0.75), None].map(|m| Metric::MeanAp { m }.into()) };
        match self {
            Self::QvHighlights | Self::MomentDetr => {
                [recall(1, 0.5), recall(1, 0.7)].into_iter().chain(precisions()).chain(highlights()).collect()
            }
            Self::Lighthouse | Self::UniVtg => [recall(1, 0.3), recall(1, 0.5), recall(1, 0.7)]
                .into_iter()
                .chain(precisions())
                .chain(highlights())
                .collect(),
            Self::Tvr => {
                let vcmr = [0.5, 0.7].into_iter().flat_map(|m| [1, 10, 100].map(|n| Metric::Vcmr { n, m }));
                let svmr = [0.5, 0.7].map(|m| Metric::Svmr { n: 1, m });
                vcmr.chain(svmr).chain([Metric::Vr { n: 1 }]).map(MetricName::from).collect()
            }
            _ => self.metrics(),
        }
    }

    /// What the evaluator reports, in its order.
    pub fn metrics(self) -> Vec<MetricName> {
        let recalls = |ns: &[usize], ms: &[f64], make: fn(usize, f64) -> Metric| -> Vec<MetricName> {
            ms.iter().flat_map(|m| ns.iter().map(|n| make(*n, *m).into()).collect::<Vec<_>>()).collect()
        };
        match self {
            Self::QvHighlights | Self::MomentDetr => qvhighlights(),
            Self::Lighthouse | Self::UniVtg => {
                let more = MetricName::from(Metric::Recall { n: 1, m: 0.3 });
                std::iter::once(more).chain(qvhighlights()).collect()
            }
            Self::VideoLlm => {
                [vec![Metric::MeanIou.into()], recalls(&[1], &[0.3, 0.5, 0.7], |n, m| Metric::Recall { n, m })].concat()
            }
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
            Self::Tvsum => vec![Metric::TopClipsAp { n: 5 }.into()],
            Self::YoutubeHighlights => {
                [NoHighlight::LeftOut, NoHighlight::Counts].map(|none| Metric::ClipsAp { none }.into()).to_vec()
            }
        }
    }

    /// The divisions of the queries that the evaluator reports too.
    pub(crate) fn groupings(self) -> Vec<Grouping> {
        if self == Self::Tvr || self.averages_types() { vec![Grouping::Type] } else { Vec::new() }
    }

    /// Whether papers print the mean over kinds of queries (domains), each of which has a model of its own.
    pub(crate) fn averages_types(self) -> bool {
        matches!(self, Self::Tvsum | Self::YoutubeHighlights)
    }

    /// What the evaluator does with unanswered queries.
    pub fn missing(self) -> Missing {
        match self {
            Self::QvHighlights
            | Self::Tvr
            | Self::Didemo
            | Self::Tvsum
            | Self::YoutubeHighlights
            | Self::MomentDetr
            | Self::Lighthouse
            | Self::UniVtg => Missing::Refuse,
            Self::TvrRanking | Self::TvrRankingPaper => Missing::Skip,
            Self::Tan2d | Self::CharadesCd | Self::Mvmr | Self::Molef | Self::VideoLlm => Missing::Miss,
        }
    }

    /// The steps and the judge that the evaluator uses for `metric`.
    pub(crate) fn conventions(self, metric: &Metric) -> (Vec<Step>, Judge) {
        let judge = Judge::default();
        let hull = Judge { iou: Iou::Hull, ..judge };
        let nms = |threshold| Step::Suppress(Nms::new(threshold));
        match (self, metric) {
            // The ten first windows are kept before sorting; R1 takes the first listed window whatever its score.
            (Self::QvHighlights | Self::MomentDetr | Self::Lighthouse, Metric::MeanAp { .. }) => {
                (vec![Step::TakeFirst(10), Step::SortByScore(Ties::FileOrder)], judge)
            }
            (Self::QvHighlights | Self::MomentDetr | Self::Lighthouse, _) => (vec![], hull),
            (Self::UniVtg, Metric::HighlightMap { .. } | Metric::HighlightHit { .. }) => (vec![], hull),
            (Self::UniVtg, metric) => {
                let by_score = Step::SortByScore(Ties::FileOrder);
                let steps = vec![by_score, Step::TakeFirst(1_000), nms(0.7), Step::TakeFirst(10)];
                (steps, if matches!(metric, Metric::MeanAp { .. }) { judge } else { hull })
            }
            (Self::VideoLlm, _) => (vec![Step::TakeFirst(1)], judge),
            (Self::Tvr, _) => {
                let single = Judge { iou: Iou::HullSingle, matching: Matching::TwoOfFour, ..judge };
                (vec![Step::TakeFirst(100)], single)
            }
            (Self::Tan2d, _) => (vec![nms(0.5)], Judge { threshold: Threshold::Strict, ..hull }),
            (Self::CharadesCd, _) => (vec![Step::Normalise], hull),
            (Self::TvrRanking, _) => (vec![], Judge { threshold: Threshold::Strict, gain: Gain::Exponential, ..judge }),
            (Self::TvrRankingPaper | Self::Didemo | Self::Tvsum | Self::YoutubeHighlights, _) => (vec![], judge),
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
        Self::ALL.into_iter().find(|preset| preset.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let nearest = nearest(name, Self::ALL.into_iter().map(Self::name)).map(str::to_owned);
            EvalError::UnknownPreset { name: name.to_owned(), nearest }
        })
    }
}
