//! The exact Gaussian error linear unit in one pass over memory: candle's computes number by number on one thread, and goes back
//! through nine operations.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, DType, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use crate::map::numbers;
use crate::sums::exp_below_zero;
use crate::vectorised;

/// Numbers that one task computes.
const BLOCK: usize = 1 << 13;

/// `x Φ(x)`, with Φ the distribution function of the standard normal distribution.
///
/// # Errors
/// Those of the tensor operations.
pub fn gelu(x: &Tensor) -> Result<Tensor> {
    let here = x.device().is_cpu() || x.device().is_cuda();
    if here && x.dtype() == DType::F32 && x.elem_count() > 0 { x.contiguous()?.apply_op1(Gelu) } else { x.gelu_erf() }
}

/// Φ and the density at `x`. Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.26: off by at most 1e-7.
#[inline(always)]
fn normal(x: f32) -> (f32, f32) {
    let power = exp_below_zero(-0.5 * x * x);
    let t = 1.0 / (1.0 + 0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2 * x.abs());
    let mut y = 1.061_405_4;
    for factor in [-1.453_152, 1.421_413_7, -0.284_496_73, 0.254_829_6] {
        y = y * t + factor;
    }
    let tail = 0.5 * y * t * power;
    (if x > 0.0 { 1.0 - tail } else { tail }, 0.398_942_3 * power)
}

struct Gelu;

impl CustomOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = numbers(x, layout)?;
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(BLOCK).zip(x.par_chunks(BLOCK)).for_each(|(y, x)| {
            vectorised(
                #[inline(always)]
                || y.iter_mut().zip(x).for_each(|(y, x)| *y = x * normal(*x).0),
            );
        });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &candle_core::CudaStorage, layout: &Layout) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::gelu((x, layout))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        x.apply_op2_no_bwd(&gradient.contiguous()?, &GeluGradient).map(Some)
    }
}

struct GeluGradient;

impl CustomOp2 for GeluGradient {
    fn name(&self) -> &'static str {
        "gelu-gradient"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout, g: &CpuStorage, of_g: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, g) = (numbers(x, layout)?, numbers(g, of_g)?);
        let mut to = vec![0f32; x.len()];
        to.par_chunks_mut(BLOCK).zip(x.par_chunks(BLOCK)).zip(g.par_chunks(BLOCK)).for_each(|((to, x), g)| {
            vectorised(
                #[inline(always)]
                || {
                    for (to, (x, g)) in to.iter_mut().zip(x.iter().zip(g)) {
                        let (share, density) = normal(*x);
                        *to = g * (share + x * density);
                    }
                },
            );
        });
        Ok((CpuStorage::F32(to), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        layout: &Layout,
        gradient: &candle_core::CudaStorage,
        gradient_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::gelu_gradient((x, layout), (gradient, gradient_layout))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::against::{assert_close, devices};

    /// Φ by Simpson's rule on the density, from 0.
    fn share(x: f64) -> f64 {
        let (steps, density) = (2_000, |t: f64| (-0.5 * t * t).exp() / std::f64::consts::TAU.sqrt());
        let h = x / f64::from(steps);
        let factor = |n: i32| if n == 0 || n == steps { 1.0 } else { f64::from(2 + 2 * (n % 2)) };
        0.5 + h / 3.0 * (0..=steps).map(|n| factor(n) * density(f64::from(n) * h)).sum::<f64>()
    }

    #[test]
    fn values_and_gradients_are_those_of_the_integral() {
        let x: Vec<f32> = (-150..=150).map(|n| n as f32 * 0.05).collect();
        let wide = |x: &f32| f64::from(*x);
        let y: Vec<f64> = x.iter().map(|x| wide(x) * share(wide(x))).collect();
        let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        let slope: Vec<f64> = x.iter().map(|x| 2.0 * (share(wide(x)) + wide(x) * density(wide(x)))).collect();
        for device in devices() {
            let x = Var::from_tensor(&Tensor::new(x.as_slice(), &device).unwrap()).unwrap();
            let found = gelu(&x).unwrap();
            let gradients = (&found * 2.0).unwrap().sum_all().unwrap().backward().unwrap();
            assert_close(&found, &y, 2e-7, &format!("{device:?}"));
            assert_close(gradients.get(&x).unwrap(), &slope, 5e-7, &format!("{device:?}"));
        }
    }

    #[test]
    fn far_out_it_is_zero_or_the_number_itself_and_no_number_stays_none() {
        let x = Tensor::new(&[-50f32, 50.0, 0.0, f32::NAN], &Device::Cpu).unwrap();
        let y = gelu(&x).unwrap().to_vec1::<f32>().unwrap();
        assert_eq!((y[0].abs(), y[1], y[2]), (0.0, 50.0, 0.0));
        assert!(y[3].is_nan());
    }
}
