//! Does a method know when it is right?

use serde::Serialize;

use super::evaluated::Evaluated;

/// Bins of equally many queries.
const BINS: usize = 10;
/// The overlap from which an answer is right here.
const RIGHT: f32 = 0.5;

/// How sure a method said it was, against how often it was right (IoU ≥ 0.5), for its first seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CalibrationChart {
    /// Whose.
    pub label: String,
    /// Ten bins of equally many queries, the least sure first.
    pub bins: Vec<Bin>,
    /// Chance that a right answer has a higher score than a wrong one; 0.5 says nothing. Absent when all are right or wrong.
    pub auroc: Option<f64>,
    /// Mean distance between score and share of right answers over the bins; absent unless scores lie in 0..1.
    pub error: Option<f64>,
}

/// Queries of like confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// Their mean score.
    pub score: f64,
    /// Share of them that are right.
    pub right: f64,
    /// How many.
    pub queries: usize,
}

impl CalibrationChart {
    /// `None` when the method gives no scores, or the same to all.
    pub(super) fn of(label: String, run: &Evaluated) -> Option<Self> {
        let mut pairs: Vec<(f32, bool)> = run
            .first
            .score
            .0
            .iter()
            .zip(&run.first.iou.0)
            .filter(|(score, _)| score.is_finite())
            .map(|(score, iou)| (*score, *iou >= RIGHT))
            .collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (lowest, highest) = (pairs.first()?.0, pairs.last()?.0);
        if lowest >= highest {
            return None;
        }
        let size = pairs.len().div_ceil(BINS).max(1);
        let bin = |chunk: &[(f32, bool)]| {
            let n = chunk.len() as f64;
            Bin {
                score: chunk.iter().map(|(score, _)| f64::from(*score)).sum::<f64>() / n,
                right: chunk.iter().filter(|(_, right)| *right).count() as f64 / n,
                queries: chunk.len(),
            }
        };
        let bins: Vec<Bin> = pairs.chunks(size).map(bin).collect();
        let is_share = lowest >= 0.0 && highest <= 1.0;
        let off = |bin: &Bin| (bin.score - bin.right).abs() * bin.queries as f64 / pairs.len() as f64;
        let error = is_share.then(|| bins.iter().map(off).sum());
        Some(Self { label, auroc: auroc(&pairs), bins, error })
    }
}

/// The area under the ROC curve of pairs sorted by score; equal scores count half.
fn auroc(sorted: &[(f32, bool)]) -> Option<f64> {
    let right = sorted.iter().filter(|(_, right)| *right).count() as f64;
    let wrong = sorted.len() as f64 - right;
    if right == 0.0 || wrong == 0.0 {
        return None;
    }
    let (mut rank, mut sum) = (0.0, 0.0);
    for tied in sorted.chunk_by(|a, b| a.0 == b.0) {
        let mean_rank = rank + (tied.len() as f64 + 1.0) / 2.0;
        sum += mean_rank * tied.iter().filter(|(_, right)| *right).count() as f64;
        rank += tied.len() as f64;
    }
    Some((sum - right * (right + 1.0) / 2.0) / (right * wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_one_for_perfect_order_and_a_half_for_none() {
        let pairs = |rights: [bool; 4]| [0.1, 0.2, 0.3, 0.4].into_iter().zip(rights).collect::<Vec<(f32, bool)>>();
        assert_eq!(auroc(&pairs([false, false, true, true])), Some(1.0));
        assert_eq!(auroc(&pairs([true, true, false, false])), Some(0.0));
        assert_eq!(auroc(&pairs([true, false, false, true])), Some(0.5));
        let tied: Vec<(f32, bool)> = vec![(0.5, true), (0.5, false)];
        assert_eq!((auroc(&tied), auroc(&pairs([true; 4]))), (Some(0.5), None));
    }
}
