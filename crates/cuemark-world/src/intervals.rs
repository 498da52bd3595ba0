//! How far a mean may be trusted.

use cuemark_core::Rng;
use serde::{Deserialize, Serialize};

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

const RESAMPLES: usize = 2_000;

impl Interval {
    /// Wilson's interval for a share of `hits` among `trials`; 0 to 1 when there are none.
    ///
    /// ```
    /// use cuemark_world::Interval;
    /// let share = Interval::wilson(8, 10);
    /// assert_eq!(share.value, 0.8);
    /// assert!((share.low - 0.4901625).abs() < 1e-6 && (share.high - 0.9433178).abs() < 1e-6);
    /// ```
    pub fn wilson(hits: usize, trials: usize) -> Self {
        if trials == 0 {
            return Self { value: 0.0, low: 0.0, high: 1.0 };
        }
        let (n, share, z) = (trials as f64, hits as f64 / trials as f64, 1.959_963_984_540_054_f64);
        let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        Self { value: share, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
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

    fn bootstrap(value: f64, mut draw: impl FnMut() -> f64) -> Self {
        let mut draws: Vec<f64> = (0..RESAMPLES).map(|_| draw()).collect();
        draws.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| draws.get((share * (RESAMPLES - 1) as f64).round() as usize).copied().unwrap_or(value);
        Self { value, low: at(0.025), high: at(0.975) }
    }

    /// Whether 0 lies inside.
    pub fn holds_zero(self) -> bool {
        self.low <= 0.0 && 0.0 <= self.high
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

fn resampled_mean(values: &[f64], rng: &mut Rng) -> f64 {
    let drawn = (0..values.len()).filter_map(|_| rng.pick(values)).sum::<f64>();
    if values.is_empty() { 0.0 } else { drawn / values.len() as f64 }
}
