//! The operations of a map on NVIDIA GPUs.

#![allow(unsafe_code)] // kernels are launched through pointers

mod pass;

use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, LaunchConfig};
use candle_core::{CudaStorage, Layout, Result, Shape};

use super::MapLayout;
use super::conv::{Finish, MapConv, Part, Unfinish};
use super::product::{Sizes, Way};
use crate::kernels::{counted, launch, over, per_row, room, view};
use pass::Pass;

type Given<'a> = (&'a CudaStorage, &'a Layout);

pub(super) fn forward(op: &MapConv, x: Given, weight: Given, bias: Given) -> Result<(CudaStorage, Shape)> {
    let sizes = op.sizes(x.1.shape(), weight.1.shape())?;
    let device = x.0.device.clone();
    let pass = Pass::new(&device, &op.plan, sizes, Way::Forward);
    let mut y = pass.multiply(&view(x)?, &view(weight)?)?;
    let lists = op.plan.on_gpu.on(&device, &op.plan)?;
    let [cells, width] = counted([op.plan.output_count(), sizes.c_out])?;
    let relu = u32::from(op.finish == Finish::ReluAndWeight);
    let (rows, bias) = (per_row(sizes.batch * op.plan.output_count(), sizes.c_out)?, view(bias)?);
    if rows.grid_dim.0 > 0 {
        launch!(device, "finish", rows, &mut y, &bias, &lists.weights, &cells, &width, &relu);
    }
    let shape = Shape::from((sizes.batch, op.plan.output_count(), sizes.c_out));
    Ok((CudaStorage::wrap_cuda_slice(y, device), shape))
}

pub(super) fn unfinish(op: &Unfinish, y: Given, gradient: Given) -> Result<(CudaStorage, Shape)> {
    let (batch, cells, width) = y.1.shape().dims3()?;
    let device = y.0.device.clone();
    let lists = op.plan.on_gpu.on(&device, &op.plan)?;
    let mut before = room(&device, batch * cells * width)?;
    let [count, channels] = counted([cells, width])?;
    let (rows, shape) = (per_row(batch * cells, width)?, y.1.shape().clone());
    let (y, gradient) = (view(y)?, view(gradient)?);
    launch!(device, "unfinish", rows, &y, &gradient, &lists.weights, &mut before, &count, &channels);
    Ok((CudaStorage::wrap_cuda_slice(before, device), shape))
}

pub(super) fn input_gradient(part: &Part, weight: Given, gradient: Given) -> Result<(CudaStorage, Shape)> {
    let (batch, _, c_out) = gradient.1.shape().dims3()?;
    let sizes = Sizes { batch, c_in: weight.1.shape().dims4()?.1 * part.groups, c_out, groups: part.groups };
    let device = gradient.0.device.clone();
    let x = Pass::new(&device, &part.plan, sizes, Way::Backward).multiply(&view(gradient)?, &view(weight)?)?;
    Ok((CudaStorage::wrap_cuda_slice(x, device), Shape::from((batch, part.plan.input_count(), sizes.c_in))))
}

pub(super) fn weight_gradient(part: &Part, x: Given, gradient: Given) -> Result<(CudaStorage, Shape)> {
    let (batch, _, c_in) = x.1.shape().dims3()?;
    let (_, _, c_out) = gradient.1.shape().dims3()?;
    let sizes = Sizes { batch, c_in, c_out, groups: part.groups };
    let device = x.0.device.clone();
    // Neighbours are gathered for the side with fewer cells; the weights come out with its channels first.
    let way = if part.plan.output_count() <= part.plan.input_count() || part.groups > 1 {
        Way::Forward
    } else {
        Way::Backward
    };
    let (x, gradient) = (view(x)?, view(gradient)?);
    let (from, to) = if way == Way::Forward { (&x, &gradient) } else { (&gradient, &x) };
    let weight = Pass::new(&device, &part.plan, sizes, way).weights(from, to)?;
    let kernel = part.plan.kernel();
    Ok((CudaStorage::wrap_cuda_slice(weight, device), Shape::from((c_out, c_in / part.groups, kernel, kernel))))
}

/// The sum of all rows.
pub(super) fn sum_rows(x: Given) -> Result<(CudaStorage, Shape)> {
    let width = x.1.dims().last().copied().unwrap_or(1).max(1);
    let device = x.0.device.clone();
    let x = view(x)?;
    let rows = x.len() / width;
    let parts = rows.div_ceil(256).clamp(1, 64);
    let config = |parts: usize| LaunchConfig {
        grid_dim: (width.div_ceil(32) as u32, parts as u32, 1),
        block_dim: (32, 8, 1),
        shared_mem_bytes: 0,
    };
    let mut sums = room(&device, parts * width)?;
    let [columns] = counted([width])?;
    launch!(device, "sum_rows", config(parts), &x, &mut sums, &rows, &columns);
    let mut sum = room(&device, width)?;
    launch!(device, "sum_rows", config(1), &sums, &mut sum, &parts, &columns);
    Ok((CudaStorage::wrap_cuda_slice(sum, device), Shape::from(width)))
}

fn cells_on(layout: &MapLayout, device: &CudaDevice) -> Result<CudaSlice<u32>> {
    let cells: Vec<u32> = layout.cells().iter().flat_map(|(start, end)| [*start, *end]).collect();
    device.clone_htod(&cells)
}

pub(super) fn span_max(layout: &MapLayout, clips: Given) -> Result<(CudaStorage, Shape)> {
    let (batch, count, width) = clips.1.shape().dims3()?;
    let device = clips.0.device.clone();
    let cells = cells_on(layout, &device)?;
    let mut map = room(&device, batch * layout.len() * width)?;
    let [cell_count, clip_count, channels] = counted([layout.len(), count, width])?;
    let (rows, clips) = (per_row(batch * layout.len(), width)?, view(clips)?);
    launch!(device, "span_max", rows, &clips, &cells, &mut map, &cell_count, &clip_count, &channels);
    Ok((CudaStorage::wrap_cuda_slice(map, device), Shape::from((batch, layout.len(), width))))
}

pub(super) fn span_max_gradient(layout: &MapLayout, clips: Given, gradient: Given) -> Result<(CudaStorage, Shape)> {
    let (batch, count, width) = clips.1.shape().dims3()?;
    let device = clips.0.device.clone();
    let cells = cells_on(layout, &device)?;
    let mut to = device.alloc_zeros::<f32>(batch * count * width)?;
    let [items, cell_count, clip_count, channels] = counted([batch, layout.len(), count, width])?;
    let (shape, clips, gradient) = (clips.1.shape().clone(), view(clips)?, view(gradient)?);
    launch!(
        device,
        "span_max_gradient",
        over(batch * width),
        &clips,
        &cells,
        &gradient,
        &mut to,
        &items,
        &cell_count,
        &clip_count,
        &channels
    );
    Ok((CudaStorage::wrap_cuda_slice(to, device), shape))
}
