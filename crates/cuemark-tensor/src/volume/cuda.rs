//! The operations on volumes on NVIDIA GPUs.
//!
//! A convolution gathers what its windows read, some outputs at a time, and multiplies that by the kernel. A convolution of
//! single places reads its input where it is, when that has a multiple of four channels.

#![allow(unsafe_code)] // kernels are launched through pointers

use candle_core::cuda_backend::cudarc::driver::DeviceRepr;
use candle_core::{CudaStorage, Layout, Result, Shape, bail};

use super::conv::Conv;
use super::depthwise::Depthwise;
use super::pool::MaxPool;
use super::window::Placed;
use crate::kernels::{Form, Product, VOLUME_PTX, by_rows, counted, launch_from, room, view};

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
    fn new(placed: &Placed) -> Result<Self> {
        Ok(Self {
            input: counted(placed.input)?,
            output: counted(placed.output)?,
            kernel: counted(placed.window.kernel)?,
            stride: counted(placed.window.stride)?,
            before: counted(placed.before)?,
        })
    }
}

/// Outputs of all items. The kernels count them in 32 bits.
fn outputs(batch: usize, placed: &Placed) -> Result<(usize, u32)> {
    let rows = batch * placed.outputs();
    let Ok(small) = u32::try_from(rows) else { bail!("{rows} places of volumes at once are too many") };
    Ok((rows, small))
}

pub(super) fn conv(op: &Conv, x: Given, weight: Given, bias: Given) -> Result<(CudaStorage, Shape)> {
    let (batch, placed, c_in, c_out) = op.sizes(x.1.shape(), weight.1.shape())?;
    let device = x.0.device.clone();
    let (rows, all) = outputs(batch, &placed)?;
    let inner = weight.1.dims()[0]; // with the rows that fill up to a multiple of four
    let mut y = room(&device, rows * c_out)?;
    let (x, weight, bias) = (view(x)?, view(weight)?, view(bias)?);
    let product = |rows: usize| Product { rows, inner, columns: c_out, groups: 1, apart: [0; 3] };
    let (left, right) = (Form::Plain { stride: inner }, Form::Plain { stride: c_out });
    if placed.is_point() && inner == c_in {
        product(rows).run(&device, (&x, left), (&weight, right), (&mut y.slice_mut(..), c_out), 0.0)?;
    } else {
        let on_gpu = OnGpu::new(&placed)?;
        let at_once = (BUFFER / inner.max(1)).clamp(1, rows.max(1));
        let mut buffer = room(&device, at_once * inner)?;
        let (name, wide) = if c_in % 4 == 0 { ("volume_gather_4", 4) } else { ("volume_gather", 1) };
        let [channels, apart] = counted([c_in / wide, inner / wide])?;
        let line = placed.window.kernel[2] * c_in / wide;
        for first in (0..rows).step_by(at_once) {
            let count = at_once.min(rows - first);
            let ([from, lines], blocks) = (counted([first, count])?, by_rows(count, line));
            launch_from!(VOLUME_PTX, device, name, blocks, &x, &mut buffer, &on_gpu, &from, &lines, &channels, &apart);
            let gathered = buffer.slice(..count * inner);
            let mut to = y.slice_mut(first * c_out..(first + count) * c_out);
            product(count).run(&device, (&gathered, left), (&weight, right), (&mut to, c_out), 0.0)?;
        }
    }
    let ([channels], (low, high), blocks) = (counted([c_out])?, op.activation.range(), by_rows(rows, c_out));
    launch_from!(VOLUME_PTX, device, "volume_finish", blocks, &mut y, &bias, &all, &channels, &low, &high);
    let [times, height, width] = placed.output;
    Ok((CudaStorage::wrap_cuda_slice(y, device), Shape::from((batch, times, height, width, c_out))))
}

pub(super) fn depthwise(op: &Depthwise, x: Given, weight: Given, bias: Given) -> Result<(CudaStorage, Shape)> {
    let (batch, placed, channels) = op.sizes(x.1.shape(), weight.1.shape())?;
    let device = x.0.device.clone();
    let (rows, all) = outputs(batch, &placed)?;
    let mut y = room(&device, rows * channels)?;
    let (x, weight, bias, on_gpu) = (view(x)?, view(weight)?, view(bias)?, OnGpu::new(&placed)?);
    let ([width], (low, high), blocks) = (counted([channels])?, op.activation.range(), by_rows(rows, channels));
    launch_from!(
        VOLUME_PTX,
        device,
        "volume_depthwise",
        blocks,
        &x,
        &weight,
        &bias,
        &mut y,
        &on_gpu,
        &all,
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
    let (rows, all) = outputs(batch, &placed)?;
    let mut y = room(&device, rows * channels)?;
    let (x, on_gpu, [width]) = (view(x)?, OnGpu::new(&placed)?, counted([channels])?);
    let blocks = by_rows(rows, channels);
    launch_from!(VOLUME_PTX, device, "volume_max_pool", blocks, &x, &mut y, &on_gpu, &all, &width);
    let [times, height, breadth] = placed.output;
    Ok((CudaStorage::wrap_cuda_slice(y, device), Shape::from((batch, times, height, breadth, channels))))
}
