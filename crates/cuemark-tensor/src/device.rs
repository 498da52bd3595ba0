//! Choosing what tensors run on.

use candle_core::Device;

/// A device name that means nothing here.
#[derive(Debug, thiserror::Error)]
#[error("no device `{name}`: {problem}")]
pub struct UnknownDevice {
    name: String,
    problem: String,
}

impl UnknownDevice {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        if cfg!(feature = "cuda") {
            "name `cpu`, `cuda` or `cuda:N` with N the number that `nvidia-smi` shows"
        } else {
            "name `cpu`, or build with `--features cuda` for an NVIDIA GPU"
        }
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
    Device::new_cuda(number).map_err(|error| unknown(error.to_string()))
}

/// Lets matrix products on a GPU round their 32-bit inputs to 19 bits (TF32), for the whole process; the CPU computes in full.
pub fn allow_tf32(allowed: bool) {
    candle_core::cuda::set_gemm_reduced_precision_f32(allowed);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
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
            assert!(error.hint().contains("cpu"));
        }
    }
}
