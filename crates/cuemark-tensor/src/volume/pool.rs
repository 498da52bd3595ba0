//! The largest number in a window.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::Window;
use super::window::Placed;
use crate::map::numbers;
use crate::vectorised;

/// The largest number of each channel in every window; padding counts for nothing.
///
/// # Shapes
/// - x `[batch, times, height, width, channels]`
/// - returns `[batch, times', height', width', channels]`
///
/// # Errors
/// When the window is larger than the input.
pub fn max_pool(x: &Tensor, window: Window) -> Result<Tensor> {
    x.contiguous()?.apply_op1_no_bwd(&MaxPool(window))
}

pub(super) struct MaxPool(pub(super) Window);

impl MaxPool {
    /// Batch, where the window stands, channels.
    pub(super) fn sizes(&self, x: &Shape) -> Result<(usize, Placed, usize)> {
        let (batch, times, height, width, channels) = x.dims5()?;
        Ok((batch, self.0.place([times, height, width])?, channels))
    }
}

impl CustomOp1 for MaxPool {
    fn name(&self) -> &'static str {
        "volume-max-pool"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (batch, placed, channels) = self.sizes(layout.shape())?;
        let x = numbers(x, layout)?;
        let [times, height, width] = placed.output;
        let mut y = vec![0.0; batch * placed.outputs() * channels];
        let item = placed.inputs() * channels;
        y.par_chunks_mut((width * channels).max(1)).enumerate().for_each_init(Vec::new, |tallest, (line, y)| {
            let (at, line) = (line / (times * height), line % (times * height));
            let x = &x[at * item..(at + 1) * item];
            max_line(&placed, channels, x, (line / height, line % height), tallest, y);
        });
        Ok((CpuStorage::F32(y), Shape::from((batch, times, height, width, channels))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &candle_core::CudaStorage, layout: &Layout) -> Result<(candle_core::CudaStorage, Shape)> {
        super::cuda::max_pool(self, (x, layout))
    }
}

/// One output line: first the largest of all input lines that it reads, place by place, then along that line.
fn max_line(
    placed: &Placed,
    channels: usize,
    x: &[f32],
    (time, height): (usize, usize),
    tallest: &mut Vec<f32>,
    y: &mut [f32],
) {
    let [kernel_t, kernel_h, kernel_w] = placed.window.kernel;
    let [_, in_height, in_width] = placed.input;
    tallest.clear();
    tallest.resize(in_width * channels, f32::NEG_INFINITY);
    let larger = |to: &mut [f32], from: &[f32]| {
        vectorised(
            #[inline(always)]
            || to.iter_mut().zip(from).for_each(|(to, from)| *to = to.max(*from)),
        );
    };
    for (place_t, place_h) in (0..kernel_t).flat_map(|t| (0..kernel_h).map(move |h| (t, h))) {
        let (Some(t), Some(h)) = (placed.at(0, time, place_t), placed.at(1, height, place_h)) else { continue };
        larger(tallest, &x[(t * in_height + h) * in_width * channels..][..in_width * channels]);
    }
    y.fill(f32::NEG_INFINITY);
    for (column, y) in y.chunks_exact_mut(channels).enumerate() {
        for w in (0..kernel_w).filter_map(|place| placed.at(2, column, place)) {
            larger(y, &tallest[w * channels..(w + 1) * channels]);
        }
    }
}
