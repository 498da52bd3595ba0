//! The operations on volumes on NVIDIA GPUs.
//!
//! A convolution gathers what its windows read, some outputs at a time, and multiplies that by the kernel. A convolution of
//! single places reads its input where it is.

#![allow(unsafe_code)] // kernels are launched through pointers

use candle_core::cuda_backend::cudarc::driver::DeviceRepr;
use candle_core::{CudaStorage, Layout, Result, Shape};

use super::conv::Conv;
use super::depthwise::Depthwise;
use super::pool::MaxPool;
use super::window::Placed;
use crate::kernels::{Form, Product, VOLUME_PTX, launch_from, over, room, view};

type Given<'a> = (&'a CudaStorage, &'a Layout);

/// Numbers of the buffer for gathered windows: 1 GiB.
const BUFFER: usize = 1 << 28;

/// `struct Placed` of `volume.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct OnGpu {
    input: [u32; 3],
    output: [u32; 3],
    kernel: [u32; 3],
    stride: [u32; 3],
    before: [u32; 3],
}

// SAFETY: a plain C struct of numbers, laid out as the kernels declare it.
unsafe impl DeviceRepr for OnGpu {}

impl OnGpu {
    fn new(placed: &Placed) -> Self {
        let small = |extents: [usize; 3]| extents.map(|extent| extent as u32);
        Self {
            input: small(placed.input),
            output: small(placed.output),
            kernel: small(placed.window.kernel),
            stride: small(placed.window.stride),
            before: small(placed.before),
        }
    }
}

pub(super) fn conv(op: &Conv, x: Given, weight: Given, bias: Given) -> Result<(CudaStorage, Shape)> {
    let (batch, placed, c_in, c_out) = op.sizes(x.1.shape(), weight.1.shape())?;
    let device = x.0.device.clone();
    let (rows, places) = (batch * placed.outputs(), placed.window.kernel.iter().product::<usize>());
    let inner = places * c_in;
    let mut y = room(&device, rows * c_out)?;
    let (x, weight, bias) = (view(x)?, view(weight)?, view(bias)?);
    let product = |rows: usize| Product { rows, inner, columns: c_out, groups: 1, apart: [0; 3] };
    let forms = [Form::Plain { stride: inner }, Form::Plain { stride: c_out }];
    if placed.is_point() {
        product(rows).run(&device, (&x, forms[0]), (&weight, forms[1]), (&mut y.slice_mut(..), c_out), 0.0)?;
    } else {
        let on_gpu = OnGpu::new(&placed);
        let at_once = (BUFFER / inner.max(1)).clamp(1, rows.max(1));
        let mut buffer = room(&device, at_once * inner)?;
        for first in (0..rows).step_by(at_once) {
            let count = at_once.min(rows - first);
            let (name, wide) = if c_in % 4 == 0 { ("volume_gather_4", 4) } else { ("volume_gather", 1) };
            let (channels, threads) = ((c_in / wide) as u32, over(count * inner / wide));
            launch_from!(VOLUME_PTX, device, name, threads, &x, &mut buffer, &on_gpu, &first, &count, &channels);
            let gathered = buffer.slice(..count * inner);
            let mut to = y.slice_mut(first * c_out..(first + count) * c_out);
            product(count).run(&device, (&gathered, forms[0]), (&weight, forms[1]), (&mut to, c_out), 0.0)?;
        }
    }
    let (count, channels, (low, high)) = (rows * c_out, c_out as u32, op.activation.range());
    launch_from!(VOLUME_PTX, device, "volume_finish", over(count), &mut y, &bias, &count, &channels, &low, &high);
    let [times, height, width] = placed.output;
    Ok((CudaStorage::wrap_cuda_slice(y, device), Shape::from((batch, times, height, width, c_out))))
}

pub(super) fn depthwise(op: &Depthwise, x: Given, weight: Given, bias: Given) -> Result<(CudaStorage, Shape)> {
    let (batch, placed, channels) = op.sizes(x.1.shape(), weight.1.shape())?;
    let device = x.0.device.clone();
    let count = batch * placed.outputs() * channels;
    let mut y = room(&device, count)?;
    let (x, weight, bias, on_gpu) = (view(x)?, view(weight)?, view(bias)?, OnGpu::new(&placed));
    let (width, (low, high)) = (channels as u32, op.activation.range());
    launch_from!(
        VOLUME_PTX,
        device,
        "volume_depthwise",
        over(count),
        &x,
        &weight,
        &bias,
        &mut y,
        &on_gpu,
        &count,
        &width,
        &low,
        &high
    );
    let [times, height, breadth] = placed.output;
    Ok((CudaStorage::wrap_cuda_slice(y, device), Shape::from((batch, times, height, breadth, channels))))
}

pub(super) fn max_pool(op: &MaxPool, x: Given) -> Result<(CudaStorage, Shape)> {
    let (batch, placed, channels) = op.sizes(x.1.shape())?;
    let device = x.0.device.clone();
    let count = batch * placed.outputs() * channels;
    let mut y = room(&device, count)?;
    let (x, on_gpu, width) = (view(x)?, OnGpu::new(&placed), channels as u32);
    launch_from!(VOLUME_PTX, device, "volume_max_pool", over(count), &x, &mut y, &on_gpu, &count, &width);
    let [times, height, breadth] = placed.output;
    Ok((CudaStorage::wrap_cuda_slice(y, device), Shape::from((batch, times, height, breadth, channels))))
}
