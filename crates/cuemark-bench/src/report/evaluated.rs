//! What one run reached on one split: measured once, stored beside its predictions.

use cuemark_metrics::Metric;
use cuemark_train::OutOfReach;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::about::{About, Answerer};
use super::clip_scores::ClipScores;
use super::per_query::PerQuery;

/// The version of the stored form; a file of a later one is refused.
pub const FORMAT_VERSION: u32 = 1;

/// What one run reached on one split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// [`FORMAT_VERSION`].
    pub version: u32,
    /// Who answered what.
    pub about: About,
    /// Queries of the split.
    pub queries: usize,
    /// Queries without an answer.
    pub missing: usize,
    /// Answers to queries that the split does not have.
    pub unknown: usize,
    /// Every metric by its name, fractions of 1.
    pub metrics: IndexMap<String, Measured>,
    /// How intervals were drawn.
    pub intervals: Resampling,
    /// How the metrics were computed, a line per set of steps.
    pub conventions: Vec<String>,
    /// Moments that no answer of the model could meet; absent when nobody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_reach: Option<OutOfReach>,
    /// The digest of the truth file beside it.
    pub truth: String,
    /// The digest of ids, videos and moments: runs with the same one can be compared query by query.
    pub pairing: String,
    /// Each query's first answer.
    pub first: FirstAnswers,
}

/// One metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The mean over the queries that count.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Queries that count.
    pub counted: usize,
    /// Each query's score.
    pub scores: PerQuery,
}

/// How intervals were drawn: percentile bootstrap over queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Resampling {
    /// Confidence level, a fraction.
    pub level: f64,
    /// Number of resamples.
    pub resamples: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// Each query's first answer, one entry per query in truth order; nothing where a query was not answered.
///
/// An answer in a video that holds no right moment has an overlap of 0 and no start and end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FirstAnswers {
    /// Where it begins, in **seconds**.
    pub start: PerQuery,
    /// Where it ends, in **seconds**.
    pub end: PerQuery,
    /// Its overlap with the best right moment; 0 for a query without an answer.
    pub iou: PerQuery,
    /// The best overlap that any answer of the whole list has.
    pub reach: PerQuery,
    /// How sure the method said it is; empty when it does not say.
    #[serde(default)]
    pub score: PerQuery,
    /// How good it finds every clip; empty when it scores none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saliency: Vec<ClipScores>,
}

impl Evaluated {
    /// The metric that headlines show: `R@1,IoU=0.5` where it was measured, else the first one.
    pub fn headline(&self) -> Option<&str> {
        let usual = Metric::Recall { n: 1, m: 0.5 }.to_string();
        self.metrics.get_key_value(&usual).or_else(|| self.metrics.first()).map(|(name, _)| name.as_str())
    }

    /// What does not hold together: the field and the problem. A file from outside may say anything.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        if self.about.kind == Answerer::Oracle {
            return Some((
                "about.kind",
                "`oracle` is no kind of evaluation: the world's log is stored as a file's".to_owned(),
            ));
        }
        if self.version > FORMAT_VERSION {
            return Some((
                "version",
                format!("{} is newer than {FORMAT_VERSION}, which this program reads", self.version),
            ));
        }
        if self.metrics.is_empty() {
            return Some(("metrics", "there are none".to_owned()));
        }
        let wrong = |numbers: &PerQuery| numbers.0.len() != self.queries;
        let long = |field, numbers: &PerQuery| {
            Some((field, format!("{} entries for {} queries", numbers.0.len(), self.queries)))
        };
        for (field, numbers) in [
            ("first.start", &self.first.start),
            ("first.end", &self.first.end),
            ("first.iou", &self.first.iou),
            ("first.reach", &self.first.reach),
        ] {
            if wrong(numbers) {
                return long(field, numbers);
            }
        }
        if !self.first.score.0.is_empty() && wrong(&self.first.score) {
            return long("first.score", &self.first.score);
        }
        let curves = self.first.saliency.len();
        if curves != 0 && curves != self.queries {
            return Some(("first.saliency", format!("{curves} entries for {} queries", self.queries)));
        }
        if let Some((_, measured)) = self.metrics.iter().find(|(_, measured)| wrong(&measured.scores)) {
            return long("metrics.scores", &measured.scores);
        }
        if !self.truth.bytes().all(|byte| byte.is_ascii_hexdigit()) || self.truth.is_empty() {
            return Some(("truth", "is no digest".to_owned()));
        }
        None
    }
}
