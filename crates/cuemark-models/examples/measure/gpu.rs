//! Memory of the GPU.

use cuemark_tensor::Device;

/// The most memory of the GPU that tensors held at once. 0 on a CPU.
#[allow(unused_variables)] // a build without GPU has none to count
pub(crate) fn peak_bytes(device: &Device) -> candle_core::Result<u64> {
    #[cfg(feature = "cuda")]
    if let Device::Cuda(device) = device {
        return cuemark_tensor::kernels::peak_bytes(device);
    }
    Ok(0)
}
