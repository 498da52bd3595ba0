//! A number that was worked out on the host, with its gradient.
//!
//! A loss of a few hundred numbers takes hundreds of launches on a GPU, forward and backward, each longer than its arithmetic. Where
//! the numbers have come to the host anyway, the loss and its slope are computed there.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};

/// `value` as a function of `x`, whose slope at `x` is `gradient`, one number for each of `x`, in its order.
///
/// # Errors
/// When there is another number of slopes.
pub fn known(x: &Tensor, value: f32, gradient: Vec<f32>) -> Result<Tensor> {
    if gradient.len() != x.elem_count() {
        bail!("{} slopes for {} numbers", gradient.len(), x.elem_count());
    }
    let gradient = Tensor::from_vec(gradient, x.shape(), x.device())?;
    x.apply_op1(Known { value, gradient })
}

struct Known {
    value: f32,
    gradient: Tensor,
}

impl CustomOp1 for Known {
    fn name(&self) -> &'static str {
        "known"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok((CpuStorage::F32(vec![self.value]), Shape::from(())))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &candle_core::CudaStorage, _: &Layout) -> Result<(candle_core::CudaStorage, Shape)> {
        let device = x.device.clone();
        let value = device.clone_htod(&[self.value])?;
        Ok((candle_core::CudaStorage::wrap_cuda_slice(value, device), Shape::from(())))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        self.gradient.broadcast_mul(gradient).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;
    use crate::against::devices;

    #[test]
    fn value_and_slope_are_passed_on() {
        for device in devices() {
            let x = Var::new(&[[1f32, 2.0], [3.0, 4.0]], &device).unwrap();
            // The sum of squares of a turned tensor.
            let loss = known(&x.t().unwrap(), 30.0, vec![2.0, 6.0, 4.0, 8.0]).unwrap();
            assert_eq!(loss.to_scalar::<f32>().unwrap(), 30.0);
            let gradients = (loss * 0.5).unwrap().backward().unwrap();
            assert_eq!(gradients.get(&x).unwrap().to_vec2::<f32>().unwrap(), [[1.0, 2.0], [3.0, 4.0]]);
        }
    }

    #[test]
    fn every_number_needs_its_slope() {
        let x = Tensor::new(&[1f32, 2.0], &candle_core::Device::Cpu).unwrap();
        assert!(known(&x, 1.0, vec![1.0]).unwrap_err().to_string().contains("1 slopes for 2 numbers"));
    }
}
