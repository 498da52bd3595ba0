//! Softmax along the last axis in one pass over memory, with a gradient: candle's fused one has none, its composed one makes
//! five tensors forward and as many backward.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, D, DType, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use crate::map::numbers;

/// Rows that one task computes.
const BLOCK_ROWS: usize = 64;

/// `exp(x) / sum(exp(x))` along `axis`.
///
/// # Errors
/// Those of the tensor operations.
#[allow(clippy::needless_pass_by_value)] // candle takes axes by value, and so do we
pub fn softmax<A: candle_core::shape::Dim>(x: &Tensor, axis: A) -> Result<Tensor> {
    let axis = axis.to_index(x.shape(), "softmax")?;
    let fused = axis + 1 == x.rank() && x.device().is_cpu() && x.dtype() == DType::F32 && x.dim(D::Minus1)? > 0;
    if fused { x.contiguous()?.apply_op1(Softmax) } else { candle_nn::ops::softmax(x, axis) }
}

struct Softmax;

impl CustomOp1 for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = numbers(x, layout)?;
        let width = layout.dims().last().copied().unwrap_or(1);
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(BLOCK_ROWS * width).zip(x.par_chunks(BLOCK_ROWS * width)).for_each(|(y, x)| {
            for (y, x) in y.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
                let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                y.iter_mut().zip(x).for_each(|(y, x)| *y = (x - largest).exp());
                let scale = 1.0 / y.iter().sum::<f32>();
                y.iter_mut().for_each(|y| *y *= scale);
            }
        });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, y: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        y.contiguous()?.apply_op2_no_bwd(&gradient.contiguous()?, &SoftmaxGradient).map(Some)
    }
}

/// `y (g - Σ y g)` by rows.
struct SoftmaxGradient;

impl CustomOp2 for SoftmaxGradient {
    fn name(&self) -> &'static str {
        "softmax-gradient"
    }

    fn cpu_fwd(&self, y: &CpuStorage, layout: &Layout, g: &CpuStorage, of_g: &Layout) -> Result<(CpuStorage, Shape)> {
        let (y, g) = (numbers(y, layout)?, numbers(g, of_g)?);
        let width = layout.dims().last().copied().unwrap_or(1);
        let block = BLOCK_ROWS * width;
        let mut x = vec![0f32; y.len()];
        x.par_chunks_mut(block).zip(y.par_chunks(block)).zip(g.par_chunks(block)).for_each(|((x, y), g)| {
            let rows = x.chunks_exact_mut(width).zip(y.chunks_exact(width)).zip(g.chunks_exact(width));
            for ((x, y), g) in rows {
                let common: f32 = y.iter().zip(g).map(|(y, g)| y * g).sum();
                x.iter_mut().zip(y.iter().zip(g)).for_each(|(x, (y, g))| *x = y * (g - common));
            }
        });
        Ok((CpuStorage::F32(x), layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    #[test]
    fn values_and_gradients_are_those_of_the_composed_form() {
        let values: Vec<f32> = (0..600).map(|n| (n as f32 * 0.37).sin() * 4.0).collect();
        let x = Var::from_vec(values, (2, 60, 5), &Device::Cpu).unwrap();
        let weights = Tensor::arange(0f32, 5.0, &Device::Cpu).unwrap();
        let through = |y: Tensor| {
            let loss = y.broadcast_mul(&weights).unwrap().sqr().unwrap().sum_all().unwrap();
            let gradient = loss.backward().unwrap().get(x.as_tensor()).unwrap().clone();
            [y, gradient].map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap())
        };
        let ours = through(softmax(x.as_tensor(), D::Minus1).unwrap());
        let composed = through(candle_nn::ops::softmax(x.as_tensor(), D::Minus1).unwrap());
        for (ours, composed) in ours.iter().zip(&composed) {
            assert!(ours.iter().zip(composed).all(|(a, b)| (a - b).abs() < 1e-5));
        }
    }

    #[test]
    fn a_masked_row_shares_nothing_with_what_is_masked_and_large_logits_do_not_overflow() {
        let x = Tensor::new(&[[1e4f32, 1e4, -1e9], [-1e30, -1e30, 0.0]], &Device::Cpu).unwrap();
        let y = softmax(&x, 1).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(y, [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]);
    }
}
