//! Intervals of shares and correlations of ranks.

use cuemark_core::Rng;
use serde::Serialize;

/// Both ends of a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Half the width of a 95 % interval of a standard normal variable.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's 95 % interval of a share: `hits` of `trials`. Nothing tried gives 0 to 1.
///
/// ```
/// use cuemark_protocols::ranked::statistics::wilson;
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

/// Ranks from 1, equal values sharing the mean of their ranks.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for group in order.chunk_by(|a, b| values[*a] == values[*b]).scan(0, |before, group| {
        let rank = *before as f64 + (group.len() as f64 + 1.0) / 2.0;
        *before += group.len();
        Some((group, rank))
    }) {
        group.0.iter().for_each(|place| ranks[*place] = group.1);
    }
    ranks
}

/// Spearman's rank correlation: Pearson's of the ranks. 0 when one side is constant or there are fewer than two pairs.
///
/// `a` and `b` have the same length and no NaN.
pub fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 + 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum() };
    let spread = (product(&a, &a) * product(&b, &b)).sqrt();
    if spread > 0.0 { product(&a, &b) / spread } else { 0.0 }
}

/// Kendall's rank correlation with its correction for ties (tau-b). 0 when one side is constant.
///
/// `a` and `b` have the same length and no NaN. Every pair is looked at, so time grows with the square of the length.
pub fn kendall(a: &[f64], b: &[f64]) -> f64 {
    let (mut balance, mut untied_a, mut untied_b) = (0i64, 0i64, 0i64);
    for first in 0..a.len() {
        for second in 0..first {
            let sign =
                |values: &[f64]| i64::from(values[first] > values[second]) - i64::from(values[first] < values[second]);
            let (sign_a, sign_b) = (sign(a), sign(b));
            balance += sign_a * sign_b;
            untied_a += sign_a.abs();
            untied_b += sign_b.abs();
        }
    }
    let spread = (untied_a as f64 * untied_b as f64).sqrt();
    if spread > 0.0 { balance as f64 / spread } else { 0.0 }
}

/// The 95 % interval of a mean over groups, by drawing as many groups with replacement `draws` times.
///
/// One value, or none, gives an interval without width.
pub fn bootstrap_mean(values: &[f64], draws: usize, rng: &mut Rng) -> Interval {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 || draws == 0 {
        return Interval { low: mean, high: mean };
    }
    let mut means: Vec<f64> =
        (0..draws).map(|_| (0..values.len()).map(|_| values[rng.below(values.len())]).sum::<f64>() / count).collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((draws - 1) as f64 * share).round() as usize];
    Interval { low: at(0.025), high: at(0.975) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_and_correlations_are_those_worked_out_by_hand() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 4.0, 3.0, 5.0]);
        // Differences of ranks 1, 1, 1, 1, 0: 1 - 6·4 / (5·24).
        assert!((spearman(&a, &b) - 0.8).abs() < 1e-12);
        // Ten pairs, two of them turned round.
        assert!((kendall(&a, &b) - 0.6).abs() < 1e-12);
        // One tie in b: (5 - 0) / sqrt(6 · 5).
        assert!((kendall(&[1.0, 2.0, 3.0, 4.0], &[1.0, 1.0, 2.0, 3.0]) - 5.0 / 30f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_share_lies_inside_its_interval_and_more_trials_narrow_it() {
        let (few, many) = (wilson(3, 20), wilson(300, 2000));
        assert!(few.low < 0.15 && 0.15 < few.high);
        assert!(many.high - many.low < few.high - few.low);
        assert_eq!(wilson(0, 0), Interval { low: 0.0, high: 1.0 });
    }

    proptest! {
        #[test]
        fn correlations_stay_inside_one_and_turn_with_the_sign(
            pairs in proptest::collection::vec((0u8..6, 0u8..6), 2..40)
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().map(|(a, b)| (f64::from(*a), f64::from(*b))).unzip();
            let turned: Vec<f64> = b.iter().map(|b| -b).collect();
            for correlation in [spearman, kendall] {
                let found = correlation(&a, &b);
                prop_assert!((-1.0 - 1e-9..=1.0 + 1e-9).contains(&found));
                prop_assert!((correlation(&a, &turned) + found).abs() < 1e-9);
            }
        }
    }
}
