//! Sparse vectors on both sides, the right ones turned inside out: for each term, the sentences that hold it.

use std::ops::Range;

/// One sentence as (term, weight), terms ascending.
pub(super) type Weighted = Vec<(u32, f32)>;

/// Inner products of sparse vectors.
pub(super) struct Postings {
    left: Vec<Weighted>,
    right: usize,
    /// Term `t` has the entries `starts[t]..starts[t + 1]` of `columns` and `weights`, columns ascending.
    starts: Vec<usize>,
    columns: Vec<u32>,
    weights: Vec<f32>,
}

impl Postings {
    /// `terms` is one more than the largest term number on either side.
    pub(super) fn new(left: Vec<Weighted>, right: &[Weighted], terms: usize) -> Self {
        let mut starts = vec![0; terms + 1];
        for (term, _) in right.iter().flatten() {
            starts[*term as usize + 1] += 1;
        }
        for term in 0..terms {
            starts[term + 1] += starts[term];
        }
        let entries = starts[terms];
        let (mut columns, mut weights) = (vec![0; entries], vec![0.0; entries]);
        let mut next = starts.clone();
        for (column, sentence) in right.iter().enumerate() {
            for (term, weight) in sentence {
                let place = &mut next[*term as usize];
                columns[*place] = column as u32;
                weights[*place] = *weight;
                *place += 1;
            }
        }
        Self { left, right: right.len(), starts, columns, weights }
    }

    pub(super) fn left(&self) -> usize {
        self.left.len()
    }

    pub(super) fn right(&self) -> usize {
        self.right
    }

    /// Fills `out` with inner products, as [`Similarity::tile`](super::Similarity::tile) asks.
    pub(super) fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) {
        out.fill(0.0);
        if columns.is_empty() {
            return;
        }
        for (sentence, out) in self.left[rows].iter().zip(out.chunks_exact_mut(columns.len())) {
            for (term, weight) in sentence {
                let entries = self.starts[*term as usize]..self.starts[*term as usize + 1];
                let held = &self.columns[entries.clone()];
                let first = held.partition_point(|column| (*column as usize) < columns.start);
                let end = held.partition_point(|column| (*column as usize) < columns.end);
                let weights = &self.weights[entries][first..end];
                for (column, other) in held[first..end].iter().zip(weights) {
                    out[*column as usize - columns.start] += weight * other;
                }
            }
        }
    }
}
