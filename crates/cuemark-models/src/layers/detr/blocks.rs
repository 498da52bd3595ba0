//! The small parts: linear stacks, activations, and what training drops.

use candle_core::{Result, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{gelu, prelu};
use serde::{Deserialize, Serialize};

use super::super::{LayerNorm, Linear, linear, uniform, xavier};

/// Added to a variance before its root.
pub(super) const EPS: f64 = 1e-5;

/// Sizes that all these networks have, `network` in `[model]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DetrSize {
    /// Width of everything. Default: 256
    pub hidden: usize,
    /// Heads of the attention. Default: 8
    pub heads: usize,
    /// Width inside the feed-forward parts. Default: 1024
    pub ffn: usize,
    /// Layers that bring clips and words to that width. Default: 2
    pub input_layers: usize,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
    /// Share of input values that training drops. Default: 0.5
    pub input_dropout: f64,
}

impl Default for DetrSize {
    fn default() -> Self {
        Self { hidden: 256, heads: 8, ffn: 1024, input_layers: 2, dropout: 0.1, input_dropout: 0.5 }
    }
}

/// How the weights of a layer begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// As PyTorch's own layers.
    Default,
    /// Glorot's uniform, as every matrix inside the authors' `transformer`.
    Glorot,
}

impl Drawn {
    pub(crate) fn linear(self, inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Linear> {
        match self {
            Self::Default => linear(inputs, outputs, vb),
            Self::Glorot => glorot(inputs, outputs, vb),
        }
    }
}

/// As [`linear`], with Glorot's weights.
///
/// # Errors
/// When a parameter is missing or misshaped.
pub fn glorot(inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Linear> {
    let weight = vb.get_with_hints((outputs, inputs), "weight", xavier(inputs, outputs))?;
    let bias = vb.get_with_hints(outputs, "bias", uniform(inputs))?;
    Ok(Linear::new(weight, Some(bias)))
}

/// Drawn from the standard normal distribution, as learned tokens begin.
pub fn normal() -> Init {
    Init::Randn { mean: 0.0, stdev: 1.0 }
}

/// Asks for the table of word places that published checkpoints hold and that their networks never read, so that a checkpoint
/// loads without anything left over.
///
/// # Errors
/// When a parameter is missing or misshaped.
pub fn unused_word_places(words: usize, width: usize, vb: &VarBuilder) -> Result<()> {
    let vb = vb.pp("txt_position_embed");
    vb.pp("position_embeddings").get_with_hints((words, width), "weight", normal())?;
    LayerNorm::new(width, EPS, vb.pp("LayerNorm")).map(|_| ())
}

/// Linear layers with ReLU between them (`layers.0`, `layers.1`, …).
#[derive(Debug, Clone)]
pub struct Mlp(Vec<Linear>);

/// How the last layer of a [`Mlp`] begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MlpEnd {
    /// As the others.
    Drawn,
    /// Without bias.
    NoBias,
    /// Giving zeros.
    Zero,
}

impl Mlp {
    /// Through `widths`, first the input's.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(widths: &[usize], drawn: Drawn, end: MlpEnd, vb: &VarBuilder) -> Result<Self> {
        let count = widths.len().saturating_sub(1);
        let layer = |(number, pair): (usize, &[usize])| {
            let (vb, [inputs, outputs]) = (vb.pp("layers").pp(number), [pair[0], pair[1]]);
            if number + 1 < count || end == MlpEnd::Drawn {
                return drawn.linear(inputs, outputs, vb);
            }
            let weights = if end == MlpEnd::Zero { Init::Const(0.0) } else { xavier(inputs, outputs) };
            let weight = vb.get_with_hints((outputs, inputs), "weight", weights)?;
            Ok(Linear::new(weight, Some(vb.get_with_hints(outputs, "bias", Init::Const(0.0))?)))
        };
        Ok(Self(widths.windows(2).enumerate().map(layer).collect::<Result<_>>()?))
    }
}

impl Module for Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for (number, layer) in self.0.iter().enumerate() {
            x = if number + 1 < self.0.len() { layer.forward_relu(&x)? } else { layer.forward(&x)? };
        }
        Ok(x)
    }
}

/// Layer norm, dropout and a linear layer, several times; ReLU between (`0.LayerNorm`, `0.net.1`, …).
#[derive(Debug, Clone)]
pub struct InputLayers {
    layers: Vec<(LayerNorm, Linear)>,
    dropout: f64,
}

impl InputLayers {
    /// From `inputs` to the network's width.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(inputs: usize, size: &DetrSize, vb: &VarBuilder) -> Result<Self> {
        let layer = |number: usize| {
            let (vb, inputs) = (vb.pp(number), if number == 0 { inputs } else { size.hidden });
            Ok((LayerNorm::new(inputs, EPS, vb.pp("LayerNorm"))?, linear(inputs, size.hidden, vb.pp("net").pp(1))?))
        };
        Ok(Self { layers: (0..size.input_layers).map(layer).collect::<Result<_>>()?, dropout: size.input_dropout })
    }

    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let mut x = x.clone();
        for (number, (norm, linear)) in self.layers.iter().enumerate() {
            let normed = pass.dropout(&norm.forward(&x)?, self.dropout)?;
            x = if number + 1 < self.layers.len() { linear.forward_relu(&normed)? } else { linear.forward(&normed)? };
        }
        Ok(x)
    }
}

/// What a feed-forward part bends its values with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `max(0, x)`.
    Relu,
    /// The exact Gaussian error linear unit.
    Gelu,
    /// `max(0, x) + a min(0, x)` with one learned slope per layer, `activation.weight`.
    Prelu,
}

/// What training drops of a branch before it is added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Residual {
    /// Single values, with this probability.
    Values(f64),
    /// The whole branch of a sample, with this probability (stochastic depth).
    Branch(f64),
}

impl Residual {
    /// `x` and what is left of the branch.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn add(self, x: &Tensor, branch: &Tensor, pass: &Pass) -> Result<Tensor> {
        match self {
            Self::Values(p) if x.dims() == branch.dims() => pass.residual(x, branch, p),
            Self::Values(_) | Self::Branch(_) => x.broadcast_add(&self.apply(branch, pass)?),
        }
    }

    /// # Errors
    /// Those of the tensor operations.
    pub fn apply(self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        match self {
            Self::Values(p) => pass.dropout(x, p),
            Self::Branch(p) if p > 0.0 && pass.is_training() => {
                let kept = pass.dropout(&Tensor::ones((x.dim(0)?, 1, 1), x.dtype(), x.device())?, p)?;
                x.broadcast_mul(&kept)
            }
            Self::Branch(_) => Ok(x.clone()),
        }
    }
}

/// How one layer is built.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerPlan {
    /// Width of a step.
    pub width: usize,
    /// Heads of the attention.
    pub heads: usize,
    /// Width inside the feed-forward part.
    pub ffn: usize,
    /// What the feed-forward part bends its values with.
    pub activation: Activation,
    /// Share of attention weights, and of values inside the feed-forward part, that training drops.
    pub dropout: f64,
    /// What training drops of either branch.
    pub residual: Residual,
    /// How its matrices begin.
    pub drawn: Drawn,
}

impl LayerPlan {
    /// As in the authors' `transformer`: Glorot's matrices, one dropout throughout.
    pub fn of(size: &DetrSize, activation: Activation) -> Self {
        Self {
            width: size.hidden,
            heads: size.heads,
            ffn: size.ffn,
            activation,
            dropout: size.dropout,
            residual: Residual::Values(size.dropout),
            drawn: Drawn::Glorot,
        }
    }
}

/// `linear2(dropout(act(linear1(x))))`.
#[derive(Debug, Clone)]
pub struct FeedForward {
    widen: Linear,
    narrow: Linear,
    activation: Activation,
    slope: Option<Tensor>,
    dropout: f64,
}

impl FeedForward {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(plan: &LayerPlan, vb: &VarBuilder) -> Result<Self> {
        let slope = match plan.activation {
            Activation::Prelu => Some(vb.pp("activation").get_with_hints(1, "weight", Init::Const(0.25))?),
            Activation::Relu | Activation::Gelu => None,
        };
        Ok(Self {
            widen: plan.drawn.linear(plan.width, plan.ffn, vb.pp("linear1"))?,
            narrow: plan.drawn.linear(plan.ffn, plan.width, vb.pp("linear2"))?,
            activation: plan.activation,
            slope,
            dropout: plan.dropout,
        })
    }

    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let bent = match (&self.slope, self.activation) {
            (Some(slope), _) => prelu(&self.widen.forward(x)?, slope)?,
            (None, Activation::Gelu) => gelu(&self.widen.forward(x)?)?,
            (None, Activation::Relu | Activation::Prelu) => self.widen.forward_relu(x)?,
        };
        self.narrow.forward(&pass.dropout(&bent, self.dropout)?)
    }
}
