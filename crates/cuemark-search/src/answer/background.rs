//! What a question scores against moments that have nothing to do with it.

use crate::Embedding;

/// A sample of an index's moments.
#[derive(Debug, Default)]
pub(crate) struct Background(Vec<Embedding>);

/// How a question's scores are spread over a background.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    mean: f64,
    deviation: f64,
}

impl Background {
    /// Moments that are enough to know a mean and a deviation to a few percent.
    pub(crate) const SIZE: usize = 2000;

    pub(crate) fn new(moments: Vec<Embedding>) -> Self {
        Self(moments)
    }

    /// How the scores of `query` are spread.
    pub(crate) fn spread(&self, query: &Embedding) -> Spread {
        let scores: Vec<f64> = self.0.iter().map(|moment| f64::from(moment.cosine(query))).collect();
        let count = scores.len().max(1) as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / count;
        Spread { mean, deviation: variance.sqrt().max(1e-6) }
    }
}

impl Spread {
    /// How many deviations a score lies above the mean.
    pub(crate) fn surprise(&self, score: f32) -> f64 {
        (f64::from(score) - self.mean) / self.deviation
    }
}
