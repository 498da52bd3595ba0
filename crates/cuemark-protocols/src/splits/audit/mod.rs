//! What an audit finds in a set of splits: how alike they are, and how far one gets in them without looking.

mod bias;
mod distance;
mod plots;
mod verbs;

pub use bias::{BaselineScores, BiasGap, MeanScore};
pub use distance::SplitDistance;
pub use plots::draw;
pub use verbs::{VerbCounts, VerbTable};

use cuemark_core::{NormSpan, Progress, Split};
use serde::Serialize;

use super::{SharedVideos, SplitCounts, counts, shared_videos};
use crate::Result;
use crate::kde::Kde;
use crate::pairs::pairs;

/// Everything an audit finds. Fractions of 1 throughout.
#[derive(Debug, Clone, Serialize)]
pub struct AuditReport {
    /// The seed of its draws.
    pub seed: u64,
    /// What each split holds.
    pub splits: Vec<SplitCounts>,
    /// Videos that two splits share.
    pub shared_videos: Vec<SharedVideos>,
    /// Where each split's moments lie.
    pub places: Vec<Places>,
    /// How far apart every two splits' moments lie.
    pub distances: Vec<SplitDistance>,
    /// What each baseline reaches on each split; empty without a training split.
    pub baselines: Vec<BaselineScores>,
    /// What each baseline loses from test-iid to test-ood; empty unless both are there.
    pub gaps: Vec<BiasGap>,
    /// The most frequent verbs.
    pub verbs: VerbTable,
}

/// Where the moments of a split lie.
#[derive(Debug, Clone, Serialize)]
pub struct Places {
    /// The split.
    pub split: String,
    /// Mean start, as a fraction of the video.
    pub mean_start: f64,
    /// Mean end.
    pub mean_end: f64,
    /// Mean length.
    pub mean_length: f64,
    /// Share of moments longer than half their video.
    pub longer_than_half: f64,
    /// Share of moments that end after their video.
    pub past_the_end: f64,
    /// How dense the training moments lie where this split's do; absent without a training split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training_density: Option<Quartiles>,
}

/// The middle half of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quartiles {
    /// A quarter of them are smaller.
    pub lower: f64,
    /// Half of them are smaller.
    pub median: f64,
    /// A quarter of them are larger.
    pub upper: f64,
}

/// Examines `splits`, of which the one called `train` is what a method would have seen.
///
/// Densities and baselines see moments clipped to their video. Takes seconds for a hundred thousand queries. `progress`
/// counts places whose density is known and baselines that are scored.
///
/// # Errors
/// When a query is about no single video, a duration is not known, no query has a moment, or it was stopped.
pub fn audit(splits: &[Split], seed: u64, progress: &Progress) -> Result<AuditReport> {
    let verbs = VerbTable::of(splits);
    let known_verb = |sentence: &str| verbs.verb_of(sentence);
    let spans = splits.iter().map(raw_spans).collect::<Result<Vec<_>>>()?;
    let train = splits.iter().position(|split| split.name == "train").filter(|train| !spans[*train].is_empty());
    let clipped = |spans: &[NormSpan]| spans.iter().map(|span| span.clipped()).collect::<Vec<_>>();
    let density = train.map(|train| Kde::fit(&clipped(&spans[train]))).transpose()?;
    let places = splits.iter().zip(&spans).map(|(split, spans)| {
        let density = density.as_ref().filter(|_| !spans.is_empty());
        let density = density.map(|density| density.density(&clipped(spans), progress)).transpose()?;
        Ok(Places::of(&split.name, spans, density.map(quartiles)))
    });
    let places = places.collect::<Result<Vec<Places>>>()?;
    let (baselines, gaps) = match train {
        Some(train) => bias::score_baselines(splits, &splits[train].queries, &known_verb, seed, progress)?,
        None => (Vec::new(), Vec::new()),
    };
    Ok(AuditReport {
        seed,
        splits: counts(splits),
        shared_videos: shared_videos(splits),
        places,
        distances: distance::distances(splits, seed, progress)?,
        baselines,
        gaps,
        verbs: verbs.table,
    })
}

/// Every moment of a split in fractions of its video, neither clipped nor moved.
fn raw_spans(split: &Split) -> Result<Vec<NormSpan>> {
    Ok(pairs(&split.queries)?.iter().map(|pair| pair.span).collect())
}

impl Places {
    fn of(split: &str, spans: &[NormSpan], training_density: Option<Quartiles>) -> Self {
        let total = |of: &dyn Fn(&NormSpan) -> f64| spans.iter().fold(0.0, |sum, span| sum + of(span));
        let mean = |of: &dyn Fn(&NormSpan) -> f64| total(of) / spans.len().max(1) as f64;
        let share = |is: &dyn Fn(&NormSpan) -> bool| mean(&|span| f64::from(u8::from(is(span))));
        Self {
            split: split.to_owned(),
            mean_start: mean(&|span| span.start()),
            mean_end: mean(&|span| span.end()),
            mean_length: mean(&|span| span.len()),
            longer_than_half: share(&|span| span.len() > 0.5),
            past_the_end: share(&|span| span.end() > 1.0),
            training_density,
        }
    }
}

/// Quartiles of some numbers, of which there is at least one: the nearest of them, none between two.
fn quartiles(mut numbers: Vec<f64>) -> Quartiles {
    numbers.sort_by(f64::total_cmp);
    let at = |share: f64| numbers[((numbers.len() - 1) as f64 * share).round() as usize];
    Quartiles { lower: at(0.25), median: at(0.5), upper: at(0.75) }
}

#[cfg(test)]
mod tests;
