//! LSTM and GRU stacks, one or both directions, with PyTorch's names and gate order.

use candle_core::{D, Result, Tensor};
use candle_nn::{Module as _, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::recurrent::{Cell, Reading, StateWeights, recur};

use super::{Linear, real_steps, uniform};

/// A stack of recurrent layers over `[batch, steps, width]`.
#[derive(Debug, Clone)]
pub struct Recurrent {
    layers: Vec<Vec<Direction>>,
}

/// Which ways a sequence is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ways {
    /// Left to right.
    Forward,
    /// Left to right and right to left; the outputs of the two stand side by side, in that order.
    Both,
}

#[derive(Debug, Clone)]
struct Direction {
    cell: Cell,
    from_input: Linear,
    from_state: Tensor,
    bias_of_state: Option<Tensor>,
    backward: bool,
}

/// How a stack is run, beyond its input.
#[derive(Debug, Clone, Copy, Default)]
pub struct Running<'a> {
    /// Number of real steps of each sequence; only those are read, and later outputs are zero. Default: all are real
    pub lengths: Option<&'a [usize]>,
    /// The state each layer begins with, `[batch, hidden]`; networks read one way only. Default: zeros
    pub start: Option<&'a [Tensor]>,
    /// Share of values dropped between layers while training. Default: 0
    pub dropout: f64,
}

/// Whether gates have biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bias {
    Learnt,
    Without,
}

impl Recurrent {
    /// Long short-term memory: gates input, forget, cell, output.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn lstm(inputs: usize, hidden: usize, layers: usize, ways: Ways, vb: VarBuilder) -> Result<Self> {
        Self::new(Cell::Lstm, [inputs, hidden, layers], ways, Bias::Learnt, &vb)
    }

    /// Gated recurrent unit: gates reset, update, new.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn gru(inputs: usize, hidden: usize, layers: usize, ways: Ways, vb: VarBuilder) -> Result<Self> {
        Self::new(Cell::Gru, [inputs, hidden, layers], ways, Bias::Learnt, &vb)
    }

    /// As [`Recurrent::gru`], without biases.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn gru_no_bias(inputs: usize, hidden: usize, layers: usize, ways: Ways, vb: VarBuilder) -> Result<Self> {
        Self::new(Cell::Gru, [inputs, hidden, layers], ways, Bias::Without, &vb)
    }

    fn new(cell: Cell, sizes: [usize; 3], ways: Ways, bias: Bias, vb: &VarBuilder) -> Result<Self> {
        let [inputs, hidden, layers] = sizes;
        let suffixes: &[&str] = if ways == Ways::Both { &["", "_reverse"] } else { &[""] };
        let gates = cell.gates() * hidden;
        let layer = |number: usize| {
            let inputs = if number == 0 { inputs } else { hidden * suffixes.len() };
            let direction = |suffix: &&str| {
                let get = |shape: &[usize], what: &str| {
                    vb.get_with_hints(shape, &format!("{what}_l{number}{suffix}"), uniform(hidden))
                };
                let bias = |what: &str| (bias == Bias::Learnt).then(|| get(&[gates], what)).transpose();
                // In the order in which they are drawn.
                let (of_input, of_state) = (get(&[gates, inputs], "weight_ih")?, get(&[gates, hidden], "weight_hh")?);
                Ok(Direction {
                    cell,
                    from_input: Linear::new(of_input, bias("bias_ih")?),
                    from_state: of_state,
                    bias_of_state: bias("bias_hh")?,
                    backward: !suffix.is_empty(),
                })
            };
            suffixes.iter().map(direction).collect()
        };
        Ok(Self { layers: (0..layers).map(layer).collect::<Result<_>>()? })
    }

    /// Runs over every step, padding included, as references do that do not pack their batches: the forward half is
    /// unaffected by padding, the backward half begins in it.
    ///
    /// # Shapes
    /// - x `[batch, steps, inputs]`
    /// - returns `[batch, steps, hidden]`, twice as wide both ways
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.every_layer(x, Running::default(), &Pass::answering())?.pop().unwrap_or_else(|| x.clone()))
    }

    /// Runs over the real steps of each sequence only, as packed batches do; steps past the end are zero.
    ///
    /// # Shapes
    /// - as [`Recurrent::forward`], `lengths` one per sequence
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward_packed(&self, x: &Tensor, lengths: &[usize]) -> Result<Tensor> {
        let running = Running { lengths: Some(lengths), ..Running::default() };
        Ok(self.every_layer(x, running, &Pass::answering())?.pop().unwrap_or_else(|| x.clone()))
    }

    /// The outputs of every layer, first to last, each as [`Recurrent::forward`] gives the last.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn every_layer(&self, x: &Tensor, running: Running, pass: &Pass) -> Result<Vec<Tensor>> {
        let packing = match running.lengths {
            Some(lengths) => {
                Some((real_steps(lengths, x.dim(1)?, x.device())?.unsqueeze(2)?, turned_rows(lengths, x)?))
            }
            None => None,
        };
        let mut outputs: Vec<Tensor> = Vec::with_capacity(self.layers.len());
        for (number, directions) in self.layers.iter().enumerate() {
            let x = match outputs.last() {
                Some(below) => pass.dropout(below, running.dropout)?,
                None => x.clone(),
            };
            let start = running.start.and_then(|start| start.get(number));
            let run = |direction: &Direction| match &packing {
                Some((_, turned)) if direction.backward => {
                    let forwards = Direction { backward: false, ..direction.clone() };
                    reorder(&forwards.run(&reorder(&x, turned)?, None)?, turned)
                }
                _ => direction.run(&x, start),
            };
            let output = Tensor::cat(&directions.iter().map(run).collect::<Result<Vec<_>>>()?, D::Minus1)?;
            outputs.push(match &packing {
                Some((mask, _)) => output.broadcast_mul(mask)?,
                None => output,
            });
        }
        Ok(outputs)
    }
}

/// The output at each sequence's last real step, `[batch, steps, width]` to `[batch, width]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn last_step(outputs: &Tensor, lengths: &[usize]) -> Result<Tensor> {
    let (batch, steps, width) = outputs.dims3()?;
    let rows = lengths.iter().enumerate().map(|(row, length)| (row * steps + length.saturating_sub(1)) as u32);
    let rows = Tensor::from_vec(rows.collect::<Vec<u32>>(), batch, outputs.device())?;
    outputs.reshape((batch * steps, width))?.index_select(&rows, 0)
}

/// What a packed network read both ways ends with: the forward half at the last real step, the backward half at the first,
/// `[batch, steps, 2 hidden]` to `[batch, 2 hidden]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn final_states(outputs: &Tensor, lengths: &[usize]) -> Result<Tensor> {
    let hidden = outputs.dim(2)? / 2;
    let forward = last_step(&outputs.narrow(2, 0, hidden)?.contiguous()?, lengths)?;
    let backward = outputs.narrow(1, 0, 1)?.squeeze(1)?.narrow(1, hidden, hidden)?;
    Tensor::cat(&[forward, backward], 1)
}

/// For every step the row of the step that stands there when each sequence is read from its end; its own inverse.
fn turned_rows(lengths: &[usize], x: &Tensor) -> Result<Tensor> {
    let steps = x.dim(1)?;
    let turned = |(row, length): (usize, &usize)| {
        let length = *length;
        (0..steps).map(move |step| (row * steps + if step < length { length - 1 - step } else { step }) as u32)
    };
    let rows: Vec<u32> = lengths.iter().enumerate().flat_map(turned).collect();
    Tensor::new(rows, x.device())
}

fn reorder(x: &Tensor, rows: &Tensor) -> Result<Tensor> {
    let (batch, steps, width) = x.dims3()?;
    x.reshape((batch * steps, width))?.index_select(rows, 0)?.reshape((batch, steps, width))
}

impl Direction {
    fn run(&self, x: &Tensor, start: Option<&Tensor>) -> Result<Tensor> {
        // The part of the gates that does not wait for the state is one product for all steps.
        let given = self.from_input.forward(&x.transpose(0, 1)?.contiguous()?)?;
        let state = StateWeights { weight: &self.from_state, bias: self.bias_of_state.as_ref(), sees: None };
        let reading = if self.backward { Reading::Backwards } else { Reading::Forwards };
        recur(self.cell, reading, &given, state, start)?.transpose(0, 1)?.contiguous()
    }
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;

    fn values(x: &Tensor) -> Vec<f32> {
        x.flatten_all().unwrap().to_vec1().unwrap()
    }

    fn input() -> Tensor {
        Tensor::arange(0f32, 30.0, &Device::Cpu).unwrap().reshape((2, 5, 3)).unwrap().sin().unwrap()
    }

    #[test]
    fn packed_sequences_do_not_see_their_padding() {
        for kind in [Recurrent::lstm, Recurrent::gru] {
            let net = kind(3, 4, 2, Ways::Both, Params::seeded(1, &Device::Cpu).builder()).unwrap();
            let packed = net.forward_packed(&input(), &[5, 3]).unwrap();
            let short =
                net.forward(&input().narrow(0, 1, 1).unwrap().narrow(1, 0, 3).unwrap().contiguous().unwrap()).unwrap();
            let same = values(&packed.get(1).unwrap().narrow(0, 0, 3).unwrap());
            for (a, b) in same.iter().zip(values(&short)) {
                assert!((a - b).abs() < 1e-6);
            }
            assert!(values(&packed.get(1).unwrap().narrow(0, 3, 2).unwrap()).iter().all(|value| *value == 0.0));
        }
    }

    #[test]
    fn states_at_the_end_are_found_by_length() {
        let x = input();
        assert_eq!(
            values(&last_step(&x, &[5, 3]).unwrap()),
            [values(&x)[12..15].to_vec(), values(&x)[21..24].to_vec()].concat()
        );
    }

    #[test]
    fn an_lstm_step_is_right_by_hand() {
        // All weights 0: gates are the sums of the two biases, here 1 each.
        let tensors = ["weight_ih_l0", "weight_hh_l0"]
            .map(|name| (name.to_owned(), Tensor::zeros((4, 1), candle_core::DType::F32, &Device::Cpu).unwrap()));
        let biases =
            ["bias_ih_l0", "bias_hh_l0"].map(|name| (name.to_owned(), Tensor::full(0.5f32, 4, &Device::Cpu).unwrap()));
        let params = Params::loaded(tensors.into_iter().chain(biases).collect(), &Device::Cpu);
        let net = Recurrent::lstm(1, 1, 1, Ways::Forward, params.builder()).unwrap();
        let out =
            values(&net.forward(&Tensor::zeros((1, 2, 1), candle_core::DType::F32, &Device::Cpu).unwrap()).unwrap());
        let gate = 1.0 / (1.0 + (-1f32).exp());
        let first = gate * 1f32.tanh();
        let second = gate * first + gate * 1f32.tanh();
        assert!((out[0] - gate * first.tanh()).abs() < 1e-6 && (out[1] - gate * second.tanh()).abs() < 1e-6);
    }
}
