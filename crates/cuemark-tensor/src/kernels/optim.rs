//! The optimiser's passes over memory.

use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, CudaViewMut, LaunchConfig};
use candle_core::{CudaStorage, Layout, Result, bail};

use super::{launch, over, view};
use crate::optim::{MoveParameter, UpdateMeans};

/// Blocks that each add up a part of the squares.
const PARTS: u32 = 256;

pub(crate) fn update_means(
    update: &UpdateMeans,
    (means, layout): (&mut CudaStorage, &Layout),
    gradient: (&CudaStorage, &Layout),
    parameter: (&CudaStorage, &Layout),
) -> Result<()> {
    let device = gradient.0.device.clone();
    let (gradient, parameter) = (view(gradient)?, view(parameter)?);
    let count = gradient.len();
    let mut means = view_mut(means, layout)?;
    let UpdateMeans { factor, decay, mean_share, square_keep, square_share } = update;
    launch!(
        device,
        "adam_means",
        over(count),
        &mut means,
        &gradient,
        &parameter,
        &count,
        factor,
        decay,
        mean_share,
        square_keep,
        square_share,
    );
    Ok(())
}

pub(crate) fn move_parameter(
    step: &MoveParameter,
    (parameter, layout): (&mut CudaStorage, &Layout),
    means: (&CudaStorage, &Layout),
) -> Result<()> {
    let device = means.0.device.clone();
    let means = view(means)?;
    let count = means.len() / 2;
    let mut parameter = view_mut(parameter, layout)?;
    let MoveParameter { keep, size, correction, eps } = step;
    launch!(device, "adam_move", over(count), &mut parameter, &means, &count, keep, size, correction, eps);
    Ok(())
}

/// Sums of squares that the GPU is working on.
pub(crate) struct SquareParts {
    device: CudaDevice,
    parts: CudaSlice<f64>,
}

impl SquareParts {
    /// Starts the work.
    pub(crate) fn new(storage: &CudaStorage, layout: &Layout) -> Result<Self> {
        let device = storage.device.clone();
        let numbers = view((storage, layout))?;
        let count = numbers.len();
        let mut parts = device.alloc_zeros::<f64>(PARTS as usize)?;
        let config = LaunchConfig { grid_dim: (PARTS, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        launch!(device, "sum_of_squares", config, &numbers, &mut parts, &count);
        Ok(Self { device, parts })
    }

    /// Waits for it.
    pub(crate) fn sum(&self) -> Result<f64> {
        Ok(self.device.clone_dtoh(&self.parts)?.iter().sum())
    }
}

fn view_mut<'a>(storage: &'a mut CudaStorage, layout: &Layout) -> Result<CudaViewMut<'a, f32>> {
    let Some((start, end)) = layout.contiguous_offsets() else { bail!("an optimiser works on f32 without gaps") };
    Ok(storage.as_cuda_slice_mut::<f32>()?.slice_mut(start..end))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::print_stderr)] // a test may panic, and says when it checks nothing
mod tests {
    use candle_core::{Device, Tensor, Var};
    use cuemark_core::Rng;

    use crate::optim::{Adam, AdamConfig, WeightDecay, clip_factor, gradient_norm};

    #[test]
    fn steps_on_the_gpu_equal_steps_on_the_cpu() {
        let Ok(gpu) = Device::new_cuda(0) else {
            eprintln!("SKIPPED (no GPU): steps_on_the_gpu_equal_steps_on_the_cpu");
            return;
        };
        let after = |device: &Device| -> (Vec<f32>, f64) {
            let rng = &mut Rng::new(1);
            let mut draw = || {
                let numbers: Vec<f32> = (0..70_001).map(|_| rng.normal() as f32).collect();
                Tensor::new(numbers, device).unwrap()
            };
            let parameter = Var::from_tensor(&draw()).unwrap();
            let config = AdamConfig { weight_decay: WeightDecay::Decoupled(0.1), ..AdamConfig::default() };
            let mut adam = Adam::new(vec![("w".to_owned(), parameter.clone())], config, &[]).unwrap();
            let mut norm = 0.0;
            for _ in 0..3 {
                let loss = (parameter.as_tensor() * draw()).unwrap().sum_all().unwrap();
                let gradients = loss.backward().unwrap();
                norm = gradient_norm([&parameter], &gradients).unwrap();
                adam.step(&gradients, 1e-2, clip_factor(norm, 10.0)).unwrap();
            }
            (parameter.to_vec1().unwrap(), norm)
        };
        let ((ours, norm), (wanted, wanted_norm)) = (after(&gpu), after(&Device::Cpu));
        assert!((norm - wanted_norm).abs() < 1e-9 * wanted_norm, "{norm} {wanted_norm}");
        assert!(ours.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-6));
    }
}
