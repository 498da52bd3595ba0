//! Every tile of a similarity matrix, in parallel and in bounded memory.

use std::ops::Range;

use rayon::prelude::*;

use super::{Result, Similarity};

/// Rows of one tile. With [`COLUMNS`] a tile is 1 MiB: large enough for the matrix product to run at full speed,
/// small enough to be still in the cache when the visitor reads it.
const ROWS: usize = 512;
/// Columns of one tile.
const COLUMNS: usize = 512;

/// The similarities of some rows with some columns.
pub struct Tile<'a> {
    rows: Range<usize>,
    columns: Range<usize>,
    values: &'a [f32],
}

impl Tile<'_> {
    /// The first column.
    pub fn first_column(&self) -> usize {
        self.columns.start
    }

    /// Each row's number in the whole matrix, with its values from [`Tile::first_column`] on.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &[f32])> {
        self.rows.clone().zip(self.values.chunks_exact(self.columns.len().max(1)))
    }
}

/// Visits every pair once: `start` makes the state for a block of rows, `visit` is handed that block's tiles from the
/// first column to the last, `finish` turns the state into what is kept; that comes back in the order of the rows.
///
/// Blocks run in parallel; one tile and one state per thread are in memory at a time, beside what is kept.
///
/// # Errors
/// The first error of the provider or of `finish`.
pub fn sweep<State, Kept: Send>(
    provider: &dyn Similarity,
    start: impl Fn(Range<usize>) -> State + Sync,
    visit: impl Fn(&mut State, &Tile<'_>) + Sync,
    finish: impl Fn(Range<usize>, State) -> Result<Kept> + Sync,
) -> Result<Vec<Kept>> {
    let (left, right) = (provider.left(), provider.right());
    let blocks: Vec<usize> = (0..left).step_by(ROWS).collect();
    blocks
        .into_par_iter()
        .map_init(Vec::new, |buffer, first| {
            let rows = first..left.min(first + ROWS);
            let mut state = start(rows.clone());
            for first in (0..right).step_by(COLUMNS) {
                let columns = first..right.min(first + COLUMNS);
                buffer.resize(rows.len() * columns.len(), 0.0);
                provider.tile(rows.clone(), columns.clone(), buffer)?;
                visit(&mut state, &Tile { rows: rows.clone(), columns, values: buffer });
            }
            finish(rows, state)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::Matrix;

    #[test]
    fn every_pair_is_visited_once_and_rows_come_back_in_order() {
        let (left, right) = (ROWS * 2 + 3, COLUMNS + 5);
        let values = (0..left * right).map(|n| n as f32).collect();
        let matrix = Matrix::new("count", right, values).unwrap();
        let blocks = sweep(
            &matrix,
            |_| Vec::new(),
            |seen: &mut Vec<(usize, usize, f32)>, tile| {
                for (row, values) in tile.rows() {
                    let place = values.iter().enumerate().map(|(n, value)| (row, tile.first_column() + n, *value));
                    seen.extend(place);
                }
            },
            |_, seen| Ok(seen),
        )
        .unwrap();
        let mut seen: Vec<_> = blocks.into_iter().flatten().collect();
        assert_eq!(seen.len(), left * right);
        assert!(seen.iter().all(|(row, column, value)| *value == (row * right + column) as f32));
        seen.dedup_by_key(|(row, column, _)| (*row, *column));
        assert_eq!(seen.len(), left * right);
        assert_eq!((seen[0].0, seen[seen.len() - 1].0), (0, left - 1));
    }

    #[test]
    fn an_empty_side_has_no_pairs() {
        let matrix = Matrix::new("empty", 4, Vec::new()).unwrap();
        assert!(sweep(&matrix, |_| (), |(), _| (), |_, ()| Ok(())).unwrap().is_empty());
    }
}
