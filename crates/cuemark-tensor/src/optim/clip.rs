//! The length of all gradients together, and what keeps it below a limit.

use candle_core::backprop::GradStore;
use candle_core::{Result, Storage, Var};
use rayon::prelude::*;

/// Squares that are added one after the other before blocks are added to each other.
const BLOCK: usize = 1 << 16;

/// The Euclidean norm of the gradients of all `parameters` together, in double precision.
///
/// The order of additions is fixed, so the result does not depend on the number of threads. Parameters without a
/// gradient count as 0; a gradient that is not a number makes the norm NaN.
///
/// # Errors
/// When a gradient is not `f32`.
pub fn gradient_norm<'a>(parameters: impl IntoIterator<Item = &'a Var>, gradients: &GradStore) -> Result<f64> {
    let mut sums = Vec::new();
    for gradient in parameters.into_iter().filter_map(|parameter| gradients.get(parameter)) {
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        sums.push(match &*storage {
            Storage::Cpu(storage) => Squares::Known(squares(crate::map::numbers(storage, layout)?)),
            #[cfg(feature = "cuda")]
            Storage::Cuda(storage) => Squares::OnGpu(crate::kernels::SquareParts::new(storage, layout)?),
            _ => candle_core::bail!("no gradient norm on this device"),
        });
    }
    let sum: f64 = sums.iter().map(Squares::sum).sum::<Result<f64>>()?;
    Ok(sum.sqrt())
}

/// The sum of the squares of one gradient. A GPU works on all of them before anybody waits for the first.
enum Squares {
    Known(f64),
    #[cfg(feature = "cuda")]
    OnGpu(crate::kernels::SquareParts),
}

impl Squares {
    fn sum(&self) -> Result<f64> {
        match self {
            Self::Known(sum) => Ok(*sum),
            #[cfg(feature = "cuda")]
            Self::OnGpu(parts) => parts.sum(),
        }
    }
}

/// What gradients are multiplied by so that their norm is at most `limit`, as PyTorch does it: 1 when it is already.
///
/// A norm that is not a number gives a factor that is none either: whoever steps decides what to do about it.
pub fn clip_factor(norm: f64, limit: f64) -> f64 {
    let factor = limit / (norm + 1e-6);
    if factor > 1.0 { 1.0 } else { factor }
}

fn squares(numbers: &[f32]) -> f64 {
    let block = |block: &[f32]| block.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>();
    let blocks: Vec<f64> = numbers.par_chunks(BLOCK).map(block).collect();
    blocks.iter().sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    #[test]
    fn the_norm_is_that_of_all_gradients_together() {
        let a = Var::new(&[1f32, 1.0], &Device::Cpu).unwrap();
        let b = Var::new(&[[1f32], [1.0]], &Device::Cpu).unwrap();
        let unused = Var::new(&[9f32], &Device::Cpu).unwrap();
        // Gradients 2, 4 and 4, 8: 4 + 16 + 16 + 64 = 100.
        let pull = Tensor::new(&[2f32, 4.0], &Device::Cpu).unwrap();
        let loss = ((&pull * a.as_tensor()).unwrap().sum_all().unwrap()
            + (pull.unsqueeze(1).unwrap() * b.as_tensor()).unwrap().sum_all().unwrap().affine(2.0, 0.0).unwrap())
        .unwrap();
        let gradients = loss.backward().unwrap();
        assert_eq!(gradient_norm([&a, &b, &unused], &gradients).unwrap(), 10.0);
        assert_eq!(gradient_norm([&unused], &gradients).unwrap(), 0.0);
    }

    #[test]
    fn many_small_squares_are_not_lost() {
        let count = 3 * BLOCK + 7;
        let numbers = vec![1e-3f32; count];
        let wanted = count as f64 * f64::from(1e-3f32).powi(2);
        assert!((squares(&numbers) - wanted).abs() < 1e-12 * wanted);
    }

    #[test]
    fn only_long_gradients_are_shortened() {
        assert_eq!(clip_factor(4.0, 10.0), 1.0);
        assert!((clip_factor(20.0, 10.0) - 0.5).abs() < 1e-6);
        assert!(clip_factor(f64::NAN, 10.0).is_nan());
        assert_eq!(clip_factor(f64::INFINITY, 10.0), 0.0);
    }
}
