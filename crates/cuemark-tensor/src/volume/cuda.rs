//! The operations on volumes on NVIDIA GPUs.
//!
//! Where products round to TF32 a convolution is one launch that gathers what its windows read while it multiplies. In full precision it
//! gathers first, some outputs at a time, and multiplies that by the kernel; one of single places reads its input where it is. Both
//! read four channels at a time, and pixels are widened to as many.

#![allow(unsafe_code)] // kernels are launched through pointers

use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, CudaView, DeviceRepr, LaunchConfig};
use candle_core::{CudaStorage, Layout, Result, Shape, Storage, Tensor, bail};

use super::conv::Conv;
use super::depthwise::Depthwise;
use super::pool::MaxPool;
use super::window::Placed;
use crate::kernels::{Form, Product, VOLUME_PTX, by_rows, counted, launch_from, room, rounds_to_tf32, view};

type Given<'a> = (&'a CudaStorage, &'a Layout);

/// Numbers of the buffer for gathered windows: 1 GiB.
const BUFFER: usize = 1 << 28;

/// Outputs and threads of a block of `volume_convolve`.
const BLOCK_ROWS: usize = 128;
const BLOCK_THREADS: u32 = 128;

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
    let (x, weight, bias) = (view(x)?, view(weight)?, view(bias)?);
    let wide = super::conv::widened(c_in);
    let widened;
    let x = if wide == c_in {
        x
    } else {
        let rows = batch * placed.inputs();
        let mut to = room(&device, rows * wide)?;
        let ([lines, channels, across], blocks) = (counted([rows, c_in, wide])?, by_rows(rows, wide));
        launch_from!(VOLUME_PTX, device, "volume_widen", blocks, &x, &mut to, &lines, &channels, &across);
        widened = to;
        widened.slice(..)
    };
    let range = op.activation.range();
    let past = op.past.as_ref().map(Tensor::storage_and_layout);
    let past = match &past {
        Some((storage, layout)) => {
            let Storage::Cuda(storage) = &**storage else { bail!("what is added to a convolution lies elsewhere") };
            Some(view((storage, layout))?)
        }
        None => None,
    };
    let past = past.as_ref();
    let work = Work { device: &device, x: &x, weight: &weight, bias: &bias, past, batch, placed, wide, c_out, range };
    let y = if rounds_to_tf32() && c_out % 4 == 0 { work.gathered_while_multiplied()? } else { work.gathered_first()? };
    let [times, height, width] = placed.output;
    Ok((CudaStorage::wrap_cuda_slice(y, device), Shape::from((batch, times, height, width, c_out))))
}

/// One convolution of a volume of `wide` channels.
struct Work<'a> {
    device: &'a CudaDevice,
    x: &'a CudaView<'a, f32>,
    weight: &'a CudaView<'a, f32>,
    bias: &'a CudaView<'a, f32>,
    /// What is added before the activation.
    past: Option<&'a CudaView<'a, f32>>,
    batch: usize,
    placed: Placed,
    wide: usize,
    c_out: usize,
    range: (f32, f32),
}

impl Work<'_> {
    fn inner(&self) -> usize {
        self.placed.window.kernel.iter().product::<usize>() * self.wide
    }

    /// What is added and whether anything is: a kernel wants a pointer either way.
    fn added(&self) -> (&CudaView<'_, f32>, u32) {
        self.past.map_or((self.bias, 0), |past| (past, 1))
    }

    fn gathered_while_multiplied(&self) -> Result<CudaSlice<f32>> {
        let &Self { device, x, weight, bias, batch, placed, wide, c_out, range: (low, high), .. } = self;
        let (rows, all) = outputs(batch, &placed)?;
        if i32::try_from(batch * placed.inputs()).is_err() {
            bail!("{batch} volumes of {:?} places are too many at once", placed.input);
        }
        let mut y = room(device, rows * c_out)?;
        // A block that is half empty costs as much as a full one.
        let (name, columns) = if (1..=32).contains(&(c_out % 64)) && c_out < 128 {
            ("volume_convolve_32", 32)
        } else {
            ("volume_convolve_64", 64)
        };
        let [blocks, channels, inner, across] =
            counted([rows.div_ceil(BLOCK_ROWS) * c_out.div_ceil(columns), wide, self.inner(), c_out])?;
        let config =
            LaunchConfig { grid_dim: (blocks.max(1), 1, 1), block_dim: (BLOCK_THREADS, 1, 1), shared_mem_bytes: 0 };
        let (on_gpu, (past, adds)) = (OnGpu::new(&placed)?, self.added());
        if rows > 0 {
            launch_from!(
                VOLUME_PTX, device, name, config, x, weight, bias, past, &adds, &mut y, &on_gpu, &all, &channels,
                &inner, &across, &low, &high
            );
        }
        Ok(y)
    }

    fn gathered_first(&self) -> Result<CudaSlice<f32>> {
        let &Self { device, x, weight, bias, batch, placed, wide, c_out, range: (low, high), .. } = self;
        let ((rows, all), inner) = (outputs(batch, &placed)?, self.inner());
        let mut y = room(device, rows * c_out)?;
        let product = |rows: usize| Product { rows, inner, columns: c_out, groups: 1, apart: [0; 3] };
        let (left, right) = (Form::Plain { stride: inner }, Form::Plain { stride: c_out });
        if placed.is_point() {
            product(rows).run(device, (x, left), (weight, right), (&mut y.slice_mut(..), c_out), 0.0)?;
        } else {
            let on_gpu = OnGpu::new(&placed)?;
            let at_once = (BUFFER / inner.max(1)).clamp(1, rows.max(1));
            let mut buffer = room(device, at_once * inner)?;
            let [channels] = counted([wide / 4])?;
            let line = placed.window.kernel[2] * wide / 4;
            for first in (0..rows).step_by(at_once) {
                let count = at_once.min(rows - first);
                let ([from, lines], blocks) = (counted([first, count])?, by_rows(count, line));
                launch_from!(
                    VOLUME_PTX,
                    device,
                    "volume_gather",
                    blocks,
                    x,
                    &mut buffer,
                    &on_gpu,
                    &from,
                    &lines,
                    &channels
                );
                let gathered = buffer.slice(..count * inner);
                let mut to = y.slice_mut(first * c_out..(first + count) * c_out);
                product(count).run(device, (&gathered, left), (weight, right), (&mut to, c_out), 0.0)?;
            }
        }
        let ([channels], blocks) = (counted([c_out])?, by_rows(rows, c_out));
        let (past, adds) = self.added();
        launch_from!(
            VOLUME_PTX,
            device,
            "volume_finish",
            blocks,
            &mut y,
            bias,
            past,
            &adds,
            &all,
            &channels,
            &low,
            &high
        );
        Ok(y)
    }
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
    let (name, wide) =
        if channels % 4 == 0 { ("volume_max_pool_4", channels / 4) } else { ("volume_max_pool", channels) };
    let (x, on_gpu, [width]) = (view(x)?, OnGpu::new(&placed)?, counted([wide])?);
    launch_from!(VOLUME_PTX, device, name, by_rows(rows, wide), &x, &mut y, &on_gpu, &all, &width);
    let [times, height, breadth] = placed.output;
    Ok((CudaStorage::wrap_cuda_slice(y, device), Shape::from((batch, times, height, breadth, channels))))
}
