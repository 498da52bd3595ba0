//! A rectifier with a learned slope below zero, in one pass over memory.

use candle_core::{CpuStorage, CustomOp2, CustomOp3, DType, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::gradients::keep;
use crate::map::numbers;
use crate::sums::dot;
use crate::vectorised;

/// Numbers that one task computes, and whose shares of the slope's gradient are added up together.
const BLOCK: usize = 1 << 13;

/// `max(0, x) + slope min(0, x)` with one slope, `[1]`.
///
/// # Errors
/// When there is another number of slopes or the numbers are not 32 bits wide.
pub fn prelu(x: &Tensor, slope: &Tensor) -> Result<Tensor> {
    if slope.elem_count() != 1 || x.dtype() != DType::F32 || slope.dtype() != DType::F32 {
        bail!("a rectifier of {:?} with slopes {:?} of {:?}", x.dtype(), slope.dims(), slope.dtype());
    }
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    x.contiguous()?.apply_op2(slope, Prelu)
}

struct Prelu;

fn one(slope: &CpuStorage, layout: &Layout) -> Result<f32> {
    match numbers(slope, layout)? {
        [slope] => Ok(*slope),
        slopes => bail!("{} slopes where one was expected", slopes.len()),
    }
}

impl CustomOp2 for Prelu {
    fn name(&self) -> &'static str {
        "prelu"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout, s: &CpuStorage, of_s: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, slope) = (numbers(x, layout)?, one(s, of_s)?);
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(BLOCK).zip(x.par_chunks(BLOCK)).for_each(|(y, x)| {
            vectorised(
                #[inline(always)]
                || y.iter_mut().zip(x).for_each(|(y, x)| *y = if *x > 0.0 { *x } else { slope * x }),
            );
        });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        layout: &Layout,
        slope: &candle_core::CudaStorage,
        slope_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::prelu((x, layout), (slope, slope_layout))
    }

    fn bwd(
        &self,
        x: &Tensor,
        slope: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let all = x.apply_op3_no_bwd(slope, &gradient.contiguous()?, &PreluGradient)?;
        let of_x = all.narrow(0, 0, x.elem_count())?.reshape(x.shape())?;
        Ok((Some(of_x), keep(slope, all.narrow(0, x.elem_count(), 1)?.reshape(slope.shape())?)?))
    }
}

/// The gradients of the input, then of the slope.
struct PreluGradient;

impl CustomOp3 for PreluGradient {
    fn name(&self) -> &'static str {
        "prelu-gradient"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        s: &CpuStorage,
        of_s: &Layout,
        g: &CpuStorage,
        of_g: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, slope, g) = (numbers(x, layout)?, one(s, of_s)?, numbers(g, of_g)?);
        let mut all = vec![0f32; x.len() + 1];
        let (of_x, of_slope) = all.split_at_mut(x.len());
        let blocks = of_x.par_chunks_mut(BLOCK).zip(x.par_chunks(BLOCK)).zip(g.par_chunks(BLOCK));
        let shares: Vec<f32> = blocks
            .map(|((to, x), g)| {
                vectorised(
                    #[inline(always)]
                    || {
                        to.iter_mut().zip(x).for_each(|(to, x)| *to = if *x > 0.0 { 0.0 } else { *x });
                        let share = dot(to, g);
                        for (to, (x, g)) in to.iter_mut().zip(x.iter().zip(g)) {
                            *to = if *x > 0.0 { *g } else { slope * g };
                        }
                        share
                    },
                )
            })
            .collect();
        of_slope[0] = shares.iter().sum();
        let count = all.len();
        Ok((CpuStorage::F32(all), Shape::from(count)))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        layout: &Layout,
        slope: &candle_core::CudaStorage,
        slope_layout: &Layout,
        gradient: &candle_core::CudaStorage,
        gradient_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::prelu_gradient((x, layout), (slope, slope_layout), (gradient, gradient_layout))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;
    use cuemark_core::Rng;

    use super::*;
    use crate::against::{assert_close, devices, draw};

    #[test]
    fn values_and_gradients_are_those_of_plain_loops() {
        let rng = &mut Rng::new(6);
        for count in [1, 7, 300, 3 * BLOCK + 5] {
            let (x, pull) = (draw(rng, count), draw(rng, count));
            let by = |x: &f32, above: f64, below: f64| if *x > 0.0 { above } else { below };
            let y: Vec<f64> = x.iter().map(|x| f64::from(*x) * by(x, 1.0, 0.25)).collect();
            let of_x: Vec<f64> = x.iter().zip(&pull).map(|(x, g)| f64::from(*g) * by(x, 1.0, 0.25)).collect();
            let of_slope: f64 = x.iter().zip(&pull).map(|(x, g)| by(x, 0.0, f64::from(*x) * f64::from(*g))).sum();
            for device in devices() {
                let x = Var::from_tensor(&Tensor::from_slice(&x, count, &device).unwrap()).unwrap();
                let slope = Var::new(&[0.25f32], &device).unwrap();
                let found = prelu(&x, &slope).unwrap();
                let pull = Tensor::from_slice(&pull, count, &device).unwrap();
                let gradients = (&found * pull).unwrap().sum_all().unwrap().backward().unwrap();
                let what = format!("{count} on {device:?}");
                assert_close(&found, &y, 1e-6, &what);
                assert_close(gradients.get(&x).unwrap(), &of_x, 1e-6, &what);
                assert_close(gradients.get(&slope).unwrap(), &[of_slope], 1e-4, &what);
            }
        }
    }

    #[test]
    fn only_one_slope_is_taken() {
        let x = Tensor::ones(4, DType::F32, &candle_core::Device::Cpu).unwrap();
        assert!(prelu(&x, &x).unwrap_err().to_string().contains("slopes [4]"));
    }
}
