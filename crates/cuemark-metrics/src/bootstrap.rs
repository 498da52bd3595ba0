//! Confidence intervals by resampling queries.

use cuemark_core::stats::{Interval, percentiles};
use cuemark_core::{Progress, Rng, Stopped};
use rayon::prelude::*;

use crate::Column;

/// How to resample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Confidence level as a fraction, such as 0.95.
    pub level: f64,
    /// Number of resamples. Default: 10 000
    pub resamples: usize,
    /// Seed of the draws. Default: 0
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { level: 0.95, resamples: 10_000, seed: 0 }
    }
}

/// Percentile bootstrap over queries, one interval per column.
///
/// All columns see the same resampled queries, so their intervals belong together. Columns must be of one evaluation
/// (equally long). A resample in which no query of a column counts is left out for that column; a column without
/// queries gets the interval 0 to 0. The result depends on the seed alone, not on the number of threads. `progress` counts
/// resamples.
///
/// # Errors
/// When it was stopped.
pub fn intervals(columns: &[Column], how: Bootstrap, progress: &Progress) -> Result<Vec<Interval>, Stopped> {
    let means = resampled_means(columns, how, progress)?;
    Ok(means.into_iter().map(|mut means| percentile_interval(&mut means, how.level)).collect())
}

/// For each column, its mean in every resample.
pub(crate) fn resampled_means(
    columns: &[Column],
    how: Bootstrap,
    progress: &Progress,
) -> Result<Vec<Vec<f64>>, Stopped> {
    let queries = columns.first().map_or(0, |column| column.scores().len());
    let table = Table::new(columns, queries);
    if queries == 0 || how.resamples == 0 {
        return Ok(vec![Vec::new(); columns.len()]);
    }
    progress.announce(how.resamples);
    let sums = (0..how.resamples)
        .into_par_iter()
        .map(|resample| {
            // One stream per resample keeps the result independent of how work is divided.
            progress.advance(1)?;
            Ok(table.resample(&mut Rng::stream(how.seed, &format!("bootstrap {resample}")), queries))
        })
        .collect::<Result<Vec<Vec<f64>>, Stopped>>()?;
    Ok((0..columns.len())
        .map(|column| sums.iter().filter_map(|sums| table.mean(sums, column, queries)).collect())
        .collect())
}

/// The interval that holds `level` of `means`, which are put in order.
pub(crate) fn percentile_interval(means: &mut [f64], level: f64) -> Interval {
    let tail = (1.0 - level.clamp(0.0, 1.0)) / 2.0;
    percentiles(means, [tail, 1.0 - tail]).unwrap_or(Interval { low: 0.0, high: 0.0 })
}

/// Scores by query, so that one drawn query adds to all columns at once; columns that leave queries out have a second
/// field that counts.
struct Table {
    rows: Vec<f64>,
    width: usize,
    /// For each column, where its count stands; `None` when every query counts.
    counts: Vec<Option<usize>>,
}

impl Table {
    fn new(columns: &[Column], queries: usize) -> Self {
        let mut width = columns.len();
        let counts: Vec<Option<usize>> = columns
            .iter()
            .map(|column| {
                let partial = column.counted() < queries;
                width += usize::from(partial);
                partial.then(|| width - 1)
            })
            .collect();
        let mut rows = vec![0.0; queries * width];
        for (position, column) in columns.iter().enumerate() {
            for (row, score) in rows.chunks_exact_mut(width.max(1)).zip(column.scores()) {
                if !score.is_nan() {
                    row[position] = *score;
                    if let Some(count) = counts[position] {
                        row[count] = 1.0;
                    }
                }
            }
        }
        Self { rows, width, counts }
    }

    fn resample(&self, rng: &mut Rng, queries: usize) -> Vec<f64> {
        let mut sums = vec![0.0; self.width];
        for _ in 0..queries.div_ceil(2) {
            // Two 32-bit draws from one: the bias of multiply-and-shift is below queries / 2^32.
            let bits = rng.bits();
            for half in [bits as u32, (bits >> 32) as u32] {
                let drawn = ((u64::from(half) * queries as u64) >> 32) as usize;
                let row = &self.rows[drawn * self.width..(drawn + 1) * self.width];
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += value;
                }
            }
        }
        sums
    }

    /// The draws come in pairs, so an odd number of queries is resampled by one too many; dividing by the number drawn keeps the mean right.
    fn mean(&self, sums: &[f64], column: usize, queries: usize) -> Option<f64> {
        let drawn = (queries.div_ceil(2) * 2) as f64;
        let counted = self.counts[column].map_or(drawn, |count| sums[count]);
        (counted > 0.0).then(|| sums[column] / counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metric, MetricName};

    fn column(scores: Vec<f64>) -> Column {
        Column::derived(MetricName::from(Metric::MeanIou), scores)
    }

    #[test]
    fn the_interval_of_a_share_is_the_binomial_one() {
        // 2 000 queries, a third of them hits: the standard error is sqrt(p(1-p)/n) = 0.01054.
        let scores = (0..2_001).map(|i| f64::from(u8::from(i % 3 == 0))).collect();
        let interval = intervals(&[column(scores)], Bootstrap::default(), &Progress::new()).unwrap()[0];
        let half = 1.96 * (1.0f64 / 3.0 * 2.0 / 3.0 / 2_001.0).sqrt();
        assert!((interval.low - (1.0 / 3.0 - half)).abs() < 0.002, "{interval:?}");
        assert!((interval.high - (1.0 / 3.0 + half)).abs() < 0.002, "{interval:?}");
    }

    #[test]
    fn queries_that_do_not_count_do_not_count_in_resamples_either() {
        let scores = (0..1_000).map(|i| if i % 2 == 0 { 1.0 } else { f64::NAN }).collect();
        let interval = intervals(&[column(scores)], Bootstrap::default(), &Progress::new()).unwrap()[0];
        assert_eq!((interval.low, interval.high), (1.0, 1.0));
    }

    #[test]
    fn one_seed_gives_one_interval() {
        let scores: Vec<f64> = (0..500).map(|i| f64::from(i) / 500.0).collect();
        let of = |seed| {
            intervals(&[column(scores.clone())], Bootstrap { seed, ..Bootstrap::default() }, &Progress::new()).unwrap()
                [0]
        };
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }
}
