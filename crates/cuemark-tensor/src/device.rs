//! Choosing what tensors run on.

use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::Device;
use cuemark_core::{Advice, Advise};
use serde::{Deserialize, Serialize};

/// A device name that means nothing here.
#[derive(Debug, thiserror::Error)]
#[error("no device `{name}`: {problem}")]
pub struct UnknownDevice {
    name: String,
    problem: String,
}

impl Advise for UnknownDevice {
    fn advice(&self) -> Option<Advice> {
        Some(if cfg!(feature = "cuda") {
            "name `cpu`, `cuda` or `cuda:N` with N the number that `nvidia-smi` shows".into()
        } else {
            "name `cpu`, or build with the feature `cuda` for an NVIDIA GPU".into()
        })
    }
}

/// `cpu`, `cuda` (the first GPU) or `cuda:N`.
///
/// # Errors
/// For another name, for a GPU that is not there, and for every GPU in a build without the feature `cuda`.
pub fn device(name: &str) -> Result<Device, UnknownDevice> {
    let unknown = |problem: String| UnknownDevice { name: name.to_owned(), problem };
    if name == "cpu" {
        return Ok(Device::Cpu);
    }
    let number = match name.strip_prefix("cuda") {
        Some("") => 0,
        Some(rest) => rest
            .strip_prefix(':')
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| unknown("expected a number after `cuda:`".to_owned()))?,
        None => return Err(unknown("it is neither a CPU nor a GPU".to_owned())),
    };
    if !cfg!(feature = "cuda") {
        return Err(unknown("this build has no GPU support".to_owned()));
    }
    gpu(number).map_err(|error| unknown(error.to_string()))
}

fn gpu(number: usize) -> candle_core::Result<Device> {
    let device = Device::new_cuda(number)?;
    #[cfg(feature = "cuda")]
    if let Device::Cuda(device) = &device {
        crate::kernels::keep_memory(device)?;
    }
    Ok(device)
}

/// How matrix products on a GPU round what they multiply; sums, weights and gradients stay 32 bits wide, and the CPU always
/// computes in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Not at all.
    F32,
    /// To 19 bits, of which 10 are digits. Default.
    #[default]
    Tf32,
    /// To 16 bits, of which 7 are digits, in maps and recurrent layers; to 19 elsewhere.
    Bf16,
}

static BF16: AtomicBool = AtomicBool::new(false);

/// Sets the precision for the whole process: candle has one switch for all devices, and so do we.
pub fn set_precision(precision: Precision) {
    candle_core::cuda::set_gemm_reduced_precision_f32(precision != Precision::F32);
    BF16.store(precision == Precision::Bf16, Ordering::Relaxed);
}

/// Whether our own products may round to 16 bits.
#[cfg(feature = "cuda")]
pub(crate) fn rounds_to_bf16() -> bool {
    BF16.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_always_there() {
        assert!(device("cpu").unwrap().is_cpu());
    }

    #[test]
    fn nonsense_is_named_with_a_hint() {
        for name in ["gpu", "cuda:", "cuda:x", "cuda0", ""] {
            let error = device(name).unwrap_err();
            assert!(error.to_string().starts_with(&format!("no device `{name}`")), "{error}");
            assert!(error.advice_in(cuemark_core::Dialect::Terminal).unwrap().contains("cpu"));
        }
    }
}
