//! Clips look at dummies and words; what they see of dummies is lost, so clips that the query is not about see little.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::functional::softmax;
use cuemark_tensor::{MatrixProduct as _, Pass};

use crate::Result;
use crate::layers::Linear;
use crate::layers::detr::{CrossTail, LayerPlan, glorot};

/// Attention without projections of queries, keys and values; only what was seen is projected.
#[derive(Debug)]
pub(super) struct AdaptiveLayer {
    out: Linear,
    out_bias: Tensor,
    tail: CrossTail,
    heads: usize,
    dropout: f64,
}

/// What clips look at: dummies first, then words.
pub(super) struct Keys<'a> {
    /// `[batch, dummies + words, width]`, places added.
    pub(super) keys: &'a Tensor,
    /// `[batch, words, width]`.
    pub(super) words: &'a Tensor,
    pub(super) bias: &'a Tensor,
}

impl AdaptiveLayer {
    pub(super) fn stack(plan: &LayerPlan, count: usize, vb: &VarBuilder) -> Result<Vec<Self>> {
        let layer = |number: usize| {
            let vb = vb.pp("layers").pp(number);
            let out_vb = vb.pp("self_attn.out_proj");
            let out = glorot(plan.width, plan.width, out_vb.clone())?;
            let out_bias = out_vb.get(plan.width, "bias")?;
            Ok(Self { out, out_bias, tail: CrossTail::new(plan, &vb)?, heads: plan.heads, dropout: plan.dropout })
        };
        (0..count).map(layer).collect()
    }

    /// The clips after the words, and how much each looked at every key, `[batch, clips, dummies + words]`.
    pub(super) fn forward(
        &self,
        clips: &Tensor,
        place: &Tensor,
        keys: &Keys<'_>,
        pass: &Pass,
    ) -> Result<(Tensor, Tensor)> {
        let scale = (clips.dim(D::Minus1)? as f64 / self.heads as f64).sqrt().recip();
        let query = self.split(&((clips + place)? * scale)?)?;
        let logits = query.times(&self.split(keys.keys)?.t()?.contiguous()?)?;
        let weights = softmax(&logits.broadcast_add(keys.bias)?, D::Minus1)?;
        let words = keys.words.dim(1)?;
        let to_words = pass.dropout(&weights, self.dropout)?.narrow(3, weights.dim(3)? - words, words)?;
        let seen = to_words.contiguous()?.times(&self.split(keys.words)?)?.transpose(1, 2)?.flatten_from(2)?;
        Ok((self.tail.forward(clips, &self.out.forward(&seen)?, pass)?, weights.mean(1)?))
    }

    /// A token that looks at nothing at all: `[batch, 1, width]`.
    pub(super) fn alone(&self, token: &Tensor, pass: &Pass) -> Result<Tensor> {
        let seen = self.out_bias.broadcast_as(token.shape())?.contiguous()?;
        Ok(self.tail.forward(token, &seen, pass)?)
    }

    fn split(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, steps, width) = x.dims3()?;
        Ok(x.reshape((batch, steps, self.heads, width / self.heads))?.transpose(1, 2)?.contiguous()?)
    }
}
