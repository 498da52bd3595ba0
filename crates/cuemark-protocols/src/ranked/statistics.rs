//! Correlations of ranks, and intervals over groups.

use cuemark_core::Rng;
use cuemark_core::stats::{Interval, bootstrap, mean, resampled_mean};

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
    let mean = mean(values);
    if values.len() < 2 {
        return Interval { low: mean, high: mean };
    }
    bootstrap(mean, draws, || resampled_mean(values, rng))
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
