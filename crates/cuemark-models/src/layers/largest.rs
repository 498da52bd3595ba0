//! The largest value along an axis, with a gradient that goes to one of equals.

use candle_core::shape::Dim;
use candle_core::{Result, Tensor};

/// The largest value along `axis`, which disappears. Where several are equal the gradient goes to the first.
///
/// # Errors
/// Those of the tensor operations.
pub fn largest<A: Dim + Copy>(x: &Tensor, axis: A) -> Result<Tensor> {
    let x = x.contiguous()?;
    x.gather(&x.argmax_keepdim(axis)?, axis)?.squeeze(axis)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Var};

    use super::*;

    #[test]
    fn the_gradient_goes_to_the_first_of_equals_alone() {
        let x = Var::new(&[[1f32, 3.0, 3.0], [2.0, 0.0, -1.0]], &Device::Cpu).unwrap();
        let most = largest(x.as_tensor(), 1).unwrap();
        assert_eq!(most.to_vec1::<f32>().unwrap(), [3.0, 2.0]);
        let gradients = most.sum_all().unwrap().backward().unwrap();
        let gradient = gradients.get(x.as_tensor()).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(gradient, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]);
    }
}
