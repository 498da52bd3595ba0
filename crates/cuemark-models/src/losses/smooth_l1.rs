//! Smooth L1: quadratic up to a distance of 1, linear beyond.

use candle_core::{Result, Tensor};

/// Of every difference `x` (prediction less truth): `x² / 2` up to 1, `|x| - 1/2` beyond, as PyTorch's `smooth_l1_loss` per element.
///
/// # Errors
/// Those of the tensor operations.
pub fn smooth_l1(difference: &Tensor) -> Result<Tensor> {
    let distance = difference.abs()?;
    let near = distance.minimum(1.0)?;
    (near.sqr()? * 0.5)? + (distance - near)?
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Var};

    use super::*;

    #[test]
    fn values_and_slopes_are_right_by_hand() {
        let x = Var::new(&[0f32, 0.5, -0.5, 3.0, -3.0], &Device::Cpu).unwrap();
        let loss = smooth_l1(x.as_tensor()).unwrap();
        assert_eq!(loss.to_vec1::<f32>().unwrap(), [0.0, 0.125, 0.125, 2.5, 2.5]);
        let grads = loss.sum_all().unwrap().backward().unwrap();
        assert_eq!(grads.get(x.as_tensor()).unwrap().to_vec1::<f32>().unwrap(), [0.0, 0.5, -0.5, 1.0, -1.0]);
    }
}
