//! What the network is made of: dense layers, LSTMs with peepholes both ways, and attention.

use candle_core::{D, Tensor};
use candle_nn::{Init, VarBuilder};
use cuemark_tensor::functional::{mask_out, softmax};
use cuemark_tensor::recurrent::{Cell, Reading, StateWeights, recur};
use cuemark_tensor::{MatrixProduct as _, Pass};

use super::AblrConfig;
use crate::Result;

/// `x W + b` with TensorFlow's `[inputs, outputs]`.
#[derive(Debug)]
pub(super) struct Dense {
    weight: Tensor,
    bias: Tensor,
}

/// Two LSTMs, one for each way, and the layer that joins them.
#[derive(Debug)]
pub(super) struct BothWays {
    forward: PeepholeLstm,
    backward: PeepholeLstm,
    fuse: Dense,
    dropout: f64,
}

/// An LSTM whose gates see the cell; gates input, new, forget, output.
#[derive(Debug)]
struct PeepholeLstm {
    kernel: Tensor,
    bias: Tensor,
    see_input: Tensor,
    see_forget: Tensor,
    see_output: Tensor,
    forget_bias: f64,
}

/// Additive attention of one vector over rows.
#[derive(Debug)]
pub(super) struct Attention {
    from_query: Tensor,
    from_row: Dense,
    score: Tensor,
}

/// Matrices begin small and even.
fn small() -> Init {
    Init::Uniform { lo: -0.1, up: 0.1 }
}

impl Dense {
    pub(super) fn new(inputs: usize, outputs: usize, weight: &str, bias: &str, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            weight: vb.get_with_hints((inputs, outputs), weight, small())?,
            bias: vb.get_with_hints(outputs, bias, Init::Const(0.0))?,
        })
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.contiguous()?.times(&self.weight)?.broadcast_add(&self.bias)?)
    }
}

impl BothWays {
    pub(super) fn new(inputs: usize, config: &AblrConfig, what: &str, vb: &VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        let lstm = |name: String| PeepholeLstm::new(inputs, hidden, config.forget_bias, &vb.pp(name));
        Ok(Self {
            forward: lstm(format!("lstm_{what}"))?,
            backward: lstm(format!("reverse_lstm_{what}"))?,
            fuse: Dense::new(2 * hidden, hidden, &format!("w_fuse_{what}"), &format!("b_fuse_{what}"), vb)?,
            dropout: config.dropout,
        })
    }

    /// Reads forwards over all steps and backwards from the last of `lengths` steps; what stands after it means nothing.
    ///
    /// # Shapes
    /// - x `[batch, steps, inputs]`; returns `[batch, steps, hidden]`
    pub(super) fn forward(&self, x: &Tensor, lengths: &[usize], pass: &Pass) -> Result<Tensor> {
        let (batch, steps, _) = x.dims3()?;
        let turned = |(row, length): (usize, &usize)| {
            let length = (*length).min(steps);
            (0..steps).map(move |step| (row * steps + if step < length { length - 1 - step } else { step }) as u32)
        };
        let turned = Tensor::new(lengths.iter().enumerate().flat_map(turned).collect::<Vec<u32>>(), x.device())?;
        let turn = |x: &Tensor| -> Result<Tensor> {
            let width = x.dim(2)?;
            let rows = x.reshape((batch * steps, width))?.index_select(&turned, 0)?;
            Ok(rows.reshape((batch, steps, width))?)
        };
        let forward = pass.dropout(&self.forward.forward(x)?, self.dropout)?;
        let backward = pass.dropout(&turn(&self.backward.forward(&turn(x)?)?)?, self.dropout)?;
        Ok(self.fuse.forward(&Tensor::cat(&[forward, backward], 2)?)?.relu()?)
    }
}

impl PeepholeLstm {
    pub(super) fn new(inputs: usize, hidden: usize, forget_bias: f64, vb: &VarBuilder) -> Result<Self> {
        let diagonal = |gate: &str| vb.get_with_hints(hidden, &format!("w_{gate}_diag"), small());
        Ok(Self {
            kernel: vb.get_with_hints((inputs + hidden, 4 * hidden), "kernel", small())?,
            bias: vb.get_with_hints(4 * hidden, "bias", Init::Const(0.0))?,
            see_input: diagonal("i")?,
            see_forget: diagonal("f")?,
            see_output: diagonal("o")?,
            forget_bias,
        })
    }

    /// # Shapes
    /// - x `[batch, steps, inputs]`; returns `[batch, steps, hidden]`
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (inputs, hidden) = (x.dim(2)?, self.see_input.dim(0)?);
        // Here input, new, forget, output; the operation has the forget gate before the new one.
        let gate = |of: &Tensor, number: usize| of.narrow(D::Minus1, number * hidden, hidden);
        let gates = |of: &Tensor| {
            let [input, new, forget, output] = [0, 1, 2, 3].map(|number| gate(of, number));
            Ok::<_, candle_core::Error>([input?, forget?, new?, output?])
        };
        let kernel = Tensor::cat(&gates(&self.kernel)?, 1)?;
        let [input, forget, new, output] = gates(&self.bias)?;
        let bias = Tensor::cat(&[input, (forget + self.forget_bias)?, new, output], 0)?;
        let given = x.transpose(0, 1)?.contiguous()?.times(&kernel.narrow(0, 0, inputs)?)?.broadcast_add(&bias)?;
        let weight = kernel.narrow(0, inputs, hidden)?.t()?.contiguous()?;
        let sees = Tensor::stack(&[&self.see_input, &self.see_forget, &self.see_output], 0)?;
        let state = StateWeights { weight: &weight, bias: None, sees: Some(&sees) };
        let states = recur(Cell::Peephole, Reading::Forwards, &given, state, None)?;
        Ok(states.transpose(0, 1)?.contiguous()?)
    }
}

impl Attention {
    /// Names: the query's matrix, the rows' matrix and bias, the vector that scores.
    pub(super) fn new(hidden: usize, [query, row, bias, score]: [&str; 4], vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            from_query: vb.get_with_hints((hidden, hidden), query, small())?,
            from_row: Dense::new(hidden, hidden, row, bias, vb)?,
            score: vb.get_with_hints((hidden, 1), score, small())?,
        })
    }

    /// # Shapes
    /// - query `[batch, hidden]`, rows `[batch, n, hidden]`, mask `[batch, n]`
    /// - returns weights `[batch, n]` and what is attended to, `[batch, hidden]`
    pub(super) fn forward(&self, query: &Tensor, rows: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let query = query.times(&self.from_query)?.unsqueeze(1)?;
        let both = self.from_row.forward(rows)?.broadcast_add(&query)?.tanh()?;
        let scores = both.times(&self.score)?.squeeze(D::Minus1)?;
        let weights = softmax(&mask_out(&scores, mask, -1e30)?, D::Minus1)?;
        Ok((weights.clone(), weights.unsqueeze(1)?.times(rows)?.squeeze(1)?))
    }
}
