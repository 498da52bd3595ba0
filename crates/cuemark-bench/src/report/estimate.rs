//! A number with how far to trust it.

use cuemark_core::Progress;
use cuemark_metrics::{Bootstrap, Column, Metric, MetricName, PairedComparison, compare};
use serde::Serialize;

use super::evaluated::Measured;

/// Half the width of a 95 % interval, in standard errors.
const Z: f64 = 1.959_964;
/// Resamples behind the tests that a report makes itself: the smallest p-value is then 1/2001.
const RESAMPLES: usize = 2000;
/// Queries from which a mean is as good as normally distributed.
const NORMAL_FROM: usize = 200;
/// A difference is called one below this p-value.
pub(super) const SIGNIFICANT: f64 = 0.05;

/// A value and its 95 % interval, fractions of 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// The mean over seeds: of the values, and of the ends of their intervals. `None` without any.
    pub(super) fn over_seeds<'a>(measured: impl Iterator<Item = &'a Measured>) -> Option<Self> {
        let mut sum = Self { value: 0.0, low: 0.0, high: 0.0 };
        let mut n = 0.0;
        for one in measured {
            n += 1.0;
            sum = Self { value: sum.value + one.value, low: sum.low + one.low, high: sum.high + one.high };
        }
        (n > 0.0).then(|| Self { value: sum.value / n, low: sum.low / n, high: sum.high / n })
    }

    /// The mean of independent numbers, interval by the normal approximation. `None` when there are none.
    pub(super) fn mean(numbers: impl Iterator<Item = f64>) -> Option<(Self, usize)> {
        let (mut n, mut sum, mut squares) = (0usize, 0.0, 0.0);
        for number in numbers.filter(|number| !number.is_nan()) {
            n += 1;
            sum += number;
            squares += number * number;
        }
        if n == 0 {
            return None;
        }
        let mean = sum / n as f64;
        let spread = (squares / n as f64 - mean * mean).max(0.0);
        let half = Z * (spread / n as f64).sqrt();
        Some((Self { value: mean, low: mean - half, high: mean + half }, n))
    }

    /// The mean of scores in 0..1 with Wilson's interval, which stays in 0..1 and is no point when all scores are 0 or 1.
    pub(super) fn share(scores: impl Iterator<Item = f64>) -> Option<(Self, usize)> {
        let (mean, n) = Self::mean(scores)?;
        let (p, z) = (mean.value.clamp(0.0, 1.0), Z * Z / n as f64);
        let half = (p * (1.0 - p) * z + z * z / 4.0).sqrt();
        let bound = |sign: f64| ((p + z / 2.0 + sign * half) / (1.0 + z)).clamp(0.0, 1.0);
        Some((Self { value: mean.value, low: bound(-1.0), high: bound(1.0) }, n))
    }

    /// `self - other` of different queries: the widths of both intervals add as independent errors do.
    pub(super) fn minus(self, other: Self) -> Self {
        let half = ((self.high - self.low) / 2.0).hypot((other.high - other.low) / 2.0);
        let value = self.value - other.value;
        Self { value, low: value - half, high: value + half }
    }

    /// Whether the interval lies above 0.
    pub fn is_positive(self) -> bool {
        self.low > 0.0
    }

    /// Whether the interval lies below 0.
    pub fn is_negative(self) -> bool {
        self.high < 0.0
    }
}

/// `b - a` on the same queries, with the paired interval and the p-value of the randomisation test.
pub(super) fn paired(a: Vec<f64>, b: Vec<f64>) -> Option<(Estimate, f64)> {
    let column = |scores| Column::derived(MetricName::from(Metric::MeanIou), scores);
    let how = Bootstrap { resamples: RESAMPLES, ..Bootstrap::default() };
    // A progress that nobody else holds is never stopped.
    let compared = compare(&column(a), &column(b), how, &Progress::new()).ok().flatten()?;
    let PairedComparison { difference, interval, p_value, .. } = compared;
    Some((Estimate { value: difference, low: interval.low, high: interval.high }, p_value))
}

/// As [`paired`], without a p-value: by the normal approximation where there are queries enough for it.
pub(super) fn paired_difference(a: Vec<f64>, b: Vec<f64>) -> Option<Estimate> {
    if a.len().min(b.len()) < NORMAL_FROM {
        return paired(a, b).map(|(difference, _)| difference);
    }
    Estimate::mean(a.iter().zip(&b).map(|(a, b)| b - a)).map(|(difference, _)| difference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_errors_add_as_squares() {
        let a = Estimate { value: 0.5, low: 0.47, high: 0.53 };
        let b = Estimate { value: 0.4, low: 0.36, high: 0.44 };
        let gap = a.minus(b);
        assert!((gap.value - 0.1).abs() < 1e-12 && (gap.high - 0.15).abs() < 1e-12, "3² + 4² = 5²: {gap:?}");
        assert!(gap.is_positive());
    }

    #[test]
    fn the_interval_of_a_mean_is_the_normal_one() {
        // Half hits among 400: standard error 0.025.
        let (mean, n) = Estimate::mean((0..400).map(|k| f64::from(k % 2))).unwrap();
        assert_eq!((mean.value, n), (0.5, 400));
        assert!((mean.high - 0.549).abs() < 1e-3, "{mean:?}");
        assert!(Estimate::mean([f64::NAN].into_iter()).is_none());
    }

    #[test]
    fn the_interval_of_a_share_stays_a_share() {
        // Wilson's bound for 0 of 10 is z² / (n + z²) = 3.8415 / 13.8415.
        let (none, n) = Estimate::share([0.0; 10].into_iter()).unwrap();
        assert_eq!((none.value, none.low, n), (0.0, 0.0, 10));
        assert!((none.high - 0.277_53).abs() < 1e-4, "{none:?}");
    }
}
