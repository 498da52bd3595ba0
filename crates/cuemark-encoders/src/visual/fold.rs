//! Kernels as our convolutions want them, with batch normalisation folded in.
//!
//! While answering, batch normalisation is `x * scale + shift` per channel, and that is a convolution with other weights.

use candle_core::Result;
use cuemark_tensor::Tensor;
use cuemark_tensor::VarBuilder;
use cuemark_tensor::volume::{Activation, DepthwiseConv, VolumeConv, Window};

/// What batch normalisation makes of a number, by channel.
pub(super) struct Norm {
    pub(super) scale: Tensor,
    pub(super) shift: Tensor,
}

impl Norm {
    /// From its four vectors; one without a weight has ones.
    pub(super) fn new(weight: Option<&Tensor>, bias: &Tensor, mean: &Tensor, var: &Tensor, eps: f64) -> Result<Self> {
        let scale = (var + eps)?.sqrt()?.recip()?;
        let scale = match weight {
            Some(weight) => (scale * weight)?,
            None => scale,
        };
        let shift = (bias - (mean * &scale)?)?;
        Ok(Self { scale, shift })
    }

    /// By PyTorch's names.
    pub(super) fn named(channels: usize, eps: f64, vb: &VarBuilder) -> Result<Self> {
        let get = |name: &str| vb.get(channels, name);
        Self::new(Some(&get("weight")?), &get("bias")?, &get("running_mean")?, &get("running_var")?, eps)
    }
}

/// PyTorch's `[out, in, …]` as `[times, height, width, in, out]`; a kernel for pictures has one time.
pub(super) fn channels_last(kernel: &Tensor) -> Result<Tensor> {
    let kernel = if kernel.rank() == 4 { kernel.unsqueeze(2)? } else { kernel.clone() };
    kernel.permute((2, 3, 4, 1, 0))?.contiguous()
}

/// A convolution and its normalisation as one layer; the kernel has channels last.
pub(super) fn conv(kernel: &Tensor, norm: &Norm, window: Window, activation: Activation) -> Result<VolumeConv> {
    VolumeConv::new(&kernel.broadcast_mul(&norm.scale)?, &norm.shift, window, activation)
}

/// The same for PyTorch's depthwise kernel `[channels, 1, height, width]`.
pub(super) fn depthwise(kernel: &Tensor, norm: &Norm, window: Window, activation: Activation) -> Result<DepthwiseConv> {
    let kernel = kernel.permute((1, 2, 3, 0))?.contiguous()?;
    DepthwiseConv::new(&kernel.broadcast_mul(&norm.scale)?, &norm.shift, window, activation)
}

/// A layer of PyTorch's that is fully connected to a volume `[channels, times, height, width]`, for one whose channels are
/// last: `[inputs, out]`.
pub(super) fn after_volume(weight: &Tensor, channels: usize, rest: usize) -> Result<Tensor> {
    let out = weight.dim(0)?;
    weight.reshape((out, channels, rest))?.permute((2, 1, 0))?.contiguous()?.reshape((rest * channels, out))
}
