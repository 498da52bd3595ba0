//! The most alike things on the right, for everything on the left.

use std::cmp::Ordering;

use super::{Result, Similarity, sweep};

/// One thing on the right and how alike it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Its column.
    pub index: u32,
    /// How alike it is.
    pub similarity: f32,
}

impl Neighbour {
    /// More alike first; of equals, the smaller column first.
    fn order(&self, other: &Self) -> Ordering {
        other.similarity.total_cmp(&self.similarity).then(self.index.cmp(&other.index))
    }
}

/// For each row, its `k` most alike columns, best first; of equals, the smaller column first.
///
/// A row has fewer than `k` only when the right side has. Where both sides are the same list, a row's own column is
/// among them. Memory is that of the result and of one tile per thread.
///
/// # Errors
/// When the provider cannot be read.
pub fn top_k(provider: &dyn Similarity, k: usize) -> Result<Vec<Vec<Neighbour>>> {
    let k = k.min(provider.right());
    let blocks = sweep(
        provider,
        |rows| rows.map(|_| Best::new(k)).collect::<Vec<_>>(),
        |block, tile| {
            for (best, (_, values)) in block.iter_mut().zip(tile.rows()) {
                best.take(tile.first_column() as u32, values);
            }
        },
        |_, block| Ok(block.into_iter().map(Best::finish).collect::<Vec<_>>()),
    )?;
    Ok(blocks.into_iter().flatten().collect())
}

/// The best of what one row has shown so far.
///
/// Holds up to twice as many as wanted and is cut back when full, so that nearly every value meets one comparison
/// with `bar` and nothing else.
struct Best {
    k: usize,
    /// A value must exceed this to matter: columns come in ascending order, so a later equal one loses the tie.
    bar: f32,
    held: Vec<Neighbour>,
}

impl Best {
    fn new(k: usize) -> Self {
        let bar = if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { k, bar, held: Vec::new() }
    }

    fn take(&mut self, first: u32, values: &[f32]) {
        // Sixty-four comparisons at once, which the compiler turns into a few instructions, skip most of the row.
        for (chunk, values) in values.chunks(64).enumerate() {
            if !values.iter().fold(false, |any, value| any | (*value > self.bar)) {
                continue;
            }
            for (column, value) in values.iter().enumerate() {
                if *value > self.bar {
                    self.held.push(Neighbour { index: first + (chunk * 64 + column) as u32, similarity: *value });
                    if self.held.len() == 2 * self.k {
                        self.cut();
                    }
                }
            }
        }
    }

    /// Keeps the best `k`; the worst of them becomes the bar.
    fn cut(&mut self) {
        if self.held.len() >= self.k && self.k > 0 {
            let (_, last, _) = self.held.select_nth_unstable_by(self.k - 1, Neighbour::order);
            self.bar = last.similarity;
            self.held.truncate(self.k);
        }
    }

    fn finish(mut self) -> Vec<Neighbour> {
        self.cut();
        self.held.sort_unstable_by(Neighbour::order);
        self.held.shrink_to_fit();
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::Matrix;
    use proptest::prelude::*;

    fn by_sorting(values: &[f32], k: usize) -> Vec<u32> {
        let mut columns: Vec<u32> = (0..values.len() as u32).collect();
        columns.sort_by(|a, b| values[*b as usize].total_cmp(&values[*a as usize]).then(a.cmp(b)));
        columns.truncate(k);
        columns
    }

    proptest! {
        #[test]
        fn the_best_are_those_that_sorting_finds(
            // Few distinct values, so that ties are common.
            values in proptest::collection::vec((-4i8..4).prop_map(|n| f32::from(n) / 4.0), 0..700),
            k in 0usize..50,
        ) {
            let columns = values.len();
            prop_assume!(columns > 0);
            let found = top_k(&Matrix::new("drawn", columns, values.clone()).unwrap(), k).unwrap();
            let found: Vec<u32> = found[0].iter().map(|neighbour| neighbour.index).collect();
            prop_assert_eq!(found, by_sorting(&values, k));
        }
    }

    #[test]
    fn fewer_columns_than_asked_for_give_all_of_them() {
        let found = top_k(&Matrix::new("small", 2, vec![0.1, 0.2, 0.4, 0.3]).unwrap(), 40).unwrap();
        let order: Vec<Vec<u32>> = found.iter().map(|row| row.iter().map(|n| n.index).collect()).collect();
        assert_eq!(order, [[1, 0], [0, 1]]);
    }
}
