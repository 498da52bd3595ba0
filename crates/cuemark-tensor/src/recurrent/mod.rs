//! Recurrent layers as one operation: a product and one pass over memory per step, forward and backward.
//!
//! Composed of general operations, a step of an LSTM takes a dozen launches forward and three times as many backward; on a GPU
//! those, not the arithmetic, are its time.

mod attending;
mod cell;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

use candle_core::{CpuStorage, CustomOp3, D, Layout, Result, Shape, Tensor, bail};

pub use attending::{Attending, attend_and_recur};
pub use cell::Cell;

use crate::linear::{OfParameters, Part};
use crate::map::numbers;

/// The order in which steps are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// From the first to the last.
    Forwards,
    /// From the last to the first.
    Backwards,
}

/// What a layer keeps of its own from step to step.
#[derive(Debug, Clone, Copy)]
pub struct StateWeights<'a> {
    /// From the state to the gates, `[gates * hidden, hidden]`.
    pub weight: &'a Tensor,
    /// Added to that, `[gates * hidden]`.
    pub bias: Option<&'a Tensor>,
    /// What the input, forget and output gates of a [`Cell::Peephole`] see the memory through, `[3, hidden]`; the output gate sees
    /// the new one. Others have none.
    pub sees: Option<&'a Tensor>,
}

/// The states of one layer after every step.
///
/// # Shapes
/// - given `[steps, batch, gates * hidden]`: what the input of each step gives to the gates, its bias included
/// - start `[batch, hidden]`, the state before the first step; zeros by default
/// - returns `[steps, batch, hidden]`
///
/// # Errors
/// When shapes do not fit each other.
pub fn recur(
    cell: Cell,
    reading: Reading,
    given: &Tensor,
    state: StateWeights,
    start: Option<&Tensor>,
) -> Result<Tensor> {
    let (steps, batch, width) = given.dims3()?;
    let (gates, hidden) = (cell.gates(), state.weight.dim(1)?);
    if width != gates * hidden || state.weight.dims() != [width, hidden] {
        bail!("gates of {width} and weights {:?} do not fit a {cell:?}", state.weight.dims());
    }
    if state.sees.map_or(0, |sees| sees.dims().first().copied().unwrap_or(0)) != cell.seeing() {
        bail!("{:?} weights that see the memory do not fit a {cell:?}", state.sees.map(Tensor::dims));
    }
    if steps == 0 {
        return Tensor::zeros((0, batch, hidden), given.dtype(), given.device());
    }
    let bias = match state.bias {
        Some(bias) => bias.reshape((gates, hidden))?,
        None => Tensor::zeros((gates, hidden), given.dtype(), given.device())?,
    };
    // An operation takes three tensors: bias and what sees the memory stand below the weights.
    let mut parts = vec![state.weight.clone(), bias];
    parts.extend(state.sees.cloned());
    let weights = Tensor::cat(&parts, 0)?;
    let start = match start {
        Some(start) => start.contiguous()?,
        None => Tensor::zeros((batch, hidden), given.dtype(), given.device())?,
    };
    let kept = given.contiguous()?.apply_op3(&weights, &start, Layer { cell, reading })?;
    cell.state_of(&kept)
}

/// The kept rows of every step, `[steps, batch, kept * hidden]`.
#[derive(Debug, Clone, Copy)]
struct Layer {
    cell: Cell,
    reading: Reading,
}

/// Gradients of what stands before the gates' squashing, `[steps, batch, 4 hidden]`, and after them of the start, in one row.
#[derive(Debug, Clone, Copy)]
struct LayerGradient {
    layer: Layer,
    steps: usize,
}

/// Sizes of one layer's work.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    steps: usize,
    batch: usize,
    hidden: usize,
}

impl Layer {
    fn sizes(&self, given: &Shape) -> Result<Sizes> {
        let (steps, batch, width) = given.dims3()?;
        Ok(Sizes { steps, batch, hidden: width / self.cell.gates() })
    }

    /// Steps in the order they are read, each with the one before it.
    fn order(&self, steps: usize) -> Vec<(usize, Option<usize>)> {
        (0..steps)
            .map(|n| match self.reading {
                Reading::Forwards => (n, n.checked_sub(1)),
                Reading::Backwards => (steps - 1 - n, (n > 0).then_some(steps - n)),
            })
            .collect()
    }
}

impl CustomOp3 for Layer {
    fn name(&self) -> &'static str {
        "recurrent-layer"
    }

    fn cpu_fwd(
        &self,
        given: &CpuStorage,
        given_layout: &Layout,
        weights: &CpuStorage,
        weights_layout: &Layout,
        start: &CpuStorage,
        start_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let sizes = self.sizes(given_layout.shape())?;
        let (given, start) = (numbers(given, given_layout)?, numbers(start, start_layout)?);
        let kept = cpu::forward(*self, sizes, given, numbers(weights, weights_layout)?, start);
        Ok((CpuStorage::F32(kept), Shape::from((sizes.steps, sizes.batch, self.cell.kept() * sizes.hidden))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        given: &candle_core::CudaStorage,
        given_layout: &Layout,
        weights: &candle_core::CudaStorage,
        weights_layout: &Layout,
        start: &candle_core::CudaStorage,
        start_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        cuda::forward(*self, (given, given_layout), (weights, weights_layout), (start, start_layout))
    }

    fn bwd(
        &self,
        given: &Tensor,
        weights: &Tensor,
        start: &Tensor,
        kept: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Sizes { steps, batch, hidden } = self.sizes(given.shape())?;
        let gradient = self.cell.state_of(gradient)?.contiguous()?;
        // The start is needed where the gradient of the first step is taken: it goes along as one more step of states.
        let states = Tensor::cat(&[&self.cell.state_of(kept)?, &start.unsqueeze(0)?], 0)?;
        let wide = kept.contiguous()?;
        let all =
            wide.apply_op3_no_bwd(&gradient, &with_start(weights, start)?, &LayerGradient { layer: *self, steps })?;
        let (rows, parts) = (steps * batch, 4 * hidden);
        let before_gates = all.narrow(0, 0, rows * parts)?.reshape((rows, parts))?;
        let of_start = all.narrow(0, rows * parts, batch * hidden)?.reshape((batch, hidden))?;

        let of_state = before_gates.narrow(1, 0, self.cell.gates() * hidden)?;
        let previous: Vec<u32> = {
            let mut previous = vec![0; steps];
            for (step, before) in self.order(steps) {
                previous[step] = before.unwrap_or(steps) as u32;
            }
            previous
        };
        let numbers = Tensor::new(previous, given.device())?;
        let previous = states.index_select(&numbers, 0)?.reshape((rows, hidden))?;
        // Those of the weights and, below them, of the biases.
        let outputs = self.cell.gates() * hidden;
        let part = Part { first: 0, count: outputs };
        let of_state = of_state.contiguous()?.apply_op2_no_bwd(&previous, &OfParameters { part, outputs })?;
        let mut of_weights = vec![of_state.reshape((outputs + self.cell.gates(), hidden))?];
        if self.cell == Cell::Peephole {
            // Before the first step there is no memory.
            let memory = kept.narrow(D::Minus1, 4 * hidden, hidden)?;
            let earlier = Tensor::cat(&[&memory, &start.zeros_like()?.unsqueeze(0)?], 0)?;
            let earlier = earlier.index_select(&numbers, 0)?.reshape((rows, hidden))?;
            let now = memory.contiguous()?.reshape((rows, hidden))?;
            for (gate, seen) in [(0, &earlier), (1, &earlier), (3, &now)] {
                of_weights.push((before_gates.narrow(1, gate * hidden, hidden)? * seen)?.sum_keepdim(0)?);
            }
        }
        let of_given = match self.cell {
            Cell::Lstm | Cell::Peephole => before_gates,
            Cell::Gru => {
                Tensor::cat(&[before_gates.narrow(1, 0, 2 * hidden)?, before_gates.narrow(1, 3 * hidden, hidden)?], 1)?
            }
        };
        let of_given = of_given.reshape(given.shape())?;
        Ok((Some(of_given), Some(Tensor::cat(&of_weights, 0)?), Some(of_start)))
    }
}

/// Weights, bias and start below each other: `[.., hidden]`.
fn with_start(weights: &Tensor, start: &Tensor) -> Result<Tensor> {
    Tensor::cat(&[weights, start], 0)
}

impl CustomOp3 for LayerGradient {
    fn name(&self) -> &'static str {
        "recurrent-layer-gradient"
    }

    fn cpu_fwd(
        &self,
        kept: &CpuStorage,
        kept_layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
        weights: &CpuStorage,
        weights_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (_, batch, hidden) = gradient_layout.shape().dims3()?;
        let sizes = Sizes { steps: self.steps, batch, hidden };
        let (kept, gradient) = (numbers(kept, kept_layout)?, numbers(gradient, gradient_layout)?);
        let all = cpu::backward(self.layer, sizes, kept, gradient, numbers(weights, weights_layout)?);
        let count = all.len();
        Ok((CpuStorage::F32(all), Shape::from(count)))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        kept: &candle_core::CudaStorage,
        kept_layout: &Layout,
        gradient: &candle_core::CudaStorage,
        gradient_layout: &Layout,
        weights: &candle_core::CudaStorage,
        weights_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let (_, batch, hidden) = gradient_layout.shape().dims3()?;
        let sizes = Sizes { steps: self.steps, batch, hidden };
        cuda::backward(self.layer, sizes, (kept, kept_layout), (gradient, gradient_layout), (weights, weights_layout))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};
    use cuemark_core::Rng;

    use super::*;
    use crate::functional::sigmoid;

    /// The layer as its formulas stand in textbooks, one general operation after the other.
    fn composed(
        cell: Cell,
        reading: Reading,
        given: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        sees: &Tensor,
        start: &Tensor,
    ) -> Result<Tensor> {
        let (steps, hidden) = (given.dim(0)?, weight.dim(1)?);
        let (mut state, mut memory) = (start.clone(), start.zeros_like()?);
        let mut outputs = vec![start.clone(); steps];
        for n in 0..steps {
            let step = if reading == Reading::Backwards { steps - 1 - n } else { n };
            let (given, remembered) = (given.get(step)?, state.matmul(&weight.t()?)?.broadcast_add(bias)?);
            let part = |of: &Tensor, n: usize| of.narrow(1, n * hidden, hidden);
            state = match cell {
                Cell::Lstm | Cell::Peephole => {
                    let gates = (given + remembered)?;
                    let seen = |memory: &Tensor, n: usize| match cell {
                        Cell::Peephole => memory.broadcast_mul(&sees.get(n)?),
                        Cell::Lstm | Cell::Gru => memory.zeros_like(),
                    };
                    let input = sigmoid(&(part(&gates, 0)? + seen(&memory, 0)?)?)?;
                    let forget = sigmoid(&(part(&gates, 1)? + seen(&memory, 1)?)?)?;
                    memory = ((forget * memory)? + (input * part(&gates, 2)?.tanh()?)?)?;
                    (sigmoid(&(part(&gates, 3)? + seen(&memory, 2)?)?)? * memory.tanh()?)?
                }
                Cell::Gru => {
                    let reset = sigmoid(&(part(&given, 0)? + part(&remembered, 0)?)?)?;
                    let update = sigmoid(&(part(&given, 1)? + part(&remembered, 1)?)?)?;
                    let new = (part(&given, 2)? + (reset * part(&remembered, 2)?)?)?.tanh()?;
                    (&new + (update * (&state - &new)?)?)?
                }
            };
            outputs[step] = state.clone();
        }
        Tensor::stack(&outputs, 0)
    }

    fn inputs(cell: Cell, [steps, batch, hidden]: [usize; 3], device: &Device) -> [Var; 5] {
        let rng = &mut Rng::new(5);
        let width = cell.gates() * hidden;
        let shapes =
            [vec![steps, batch, width], vec![width, hidden], vec![width], vec![3, hidden], vec![batch, hidden]];
        shapes.map(|shape| {
            // As large as trained weights are: larger ones make a layer forget how it began, and rounding grows with every step.
            let size = 1.0 / (hidden as f32).sqrt();
            let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| size * rng.normal() as f32).collect();
            Var::from_tensor(&Tensor::from_vec(numbers, shape, device).unwrap()).unwrap()
        })
    }

    fn flat(x: &Tensor) -> Vec<f32> {
        x.flatten_all().unwrap().to_vec1().unwrap()
    }

    /// The layer's outputs and the gradients of all it was given, by `run`.
    fn through(vars: &[Var; 5], run: impl Fn(&[Var; 5]) -> Result<Tensor>) -> Vec<Vec<f32>> {
        let out = run(vars).unwrap();
        let pull = Tensor::arange(0f32, out.elem_count() as f32, out.device()).unwrap().sin().unwrap();
        let loss = (out.flatten_all().unwrap() * pull).unwrap().sum_all().unwrap();
        let gradients = loss.backward().unwrap();
        let mut all = vec![flat(&out)];
        // Cells that see no memory have no gradient of what would see it.
        all.extend(vars.iter().map(|var| gradients.get(var.as_tensor()).map(flat).unwrap_or_default()));
        all
    }

    fn fused(cell: Cell, reading: Reading, [given, weight, bias, sees, start]: &[Var; 5]) -> Result<Tensor> {
        let sees = (cell == Cell::Peephole).then_some(sees.as_tensor());
        let state = StateWeights { weight, bias: Some(bias.as_tensor()), sees };
        recur(cell, reading, given, state, Some(start.as_tensor()))
    }

    const CASES: [(Cell, Reading); 6] = [
        (Cell::Peephole, Reading::Forwards),
        (Cell::Peephole, Reading::Backwards),
        (Cell::Lstm, Reading::Forwards),
        (Cell::Lstm, Reading::Backwards),
        (Cell::Gru, Reading::Forwards),
        (Cell::Gru, Reading::Backwards),
    ];

    #[test]
    fn states_and_gradients_are_those_of_the_composed_form() {
        for (cell, reading) in CASES {
            for sizes in [[1, 1, 1], [5, 3, 4], [7, 33, 70]] {
                let vars = inputs(cell, sizes, &Device::Cpu);
                let ours = through(&vars, |vars| fused(cell, reading, vars));
                let wanted = through(&vars, |[given, weight, bias, sees, start]| {
                    composed(cell, reading, given, weight, bias, sees, start)
                });
                for (n, (ours, wanted)) in ours.iter().zip(&wanted).enumerate() {
                    assert_eq!(ours.len(), wanted.len());
                    for (a, b) in ours.iter().zip(wanted) {
                        assert!(
                            (a - b).abs() <= 2e-5 * b.abs().max(1.0),
                            "{cell:?} {reading:?} {sizes:?} {n}: {a} {b}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_gpu_gives_what_the_cpu_gives() {
        let Ok(gpu) = Device::new_cuda(0) else {
            eprintln!("SKIPPED (no GPU): recurrent a_gpu_gives_what_the_cpu_gives");
            return;
        };
        crate::set_precision(crate::Precision::F32);
        // One item and a few in one launch each, as many channels as are kept and more, more than warps, and too many items for that.
        for sizes in [[1, 1, 5], [9, 1, 70], [11, 3, 33], [5, 2, 512], [4, 1, 520], [6, 16, 700], [7, 33, 70]] {
            for (cell, reading) in CASES {
                let run = |device: &Device| through(&inputs(cell, sizes, device), |vars| fused(cell, reading, vars));
                for (n, (ours, wanted)) in run(&gpu).iter().zip(&run(&Device::Cpu)).enumerate() {
                    for (a, b) in ours.iter().zip(wanted) {
                        let gap = (a - b).abs();
                        assert!(gap <= 2e-5 * b.abs().max(1.0), "{cell:?} {reading:?} {sizes:?} {n}: {a} {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_steps_give_no_states_and_misfits_are_named() {
        let given = Tensor::zeros((0, 2, 12), candle_core::DType::F32, &Device::Cpu).unwrap();
        let weight = Tensor::zeros((12, 3), candle_core::DType::F32, &Device::Cpu).unwrap();
        let state = StateWeights { weight: &weight, bias: None, sees: None };
        assert_eq!(recur(Cell::Lstm, Reading::Forwards, &given, state, None).unwrap().dims(), [0, 2, 3]);
        assert!(recur(Cell::Gru, Reading::Forwards, &given, state, None).is_err());
        assert!(recur(Cell::Peephole, Reading::Forwards, &given, state, None).is_err());
    }
}
