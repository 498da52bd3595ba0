//! Layer norm in one pass over memory, with a gradient: candle's fused one has none, and composed of general operations it makes
//! ten tensors forward and several times as many backward.

use candle_core::{CpuStorage, CustomOp3, D, DType, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::gradients::keep;
use crate::map::numbers;
use crate::sums::{dot, sum};
use crate::vectorised;

/// Numbers that one task passes over.
const BLOCK: usize = 1 << 15;
/// Rows whose shares of a gradient are added one after the other.
const BLOCK_ROWS: usize = 64;

/// `(x - mean) / sqrt(var + eps) * weight + bias` along the last axis, variance divided by the width.
///
/// # Shapes
/// - x `[.., width]`, and so the result; weight and bias `[width]`
///
/// # Errors
/// When the widths differ or the numbers are not 32 bits wide.
pub fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f64) -> Result<Tensor> {
    let width = x.dim(D::Minus1)?;
    if weight.dims() != [width] || bias.dims() != [width] {
        bail!("a layer norm of {:?} and {:?} on a width of {width}", weight.dims(), bias.dims());
    }
    if [x, weight, bias].iter().any(|part| part.dtype() != DType::F32) {
        bail!("a layer norm of {:?}: only 32-bit numbers", x.dtype());
    }
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    x.contiguous()?.apply_op3(&weight.contiguous()?, &bias.contiguous()?, LayerNorm { eps: eps as f32 })
}

/// The operation, over tensors without gaps.
pub(crate) struct LayerNorm {
    pub(crate) eps: f32,
}

/// Mean, and what a distance from it is multiplied by.
#[inline(always)]
fn spread(row: &[f32], eps: f32) -> (f32, f32) {
    let width = row.len() as f32;
    let mean = sum(row, |x| x) / width;
    let variance = sum(row, |x| (x - mean) * (x - mean)) / width;
    (mean, 1.0 / (variance + eps).sqrt())
}

impl CustomOp3 for LayerNorm {
    fn name(&self) -> &'static str {
        "layer-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, weight, bias) = (numbers(x, layout)?, numbers(weight, weight_layout)?, numbers(bias, bias_layout)?);
        let width = weight.len();
        let block = BLOCK.div_ceil(width) * width;
        let mut y = vec![0f32; x.len()];
        let blocks = y.par_chunks_mut(block).zip(x.par_chunks(block));
        blocks.for_each(|(y, x)| {
            vectorised(
                #[inline(always)]
                || {
                    for (y, x) in y.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
                        let (mean, scale) = spread(x, self.eps);
                        for ((y, x), (weight, bias)) in y.iter_mut().zip(x).zip(weight.iter().zip(bias)) {
                            *y = (x - mean) * scale * weight + bias;
                        }
                    }
                },
            );
        });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        layout: &Layout,
        weight: &candle_core::CudaStorage,
        weight_layout: &Layout,
        bias: &candle_core::CudaStorage,
        bias_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::layer_norm(self, (x, layout), (weight, weight_layout), (bias, bias_layout))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let width = weight.elem_count();
        let all = x.apply_op3_no_bwd(weight, &gradient.contiguous()?, &LayerNormGradient { eps: self.eps })?;
        let of_x = all.narrow(0, 0, x.elem_count())?.reshape(x.shape())?;
        let of_weight = all.narrow(0, x.elem_count(), width)?;
        let of_bias = all.narrow(0, x.elem_count() + width, width)?;
        Ok((Some(of_x), keep(weight, of_weight)?, keep(bias, of_bias)?))
    }
}

/// The gradients of input, weight and bias, one after the other.
pub(crate) struct LayerNormGradient {
    pub(crate) eps: f32,
}

impl CustomOp3 for LayerNormGradient {
    fn name(&self) -> &'static str {
        "layer-norm-gradient"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, weight) = (numbers(x, layout)?, numbers(weight, weight_layout)?);
        let (gradient, width) = (numbers(gradient, gradient_layout)?, weight.len());
        let block = BLOCK_ROWS * width;
        let mut all = vec![0f32; x.len() + 2 * width];
        let (of_x, of_parameters) = all.split_at_mut(x.len());
        let blocks = of_x.par_chunks_mut(block).zip(x.par_chunks(block)).zip(gradient.par_chunks(block));
        let shares: Vec<Vec<f32>> = blocks
            .map(|((to, x), gradient)| {
                let mut shares = vec![0f32; 2 * width];
                let mut pull = vec![0f32; width];
                vectorised(
                    #[inline(always)]
                    || block_gradient(x, weight, gradient, self.eps, to, &mut shares, &mut pull),
                );
                shares
            })
            .collect();
        for share in &shares {
            of_parameters.iter_mut().zip(share).for_each(|(sum, share)| *sum += share);
        }
        let count = all.len();
        Ok((CpuStorage::F32(all), Shape::from(count)))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        layout: &Layout,
        weight: &candle_core::CudaStorage,
        weight_layout: &Layout,
        gradient: &candle_core::CudaStorage,
        gradient_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::layer_norm_gradient(self, (x, layout), (weight, weight_layout), (gradient, gradient_layout))
    }
}

/// Rows of one block; `shares` are added to: the weight's, then the bias's. `pull` is room for one row.
#[inline(always)]
fn block_gradient(
    x: &[f32],
    weight: &[f32],
    gradient: &[f32],
    eps: f32,
    to: &mut [f32],
    shares: &mut [f32],
    pull: &mut [f32],
) {
    let width = weight.len();
    let (of_weight, of_bias) = shares.split_at_mut(width);
    for ((to, x), gradient) in to.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(gradient.chunks_exact(width)) {
        let (mean, scale) = spread(x, eps);
        // The normed row lies in `to` until it is replaced by its gradient.
        for (to, x) in to.iter_mut().zip(x) {
            *to = (x - mean) * scale;
        }
        for ((of_weight, of_bias), (normed, g)) in of_weight.iter_mut().zip(&mut *of_bias).zip(to.iter().zip(gradient))
        {
            *of_weight += g * normed;
            *of_bias += g;
        }
        for (pull, (g, weight)) in pull.iter_mut().zip(gradient.iter().zip(weight)) {
            *pull = g * weight;
        }
        let common = sum(pull, |pull| pull) / width as f32;
        let along = dot(pull, to) / width as f32;
        for (to, pull) in to.iter_mut().zip(&*pull) {
            *to = scale * (pull - common - *to * along);
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;
    use cuemark_core::Rng;

    use super::*;
    use crate::against::{assert_close, devices, draw};

    /// Values and gradients by plain loops in double precision, of the loss `sum(y * pull)`.
    fn loops(x: &[f32], weight: &[f32], bias: &[f32], pull: &[f32], eps: f64) -> [Vec<f64>; 4] {
        let width = weight.len();
        let mut all = [vec![], vec![], vec![0.0; width], vec![0.0; width]];
        for (x, pull) in x.chunks(width).zip(pull.chunks(width)) {
            let x: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
            let mean = x.iter().sum::<f64>() / width as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
            let scale = 1.0 / (variance + eps).sqrt();
            let normed: Vec<f64> = x.iter().map(|x| (x - mean) * scale).collect();
            let part = |n: usize| f64::from(pull[n]) * f64::from(weight[n]);
            let common = (0..width).map(part).sum::<f64>() / width as f64;
            let along = (0..width).map(|n| part(n) * normed[n]).sum::<f64>() / width as f64;
            for n in 0..width {
                all[0].push(normed[n] * f64::from(weight[n]) + f64::from(bias[n]));
                all[1].push(scale * (part(n) - common - normed[n] * along));
                all[2][n] += f64::from(pull[n]) * normed[n];
                all[3][n] += f64::from(pull[n]);
            }
        }
        all
    }

    #[test]
    fn values_and_gradients_are_those_of_plain_loops() {
        let rng = &mut Rng::new(3);
        for (rows, width) in [(1, 1), (3, 7), (70, 256), (130, 33), (5, 2818), (600, 64)] {
            let [x, pull] = [draw(rng, rows * width), draw(rng, rows * width)];
            let [weight, bias] = [draw(rng, width), draw(rng, width)];
            let wanted = loops(&x, &weight, &bias, &pull, 1e-5);
            for device in devices() {
                let var = |values: &[f32], shape: &[usize]| {
                    Var::from_tensor(&Tensor::from_slice(values, shape, &device).unwrap()).unwrap()
                };
                let [x, weight, bias] = [var(&x, &[1, rows, width]), var(&weight, &[width]), var(&bias, &[width])];
                let y = layer_norm(&x, &weight, &bias, 1e-5).unwrap();
                let pull = Tensor::from_slice(&pull, y.shape(), &device).unwrap();
                let gradients = (&y * pull).unwrap().sum_all().unwrap().backward().unwrap();
                let what = format!("{rows} rows of {width} on {device:?}");
                assert_close(&y, &wanted[0], 2e-5, &what);
                // A row of one has no spread: its gradient is a difference of equals, magnified by 1 / sqrt(eps).
                for (var, wanted) in [&x, &weight, &bias].into_iter().zip(&wanted[1..]) {
                    assert_close(gradients.get(var).unwrap(), wanted, 2e-4, &what);
                }
            }
        }
    }

    #[test]
    fn a_turned_tensor_is_read_in_its_own_order_and_widths_that_differ_are_refused() {
        let device = candle_core::Device::Cpu;
        let x = Tensor::from_vec(draw(&mut Rng::new(4), 12), (3, 4), &device).unwrap();
        let (ones, zeros) =
            (Tensor::ones(3, DType::F32, &device).unwrap(), Tensor::zeros(3, DType::F32, &device).unwrap());
        let turned = x.t().unwrap();
        let y = layer_norm(&turned, &ones, &zeros, 1e-5).unwrap().to_vec2::<f32>().unwrap();
        let copied = layer_norm(&turned.contiguous().unwrap(), &ones, &zeros, 1e-5).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(y, copied);
        assert!(y.iter().all(|row| row.iter().sum::<f32>().abs() < 1e-5));
        assert!(layer_norm(&x, &ones, &zeros, 1e-5).unwrap_err().to_string().contains("a width of 4"));
    }
}
