//! What the network is made of: recurrent units, convolutions modulated by the query, and the head of each map.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax};

use super::ScdmConfig;
use crate::Result;
use crate::layers::{BatchNorm, Conv1d, Linear, Steps, linear, linear_no_bias, uniform};

/// A simple recurrent unit.
#[derive(Debug)]
pub(super) struct SimpleUnit {
    new: Linear,
    gates: Linear,
    pub(super) hidden: usize,
}

/// A convolution padded as TensorFlow's `SAME`: of an odd number of zeros the last stands on the right.
#[derive(Debug)]
pub(super) struct SameConv {
    conv: Conv1d,
    kernel: usize,
    stride: usize,
}

/// Modulation by the query, ReLU, convolution.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) attention: Option<WordAttention>,
    gamma: Linear,
    beta: Linear,
    conv: SameConv,
    eps: f64,
}

/// What a block is modulated by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// The words that each position attends to.
    Words,
    /// The mean of all words.
    Sentence,
}

/// Additive attention of every position over words.
#[derive(Debug)]
pub(super) struct WordAttention {
    from_position: Linear,
    from_word: Linear,
    bias: Tensor,
    pub(super) score: Tensor,
}

/// Batch norm, ReLU, convolution, twice.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) first: (BatchNorm, SameConv),
    second: (BatchNorm, SameConv),
}

/// The larger of every two steps.
pub(super) fn halved(x: &Tensor) -> Result<Tensor> {
    let (batch, steps, channels) = x.dims3()?;
    let pairs = x.reshape((batch, steps / 2, 2, channels))?;
    let of_pair = |number: usize| pairs.narrow(2, number, 1)?.squeeze(2);
    Ok(of_pair(0)?.maximum(&of_pair(1)?)?)
}

impl SimpleUnit {
    pub(super) fn new(inputs: usize, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            new: linear_no_bias(inputs, hidden, vb.pp("x_hat"))?,
            gates: linear(inputs, 2 * hidden, vb.pp("gates"))?,
            hidden,
        })
    }

    /// # Shapes
    /// - x `[batch, steps, inputs]`; returns `[batch, steps, hidden]`
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let new = self.new.forward(x)?;
        let gates = sigmoid(&self.gates.forward(x)?)?;
        let (forget, reset) = (gates.narrow(2, 0, self.hidden)?, gates.narrow(2, self.hidden, self.hidden)?);
        let mut state = Tensor::zeros((x.dim(0)?, self.hidden), x.dtype(), x.device())?;
        let mut states = Vec::with_capacity(x.dim(1)?);
        for step in 0..x.dim(1)? {
            let at = |x: &Tensor| x.narrow(1, step, 1)?.squeeze(1);
            let new = at(&new)?;
            state = (&new + (at(&forget)? * (state - &new)?)?)?.tanh()?;
            states.push(state.clone());
        }
        let states = Tensor::stack(&states, 1)?;
        Ok((&new + (reset * (states - &new)?)?)?)
    }
}

impl SameConv {
    pub(super) fn new(inputs: usize, outputs: usize, kernel: usize, stride: usize, vb: &VarBuilder) -> Result<Self> {
        let steps = Steps { stride, ..Steps::default() };
        Ok(Self { conv: Conv1d::new(inputs, outputs, kernel, steps, vb.clone())?, kernel, stride })
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let steps = x.dim(1)?;
        let outputs = steps.div_ceil(self.stride);
        let zeros = ((outputs - 1) * self.stride + self.kernel).saturating_sub(steps);
        Ok(self.conv.forward(&x.pad_with_zeros(1, zeros / 2, zeros - zeros / 2)?)?)
    }
}

impl Block {
    pub(super) fn new(
        config: &ScdmConfig,
        kernel: usize,
        stride: usize,
        reads: Reads,
        vb: &VarBuilder,
    ) -> Result<Self> {
        let (channels, sentence) = (config.channels, 2 * config.hidden);
        let attention = match reads {
            Reads::Words => Some(WordAttention::new(channels, sentence, config.hidden, vb)?),
            Reads::Sentence => None,
        };
        Ok(Self {
            attention,
            gamma: linear(sentence, channels, vb.pp("sentence_gamma"))?,
            beta: linear(sentence, channels, vb.pp("sentence_beta"))?,
            conv: SameConv::new(channels, channels, kernel, stride, &vb.pp("conv"))?,
            eps: config.modulation_eps,
        })
    }

    /// # Shapes
    /// - x `[batch, positions, channels]`, words `[batch, words, 2 hidden]`, sentence `[batch, 2 hidden]`
    /// - returns `[batch, positions / stride, channels]` and the attention over words, if there is one
    pub(super) fn forward(
        &self,
        x: &Tensor,
        words: &Tensor,
        sentence: &Tensor,
        mask: &Tensor,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let (context, weights) = match &self.attention {
            Some(attention) => {
                let weights = attention.forward(x, words, mask)?;
                (weights.times(words)?, Some(weights))
            }
            None => (sentence.unsqueeze(1)?, None),
        };
        let (gamma, beta) = (self.gamma.forward(&context)?.tanh()?, self.beta.forward(&context)?.tanh()?);
        // Statistics over time, padded positions included, as published.
        let centred = x.broadcast_sub(&x.mean_keepdim(1)?)?;
        let deviation = (centred.sqr()?.mean_keepdim(1)? + self.eps)?.sqrt()?;
        let modulated = centred.broadcast_div(&deviation)?.broadcast_mul(&gamma)?.broadcast_add(&beta)?;
        Ok((self.conv.forward(&modulated.relu()?)?, weights))
    }
}

impl WordAttention {
    pub(super) fn new(channels: usize, words: usize, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            from_position: linear_no_bias(channels, hidden, vb.pp("W_k"))?,
            from_word: linear_no_bias(words, hidden, vb.pp("W_v"))?,
            bias: vb.get_with_hints(hidden, "b", Init::Const(0.0))?,
            score: vb.get_with_hints(hidden, "W_interaction", uniform(hidden))?,
        })
    }

    /// # Shapes
    /// - x `[batch, positions, channels]`, words `[batch, words, 2 hidden]`, mask `[batch, words]`
    /// - returns `[batch, positions, words]`, rows of sum 1
    pub(super) fn forward(&self, x: &Tensor, words: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let from_words = self.from_word.forward(words)?.broadcast_add(&self.bias)?.unsqueeze(1)?;
        let both = self.from_position.forward(x)?.unsqueeze(2)?.broadcast_add(&from_words)?.tanh()?;
        let scores = both.broadcast_mul(&self.score)?.sum(D::Minus1)?;
        Ok(softmax(&mask_out(&scores, &mask.unsqueeze(1)?, -1e8)?, D::Minus1)?)
    }
}

impl Branch {
    pub(super) fn new(config: &ScdmConfig, outputs: usize, vb: &VarBuilder) -> Result<Self> {
        let layer = |inputs: usize, outputs: usize, number: usize| -> Result<(BatchNorm, SameConv)> {
            let norm = BatchNorm::new(inputs, vb.pp(format!("bn{number}")))?.with_eps(config.batch_norm_eps);
            Ok((norm, SameConv::new(inputs, outputs, 3, 1, &vb.pp(format!("conv{number}")))?))
        };
        Ok(Self { first: layer(config.channels, config.branch, 1)?, second: layer(config.branch, outputs, 2)? })
    }

    pub(super) fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let run = |(norm, conv): &(BatchNorm, SameConv), x: &Tensor| conv.forward(&norm.forward(x, pass)?.relu()?);
        run(&self.second, &run(&self.first, x)?)
    }
}
