//! The optimiser's passes over memory.

use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::{DevicePtr as _, DeviceRepr, LaunchConfig};
use candle_core::{Result, Storage, Tensor, bail};

use super::{counted, launch, view};
use crate::optim::{MoveParameter, UpdateMeans};

/// Blocks that each add up a part of the squares of one tensor.
const PARTS: u32 = 64;
/// Blocks that share one parameter.
const BLOCKS: u32 = 256;

/// Where the numbers of a tensor without gaps lie on the GPU, and how many.
fn place(tensor: &Tensor) -> Result<(CudaDevice, u64, usize)> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else { bail!("an optimiser on a GPU and a tensor that is not") };
    let numbers = view((storage, layout))?;
    let stream = storage.device.cuda_stream();
    let (place, _held) = numbers.device_ptr(&stream);
    Ok((storage.device.clone(), place, numbers.len()))
}

/// `struct Numbers` of `map.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Numbers {
    from: u64,
    count: usize,
}

// SAFETY: a plain C struct of numbers, laid out as the kernels declare it.
unsafe impl DeviceRepr for Numbers {}

/// The sum of the squares of all `tensors`, which lie on one GPU without gaps: one launch and one wait.
pub(crate) fn sums_of_squares(tensors: &[Tensor]) -> Result<f64> {
    let Some(first) = tensors.first() else { return Ok(0.0) };
    let device = place(first)?.0;
    let mut table = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let (_, from, count) = place(tensor)?;
        table.push(Numbers { from, count });
    }
    let [rows] = counted([table.len()])?;
    let table = device.clone_htod(&table)?;
    let mut parts = device.alloc_zeros::<f64>(tensors.len() * PARTS as usize)?;
    let blocks = LaunchConfig { grid_dim: (PARTS, rows, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    launch!(device, "sums_of_squares", blocks, &table, &mut parts);
    Ok(device.clone_dtoh(&parts)?.iter().sum())
}

/// `struct AdamStep` of `map.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct OnGpu {
    parameter: u64,
    gradient: u64,
    means: u64,
    count: usize,
    factor: f32,
    decay: f32,
    mean_share: f32,
    square_keep: f32,
    square_share: f32,
    keep: f32,
    size: f32,
    correction: f32,
    eps: f32,
}

// SAFETY: as above.
unsafe impl DeviceRepr for OnGpu {}

/// What one parameter's step needs.
#[derive(Debug)]
pub(crate) struct AdamStep {
    pub(crate) parameter: Tensor,
    pub(crate) gradient: Tensor,
    pub(crate) means: Tensor,
    pub(crate) update: UpdateMeans,
    pub(crate) change: MoveParameter,
}

impl AdamStep {
    fn on_gpu(&self) -> Result<OnGpu> {
        let (_, parameter, count) = place(&self.parameter)?;
        let (_, gradient, of_gradient) = place(&self.gradient)?;
        let (_, means, of_means) = place(&self.means)?;
        if of_gradient != count || of_means != 2 * count {
            bail!("{of_gradient} gradients and {of_means} means for {count} numbers");
        }
        let UpdateMeans { factor, decay, mean_share, square_keep, square_share } = self.update;
        let MoveParameter { keep, size, correction, eps } = self.change;
        Ok(OnGpu {
            parameter,
            gradient,
            means,
            count,
            factor,
            decay,
            mean_share,
            square_keep,
            square_share,
            keep,
            size,
            correction,
            eps,
        })
    }
}

/// Changes parameters and means where they lie, all in one launch. Whoever calls owns both: nobody else may read them meanwhile.
pub(crate) fn adam_steps(steps: &[AdamStep]) -> Result<()> {
    let Some(first) = steps.first() else { return Ok(()) };
    let device = place(&first.parameter)?.0;
    let table = steps.iter().map(AdamStep::on_gpu).collect::<Result<Vec<_>>>()?;
    let [rows] = counted([table.len()])?;
    let table = device.clone_htod(&table)?;
    let blocks = LaunchConfig { grid_dim: (BLOCKS, rows, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    launch!(device, "adam_steps", blocks, &table);
    Ok(())
}

#[cfg(test)]
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
            let mut draw = |count: usize| {
                let numbers: Vec<f32> = (0..count).map(|_| rng.normal() as f32).collect();
                Tensor::new(numbers, device).unwrap()
            };
            let counts = [70_001, 1, 333, 5];
            let parameters = counts.map(|count| Var::from_tensor(&draw(count)).unwrap());
            let config = AdamConfig { weight_decay: WeightDecay::Decoupled(0.1), ..AdamConfig::default() };
            let named = parameters.iter().enumerate().map(|(n, var)| (n.to_string(), var.clone())).collect();
            let mut adam = Adam::new(named, config, &[]).unwrap();
            let mut norm = 0.0;
            for step in 0..3 {
                // The last one gets no gradient, and the third only now and then.
                let taken = parameters[..if step == 1 { 2 } else { 3 }].iter().zip(counts);
                let parts = taken.map(|(var, count)| (var.as_tensor() * draw(count)).unwrap().sum_all().unwrap());
                let loss = parts.reduce(|sum, part| (sum + part).unwrap()).unwrap();
                let gradients = loss.backward().unwrap();
                norm = gradient_norm(&parameters, &gradients).unwrap();
                adam.step(&gradients, 1e-2, clip_factor(norm, 10.0)).unwrap();
            }
            (parameters.iter().flat_map(|var| var.to_vec1::<f32>().unwrap()).collect(), norm)
        };
        let ((ours, norm), (wanted, wanted_norm)) = (after(&gpu), after(&Device::Cpu));
        assert!((norm - wanted_norm).abs() < 1e-9 * wanted_norm, "{norm} {wanted_norm}");
        assert!(ours.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-6));
    }
}
