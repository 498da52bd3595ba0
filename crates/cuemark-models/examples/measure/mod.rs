//! What the examples that are a side of a ratio share: seconds of repeated work, and the line that both sides print.

pub(crate) mod gpu;

use std::collections::HashMap;
use std::error::Error;
use std::time::Instant;

use candle_core::{Device, Tensor};
use cuemark_models::{Batch, Model, ModelError, Sharing, differentiate};
use cuemark_tensor::optim::{Adam, clip_factor, gradient_norm};
use cuemark_tensor::{Params, Pass, Var, step_on_threads};
use serde_json::{Value, json};

/// Seconds of repeated work; the first time does not count.
#[derive(Default)]
pub(crate) struct Seconds(Vec<(f64, f64)>);

impl Seconds {
    /// Those of `steps` times after one that does not count, or of that one where there are no others; `work` is told the number of
    /// the time.
    pub(crate) fn of(
        steps: usize,
        mut work: impl FnMut(usize) -> Result<(), Box<dyn Error>>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut seconds = Self::default();
        for number in 0..=steps {
            let (wall, cpu) = (Instant::now(), processor_seconds()?);
            work(number)?;
            seconds.0.push((wall.elapsed().as_secs_f64(), processor_seconds()? - cpu));
        }
        if steps > 0 {
            seconds.0.remove(0);
        }
        Ok(seconds)
    }

    /// As [`Seconds::of`]; none where `ONLY_TRAINING` in the environment asks for steps of training alone.
    pub(crate) fn answering(
        steps: usize,
        work: impl FnMut(usize) -> Result<(), Box<dyn Error>>,
    ) -> Result<Self, Box<dyn Error>> {
        if std::env::var_os("ONLY_TRAINING").is_some() { Ok(Self::default()) } else { Self::of(steps, work) }
    }

    fn wall(&self) -> Vec<f64> {
        self.0.iter().map(|(wall, _)| *wall).collect()
    }

    fn cpu(&self) -> Vec<f64> {
        self.0.iter().map(|(_, cpu)| *cpu).collect()
    }
}

/// Processor time of all threads so far, in steps of 10 ms.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("an unknown form of /proc/self/stat")?.1;
    let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}

/// One step as the trainer makes it at a learning rate, gradients within a norm; the loss.
///
/// `PARTS` in the environment says in how many parts the batch is read, in place of what the trainer would choose.
pub(crate) fn step(
    model: &dyn Model,
    batch: &Batch,
    pass: Pass,
    adam: &mut Adam,
    [rate, limit]: [f64; 2],
) -> Result<f64, Box<dyn Error>> {
    let device = batch.videos.visual.device();
    let parameters: Vec<Var> = adam.parameters().cloned().collect();
    let chosen = Sharing::of(model, batch.len(), &parameters);
    let parts = std::env::var("PARTS").map_or(Ok(chosen.parts), |parts| parts.parse())?;
    let learn = move || -> Result<f64, ModelError> {
        let ready = |batch: &Batch, _: &Pass| Ok::<_, ModelError>(batch.clone());
        let (loss, gradients) = differentiate(model, batch, &pass, &parameters, parts, ready)?;
        let norm = gradient_norm(adam.parameters(), &gradients)?;
        adam.step(&gradients, rate, clip_factor(norm, limit))?;
        Ok(number(&loss)?)
    };
    let loss = step_on_threads(device, chosen.threads.max(parts), learn)?;
    device.synchronize()?;
    Ok(loss)
}

/// What a side says of itself; an example may add to it.
pub(crate) fn told(
    inference: &Seconds,
    training: &Seconds,
    loss: f64,
    params: &Params,
) -> Result<Value, Box<dyn Error>> {
    Ok(json!({
        "inference_s": inference.wall(), "training_s": training.wall(),
        "inference_cpu_s": inference.cpu(), "training_cpu_s": training.cpu(),
        "loss": loss, "parameters": params.count(), "peak_gpu_bytes": gpu::peak_bytes(params.device())?,
        "weights": format!("{:016x}", bits(params)?),
    }))
}

/// A number that every bit of every weight has a part in (FNV-1a).
fn bits(params: &Params) -> Result<u64, Box<dyn Error>> {
    let mut sum = 0xCBF2_9CE4_8422_2325_u64;
    for (_, var) in params.vars() {
        for number in var.flatten_all()?.to_vec1::<f32>()? {
            sum = (sum ^ u64::from(number.to_bits())).wrapping_mul(0x0100_0000_01B3);
        }
    }
    Ok(sum)
}

/// A loss as a number.
pub(crate) fn number(loss: &Tensor) -> candle_core::Result<f64> {
    Ok(f64::from(loss.to_device(&Device::Cpu)?.to_scalar::<f32>()?))
}

/// Writes what the other side starts from: the parameters by their names, and `inputs` under `in.`.
pub(crate) fn write_start<const N: usize>(
    params: &Params,
    inputs: [(&str, Tensor); N],
    file: &str,
) -> Result<(), Box<dyn Error>> {
    let parameters = params.vars().into_iter().map(|(name, var)| (name, var.as_detached_tensor()));
    let inputs = inputs.into_iter().map(|(name, input)| (format!("in.{name}"), input));
    let tensors: HashMap<String, Tensor> = parameters.chain(inputs).collect();
    Ok(candle_core::safetensors::save(&tensors, file)?)
}
