//! The parts of a transformer.

use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DeviceRepr, LaunchConfig};
use candle_core::{CudaStorage, Layout, Result, Shape, Storage, Tensor, bail};

use super::{Form, Product, Ptx, counted, launch, launch_from, over, per_row, room, view};
use crate::attention::{Attend, AttendGradient, Sizes, WARPS, shared_numbers};
use crate::layer_norm::{LayerNorm, LayerNormGradient};
use crate::linear::{Bend, Linear, OfInput, OfParameters, Part, rows_of, widened};

const PTX: Ptx = ("cuemark-transformer", include_str!(concat!(env!("OUT_DIR"), "/transformer.ptx")));

type Given<'a> = (&'a CudaStorage, &'a Layout);

/// Rows that one of the parts of a sum over rows has, and the most parts.
const PART: (usize, usize) = (64, 64);

fn by_columns(width: usize, parts: usize) -> Result<LaunchConfig> {
    let [columns, parts] = counted([width.div_ceil(32), parts])?;
    Ok(LaunchConfig { grid_dim: (columns, parts, 1), block_dim: (32, 8, 1), shared_mem_bytes: 0 })
}

/// The sums of the columns of `[rows, width]`, in two steps where there are many rows.
fn sum_columns(device: &CudaDevice, x: &CudaView<f32>, to: &mut CudaViewMut<f32>, rows: usize) -> Result<()> {
    let width = to.len();
    let [columns] = counted([width])?;
    let parts = rows.div_ceil(PART.0).clamp(1, PART.1);
    if parts == 1 {
        launch!(device, "sum_rows", by_columns(width, 1)?, x, to, &rows, &columns);
        return Ok(());
    }
    let mut sums = room(device, parts * width)?;
    launch!(device, "sum_rows", by_columns(width, parts)?, x, &mut sums, &rows, &columns);
    launch!(device, "sum_rows", by_columns(width, 1)?, &sums, to, &parts, &columns);
    Ok(())
}

pub(crate) fn layer_norm(op: &LayerNorm, x: Given, weight: Given, bias: Given) -> Result<(CudaStorage, Shape)> {
    let ((rows, width), device) = (rows_of(x.1), x.0.device.clone());
    let shape = x.1.shape().clone();
    let (x, weight, bias) = (view(x)?, view(weight)?, view(bias)?);
    let mut y = room(&device, rows * width)?;
    let ([columns], blocks) = (counted([width])?, per_row(rows, width)?);
    launch_from!(PTX, device, "layer_norm", blocks, &x, &weight, &bias, &mut y, &columns, &op.eps);
    Ok((CudaStorage::wrap_cuda_slice(y, device), shape))
}

pub(crate) fn layer_norm_gradient(
    op: &LayerNormGradient,
    x: Given,
    weight: Given,
    gradient: Given,
) -> Result<(CudaStorage, Shape)> {
    let ((rows, width), device) = (rows_of(x.1), x.0.device.clone());
    let (x, weight, gradient) = (view(x)?, view(weight)?, view(gradient)?);
    let mut all = room(&device, rows * width + 2 * width)?;
    let mut spreads = room(&device, 2 * rows)?;
    let ([columns], blocks) = (counted([width])?, per_row(rows, width)?);
    let mut of_x = all.slice_mut(..rows * width);
    launch_from!(
        PTX,
        device,
        "layer_norm_gradient",
        blocks,
        &x,
        &weight,
        &gradient,
        &mut of_x,
        &mut spreads,
        &columns,
        &op.eps
    );
    let parts = rows.div_ceil(PART.0).clamp(1, PART.1);
    let mut sums = room(&device, parts * 2 * width)?;
    let blocks = by_columns(width, parts)?;
    launch_from!(PTX, device, "layer_norm_parameters", blocks, &x, &gradient, &spreads, &mut sums, &rows, &columns);
    sum_columns(&device, &sums.slice(..), &mut all.slice_mut(rows * width..), parts)?;
    let count = rows * width + 2 * width;
    Ok((CudaStorage::wrap_cuda_slice(all, device), Shape::from(count)))
}

pub(crate) fn softmax(x: Given) -> Result<(CudaStorage, Shape)> {
    let ((rows, width), device, shape) = (rows_of(x.1), x.0.device.clone(), x.1.shape().clone());
    let x = view(x)?;
    let mut y = room(&device, rows * width)?;
    let ([columns], blocks) = (counted([width])?, per_row(rows, width)?);
    launch_from!(PTX, device, "softmax", blocks, &x, &mut y, &columns);
    Ok((CudaStorage::wrap_cuda_slice(y, device), shape))
}

pub(crate) fn softmax_gradient(y: Given, gradient: Given) -> Result<(CudaStorage, Shape)> {
    let ((rows, width), device, shape) = (rows_of(y.1), y.0.device.clone(), y.1.shape().clone());
    let (y, gradient) = (view(y)?, view(gradient)?);
    let mut to = room(&device, rows * width)?;
    let ([columns], blocks) = (counted([width])?, per_row(rows, width)?);
    launch_from!(PTX, device, "softmax_gradient", blocks, &y, &gradient, &mut to, &columns);
    Ok((CudaStorage::wrap_cuda_slice(to, device), shape))
}

pub(crate) fn linear(op: &Linear, x: Given, weight: Given, bias: Given) -> Result<(CudaStorage, Shape)> {
    let ((rows, inputs), Part { first, count }) = (rows_of(x.1), op.part);
    let (device, shape) = (x.0.device.clone(), widened(x.1, count));
    let (x, weight, bias) = (view(x)?, view(weight)?, view(bias)?);
    let (weight, bias) = (weight.slice(first * inputs..(first + count) * inputs), bias.slice(first..first + count));
    let mut y = room(&device, rows * count)?;
    Product { rows, inner: inputs, columns: count, groups: 1, apart: [0; 3] }.run_general(
        &device,
        (&x, Form::Plain { stride: inputs }),
        (&weight, Form::Turned { stride: inputs }),
        (&mut y.slice_mut(..), count),
    )?;
    let least = if op.bend == Bend::Relu { 0.0 } else { f32::NEG_INFINITY };
    let ([width], numbers) = (counted([count])?, rows * count);
    launch_from!(PTX, device, "add_bias", over(numbers), &mut y, &bias, &numbers, &width, &least);
    Ok((CudaStorage::wrap_cuda_slice(y, device), shape))
}

pub(crate) fn relu_gradient(y: Given, gradient: Given) -> Result<(CudaStorage, Shape)> {
    let (device, shape) = (y.0.device.clone(), y.1.shape().clone());
    let (y, gradient) = (view(y)?, view(gradient)?);
    let count = y.len();
    let mut to = room(&device, count)?;
    launch_from!(PTX, device, "relu_gradient", over(count), &y, &gradient, &mut to, &count);
    Ok((CudaStorage::wrap_cuda_slice(to, device), shape))
}

pub(crate) fn gelu(x: Given) -> Result<(CudaStorage, Shape)> {
    let (device, shape) = (x.0.device.clone(), x.1.shape().clone());
    let x = view(x)?;
    let count = x.len();
    let mut y = room(&device, count)?;
    launch_from!(PTX, device, "gelu", over(count), &x, &mut y, &count);
    Ok((CudaStorage::wrap_cuda_slice(y, device), shape))
}

pub(crate) fn gelu_gradient(x: Given, gradient: Given) -> Result<(CudaStorage, Shape)> {
    let (device, shape) = (x.0.device.clone(), x.1.shape().clone());
    let (x, gradient) = (view(x)?, view(gradient)?);
    let count = x.len();
    let mut to = room(&device, count)?;
    launch_from!(PTX, device, "gelu_gradient", over(count), &x, &gradient, &mut to, &count);
    Ok((CudaStorage::wrap_cuda_slice(to, device), shape))
}

pub(crate) fn prelu(x: Given, slope: Given) -> Result<(CudaStorage, Shape)> {
    let (device, shape) = (x.0.device.clone(), x.1.shape().clone());
    let (x, slope) = (view(x)?, view(slope)?);
    let count = x.len();
    let mut y = room(&device, count)?;
    launch_from!(PTX, device, "prelu", over(count), &x, &slope, &mut y, &count);
    Ok((CudaStorage::wrap_cuda_slice(y, device), shape))
}

pub(crate) fn prelu_gradient(x: Given, slope: Given, gradient: Given) -> Result<(CudaStorage, Shape)> {
    let device = x.0.device.clone();
    let (x, slope, gradient) = (view(x)?, view(slope)?, view(gradient)?);
    let (count, blocks) = (x.len(), over(x.len()));
    let parts = blocks.grid_dim.0 as usize;
    let (mut all, mut shares) = (room(&device, count + 1)?, room(&device, parts)?);
    launch_from!(PTX, device, "prelu_gradient", blocks, &x, &slope, &gradient, &mut all, &mut shares, &count);
    sum_columns(&device, &shares.slice(..), &mut all.slice_mut(count..), parts)?;
    Ok((CudaStorage::wrap_cuda_slice(all, device), Shape::from(count + 1)))
}

pub(crate) fn linear_input_gradient(op: &OfInput, gradient: Given, weight: Given) -> Result<(CudaStorage, Shape)> {
    let ((rows, count), (_, inputs)) = (rows_of(gradient.1), weight.1.shape().dims2()?);
    let (device, shape) = (gradient.0.device.clone(), widened(gradient.1, inputs));
    let (gradient, weight) = (view(gradient)?, view(weight)?);
    let weight = weight.slice(op.part.first * inputs..(op.part.first + count) * inputs);
    let mut to = room(&device, rows * inputs)?;
    Product { rows, inner: count, columns: inputs, groups: 1, apart: [0; 3] }.run_general(
        &device,
        (&gradient, Form::Plain { stride: count }),
        (&weight, Form::Plain { stride: inputs }),
        (&mut to.slice_mut(..), inputs),
    )?;
    Ok((CudaStorage::wrap_cuda_slice(to, device), shape))
}

pub(crate) fn linear_parameter_gradient(op: &OfParameters, gradient: Given, x: Given) -> Result<(CudaStorage, Shape)> {
    let ((rows, inputs), Part { first, count }) = (rows_of(x.1), op.part);
    let device = gradient.0.device.clone();
    let (gradient, x) = (view(gradient)?, view(x)?);
    let size = op.outputs * (inputs + 1);
    let mut all = if count == op.outputs { room(&device, size)? } else { device.alloc_zeros::<f32>(size)? };
    Product { rows: count, inner: rows, columns: inputs, groups: 1, apart: [0; 3] }.run_general(
        &device,
        (&gradient, Form::Turned { stride: count }),
        (&x, Form::Plain { stride: inputs }),
        (&mut all.slice_mut(first * inputs..(first + count) * inputs), inputs),
    )?;
    let biases = op.outputs * inputs + first;
    sum_columns(&device, &gradient, &mut all.slice_mut(biases..biases + count), rows)?;
    Ok((CudaStorage::wrap_cuda_slice(all, device), Shape::from(size)))
}

/// `struct Heads` of `transformer.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct OnGpu {
    heads: u32,
    queries: u32,
    keys: u32,
    width: u32,
    values: u32,
    biased: u32,
    by: [u32; 3],
    scale: f32,
    limit: u32,
    factor: f32,
    seed: u64,
}

// SAFETY: a plain C struct of numbers, laid out as the kernels declare it.
unsafe impl DeviceRepr for OnGpu {}

impl OnGpu {
    fn new(op: &Attend, sizes: &Sizes) -> Result<Self> {
        let Sizes { heads, queries, keys, width, values, .. } = *sizes;
        let [heads, queries, keys, width, values] = counted([heads, queries, keys, width, values])?;
        let (limit, factor, seed) = op.dropout.map_or((0, 1.0, 0), |drop| (drop.limit, drop.scale, drop.seed));
        let (biased, by) = (u32::from(op.bias.is_some()), counted(op.bias_strides())?);
        Ok(Self { heads, queries, keys, width, values, biased, by, scale: sizes.scale(), limit, factor, seed })
    }
}

/// One block for a head of an item and some of its queries, enough of them to fill the GPU.
fn by_queries(sizes: &Sizes) -> Result<LaunchConfig> {
    let heads = sizes.batch * sizes.heads;
    let most = sizes.queries.div_ceil(WARPS);
    let [blocks, along, bytes] =
        counted([heads, (132 * 8usize).div_ceil(heads).clamp(1, most), shared_numbers(sizes) * 4])?;
    Ok(LaunchConfig { grid_dim: (blocks, along, 1), block_dim: (32 * WARPS as u32, 1, 1), shared_mem_bytes: bytes })
}

/// Gives `work` the numbers of a tensor on the GPU.
fn with<R>(tensor: &Tensor, work: impl FnOnce(&CudaView<f32>) -> Result<R>) -> Result<R> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else { bail!("a tensor on another device than its operation") };
    work(&view((storage, layout))?)
}

/// As [`with`], of the bias; any numbers where there is none, since none are read.
fn with_bias<R>(op: &Attend, other: &CudaView<f32>, work: impl FnOnce(&CudaView<f32>) -> Result<R>) -> Result<R> {
    match &op.bias {
        Some(bias) => with(bias, work),
        None => work(other),
    }
}

pub(crate) fn attention(op: &Attend, sizes: &Sizes, q: Given, k: Given, v: Given) -> Result<(CudaStorage, Shape)> {
    let Sizes { batch, heads, queries, values, .. } = *sizes;
    let device = q.0.device.clone();
    let (q, k, v) = (view(q)?, view(k)?, view(v)?);
    let (on_gpu, blocks) = (OnGpu::new(op, sizes)?, by_queries(sizes)?);
    let mut y = room(&device, batch * queries * heads * values)?;
    with_bias(op, &q, |bias| {
        launch_from!(PTX, device, "attention", blocks, &q, &k, &v, bias, &mut y, &on_gpu);
        Ok(())
    })?;
    Ok((CudaStorage::wrap_cuda_slice(y, device), Shape::from((batch, queries, heads * values))))
}

pub(crate) fn attention_gradient(
    op: &AttendGradient,
    sizes: &Sizes,
    q: Given,
    k: Given,
    v: Given,
) -> Result<(CudaStorage, Shape)> {
    let device = q.0.device.clone();
    let (q, k, v) = (view(q)?, view(k)?, view(v)?);
    let (on_gpu, [of_q, of_k, of_v]) = (OnGpu::new(op.of, sizes)?, sizes.numbers());
    let mut all = room(&device, of_q + of_k + of_v)?;
    let weights = sizes.batch * sizes.heads * sizes.queries * sizes.keys;
    let (mut left, mut of_logits): (CudaSlice<f32>, CudaSlice<f32>) =
        (room(&device, weights)?, room(&device, weights)?);
    with(&op.gradient, |gradient| {
        let blocks = by_queries(sizes)?;
        let mut to_q = all.slice_mut(..of_q);
        with_bias(op.of, &q, |bias| {
            launch_from!(
                PTX,
                device,
                "attention_queries",
                blocks,
                &q,
                &k,
                &v,
                bias,
                gradient,
                &mut to_q,
                &mut left,
                &mut of_logits,
                &on_gpu
            );
            Ok(())
        })?;
        let [heads, keys] = counted([sizes.batch * sizes.heads, sizes.keys.div_ceil(32)])?;
        let blocks = LaunchConfig { grid_dim: (heads, keys, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        let mut rest = all.slice_mut(of_q..);
        let (mut to_k, mut to_v) = rest.split_at_mut(of_k);
        launch_from!(
            PTX,
            device,
            "attention_keys",
            blocks,
            &q,
            gradient,
            &left,
            &of_logits,
            &mut to_k,
            &mut to_v,
            &on_gpu
        );
        Ok(())
    })?;
    Ok((CudaStorage::wrap_cuda_slice(all, device), Shape::from(of_q + of_k + of_v)))
}
