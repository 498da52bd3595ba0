//! The channel-wise maximum over the clips of each valid span.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;
use std::sync::Arc;

use super::MapLayout;
use super::conv::numbers;

/// For each valid cell the largest value of each channel over its clips.
///
/// The gradient goes to the first clip that has the largest value. Numbers are `f32`.
///
/// # Shapes
/// - clips `[batch, layout.clips(), width]`
/// - returns `[batch, layout.len(), width]`
///
/// # Errors
/// When there are more or fewer clips than the layout has.
pub fn span_max(clips: &Tensor, layout: &Arc<MapLayout>) -> Result<Tensor> {
    let (_, count, _) = clips.dims3()?;
    if count != layout.clips() {
        bail!("{count} clips for a map of {}", layout.clips());
    }
    clips.contiguous()?.apply_op1(SpanMax(layout.clone()))
}

pub(super) struct SpanMax(pub(super) Arc<MapLayout>);

impl CustomOp1 for SpanMax {
    fn name(&self) -> &'static str {
        "span-max"
    }

    fn cpu_fwd(&self, clips: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (batch, count, width) = layout.shape().dims3()?;
        let clips = numbers(clips, layout)?;
        let cells = self.0.len();
        let mut map = vec![0.0; batch * cells * width];
        let items =
            map.par_chunks_exact_mut((cells * width).max(1)).zip(clips.par_chunks_exact((count * width).max(1)));
        items.for_each(|(map, clips)| {
            // Cells come by start, then end, so a span is the one before it in its row and the clips since.
            let mut before: Option<(u32, u32, usize)> = None;
            for (number, (start, end)) in self.0.cells().iter().enumerate() {
                let (done, row) = map.split_at_mut(number * width);
                let row = &mut row[..width];
                let from = match before {
                    Some((same, last, place)) if same == *start => {
                        row.copy_from_slice(&done[place * width..][..width]);
                        last as usize + 1
                    }
                    _ => {
                        row.copy_from_slice(&clips[*start as usize * width..][..width]);
                        *start as usize + 1
                    }
                };
                for clip in clips[from * width..(*end as usize + 1) * width].chunks_exact(width) {
                    row.iter_mut().zip(clip).for_each(|(max, x)| *max = if *x > *max { *x } else { *max });
                }
                before = Some((*start, *end, number));
            }
        });
        Ok((CpuStorage::F32(map), Shape::from((batch, cells, width))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, clips: &candle_core::CudaStorage, layout: &Layout) -> Result<(candle_core::CudaStorage, Shape)> {
        super::cuda::span_max(&self.0, (clips, layout))
    }

    fn bwd(&self, clips: &Tensor, _map: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        clips.apply_op2_no_bwd(&gradient.contiguous()?, &SpanMaxGradient(self.0.clone())).map(Some)
    }
}

/// From clips and the gradient of the map to the gradient of the clips.
pub(super) struct SpanMaxGradient(pub(super) Arc<MapLayout>);

impl CustomOp2 for SpanMaxGradient {
    fn name(&self) -> &'static str {
        "span-max-gradient"
    }

    fn cpu_fwd(
        &self,
        clips: &CpuStorage,
        layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (_, count, width) = layout.shape().dims3()?;
        let (clips, gradient) = (numbers(clips, layout)?, numbers(gradient, gradient_layout)?);
        let cells = self.0.len();
        let mut to = vec![0.0; clips.len()];
        let items = to.par_chunks_exact_mut((count * width).max(1)).zip(clips.par_chunks_exact((count * width).max(1)));
        items.zip(gradient.par_chunks_exact((cells * width).max(1))).for_each(|((to, clips), gradient)| {
            let mut largest = vec![0usize; width];
            let mut before: Option<(u32, u32)> = None;
            for ((start, end), gradient) in self.0.cells().iter().zip(gradient.chunks_exact(width.max(1))) {
                let from = match before {
                    Some((same, last)) if same == *start => last as usize + 1,
                    _ => {
                        largest.fill(*start as usize);
                        *start as usize + 1
                    }
                };
                for clip in from..=*end as usize {
                    for (channel, largest) in largest.iter_mut().enumerate() {
                        if clips[clip * width + channel] > clips[*largest * width + channel] {
                            *largest = clip;
                        }
                    }
                }
                before = Some((*start, *end));
                for (channel, largest) in largest.iter().enumerate() {
                    to[largest * width + channel] += gradient[channel];
                }
            }
        });
        Ok((CpuStorage::F32(to), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        clips: &candle_core::CudaStorage,
        layout: &Layout,
        gradient: &candle_core::CudaStorage,
        gradient_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        super::cuda::span_max_gradient(&self.0, (clips, layout), (gradient, gradient_layout))
    }
}
