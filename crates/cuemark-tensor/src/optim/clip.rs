//! How long gradients are, and what keeps them within bounds.

use candle_core::backprop::GradStore;
use candle_core::{Result, Storage, Var};
use rayon::prelude::*;

use crate::vectorised;

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
    let gradients = parameters.into_iter().filter_map(|parameter| gradients.get(parameter));
    let gradients = gradients.map(candle_core::Tensor::contiguous).collect::<Result<Vec<_>>>()?;
    #[cfg(feature = "cuda")]
    if gradients.first().is_some_and(|gradient| gradient.device().is_cuda()) {
        return Ok(crate::kernels::sums_of_squares(&gradients)?.sqrt());
    }
    let mut sum = 0.0;
    for gradient in &gradients {
        let (storage, layout) = gradient.storage_and_layout();
        let Storage::Cpu(storage) = &*storage else { candle_core::bail!("no gradient norm on this device") };
        sum += squares(crate::map::numbers(storage, layout)?);
    }
    Ok(sum.sqrt())
}

/// How gradients are kept within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Clip {
    /// Not at all. Default.
    #[default]
    Never,
    /// All together are shortened to this norm.
    Norm(f64),
    /// Each tensor by itself is shortened to this norm.
    EachTensor(f64),
    /// Every number is kept within plus and minus this.
    EachNumber(f64),
}

impl Clip {
    /// Changes the gradients of `parameters` where each has its own limit; the factor that remains to be multiplied in, 1
    /// where there is none.
    ///
    /// # Errors
    /// When a gradient is not `f32`.
    pub fn apply(self, parameters: &[&Var], gradients: &mut GradStore) -> Result<f64> {
        match self {
            Self::Never => Ok(1.0),
            Self::Norm(limit) => Ok(clip_factor(gradient_norm(parameters.iter().copied(), gradients)?, limit)),
            Self::EachTensor(limit) => {
                for parameter in parameters {
                    let factor = clip_factor(gradient_norm([*parameter], gradients)?, limit);
                    if let Some(gradient) = gradients.get(parameter).filter(|_| factor < 1.0) {
                        let gradient = (gradient * factor)?;
                        gradients.insert(parameter, gradient);
                    }
                }
                Ok(1.0)
            }
            Self::EachNumber(limit) => {
                for parameter in parameters {
                    if let Some(gradient) = gradients.get(parameter) {
                        let gradient = gradient.clamp(-limit, limit)?;
                        gradients.insert(parameter, gradient);
                    }
                }
                Ok(1.0)
            }
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
    let block = |block: &[f32]| {
        vectorised(
            #[inline(always)]
            || {
                // Eight sums beside each other, for wide registers.
                let mut lanes = [0f64; 8];
                for chunk in block.chunks(8) {
                    for (lane, x) in lanes.iter_mut().zip(chunk) {
                        *lane += f64::from(*x) * f64::from(*x);
                    }
                }
                lanes.iter().sum::<f64>()
            },
        )
    };
    let blocks: Vec<f64> = numbers.par_chunks(BLOCK).map(block).collect();
    blocks.iter().sum()
}

#[cfg(test)]
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

    /// Gradients 3, 4 (norm 5) and 0.3, 0.4 (norm 0.5).
    fn two() -> ([Var; 2], GradStore) {
        let [a, b] = [[0f32, 0.0], [0.0, 0.0]].map(|zeros| Var::new(&zeros, &Device::Cpu).unwrap());
        let pull = Tensor::new(&[3f32, 4.0], &Device::Cpu).unwrap();
        let sum = (a.as_tensor() + (b.as_tensor() * 0.1).unwrap()).unwrap();
        let gradients = (sum * pull).unwrap().sum_all().unwrap().backward().unwrap();
        ([a, b], gradients)
    }

    #[test]
    fn each_way_of_clipping_changes_what_it_says() {
        for (clip, wanted) in [
            (Clip::Never, [[3.0, 4.0], [0.3, 0.4]]),
            (Clip::Norm(1.0), [[0.597, 0.796], [0.0597, 0.0796]]),
            (Clip::EachTensor(1.0), [[0.6, 0.8], [0.3, 0.4]]),
            (Clip::EachNumber(0.35), [[0.35, 0.35], [0.3, 0.35]]),
        ] {
            let (parameters, mut gradients) = two();
            let factor = clip.apply(&[&parameters[0], &parameters[1]], &mut gradients).unwrap();
            for (parameter, wanted) in parameters.iter().zip(wanted) {
                let found: Vec<f32> = gradients.get(parameter).unwrap().to_vec1().unwrap();
                for (found, wanted) in found.iter().zip(wanted) {
                    assert!((f64::from(*found) * factor - wanted).abs() < 2e-4, "{clip:?}: {found} {wanted}");
                }
            }
        }
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
