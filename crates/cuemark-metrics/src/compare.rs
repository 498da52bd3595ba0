//! Is one method better than another on the same queries?

use cuemark_core::{Progress, Rng, Stopped};
use rayon::prelude::*;

use crate::bootstrap::{percentile_interval, resampled_means};
use crate::{Bootstrap, Column, Interval};

/// Two methods on the same queries, B against A.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedComparison {
    /// Queries that count for both.
    pub queries: usize,
    /// Mean of A.
    pub a: f64,
    /// Mean of B.
    pub b: f64,
    /// Mean of B - A.
    pub difference: f64,
    /// Paired bootstrap interval of the difference.
    pub interval: Interval,
    /// Two-sided p-value of the paired randomisation test: how often random signs give a difference as large.
    pub p_value: f64,
    /// Mean difference over its standard deviation (Cohen's d for pairs); 0 when all differences are equal to 0.
    pub effect_size: f64,
    /// Queries on which B scores higher.
    pub wins: usize,
    /// Queries on which both score the same.
    pub ties: usize,
    /// Queries on which B scores lower.
    pub losses: usize,
}

/// Compares two columns of one metric over the same truth, query by query.
///
/// `None` when no query counts for both. The p-value counts the observed order too, so it is never 0. `progress` counts the
/// resamples of both tests.
///
/// # Errors
/// When it was stopped.
pub fn compare(
    a: &Column,
    b: &Column,
    how: Bootstrap,
    progress: &Progress,
) -> Result<Option<PairedComparison>, Stopped> {
    let pairs: Vec<(f64, f64)> =
        a.scores().iter().zip(b.scores()).filter(|(a, b)| !a.is_nan() && !b.is_nan()).map(|(a, b)| (*a, *b)).collect();
    let n = pairs.len();
    if n == 0 {
        return Ok(None);
    }
    let mean = |values: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(values).sum::<f64>() / n as f64;
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    let difference = differences.iter().sum::<f64>() / n as f64;
    let spread = differences.iter().map(|d| (d - difference).powi(2)).sum::<f64>() / (n.max(2) - 1) as f64;
    let column = Column::derived(a.name.clone(), differences.clone());
    let mut resampled = resampled_means(std::slice::from_ref(&column), how, progress)?.swap_remove(0);
    Ok(Some(PairedComparison {
        queries: n,
        a: mean(&|pair| pair.0),
        b: mean(&|pair| pair.1),
        difference,
        interval: percentile_interval(&mut resampled, how.level),
        p_value: randomisation_p(&differences, how, progress)?,
        effect_size: if spread > 0.0 { difference / spread.sqrt() } else { 0.0 },
        wins: differences.iter().filter(|d| **d > 0.0).count(),
        ties: differences.iter().filter(|d| **d == 0.0).count(),
        losses: differences.iter().filter(|d| **d < 0.0).count(),
    }))
}

/// P-values corrected for how many tests there were (Holm, step-down), in the order given: the chance that any of them is a
/// false alarm stays below the level.
///
/// ```
/// let corrected = cuemark_metrics::holm(&[0.01, 0.04, 0.03]);
/// assert_eq!(corrected, [0.03, 0.06, 0.06]);
/// ```
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut corrected = vec![0.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, place) in order.into_iter().enumerate() {
        least = least.max(p_values[place] * (p_values.len() - rank) as f64).min(1.0);
        corrected[place] = least;
    }
    corrected
}

/// Share of random sign patterns whose mean difference is at least as large as the observed one, itself included.
fn randomisation_p(differences: &[f64], how: Bootstrap, progress: &Progress) -> Result<f64, Stopped> {
    let informative: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let observed = informative.iter().sum::<f64>().abs();
    progress.announce(how.resamples);
    let as_large = (0..how.resamples).into_par_iter().map(|resample| {
        progress.advance(1)?;
        let mut rng = Rng::stream(how.seed, &format!("randomisation {resample}"));
        let signed: f64 = informative
            .chunks(64)
            .map(|chunk| {
                let signs = rng.bits();
                chunk.iter().enumerate().map(|(bit, d)| if signs >> bit & 1 == 0 { *d } else { -d }).sum::<f64>()
            })
            .sum();
        Ok(usize::from(signed.abs() >= observed - 1e-12 * observed))
    });
    let as_large = as_large.try_reduce(|| 0, |a, b| Ok(a + b))?;
    Ok((1 + as_large) as f64 / (1 + how.resamples) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metric, MetricName};

    fn column(scores: Vec<f64>) -> Column {
        Column::derived(MetricName::from(Metric::MeanIou), scores)
    }

    #[test]
    fn a_method_is_not_better_than_itself() {
        let same = column((0..300).map(|i| f64::from(i % 2)).collect());
        let result = compare(&same, &same, Bootstrap::default(), &Progress::new()).unwrap().unwrap();
        assert_eq!((result.difference, result.p_value, result.ties), (0.0, 1.0, 300));
    }

    #[test]
    fn a_clear_difference_is_seen_and_noise_is_not() {
        let mut rng = Rng::new(5);
        let base: Vec<f64> = (0..1_000).map(|_| rng.uniform()).collect();
        let noise = base.iter().map(|x| x + 0.2 * rng.normal()).collect();
        let better = base.iter().map(|x| x + 0.05 + 0.2 * rng.normal()).collect();
        let a = column(base);
        let seen = compare(&a, &column(better), Bootstrap::default(), &Progress::new()).unwrap().unwrap();
        assert!(seen.p_value < 0.001 && seen.interval.low > 0.0, "{seen:?}");
        let unseen = compare(&a, &column(noise), Bootstrap::default(), &Progress::new()).unwrap().unwrap();
        assert!(unseen.p_value > 0.01 && unseen.interval.low < 0.0 && unseen.interval.high > 0.0, "{unseen:?}");
    }

    #[test]
    fn few_queries_give_the_exact_sign_test() {
        // Five queries, all won by 1: only the two unanimous of 32 sign patterns are as large, p = 1/16.
        let (a, b) = (column(vec![0.0; 5]), column(vec![1.0; 5]));
        let p = compare(&a, &b, Bootstrap { resamples: 100_000, ..Bootstrap::default() }, &Progress::new())
            .unwrap()
            .unwrap()
            .p_value;
        assert!((p - 1.0 / 16.0).abs() < 0.005, "{p}");
    }
}
