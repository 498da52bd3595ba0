//! A convolution that keeps channels apart.

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::window::Placed;
use super::{Activation, Window, lines};
use crate::map::numbers;
use crate::vectorised;

/// Channels that are summed at once: what fits the registers.
const LANES: usize = 64;

/// One convolution with a kernel per channel.
#[derive(Debug, Clone)]
pub struct DepthwiseConv {
    weight: Tensor,
    bias: Tensor,
    op: Depthwise,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Depthwise {
    pub(super) window: Window,
    pub(super) activation: Activation,
}

impl DepthwiseConv {
    /// From a kernel `[times, height, width, channels]` and a bias `[channels]`.
    ///
    /// # Errors
    /// When the shapes do not fit the window or each other.
    pub fn new(kernel: &Tensor, bias: &Tensor, window: Window, activation: Activation) -> Result<Self> {
        let (times, height, width, channels) = kernel.dims4()?;
        if [times, height, width] != window.kernel || bias.dims() != [channels] {
            bail!(
                "a kernel of {:?} and a bias of {:?} for a window of {:?}",
                kernel.dims(),
                bias.dims(),
                window.kernel
            );
        }
        let weight = kernel.contiguous()?.reshape((times * height * width, channels))?.detach();
        Ok(Self { weight, bias: bias.contiguous()?.detach(), op: Depthwise { window, activation } })
    }

    /// # Shapes
    /// - x `[batch, times, height, width, channels]`
    /// - returns `[batch, times', height', width', channels]`
    ///
    /// # Errors
    /// When the channels differ or the window is larger than the input.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.contiguous()?.apply_op3_no_bwd(&self.weight, &self.bias, &self.op)
    }
}

impl Depthwise {
    /// Batch, where the window stands, channels.
    pub(super) fn sizes(&self, x: &Shape, weight: &Shape) -> Result<(usize, Placed, usize)> {
        let (batch, times, height, width, channels) = x.dims5()?;
        if weight.dims2()?.1 != channels {
            bail!("a volume of {channels} channels where the kernel reads {}", weight.dims2()?.1);
        }
        Ok((batch, self.window.place([times, height, width])?, channels))
    }
}

impl CustomOp3 for Depthwise {
    fn name(&self) -> &'static str {
        "volume-depthwise"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, placed, channels) = self.sizes(x_layout.shape(), weight_layout.shape())?;
        let (x, weight, bias) = (numbers(x, x_layout)?, numbers(weight, weight_layout)?, numbers(bias, bias_layout)?);
        let mut y = vec![0.0; batch * placed.outputs() * channels];
        let items =
            y.chunks_mut((placed.outputs() * channels).max(1)).zip(x.chunks((placed.inputs() * channels).max(1)));
        let work = Work { placed, channels, weight, bias, range: self.activation.range() };
        items.for_each(|(y, x)| {
            let x = lines::padded(x, &placed, channels);
            let width = placed.output[2] * channels;
            y.par_chunks_mut(width).enumerate().for_each(|(line, y)| work.line(&x, line, y));
        });
        let [times, height, width] = placed.output;
        Ok((CpuStorage::F32(y), Shape::from((batch, times, height, width, channels))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        x_layout: &Layout,
        weight: &candle_core::CudaStorage,
        weight_layout: &Layout,
        bias: &candle_core::CudaStorage,
        bias_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        super::cuda::depthwise(self, (x, x_layout), (weight, weight_layout), (bias, bias_layout))
    }
}

struct Work<'a> {
    placed: Placed,
    channels: usize,
    weight: &'a [f32],
    bias: &'a [f32],
    range: (f32, f32),
}

impl Work<'_> {
    /// One output line of the padded item `x`.
    fn line(&self, x: &[f32], line: usize, y: &mut [f32]) {
        let &Self { placed, channels, .. } = self;
        let ([kernel_t, kernel_h, kernel_w], stride) = (placed.window.kernel, placed.window.stride);
        let (high, wide) = (placed.padded(1), placed.padded(2));
        let (time, height) = (line / placed.output[1], line % placed.output[1]);
        vectorised(
            #[inline(always)]
            || {
                for (column, y) in y.chunks_exact_mut(channels).enumerate() {
                    for (lane, y) in y.chunks_mut(LANES).enumerate() {
                        let (first, count) = (lane * LANES, y.len());
                        let mut sums = [0f32; LANES];
                        for place_t in 0..kernel_t {
                            let Some(from_t) = placed.at(0, time, place_t) else { continue };
                            for place_h in 0..kernel_h {
                                let from_h = from_t * high + height * stride[1] + place_h;
                                let at = (from_h * wide + column * stride[2]) * channels + first;
                                let kernel = (place_t * kernel_h + place_h) * kernel_w * channels + first;
                                for place_w in 0..kernel_w {
                                    let x = &x[at + place_w * channels..][..count];
                                    let weight = &self.weight[kernel + place_w * channels..][..count];
                                    add_products(&mut sums, x, weight);
                                }
                            }
                        }
                        let bias = &self.bias[first..first + count];
                        for ((y, sum), bias) in y.iter_mut().zip(&sums).zip(bias) {
                            *y = (sum + bias).max(self.range.0).min(self.range.1);
                        }
                    }
                }
            },
        );
    }
}

#[inline(always)]
fn add_products(sums: &mut [f32; LANES], x: &[f32], weight: &[f32]) {
    match (<&[f32; LANES]>::try_from(x), <&[f32; LANES]>::try_from(weight)) {
        // A length that the compiler knows keeps the sums in registers.
        (Ok(x), Ok(weight)) => (0..LANES).for_each(|lane| sums[lane] += x[lane] * weight[lane]),
        _ => sums.iter_mut().zip(x.iter().zip(weight)).for_each(|(sum, (x, weight))| *sum += x * weight),
    }
}
