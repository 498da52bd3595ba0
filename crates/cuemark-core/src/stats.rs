//! Intervals of shares and means.

use serde::{Deserialize, Serialize};

use crate::Rng;

/// Both ends of a confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Half the width of a 95 % interval of a standard normal variable.
const Z: f64 = 1.959_963_984_540_054;

/// The shares of draws below which a 95 % interval begins and ends.
const ENDS_OF_95: [f64; 2] = [0.025, 0.975];

/// Wilson's 95 % interval of a share: `hits` of `trials`. Nothing tried gives 0 to 1.
///
/// ```
/// use cuemark_core::stats::wilson;
/// let none = wilson(0, 100);
/// assert_eq!(none.low, 0.0);
/// assert!((none.high - 0.0370).abs() < 1e-4); // z² / (n + z²)
/// ```
pub fn wilson(hits: usize, trials: usize) -> Interval {
    if trials == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let (n, share) = (trials as f64, hits as f64 / trials as f64);
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    // At both extremes the formula's end is exact, which rounding would miss by a hair.
    let low = if hits == 0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if hits == trials { 1.0 } else { (middle + half).min(1.0) };
    Interval { low, high }
}

/// The percentile interval of bootstrap `draws`, which are put in order: the draws at the shares `low` and `high` of the
/// way from the least to the greatest. `None` when there are none.
pub fn percentiles(draws: &mut [f64], [low, high]: [f64; 2]) -> Option<Interval> {
    draws.sort_unstable_by(f64::total_cmp);
    let last = draws.len().checked_sub(1)?;
    let at = |share: f64| draws[((share * last as f64).round() as usize).min(last)];
    Some(Interval { low: at(low), high: at(high) })
}

/// The 95 % percentile interval of what `draw` gives in `draws` bootstrap draws; without a draw, `value` alone.
pub fn bootstrap(value: f64, draws: usize, mut draw: impl FnMut() -> f64) -> Interval {
    let mut drawn: Vec<f64> = (0..draws).map(|_| draw()).collect();
    percentiles(&mut drawn, ENDS_OF_95).unwrap_or(Interval { low: value, high: value })
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The mean of as many values drawn with replacement; 0 of nothing.
pub fn resampled_mean(values: &[f64], rng: &mut Rng) -> f64 {
    let drawn = (0..values.len()).map(|_| values[rng.below(values.len())]).sum::<f64>();
    if values.is_empty() { 0.0 } else { drawn / values.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_trials_narrow_an_interval_and_it_holds_the_share() {
        let (few, many) = (wilson(3, 20), wilson(300, 2000));
        assert!(many.high - many.low < few.high - few.low);
        assert!(few.low < 0.15 && 0.15 < few.high && many.low < 0.15 && 0.15 < many.high);
        assert_eq!(wilson(0, 0), Interval { low: 0.0, high: 1.0 });
        assert_eq!((wilson(0, 7).low, wilson(7, 7).high), (0.0, 1.0));
    }

    #[test]
    fn percentiles_are_draws_by_their_place() {
        let mut draws: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentiles(&mut draws, [0.05, 0.95]), Some(Interval { low: 5.0, high: 95.0 }));
        assert_eq!(percentiles(&mut [], [0.05, 0.95]), None);
    }

    #[test]
    fn a_bootstrap_of_one_value_has_no_width() {
        let mut rng = Rng::new(1);
        let interval = bootstrap(3.0, 50, || resampled_mean(&[3.0], &mut rng));
        assert_eq!(interval, Interval { low: 3.0, high: 3.0 });
        assert_eq!(bootstrap(3.0, 0, || 9.0), Interval { low: 3.0, high: 3.0 });
    }
}
