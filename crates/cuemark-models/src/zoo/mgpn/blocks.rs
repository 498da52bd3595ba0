//! What the network is made of: feed-forward parts, and convolutions over the map in groups.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::softmax;
use cuemark_tensor::map::{LayerPlan, StackPlan, Support, map_conv};
use std::sync::Arc;

use crate::Result;
use crate::layers::{BatchNorm, ConstantRows, Linear, MomentMap, linear, uniform};

/// The mean of the steps weighted by a softmax of their scores, `[batch, steps, width]` to `[batch, 1, width]`.
pub(super) fn pooled(steps: &Tensor, score: &Linear) -> Result<Tensor> {
    let shares = softmax(&score.forward(steps)?, 1)?;
    Ok(steps.broadcast_mul(&shares)?.sum_keepdim(1)?)
}

/// `x + W2 relu(W1 norm(x))`, with a norm that divides by the unbiased deviation plus 1e-6.
#[derive(Debug)]
pub(super) struct FeedForward {
    scale: Tensor,
    shift: Tensor,
    first: Linear,
    second: Linear,
    pub(super) dropout: f64,
}

impl FeedForward {
    pub(super) fn new(hidden: usize, dropout: f64, vb: &VarBuilder) -> Result<Self> {
        let norm = vb.pp("vis_sublayer.norm");
        Ok(Self {
            scale: norm.get_with_hints(hidden, "a_2", Init::Const(1.0))?,
            shift: norm.get_with_hints(hidden, "b_2", Init::Const(0.0))?,
            first: linear(hidden, hidden, vb.pp("feed_forward.w_1"))?,
            second: linear(hidden, hidden, vb.pp("feed_forward.w_2"))?,
            dropout,
        })
    }

    pub(super) fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let others = (x.dim(D::Minus1)? as f64 - 1.0).max(1.0);
        let variance = (centred.sqr()?.sum_keepdim(D::Minus1)? / others)?;
        // The root's gradient is infinite at 0: equal channels keep a finite one.
        let deviation = (variance.maximum(1e-24)?.sqrt()? + 1e-6)?;
        let norm = centred.broadcast_div(&deviation)?.broadcast_mul(&self.scale)?.broadcast_add(&self.shift)?;
        let inner = pass.dropout(&self.first.forward(&norm)?.relu()?, self.dropout)?;
        Ok((x + pass.dropout(&self.second.forward(&inner)?, self.dropout)?)?)
    }
}

/// Which cells a block computes: while answering the valid ones; while training all that the kernel reaches, because the
/// published batch norm takes its statistics over the whole map.
#[derive(Debug, Clone)]
pub(super) struct Plans {
    pub(super) answering: Arc<LayerPlan>,
    training: Arc<LayerPlan>,
    /// For each valid cell its row among those of `training`.
    valid_rows: Vec<u32>,
    /// Cells of the whole map that no valid cell reaches: there the convolution gives its bias.
    unreached: usize,
}

impl Plans {
    pub(super) fn new(map: &MomentMap, kernel: usize) -> candle_core::Result<Self> {
        let reached = StackPlan::new(map.layout(), kernel, 1, Support::Reached)?;
        let same = LayerPlan::same(map.layout(), kernel)?;
        let [training] = &reached.layers[..] else { candle_core::bail!("a plan of one layer has another number") };
        Ok(Self {
            answering: Arc::new(same),
            training: Arc::clone(training),
            valid_rows: reached.valid_rows().to_vec(),
            unreached: training.dense_cells() - training.output_count(),
        })
    }
}

/// Grouped convolution over neighbouring spans, batch norm, ReLU.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) weight: Tensor,
    pub(super) bias: Tensor,
    norm: BatchNorm,
    pub(super) groups: usize,
    pub(super) plans: Plans,
}

impl Block {
    pub(super) fn new(inputs: usize, outputs: usize, groups: usize, plans: &Plans, vb: &VarBuilder) -> Result<Self> {
        let (kernel, conv) = (plans.answering.kernel(), vb.pp("conv"));
        let fan = uniform(inputs / groups * kernel * kernel);
        Ok(Self {
            weight: conv.get_with_hints((outputs, inputs / groups, kernel, kernel), "weight", fan)?,
            bias: conv.get_with_hints(outputs, "bias", fan)?,
            norm: BatchNorm::new(outputs, vb.pp("bn"))?,
            groups,
            plans: plans.clone(),
        })
    }

    /// `[batch, cells, inputs]` to `[batch, cells, outputs]`.
    pub(super) fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let convolve = |plan| map_conv(x, &self.weight, Some(&self.bias), plan, self.groups);
        if !pass.is_training() {
            return Ok(self.norm.forward(&convolve(&self.plans.answering)?, pass)?.relu()?);
        }
        let constant = ConstantRows { rows: self.plans.unreached * x.dim(0)?, value: &self.bias };
        let y = self.norm.forward_among(&convolve(&self.plans.training)?, Some(constant), pass)?;
        let valid = Tensor::new(self.plans.valid_rows.as_slice(), x.device())?;
        Ok(y.index_select(&valid, 1)?.relu()?)
    }
}
