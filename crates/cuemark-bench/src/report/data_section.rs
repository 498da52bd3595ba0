//! What a dataset invites: where its moments lie, how far one gets without looking, what people reach.

use cuemark_core::{NormSpan, Progress, Split};
use cuemark_protocols::human_ceiling::HumanCeiling;
use cuemark_protocols::splits::audit::{AuditReport, audit};
use serde::Serialize;

use super::heat::{HeatMap, true_spans};
use crate::{BenchError, Result};

/// Bins of the histogram of lengths.
const BINS: usize = 20;

/// What a dataset invites.
#[derive(Debug, Clone, Serialize)]
pub struct DataSection {
    /// Our name of the dataset.
    pub dataset: String,
    /// Its own name.
    pub title: String,
    /// What was left out or is remarkable, in words.
    pub notes: Vec<String>,
    /// Distances, baselines, verbs.
    pub audit: AuditReport,
    /// Where the moments of each split lie.
    pub maps: Vec<HeatMap>,
    /// For each split the shares of moments by length, in twentieths of the video.
    pub lengths: Vec<Lengths>,
    /// What people reach against each other; absent where nobody marked queries again.
    pub people: Option<HumanCeiling>,
}

/// The lengths of one split's moments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lengths {
    /// The split.
    pub split: String,
    /// Shares of moments, in twentieths of the video; moments that reach past the end are clipped first.
    pub shares: Vec<f64>,
}

impl DataSection {
    /// Examines the splits of a dataset; those without moments or without durations are left out and named.
    ///
    /// # Errors
    /// When no split is left, it was stopped, and those of the audit.
    pub fn of(
        dataset: &str,
        title: &str,
        splits: &[Split],
        people: Option<HumanCeiling>,
        seed: u64,
        progress: &Progress,
    ) -> Result<Self> {
        let mut notes = Vec::new();
        let mut usable: Vec<Split> = Vec::new();
        for split in splits {
            match fault(split) {
                None => usable.push(split.clone()),
                Some(why) => notes.push(format!("{} is left out: {why}", split.name)),
            }
        }
        if usable.is_empty() {
            return Err(BenchError::Nothing { problem: "no split has moments and durations" });
        }
        let audit = audit(&usable, seed, progress)?;
        let spans = |split: &Split| true_spans(&split.queries).collect::<Vec<NormSpan>>();
        let maps = usable.iter().map(|split| HeatMap::of(split.name.clone(), true_spans(&split.queries))).collect();
        let lengths = usable.iter().map(|split| Lengths::of(&split.name, &spans(split))).collect();
        Ok(Self { dataset: dataset.to_owned(), title: title.to_owned(), notes, audit, maps, lengths, people })
    }
}

impl Lengths {
    fn of(split: &str, spans: &[NormSpan]) -> Self {
        let mut shares = vec![0.0; BINS];
        for span in spans {
            let bin = ((span.clipped().len() * BINS as f64) as usize).min(BINS - 1);
            shares[bin] += 1.0 / spans.len() as f64;
        }
        Self { split: split.to_owned(), shares }
    }
}

/// Why a split cannot be examined.
fn fault(split: &Split) -> Option<&'static str> {
    if split.pairs() == 0 {
        return Some("it has no moments");
    }
    let placed = |truth: &cuemark_core::Truth| {
        truth.moments.is_empty() || truth.duration().is_some_and(|duration| duration > 0.0 && duration.is_finite())
    };
    (!split.queries.iter().all(placed)).then_some("durations are missing, or queries are about no single video")
}
