//! How well every piece of the vocabulary fits: the largest product of the decoder, once for every piece that is said.
//!
//! Tiny's table has twenty million numbers, and reading them is all the time it takes. Published weights are half precision, so the
//! table is kept so where nothing is lost, and widened in the cache.

use candle_core::{Device, Tensor};
use cuemark_tensor::vectorised;
use half::f16;
use half::slice::HalfFloatSliceExt as _;
use half::vec::HalfFloatVecExt as _;
use rayon::prelude::*;

use crate::Result;

/// Rows that one task computes.
const BLOCK: usize = 512;

/// The embeddings of all pieces: looked up at the front of the decoder, multiplied by at its end.
pub(super) struct Pieces {
    width: usize,
    table: Table,
}

enum Table {
    Half(Vec<f16>),
    Single(Vec<f32>),
    /// `[pieces, width]` on another device.
    Elsewhere(Tensor),
}

impl Pieces {
    pub(super) fn new(values: Vec<f32>, width: usize, device: &Device) -> Result<Self> {
        let table = if !device.is_cpu() {
            let count = values.len() / width.max(1);
            Table::Elsewhere(Tensor::from_vec(values, (count, width), device)?)
        } else if values.iter().all(|value| f16::from_f32(*value).to_f32() == *value) {
            Table::Half(Vec::from_f32_slice(&values))
        } else {
            Table::Single(values)
        };
        Ok(Self { width, table })
    }

    /// The embeddings of some pieces, `[pieces, width]`, numbers beyond the table being the last.
    pub(super) fn of(&self, pieces: &[u32], device: &Device) -> Result<Tensor> {
        let count = match &self.table {
            Table::Half(table) => table.len() / self.width,
            Table::Single(table) => table.len() / self.width,
            Table::Elsewhere(table) => table.dim(0)?,
        };
        let pieces: Vec<u32> = pieces.iter().map(|piece| (*piece).min(count as u32 - 1)).collect();
        if let Table::Elsewhere(table) = &self.table {
            return Ok(table.index_select(&Tensor::new(pieces.as_slice(), device)?, 0)?);
        }
        let mut rows = Vec::with_capacity(pieces.len() * self.width);
        for piece in &pieces {
            let at = *piece as usize * self.width;
            match &self.table {
                Table::Half(table) => rows.extend(table[at..at + self.width].iter().map(|value| value.to_f32())),
                Table::Single(table) => rows.extend_from_slice(&table[at..at + self.width]),
                Table::Elsewhere(_) => {}
            }
        }
        Ok(Tensor::from_vec(rows, (pieces.len(), self.width), device)?)
    }

    /// How well each piece fits one state `[1, width]` of the decoder.
    pub(super) fn scores(&self, state: &Tensor) -> Result<Vec<f32>> {
        let wanted = || -> candle_core::Result<Vec<f32>> { state.flatten_all()?.to_vec1() };
        match &self.table {
            Table::Elsewhere(table) => Ok(state.matmul(&table.t()?)?.flatten_all()?.to_vec1()?),
            Table::Single(table) => {
                let (state, mut scores) = (wanted()?, vec![0f32; table.len() / self.width]);
                let blocks = table.par_chunks(BLOCK * self.width);
                scores.par_chunks_mut(BLOCK).zip(blocks).for_each(|(scores, rows)| {
                    vectorised(
                        #[inline(always)]
                        || {
                            for (score, row) in scores.iter_mut().zip(rows.chunks_exact(self.width)) {
                                *score = dot(row, &state);
                            }
                        },
                    );
                });
                Ok(scores)
            }
            Table::Half(table) => {
                let (state, mut scores) = (wanted()?, vec![0f32; table.len() / self.width]);
                let blocks = table.par_chunks(BLOCK * self.width);
                scores.par_chunks_mut(BLOCK).zip(blocks).for_each(|(scores, rows)| {
                    let mut wide = vec![0f32; self.width];
                    for (score, row) in scores.iter_mut().zip(rows.chunks_exact(self.width)) {
                        row.convert_to_f32_slice(&mut wide);
                        *score = vectorised(
                            #[inline(always)]
                            || dot(&wide, &state),
                        );
                    }
                });
                Ok(scores)
            }
        }
    }
}

/// In 32 lanes: enough of them to hide how long one addition takes.
#[inline(always)]
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0f32; 32];
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<32>(), right.as_chunks::<32>());
    for (left, right) in left.iter().zip(right) {
        for lane in 0..32 {
            sums[lane] += left[lane] * right[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_singles_give_the_same_scores_as_a_product() {
        let values: Vec<f32> =
            (0..1_100 * 40).map(|n| f16::from_f32(((n * 31) % 977) as f32 * 0.01 - 4.0).to_f32()).collect();
        let state: Vec<f32> = (0..40).map(|n| n as f32 * 0.05 - 1.0).collect();
        let by_hand: Vec<f32> = values.chunks(40).map(|row| row.iter().zip(&state).map(|(a, b)| a * b).sum()).collect();
        let half = Pieces::new(values.clone(), 40, &Device::Cpu).unwrap();
        assert!(matches!(half.table, Table::Half(_)));
        let mut other = values;
        other[7] = 1.000_01;
        let single = Pieces::new(other, 40, &Device::Cpu).unwrap();
        assert!(matches!(single.table, Table::Single(_)));
        let state = Tensor::from_vec(state, (1, 40), &Device::Cpu).unwrap();
        for pieces in [half, single] {
            let scores = pieces.scores(&state).unwrap();
            assert_eq!(scores.len(), 1_100);
            assert!(scores.iter().zip(&by_hand).skip(1).all(|(a, b)| (a - b).abs() < 1e-3));
            assert_eq!(pieces.of(&[3, 9_999_999], &Device::Cpu).unwrap().dims(), [2, 40]);
        }
    }
}
