//! How likely a video or a sentence is drawn as a negative.

use cuemark_core::Rng;
use serde::{Deserialize, Serialize};

/// How the negatives of the second stage are sampled. The paper prints neither `a` nor `b`; `a` is the temperature that
/// the released settings name.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// How fast the chance falls as the relevance moves away from that of the positives. Default: 0.5
    pub a: f64,
    /// How much more relevant than the positives the likeliest negatives are. Default: 0
    pub b: f64,
    /// Videos for each query. Default: 50
    pub videos: usize,
    /// Queries for each video. Default: 100
    pub queries: usize,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { a: 0.5, b: 0.0, videos: 50, queries: 100 }
    }
}

impl Sampling {
    /// Draws `count` different candidates, fewer when there are not so many, in the order of drawing.
    ///
    /// `relevance` holds one value per candidate, all of them reliable negatives: of videos for a query, or of queries
    /// for a video. `positive` is the mean relevance of the positives.
    pub fn draw(&self, relevance: &[f64], positive: f64, count: usize, rng: &mut Rng) -> Vec<usize> {
        let mut weights = sampling_probabilities(relevance, positive, self.a, self.b);
        let mut drawn = Vec::with_capacity(count.min(weights.len()));
        while drawn.len() < count {
            let Some(candidate) = rng.weighted(&weights) else { break };
            weights[candidate] = 0.0;
            drawn.push(candidate);
        }
        drawn
    }
}

/// The chance of each candidate to be drawn as a negative: `exp(-a (r - positive - b)²)` over their sum.
///
/// Largest where a candidate is as relevant as the positives are. Without candidates nothing; all alike when every one is
/// so far off that its chance vanishes.
pub fn sampling_probabilities(relevance: &[f64], positive: f64, a: f64, b: f64) -> Vec<f64> {
    let weights: Vec<f64> = relevance.iter().map(|r| (-a * (r - positive - b).powi(2)).exp()).collect();
    let total: f64 = weights.iter().sum();
    if total > 0.0 {
        return weights.into_iter().map(|weight| weight / total).collect();
    }
    vec![1.0 / relevance.len() as f64; relevance.len()]
}
