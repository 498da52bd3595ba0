//! Metric names: `R@1,IoU=0.5`, `VCMR:R@10,IoU=0.7/type=v` and the rest of the contract.

use std::fmt;
use std::str::FromStr;

use cuemark_core::Task;
use cuemark_core::nearest::nearest;

use crate::{EvalError, Group, Grouping, HighlightLevel, LengthRange, NoHighlight};

/// What is measured: `n` or `k` answers are looked at, `m` is the overlap from which one counts.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)] // The fields mean the same everywhere and stand in the name above them.
pub enum Metric {
    /// `R@n,IoU=m`
    Recall { n: usize, m: f64 },
    /// `dR@n,IoU=m`
    DiscountedRecall { n: usize, m: f64 },
    /// `mIoU`
    MeanIou,
    /// `mAP@m`, and `mAP`: the mean over 0.50, 0.55 … 0.95
    MeanAp { m: Option<f64> },
    /// `tR@n,IoU=m`: share of the right moments that the first n find, each one
    TargetRecall { n: usize, m: f64 },
    /// `Refusal:precision`: how many refused queries have no moment
    RefusalPrecision,
    /// `Refusal:recall`: how many queries without a moment were refused
    RefusalRecall,
    /// `NDCG@K,IoU=m`
    Ndcg { k: usize, m: f64 },
    /// `VCMR:R@n,IoU=m`: any video of the corpus
    Vcmr { n: usize, m: f64 },
    /// `SVMR:R@n,IoU=m`: predictions of other videos are dropped first
    Svmr { n: usize, m: f64 },
    /// `VR:R@n`: is the right video among the first n
    Vr { n: usize },
    /// `MVMR:R@n,IoU=m`: any right moment of any video of the query's pool
    Mvmr { n: usize, m: f64 },
    /// `DiDeMo:rank@n`
    DidemoRank { n: usize },
    /// `DiDeMo:mIoU`
    DidemoMiou,
    /// `HL-mAP`, by level; without one, very good
    HighlightMap { level: Option<HighlightLevel> },
    /// `HL-Hit1`, by level; without one, very good
    HighlightHit { level: Option<HighlightLevel> },
    /// `HL-AP`, over all videos, or `HL-AP/some`, over those with some highlight (YouTube Highlights)
    ClipsAp { none: NoHighlight },
    /// `HL-AP@n`: the first n clips, against each rater's median (TVSum: 5)
    TopClipsAp { n: usize },
}

/// The thresholds that plain `mAP` averages over.
pub(crate) const MAP_THRESHOLDS: [f64; 10] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

impl Metric {
    /// The task whose answers it reads.
    pub fn task(&self) -> Task {
        match self {
            Self::Vcmr { .. } => Task::Vcmr,
            Self::Svmr { .. } => Task::Svmr,
            Self::Vr { .. } => Task::Vr,
            _ => Task::Any,
        }
    }
}

impl Metric {
    /// Whether it scores the saliency of clips rather than spans.
    pub fn is_of_clips(&self) -> bool {
        matches!(
            self,
            Self::HighlightMap { .. } | Self::HighlightHit { .. } | Self::ClipsAp { .. } | Self::TopClipsAp { .. }
        )
    }

    /// Whether an answer counts from some overlap on, which presets judge differently.
    pub(crate) fn has_threshold(&self) -> bool {
        !matches!(
            self,
            Self::MeanIou
                | Self::Vr { .. }
                | Self::DidemoRank { .. }
                | Self::DidemoMiou
                | Self::HighlightMap { .. }
                | Self::HighlightHit { .. }
        )
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = |level: &Option<HighlightLevel>| level.map_or(String::new(), |level| format!("/{level}"));
        match self {
            Self::Recall { n, m } => write!(f, "R@{n},IoU={m}"),
            Self::DiscountedRecall { n, m } => write!(f, "dR@{n},IoU={m}"),
            Self::MeanIou => f.write_str("mIoU"),
            Self::MeanAp { m: None } => f.write_str("mAP"),
            Self::MeanAp { m: Some(m) } => write!(f, "mAP@{m}"),
            Self::TargetRecall { n, m } => write!(f, "tR@{n},IoU={m}"),
            Self::RefusalPrecision => f.write_str("Refusal:precision"),
            Self::RefusalRecall => f.write_str("Refusal:recall"),
            Self::Ndcg { k, m } => write!(f, "NDCG@{k},IoU={m}"),
            Self::Vcmr { n, m } => write!(f, "VCMR:R@{n},IoU={m}"),
            Self::Svmr { n, m } => write!(f, "SVMR:R@{n},IoU={m}"),
            Self::Vr { n } => write!(f, "VR:R@{n}"),
            Self::Mvmr { n, m } => write!(f, "MVMR:R@{n},IoU={m}"),
            Self::DidemoRank { n } => write!(f, "DiDeMo:rank@{n}"),
            Self::DidemoMiou => f.write_str("DiDeMo:mIoU"),
            Self::HighlightMap { level: l } => write!(f, "HL-mAP{}", level(l)),
            Self::HighlightHit { level: l } => write!(f, "HL-Hit1{}", level(l)),
            Self::ClipsAp { none: NoHighlight::Counts } => f.write_str("HL-AP"),
            Self::ClipsAp { none: NoHighlight::LeftOut } => f.write_str("HL-AP/some"),
            Self::TopClipsAp { n } => write!(f, "HL-AP@{n}"),
        }
    }
}

/// A metric, over all queries or a part of them.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricName {
    /// What is measured.
    pub metric: Metric,
    /// Over which part; `None` is all of it.
    pub group: Option<Group>,
}

impl From<Metric> for MetricName {
    fn from(metric: Metric) -> Self {
        Self { metric, group: None }
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.metric)?;
        match &self.group {
            Some(group) => write!(f, "/{group}"),
            None => Ok(()),
        }
    }
}

/// Names shown when one is misspelt.
const EXAMPLES: [&str; 15] = [
    "R@1,IoU=0.5",
    "dR@1,IoU=0.5",
    "mIoU",
    "mAP",
    "mAP@0.5",
    "NDCG@10,IoU=0.5",
    "VCMR:R@1,IoU=0.5",
    "SVMR:R@1,IoU=0.5",
    "VR:R@1",
    "MVMR:R@20,IoU=0.5",
    "DiDeMo:rank@1",
    "HL-mAP",
    "HL-Hit1",
    "HL-AP",
    "HL-AP@5",
];

impl FromStr for MetricName {
    type Err = EvalError;

    /// ```
    /// # use cuemark_metrics::MetricName;
    /// for name in ["R@1,IoU=0.5", "mAP/short", "HL-Hit1/VeryGood", "VCMR:R@1,IoU=0.5/type=v"] {
    ///     assert_eq!(name.parse::<MetricName>().unwrap().to_string(), name);
    /// }
    /// ```
    fn from_str(name: &str) -> Result<Self, EvalError> {
        Self::own(name).or_else(|error| {
            let alias = crate::alias::canonical(name).filter(|alias| alias != name);
            alias.map_or(Err(error), |alias| Self::own(&alias))
        })
    }
}

impl MetricName {
    /// A name in our own spelling.
    fn own(name: &str) -> Result<Self, EvalError> {
        let unknown = |problem: &str| {
            let near = nearest(name, EXAMPLES.iter().copied());
            let nearest = near.filter(|example| *example != name).map(str::to_owned);
            EvalError::UnknownMetric { name: name.to_owned(), problem: problem.to_owned(), nearest }
        };
        let (base, part) = match name.split_once('/') {
            Some((base, part)) => (base, Some(part)),
            None => (name, None),
        };
        let metric = parse_metric(base).map_err(|problem| unknown(&problem))?;
        let group = match (metric, part) {
            (_, None) => None,
            (Metric::HighlightMap { .. }, Some(part)) => {
                let level = level(part).ok_or_else(|| unknown("the level is `Fair`, `Good` or `VeryGood`"))?;
                return Ok(Metric::HighlightMap { level: Some(level) }.into());
            }
            (Metric::HighlightHit { .. }, Some(part)) => {
                let level = level(part).ok_or_else(|| unknown("the level is `Fair`, `Good` or `VeryGood`"))?;
                return Ok(Metric::HighlightHit { level: Some(level) }.into());
            }
            (Metric::ClipsAp { .. }, Some("some")) => return Ok(Metric::ClipsAp { none: NoHighlight::LeftOut }.into()),
            (Metric::ClipsAp { .. }, Some(part)) if part.starts_with("some/") => {
                let group = parse_group(part.trim_start_matches("some/"));
                let group = group.ok_or_else(|| unknown("the part is like `type=dog`"))?;
                return Ok(Self { metric: Metric::ClipsAp { none: NoHighlight::LeftOut }, group: Some(group) });
            }
            (_, Some(part)) => Some(parse_group(part).ok_or_else(|| {
                unknown("the part is `short`, `middle`, `long`, or like `type=v`, `verb=open`, `words=1-5`")
            })?),
        };
        Ok(Self { metric, group })
    }
}

fn level(name: &str) -> Option<HighlightLevel> {
    HighlightLevel::ALL.into_iter().find(|level| level.to_string() == name)
}

fn parse_group(part: &str) -> Option<Group> {
    if let Some(range) = LengthRange::ALL.into_iter().find(|range| range.to_string() == part) {
        return Some(Group::Moments(range));
    }
    let (grouping, class) = part.split_once('=')?;
    Some(Group::Queries(Grouping::from_name(grouping)?, class.to_owned()))
}

fn parse_metric(base: &str) -> Result<Metric, String> {
    match base {
        "mIoU" => return Ok(Metric::MeanIou),
        "mAP" => return Ok(Metric::MeanAp { m: None }),
        "HL-mAP" => return Ok(Metric::HighlightMap { level: None }),
        "HL-AP" => return Ok(Metric::ClipsAp { none: NoHighlight::Counts }),
        "HL-Hit1" => return Ok(Metric::HighlightHit { level: None }),
        "DiDeMo:mIoU" => return Ok(Metric::DidemoMiou),
        "Refusal:precision" => return Ok(Metric::RefusalPrecision),
        "Refusal:recall" => return Ok(Metric::RefusalRecall),
        _ => {}
    }
    let (family, at) = base.split_once('@').ok_or_else(String::new)?;
    let (count, m) = match at.split_once(",IoU=") {
        Some((count, m)) => (count, Some(threshold(m)?)),
        None => (at, None),
    };
    let n = || match count.parse::<usize>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!("`{count}` is not a number of answers")),
    };
    match (family, m) {
        ("R", Some(m)) => Ok(Metric::Recall { n: n()?, m }),
        ("tR", Some(m)) => Ok(Metric::TargetRecall { n: n()?, m }),
        ("dR", Some(m)) => Ok(Metric::DiscountedRecall { n: n()?, m }),
        ("NDCG", Some(m)) => Ok(Metric::Ndcg { k: n()?, m }),
        ("VCMR:R", Some(m)) => Ok(Metric::Vcmr { n: n()?, m }),
        ("SVMR:R", Some(m)) => Ok(Metric::Svmr { n: n()?, m }),
        ("MVMR:R", Some(m)) => Ok(Metric::Mvmr { n: n()?, m }),
        ("VR:R", None) => Ok(Metric::Vr { n: n()? }),
        ("HL-AP", None) => Ok(Metric::TopClipsAp { n: n()? }),
        ("DiDeMo:rank", None) => Ok(Metric::DidemoRank { n: n()? }),
        ("mAP", None) => Ok(Metric::MeanAp { m: Some(threshold(count)?) }),
        ("R" | "tR" | "dR" | "NDCG" | "VCMR:R" | "SVMR:R" | "MVMR:R", None) => Err("it lacks `,IoU=m`".to_owned()),
        _ => Err(String::new()),
    }
}

fn threshold(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(m) if (0.0..=1.0).contains(&m) => Ok(m),
        _ => Err(format!("`{text}` is not a threshold between 0 and 1")),
    }
}

/// Reads a list of names that are separated by commas, although names contain commas themselves. Names that other
/// evaluators print are understood too, in any case; a recall without a threshold stands for the usual three.
///
/// ```
/// # use cuemark_metrics::parse_list;
/// let names = parse_list("R@1,IoU=0.5,mIoU, mAP@0.75").unwrap();
/// assert_eq!(names.len(), 3);
/// assert_eq!(parse_list("R1@0.5, MR-full-mAP").unwrap()[0].to_string(), "R@1,IoU=0.5");
/// ```
///
/// # Errors
/// When one of them is not a metric.
pub fn parse_list(list: &str) -> Result<Vec<MetricName>, EvalError> {
    let mut names: Vec<String> = Vec::new();
    for piece in list.split([',', ';']).map(str::trim).filter(|piece| !piece.is_empty()) {
        match names.last_mut() {
            Some(open) if is_threshold(piece) => {
                open.push(',');
                open.push_str(piece);
            }
            _ => names.push(piece.to_owned()),
        }
    }
    if names.is_empty() {
        let problem = "no metric was named".to_owned();
        return Err(EvalError::UnknownMetric { name: list.to_owned(), problem, nearest: None });
    }
    let mut metrics: Vec<MetricName> = Vec::new();
    for name in &names {
        match (name.parse::<MetricName>(), crate::alias::at_usual_thresholds(name)) {
            (Ok(metric), _) => metrics.push(metric),
            (Err(_), Some(several)) => {
                for name in several {
                    metrics.push(name.parse()?);
                }
            }
            (Err(error), None) => return Err(error),
        }
    }
    Ok(metrics)
}

/// `IoU=0.5` in any spelling, a wrong one too: the second half of a name, not a metric.
fn is_threshold(piece: &str) -> bool {
    let rest = piece.get(..3).filter(|iou| iou.eq_ignore_ascii_case("iou")).and_then(|_| piece.get(3..));
    let misspelt = piece.contains('=') && !piece.contains(['@', '/']);
    misspelt || rest.is_some_and(|rest| rest.trim_start().starts_with(['=', '@', '>']))
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Advise as _, Dialect};

    use super::*;

    #[test]
    fn every_example_reads_back_as_it_is_written() {
        for example in EXAMPLES.into_iter().chain(["HL-AP/some", "HL-AP/some/type=dog", "HL-AP@5/type=BK"]) {
            assert_eq!(example.parse::<MetricName>().unwrap().to_string(), example);
        }
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        assert!(parse_list(" , ").unwrap_err().to_string().contains("no metric was named"));
        let error = "R@1,IuO=0.5".parse::<MetricName>().unwrap_err();
        assert_eq!(error.advice_in(Dialect::Terminal).unwrap(), "did you mean `R@1,IoU=0.5`?");
        for wrong in ["R@0,IoU=0.5", "R@1", "R@1,IoU=1.5", "mAP@x", "HL-mAP/Nice", "mIoU/tall", "", "@"] {
            assert!(wrong.parse::<MetricName>().is_err(), "{wrong}");
        }
    }
}
