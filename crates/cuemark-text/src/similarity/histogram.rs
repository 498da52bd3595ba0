//! How similarities are spread, and which threshold takes which share of them.

use serde::Serialize;

use super::{Result, Similarity, sweep};

/// Which pairs are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// Every pair.
    All,
    /// Every pair but those of a thing with itself: both sides are the same list.
    Others,
}

/// Equal bins from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scale {
    /// Where the first bin begins.
    pub low: f32,
    /// Where the last bin ends; `high` itself belongs to it.
    pub high: f32,
    /// How many bins there are, at least 1.
    pub bins: usize,
}

impl Scale {
    /// -1 to 1 in `bins` bins, as cosines have it.
    pub fn cosine(bins: usize) -> Self {
        Self { low: -1.0, high: 1.0, bins }
    }

    /// 0 to 1 in `bins` bins.
    pub fn unit(bins: usize) -> Self {
        Self { low: 0.0, high: 1.0, bins }
    }

    fn bin(&self, value: f32) -> usize {
        let place = (value - self.low) / (self.high - self.low) * self.bins as f32;
        // The cast saturates, so what lies outside lands in the first or last bin.
        (place as usize).min(self.bins.saturating_sub(1))
    }

    /// Where bin number `bin` begins.
    pub fn edge(&self, bin: usize) -> f32 {
        self.low + (self.high - self.low) * bin as f32 / self.bins as f32
    }
}

/// Counts of similarities in equal bins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// The bins.
    pub scale: Scale,
    /// Pairs in each bin; those outside the scale are counted in the nearest.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// No pairs yet.
    pub fn empty(scale: Scale) -> Self {
        Self { scale, counts: vec![0; scale.bins.max(1)] }
    }

    /// Counts one pair.
    pub fn count(&mut self, similarity: f32) {
        self.counts[self.scale.bin(similarity)] += 1;
    }

    /// All pairs together.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share of pairs at or above `threshold`, to the width of a bin: those in the bin that holds it are counted.
    pub fn share_at_least(&self, threshold: f32) -> f64 {
        let above: u64 = self.counts[self.scale.bin(threshold)..].iter().sum();
        above as f64 / self.total().max(1) as f64
    }

    /// The lowest bin edge with at most `share` of the pairs at or above it; `high` when even the last bin has more.
    pub fn threshold_for_top(&self, share: f64) -> f32 {
        let allowed = share * self.total() as f64;
        let mut above = 0;
        for bin in (0..self.counts.len()).rev() {
            above += self.counts[bin];
            if above as f64 > allowed {
                return self.scale.edge(bin + 1);
            }
        }
        self.scale.low
    }

    /// The highest bin edge with at most `share` of the pairs below it; `low` when even the first bin has more.
    pub fn threshold_for_bottom(&self, share: f64) -> f32 {
        let allowed = share * self.total() as f64;
        let mut below = 0;
        for bin in 0..self.counts.len() {
            below += self.counts[bin];
            if below as f64 > allowed {
                return self.scale.edge(bin);
            }
        }
        self.scale.high
    }

    /// Both together; `other` has the same scale.
    #[must_use]
    pub fn joined(mut self, other: &Self) -> Self {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self
    }
}

/// Counts every pair of `provider` in the bins of `scale`.
///
/// # Errors
/// When the provider cannot be read.
pub fn histogram(provider: &dyn Similarity, pairs: Pairs, scale: Scale) -> Result<Histogram> {
    let blocks = sweep(
        provider,
        |_| Histogram::empty(scale),
        |counted, tile| {
            for (row, values) in tile.rows() {
                values.iter().for_each(|value| counted.count(*value));
                let own = row.checked_sub(tile.first_column()).and_then(|column| values.get(column));
                if let (Pairs::Others, Some(own)) = (pairs, own) {
                    counted.counts[scale.bin(*own)] -= 1;
                }
            }
        },
        |_, counted| Ok(counted),
    )?;
    Ok(blocks.iter().fold(Histogram::empty(scale), Histogram::joined))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::Matrix;

    fn known() -> Matrix {
        Matrix::new("known", 3, vec![1.0, 0.2, 0.9, 0.2, 1.0, 0.4, 0.9, 0.4, 1.0]).unwrap()
    }

    #[test]
    fn pairs_of_a_thing_with_itself_can_be_left_out() {
        let all = histogram(&known(), Pairs::All, Scale::unit(10)).unwrap();
        assert_eq!(all.total(), 9);
        let others = histogram(&known(), Pairs::Others, Scale::unit(10)).unwrap();
        assert_eq!(others.counts, [0, 0, 2, 0, 2, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn values_outside_the_scale_are_counted_at_its_ends() {
        let matrix = Matrix::new("wide", 4, vec![-5.0, 0.0, 1.0, 7.0]).unwrap();
        assert_eq!(histogram(&matrix, Pairs::All, Scale::unit(2)).unwrap().counts, [2, 2]);
    }

    #[test]
    fn a_threshold_takes_the_share_it_was_asked_for() {
        let matrix = Matrix::new("even", 100, (0..100).map(|n| (n as f32 + 0.5) / 100.0).collect()).unwrap();
        let counted = histogram(&matrix, Pairs::All, Scale::unit(100)).unwrap();
        assert!((counted.threshold_for_top(0.1) - 0.9).abs() < 1e-6);
        assert!((counted.threshold_for_bottom(0.25) - 0.25).abs() < 1e-6);
        assert!((counted.share_at_least(0.9) - 0.1).abs() < 1e-9);
    }
}
