//! DiDeMo's own evaluator: ranks among 21 segments, averaged over the three annotators who agree best.

use cuemark_core::{ChunkRange, iou_chunks};

/// How many annotators count: the three that the answer suits best.
const BEST: usize = 3;

/// Mean of the three smallest ranks (from 1) that the annotators' segments have in `ranked`.
///
/// `rank@k` is the share of queries for which it is at most `k`. A segment that is not in the list ranks behind it.
/// `None` when nobody annotated anything.
///
/// ```
/// # use {cuemark_core::ChunkRange, cuemark_metrics::average_rank};
/// let at = |first, last| ChunkRange::new(first, last).unwrap();
/// let times = [at(0, 0), at(0, 0), at(1, 1), at(5, 5)];
/// assert_eq!(average_rank(&[at(0, 0), at(1, 1), at(5, 5)], &times), Some((1.0 + 1.0 + 2.0) / 3.0));
/// ```
pub fn average_rank(ranked: &[ChunkRange], times: &[ChunkRange]) -> Option<f64> {
    let position = |time: &ChunkRange| ranked.iter().position(|segment| segment == time).unwrap_or(ranked.len());
    let mut ranks: Vec<usize> = times.iter().map(|time| 1 + position(time)).collect();
    ranks.sort_unstable();
    ranks.truncate(BEST);
    (!ranks.is_empty()).then(|| ranks.iter().sum::<usize>() as f64 / ranks.len() as f64)
}

/// Mean of the three largest overlaps of the first answer with the annotators' segments, counted in chunks; 0 without an answer.
pub fn chunk_miou(ranked: &[ChunkRange], times: &[ChunkRange]) -> Option<f64> {
    if times.is_empty() {
        return None;
    }
    let Some(top) = ranked.first() else { return Some(0.0) };
    let mut overlaps: Vec<f64> = times.iter().map(|time| iou_chunks(*top, *time)).collect();
    overlaps.sort_by(|a, b| b.total_cmp(a));
    overlaps.truncate(BEST);
    Some(overlaps.iter().sum::<f64>() / overlaps.len() as f64)
}
