//! How far a figure of an audit may be trusted.

use cuemark_core::Rng;
use cuemark_core::stats::{self, Interval, mean, resampled_mean};
use serde::{Deserialize, Serialize};

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AuditFigure {
    /// The value.
    pub value: f64,
    /// Where it plausibly lies: `low` and `high` beside `value` in JSON.
    #[serde(flatten)]
    pub interval: Interval,
}

const RESAMPLES: usize = 2_000;

impl AuditFigure {
    /// The share of `hits` among `trials` with Wilson's interval; 0 to 1 when there are none.
    pub fn share(hits: usize, trials: usize) -> Self {
        let value = if trials == 0 { 0.0 } else { hits as f64 / trials as f64 };
        Self { value, interval: stats::wilson(hits, trials) }
    }

    /// Mean of `values` with its bootstrap interval; all 0 when there are none.
    pub fn of_mean(values: &[f64], seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "bootstrap of a mean");
        Self::bootstrap(mean(values), || resampled_mean(values, &mut rng))
    }

    /// Mean of `first` minus mean of `second`, two independent samples, with its bootstrap interval.
    pub fn of_difference(first: &[f64], second: &[f64], seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "bootstrap of a difference");
        let gap = mean(first) - mean(second);
        Self::bootstrap(gap, || resampled_mean(first, &mut rng) - resampled_mean(second, &mut rng))
    }

    fn bootstrap(value: f64, draw: impl FnMut() -> f64) -> Self {
        Self { value, interval: stats::bootstrap(value, RESAMPLES, draw) }
    }

    /// Whether 0 lies inside the interval.
    pub fn holds_zero(self) -> bool {
        self.interval.low <= 0.0 && 0.0 <= self.interval.high
    }
}
