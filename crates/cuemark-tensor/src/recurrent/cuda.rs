//! The layer on NVIDIA GPUs: a few items in one launch for the whole sequence, many with one product and one kernel per step.

#![allow(unsafe_code)] // kernels are launched through pointers

use candle_core::cuda_backend::cudarc::driver::LaunchConfig;
use candle_core::{CudaStorage, Layout, Result, Shape, bail};

use super::{Cell, Layer, Reading, Sizes, attending};
use crate::kernels::{
    Form, Product, RECURRENT_PTX, counted, launch, launch_from, launch_together, over, room, view, waiting,
};

type Given<'a> = (&'a CudaStorage, &'a Layout);

/// Stands for "no step" in the kernels.
const NONE: u32 = u32::MAX;

/// Items up to which one launch for all steps is quicker than a product per step.
const FEW: usize = 16;
/// Threads of a block that waits for the others.
const WAITING_THREADS: u32 = 128;
/// Numbers of the memory that the threads of a block share.
const SHARED: usize = 12 * 1024;

/// Whether a layer is one launch.
fn at_once(batch: usize, hidden: usize) -> bool {
    batch <= FEW && batch * hidden <= SHARED
}

/// The longest row of weights that a warp keeps in its registers: `32 KEPT` of `recurrent.cu`.
const KEPT: usize = 512;

/// Whether each of so many channels has a warp of its own, which keeps the weights of its rows.
fn keeps(config: &LaunchConfig, channels: usize, hidden: usize) -> bool {
    hidden <= KEPT && channels <= (config.grid_dim.0 * config.block_dim.0 / 32) as usize
}

/// The kernel of a layer that is one launch.
fn forward_at_once(layer: Layer, batch: usize, keeps: bool) -> &'static str {
    match (layer.cell, batch, keeps) {
        (Cell::Lstm | Cell::Peephole, 1, false) => "lstm_1",
        (Cell::Lstm | Cell::Peephole, _, false) => "lstm_4",
        (Cell::Lstm | Cell::Peephole, 1, true) => "lstm_kept_1",
        (Cell::Lstm | Cell::Peephole, _, true) => "lstm_kept_4",
        (Cell::Gru, 1, false) => "gru_1",
        (Cell::Gru, _, false) => "gru_4",
        (Cell::Gru, 1, true) => "gru_kept_1",
        (Cell::Gru, _, true) => "gru_kept_4",
    }
}

/// The kernel of its gradient.
fn backward_at_once(layer: Layer, batch: usize) -> &'static str {
    match (layer.cell, batch) {
        (Cell::Lstm | Cell::Peephole, 1) => "lstm_gradient_1",
        (Cell::Lstm | Cell::Peephole, _) => "lstm_gradient_4",
        (Cell::Gru, 1) => "gru_gradient_1",
        (Cell::Gru, _) => "gru_gradient_4",
    }
}

fn number(step: Option<usize>) -> u32 {
    step.map_or(NONE, |step| step as u32)
}

pub(super) fn forward(layer: Layer, given: Given, weights: Given, start: Given) -> Result<(CudaStorage, Shape)> {
    let sizes = layer.sizes(given.1.shape())?;
    let Sizes { steps, batch, hidden } = sizes;
    let (gates, kept) = (layer.cell.gates() * hidden, layer.cell.kept() * hidden);
    let device = given.0.device.clone();
    let (given, weights, start) = (view(given)?, view(weights)?, view(start)?);
    let (weights, below) = (weights.slice(..gates * hidden), weights.slice(gates * hidden..));
    let (bias, sees) = (below.slice(..gates), below.slice(gates..));
    let seeing = u32::from(layer.cell == Cell::Peephole);
    let mut rows = room(&device, steps * batch * kept)?;
    let [items, width, count] = counted([batch, hidden, steps])?;
    // An empty view has no place on the GPU; any other is not read where nothing is seen.
    let seen = if seeing == 1 { &sees } else { &bias };
    if at_once(batch, hidden) {
        let mut arrived = device.alloc_zeros::<u32>(1)?;
        let backwards = u32::from(layer.reading == Reading::Backwards);
        let config = waiting(&device, hidden, WAITING_THREADS, batch * hidden)?;
        launch_together!(
            device,
            forward_at_once(layer, batch, keeps(&config, hidden, hidden)),
            config,
            &given,
            &weights,
            &bias,
            seen,
            &seeing,
            &start,
            &mut rows,
            &mut arrived,
            &count,
            &items,
            &width,
            &backwards,
        );
        return Ok((CudaStorage::wrap_cuda_slice(rows, device), Shape::from((steps, batch, kept))));
    }
    let mut remembered = room(&device, batch * gates)?;
    let product = Product { rows: batch, inner: hidden, columns: gates, groups: 1, apart: [0; 3] };
    let kernel = match layer.cell {
        Cell::Lstm | Cell::Peephole => "lstm_step",
        Cell::Gru => "gru_step",
    };
    for (step, before) in layer.order(steps) {
        let (state, stride) = match before {
            Some(before) => (rows.slice(before * batch * kept + kept - hidden..(before + 1) * batch * kept), kept),
            None => (start.slice(..), hidden),
        };
        product.run(
            &device,
            (&state, Form::Plain { stride }),
            (&weights, Form::Turned { stride: hidden }),
            (&mut remembered.slice_mut(..), gates),
            0.0,
        )?;
        let (step, before) = (step as u32, number(before));
        launch!(
            device,
            kernel,
            over(batch * hidden),
            &given,
            &remembered,
            &bias,
            seen,
            &seeing,
            &start,
            &mut rows,
            &step,
            &before,
            &items,
            &width,
        );
    }
    Ok((CudaStorage::wrap_cuda_slice(rows, device), Shape::from((steps, batch, kept))))
}

pub(super) fn backward(
    layer: Layer,
    sizes: Sizes,
    kept: Given,
    gradient: Given,
    weights: Given,
) -> Result<(CudaStorage, Shape)> {
    let Sizes { steps, batch, hidden } = sizes;
    let (gates, parts) = (layer.cell.gates() * hidden, 4 * hidden);
    let device = kept.0.device.clone();
    let (kept, gradient, weights) = (view(kept)?, view(gradient)?, view(weights)?);
    let (weights, below) = (weights.slice(..gates * hidden), weights.slice(gates * hidden + gates..));
    let (sees, start) = (below.slice(..layer.cell.seeing() * hidden), below.slice(layer.cell.seeing() * hidden..));
    let seeing = u32::from(layer.cell == Cell::Peephole);
    let count = steps * batch * parts + batch * hidden;
    let mut all = room(&device, count)?;
    let (mut pull, mut carry) =
        (device.alloc_zeros::<f32>(batch * hidden)?, device.alloc_zeros::<f32>(batch * hidden)?);
    let [items, width, wide, number_of_steps] = counted([batch, hidden, gates, steps])?;
    let seen = if seeing == 1 { &sees } else { &weights };
    let product = Product { rows: batch, inner: gates, columns: hidden, groups: 1, apart: [0; 3] };
    let kernel = match layer.cell {
        Cell::Lstm | Cell::Peephole => "lstm_step_gradient",
        Cell::Gru => "gru_step_gradient",
    };
    let one_launch = at_once(batch, hidden);
    if one_launch {
        let mut turned = room(&device, gates * hidden)?;
        launch_from!(RECURRENT_PTX, device, "turn", over(gates * hidden), &weights, &mut turned, &wide, &width);
        let mut arrived = device.alloc_zeros::<u32>(1)?;
        let backwards = u32::from(layer.reading == Reading::Backwards);
        launch_together!(
            device,
            backward_at_once(layer, batch),
            waiting(&device, hidden, WAITING_THREADS, 0)?,
            &kept,
            &gradient,
            &turned,
            seen,
            &seeing,
            &start,
            &mut pull,
            &mut carry,
            &mut all,
            &mut arrived,
            &number_of_steps,
            &items,
            &width,
            &backwards,
        );
    }
    let step_by_step = if one_launch { Vec::new() } else { layer.order(steps) };
    for (step, before) in step_by_step.into_iter().rev() {
        let (at, previous) = (step as u32, number(before));
        launch!(
            device,
            kernel,
            over(batch * hidden),
            &kept,
            &gradient,
            seen,
            &seeing,
            &start,
            &pull,
            &mut carry,
            &mut all,
            &at,
            &previous,
            &items,
            &width,
        );
        let of_step = all.slice(step * batch * parts..(step + 1) * batch * parts);
        product.run(
            &device,
            (&of_step, Form::Plain { stride: parts }),
            (&weights, Form::Plain { stride: hidden }),
            (&mut pull.slice_mut(..), hidden),
            0.0,
        )?;
    }
    let (first, numbers) = (steps * batch * parts, batch * hidden);
    let carried = u32::from(layer.cell == Cell::Gru);
    let mut of_start = all.slice_mut(first..);
    launch!(device, "start_gradient", over(numbers), &pull, &carry, &mut of_start, &numbers, &carried);
    Ok((CudaStorage::wrap_cuda_slice(all, device), Shape::from(count)))
}

/// Items up to which a sequence that looks at words is one launch: `MOST_ITEMS` of `recurrent.cu`.
const FEW_ATTENDING: usize = 4;
/// Threads of a block then: fewer blocks have fewer parts of a sum to hand in.
const ATTENDING_THREADS: u32 = 256;
/// Threads of the block that has one item.
const THREADS: u32 = 512;
/// States after every step of an LSTM that looks at words first.
pub(super) fn attending(
    sizes: &attending::Sizes,
    steps: Given,
    words: Given,
    weights: Given,
) -> Result<(CudaStorage, Shape)> {
    let (attending::Sizes { steps: count, batch, words: length, looking, hidden }, width) = (*sizes, sizes.width());
    let device = steps.0.device.clone();
    let (given, words, weights) = (view(steps)?, view(words)?, view(weights)?);
    let (weights, score) = (weights.slice(..width * hidden), weights.slice(width * hidden..));
    if length > SHARED {
        bail!("{length} words at once are too many");
    }
    let mut states = room(&device, count * batch * hidden)?;
    let (rows, pairs) = (hidden.max(looking), batch * length);
    // The state, and for each pair of item and word: whether it is seen, its weight, what each warp gives to it and gets from it.
    let shared = batch * KEPT + pairs * (2 + 6 * (ATTENDING_THREADS / 32) as usize);
    let config = waiting(&device, rows, ATTENDING_THREADS, shared)?;
    if batch <= FEW_ATTENDING && shared <= SHARED && keeps(&config, rows, hidden) {
        let mut parts = room(&device, pairs * config.grid_dim.0 as usize)?;
        let mut arrived = device.alloc_zeros::<u32>(1)?;
        let [steps, items, length, looking, channels] = counted([count, batch, length, looking, hidden])?;
        launch_together!(
            device,
            "attending",
            config,
            &given,
            &words,
            &weights,
            &score,
            &mut parts,
            &mut states,
            &mut arrived,
            &steps,
            &items,
            &length,
            &looking,
            &channels,
        );
        return Ok((CudaStorage::wrap_cuda_slice(states, device), Shape::from((count, batch, hidden))));
    }
    let mut memory = device.alloc_zeros::<f32>(batch * hidden)?;
    let mut remembered = device.alloc_zeros::<f32>(batch * width)?;
    let product = Product { rows: batch, inner: hidden, columns: width, groups: 1, apart: [0; 3] };
    let [blocks, length, looking, channels, bytes] = counted([batch, length, looking, hidden, length * 4])?;
    let config = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: bytes };
    for step in 0..count {
        let here = step * batch * hidden;
        if step > 0 {
            let state = states.slice(here - batch * hidden..here);
            product.run(
                &device,
                (&state, Form::Plain { stride: hidden }),
                (&weights, Form::Turned { stride: hidden }),
                (&mut remembered.slice_mut(..), width),
                0.0,
            )?;
        }
        let of_step = given.slice(step * batch * width..(step + 1) * batch * width);
        let mut to = states.slice_mut(here..here + batch * hidden);
        launch!(
            device,
            "attending_step",
            config,
            &of_step,
            &remembered,
            &words,
            &score,
            &mut memory,
            &mut to,
            &length,
            &looking,
            &channels,
        );
    }
    Ok((CudaStorage::wrap_cuda_slice(states, device), Shape::from((count, batch, hidden))))
}
