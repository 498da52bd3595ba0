//! Sums over rows, for gradients of biases.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::conv::numbers;

/// Rows that are added one after the other before blocks are added to each other.
const BLOCK_ROWS: usize = 1024;

/// The sum of all rows of `[.., width]`, `[width]`.
pub(super) fn sum_rows(x: &Tensor) -> Result<Tensor> {
    x.contiguous()?.apply_op1_no_bwd(&SumRows)
}

pub(super) struct SumRows;

impl CustomOp1 for SumRows {
    fn name(&self) -> &'static str {
        "sum-rows"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let width = layout.dims().last().copied().unwrap_or(1).max(1);
        let add = |mut sum: Vec<f32>, row: &[f32]| {
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += *x);
            sum
        };
        let blocks: Vec<Vec<f32>> = numbers(x, layout)?
            .par_chunks(BLOCK_ROWS * width)
            .map(|block| block.chunks_exact(width).fold(vec![0.0; width], add))
            .collect();
        let sum = blocks.iter().fold(vec![0.0; width], |sum, block| add(sum, block));
        Ok((CpuStorage::F32(sum), Shape::from(width)))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &candle_core::CudaStorage, layout: &Layout) -> Result<(candle_core::CudaStorage, Shape)> {
        super::cuda::sum_rows((x, layout))
    }
}
