//! Softmax along the last axis in one pass over memory, with a gradient: candle's fused one has none, its composed one makes
//! five tensors forward and as many backward.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, DType, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use crate::map::numbers;
use crate::sums::{dot, exp_below_zero, largest, sum};
use crate::vectorised;

/// Rows that one task computes.
const BLOCK_ROWS: usize = 64;

/// `exp(x) / sum(exp(x))` along `axis`.
///
/// # Errors
/// Those of the tensor operations.
#[allow(clippy::needless_pass_by_value)] // candle takes axes by value, and so do we
pub fn softmax<A: candle_core::shape::Dim>(x: &Tensor, axis: A) -> Result<Tensor> {
    let axis = axis.to_index(x.shape(), "softmax")?;
    let here = x.device().is_cpu() || x.device().is_cuda();
    let fused = axis + 1 == x.rank() && here && x.dtype() == DType::F32 && x.elem_count() > 0;
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
            y.copy_from_slice(x);
            vectorised(
                #[inline(always)]
                || {
                    for row in y.chunks_exact_mut(width) {
                        row_in_place(row);
                    }
                },
            );
        });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &candle_core::CudaStorage, layout: &Layout) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::softmax((x, layout))
    }

    fn bwd(&self, _: &Tensor, y: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        y.contiguous()?.apply_op2_no_bwd(&gradient.contiguous()?, &SoftmaxGradient).map(Some)
    }
}

/// Logits of one row become their shares; meant to be called inside [`vectorised`].
#[inline(always)]
pub(crate) fn row_in_place(row: &mut [f32]) {
    let most = largest(row);
    row.iter_mut().for_each(|x| *x = exp_below_zero(*x - most));
    let scale = 1.0 / sum(row, |x| x);
    row.iter_mut().for_each(|x| *x *= scale);
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
            vectorised(
                #[inline(always)]
                || {
                    let rows = x.chunks_exact_mut(width).zip(y.chunks_exact(width)).zip(g.chunks_exact(width));
                    for ((x, y), g) in rows {
                        let common = dot(y, g);
                        x.iter_mut().zip(y.iter().zip(g)).for_each(|(x, (y, g))| *x = y * (g - common));
                    }
                },
            );
        });
        Ok((CpuStorage::F32(x), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        y: &candle_core::CudaStorage,
        layout: &Layout,
        gradient: &candle_core::CudaStorage,
        gradient_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::softmax_gradient((y, layout), (gradient, gradient_layout))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{D, Var};
    use cuemark_core::Rng;

    use super::*;
    use crate::against::{assert_close, devices, draw};

    #[test]
    fn values_and_gradients_are_those_of_plain_loops() {
        let rng = &mut Rng::new(2);
        for (rows, width) in [(120, 5), (1, 1), (67, 33), (3, 1000), (300, 107)] {
            let (x, pull) = (draw(rng, rows * width), draw(rng, rows * width));
            let (mut shares, mut gradient) = (Vec::new(), Vec::new());
            for (x, pull) in x.chunks(width).zip(pull.chunks(width)) {
                let powers: Vec<f64> = x.iter().map(|x| f64::from(4.0 * x).exp()).collect();
                let total: f64 = powers.iter().sum();
                let common: f64 = powers.iter().zip(pull).map(|(power, g)| power / total * f64::from(*g)).sum();
                shares.extend(powers.iter().map(|power| power / total));
                gradient
                    .extend(powers.iter().zip(pull).map(|(power, g)| 4.0 * power / total * (f64::from(*g) - common)));
            }
            for device in devices() {
                let x = Var::from_tensor(&Tensor::from_slice(&x, (rows, 1, width), &device).unwrap()).unwrap();
                let y = softmax(&(x.as_tensor() * 4.0).unwrap(), D::Minus1).unwrap();
                let pull = Tensor::from_slice(&pull, y.shape(), &device).unwrap();
                let gradients = (&y * pull).unwrap().sum_all().unwrap().backward().unwrap();
                let what = format!("{rows} rows of {width} on {device:?}");
                assert_close(&y, &shares, 1e-6, &what);
                assert_close(gradients.get(&x).unwrap(), &gradient, 1e-5, &what);
            }
        }
    }

    #[test]
    fn a_masked_row_shares_nothing_with_what_is_masked_and_large_logits_do_not_overflow() {
        for device in devices() {
            let x = Tensor::new(&[[1e4f32, 1e4, -1e9], [-1e30, -1e30, 0.0]], &device).unwrap();
            let y = softmax(&x, 1).unwrap().to_vec2::<f32>().unwrap();
            assert_eq!(y, [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]);
        }
    }

    #[test]
    fn another_axis_is_the_composed_form() {
        let x = Tensor::from_vec(draw(&mut Rng::new(3), 12), (3, 4), &candle_core::Device::Cpu).unwrap();
        let y = softmax(&x, 0).unwrap().sum(0).unwrap().to_vec1::<f32>().unwrap();
        assert!(y.iter().all(|sum| (sum - 1.0).abs() < 1e-6), "{y:?}");
    }
}
