//! The decoder whose queries are anchors: centre and width, moved layer by layer.

use candle_core::{D, Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::functional::sigmoid;
use cuemark_tensor::{Heads, Pass, attend};

use super::super::{LayerNorm, Linear};
use super::blocks::{Drawn, EPS, FeedForward, LayerPlan, Mlp, MlpEnd, Residual, glorot};
use super::sine::anchor_code;

/// What anchors look at.
#[derive(Debug, Clone, Copy)]
pub struct Memory<'a> {
    /// `[batch, steps, width]`.
    pub values: &'a Tensor,
    /// The place of every step, `[batch, steps, width]`.
    pub place: &'a Tensor,
    /// Added to the logits, broadcast to `[batch, heads, anchors, steps]`.
    pub bias: &'a Tensor,
}

/// One layer: anchors look at each other, then at the memory.
#[derive(Debug, Clone)]
pub struct AnchorLayer {
    among: Among,
    memory: ToMemory,
    feed_forward: FeedForward,
    norms: [LayerNorm; 3],
    heads: usize,
    dropout: f64,
    residual: Residual,
}

#[derive(Debug, Clone)]
struct Among {
    query: [Linear; 2],
    key: [Linear; 2],
    value: Linear,
    out: Linear,
}

#[derive(Debug, Clone)]
struct ToMemory {
    query: Linear,
    /// Only in the first layer, which adds places to contents as well.
    query_place: Option<Linear>,
    key: Linear,
    key_place: Linear,
    value: Linear,
    sine: Linear,
    out: Linear,
}

impl AnchorLayer {
    /// Layer `number` of a decoder.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(plan: &LayerPlan, number: usize, vb: &VarBuilder) -> Result<Self> {
        let square = |name: &str| glorot(plan.width, plan.width, vb.pp(name));
        let norm = |name: &str| LayerNorm::new(plan.width, EPS, vb.pp(name));
        Ok(Self {
            among: Among {
                query: [square("sa_qcontent_proj")?, square("sa_qpos_proj")?],
                key: [square("sa_kcontent_proj")?, square("sa_kpos_proj")?],
                value: square("sa_v_proj")?,
                out: square("self_attn.out_proj")?,
            },
            memory: ToMemory {
                query: square("ca_qcontent_proj")?,
                query_place: if number == 0 { Some(square("ca_qpos_proj")?) } else { None },
                key: square("ca_kcontent_proj")?,
                key_place: square("ca_kpos_proj")?,
                value: square("ca_v_proj")?,
                sine: square("ca_qpos_sine_proj")?,
                out: square("cross_attn.out_proj")?,
            },
            feed_forward: FeedForward::new(plan, vb)?,
            norms: [norm("norm1")?, norm("norm2")?, norm("norm3")?],
            heads: plan.heads,
            dropout: plan.dropout,
            residual: plan.residual,
        })
    }

    /// Anchors look at each other; `x` and `place` are `[batch, anchors, width]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn look_around(&self, x: &Tensor, place: &Tensor, pass: &Pass) -> Result<Tensor> {
        let both = |[content, of_place]: &[Linear; 2]| content.forward(x)? + of_place.forward(place)?;
        let [query, key] = [both(&self.among.query)?, both(&self.among.key)?];
        let value = self.among.value.forward(x)?;
        let heads = Heads { count: self.heads, bias: None, dropout: self.dropout };
        let seen = self.among.out.forward(&attend(&query, &key, &value, heads, pass)?)?;
        self.norms[0].forward(&self.residual.add(x, &seen, pass)?)
    }

    /// Anchors look at the memory, and think; `sine` is the code that is compared with the places of the memory.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn look_up(
        &self,
        x: &Tensor,
        place: &Tensor,
        sine: &Tensor,
        memory: Memory<'_>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let to = &self.memory;
        let (mut query, mut key) = (to.query.forward(x)?, to.key.forward(memory.values)?);
        let key_place = to.key_place.forward(memory.place)?;
        if let Some(of_place) = &to.query_place {
            query = (query + of_place.forward(place)?)?;
            key = key.broadcast_add(&key_place)?;
        }
        let query = self.beside(&query, &to.sine.forward(sine)?)?;
        let key = self.beside(&key, &key_place.broadcast_as(key.shape())?.contiguous()?)?;
        let value = to.value.forward(memory.values)?;
        let heads = Heads { count: self.heads, bias: Some(memory.bias), dropout: self.dropout };
        let seen = to.out.forward(&attend(&query, &key, &value, heads, pass)?)?;
        let x = self.norms[1].forward(&self.residual.add(x, &seen, pass)?)?;
        let thought = self.feed_forward.forward(&x, pass)?;
        self.norms[2].forward(&self.residual.add(&x, &thought, pass)?)
    }

    /// Contents and places of every head beside each other: twice `[batch, steps, width]` to `[batch, steps, 2 width]`.
    fn beside(&self, content: &Tensor, place: &Tensor) -> Result<Tensor> {
        let (batch, steps, width) = content.dims3()?;
        let heads = |x: &Tensor| x.reshape((batch, steps, self.heads, width / self.heads));
        Tensor::cat(&[heads(content)?, heads(place)?], D::Minus1)?.flatten_from(2)
    }
}

/// What anchors are made into before a layer reads them.
#[derive(Debug, Clone)]
pub struct AnchorHeads {
    place: Mlp,
    scale: Mlp,
    width: Mlp,
}

impl AnchorHeads {
    /// For anchor codes of `code` channels.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(code: usize, width: usize, vb: &VarBuilder) -> Result<Self> {
        let mlp = |widths: &[usize], name: &str| Mlp::new(widths, Drawn::Glorot, MlpEnd::Drawn, &vb.pp(name));
        Ok(Self {
            place: mlp(&[code, width, width], "ref_point_head")?,
            scale: mlp(&[width, width, width], "query_scale")?,
            width: mlp(&[width, width, 1], "ref_anchor_head")?,
        })
    }

    /// The place that an anchor's code stands for.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn place(&self, code: &Tensor) -> Result<Tensor> {
        self.place.forward(code)
    }

    /// The code scaled by the content.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn scaled(&self, code: &Tensor, content: &Tensor) -> Result<Tensor> {
        code * self.scale.forward(content)?
    }

    /// The code sharpened for narrow anchors, `anchors [batch, anchors, 2]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn sharpened(&self, code: &Tensor, content: &Tensor, anchors: &Tensor) -> Result<Tensor> {
        let factor = (sigmoid(&self.width.forward(content)?)? / anchors.narrow(D::Minus1, 1, 1)?)?;
        code.broadcast_mul(&factor)
    }
}

/// `log(x / (1 - x))`, both kept above 0.001.
///
/// # Errors
/// Those of the tensor operations.
pub fn logit(x: &Tensor) -> Result<Tensor> {
    x.maximum(1e-3)?.log()? - x.affine(-1.0, 1.0)?.maximum(1e-3)?.log()?
}

/// Layers of anchors with a shared move.
#[derive(Debug, Clone)]
pub struct AnchoredDecoder {
    layers: Vec<AnchorLayer>,
    norm: LayerNorm,
    heads: AnchorHeads,
    mover: Mlp,
    width: usize,
}

/// What the decoder gives, by layer.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// Normed contents, `[batch, anchors, width]`.
    pub states: Vec<Tensor>,
    /// The anchors that entered each layer, `[batch, anchors, 2]`. Gradients go through all of them: those a layer reads itself
    /// are cut off, except the first.
    pub before: Vec<Tensor>,
    /// The anchors that left each layer.
    pub after: Vec<Tensor>,
}

impl AnchoredDecoder {
    /// `count` layers.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(plan: &LayerPlan, count: usize, vb: &VarBuilder) -> Result<Self> {
        let layer = |number: usize| AnchorLayer::new(plan, number, &vb.pp("layers").pp(number));
        let width = plan.width;
        Ok(Self {
            layers: (0..count).map(layer).collect::<Result<_>>()?,
            norm: LayerNorm::new(width, EPS, vb.pp("norm"))?,
            heads: AnchorHeads::new(2 * (width / 2), width, vb)?,
            mover: Mlp::new(&[width, width, width, 2], Drawn::Glorot, MlpEnd::NoBias, &vb.pp("bbox_embed"))?,
            width,
        })
    }

    /// # Shapes
    /// - start `[batch, anchors, width]`, anchors `[batch, anchors, 2]` in 0..1
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, start: &Tensor, anchors: &Tensor, memory: Memory<'_>, pass: &Pass) -> Result<Decoded> {
        let mut decoded = Decoded { states: Vec::new(), before: Vec::new(), after: Vec::new() };
        let (mut x, mut anchors, mut seen) = (start.clone(), anchors.clone(), anchors.clone());
        for (number, layer) in self.layers.iter().enumerate() {
            let code = anchor_code(&seen, self.width / 2)?;
            let place = self.heads.place(&code)?;
            let code = if number == 0 { code } else { self.heads.scaled(&code, &x)? };
            let sine = self.heads.sharpened(&code, &x, &seen)?;
            x = layer.look_around(&x, &place, pass)?;
            x = layer.look_up(&x, &place, &sine, memory, pass)?;
            let moved = sigmoid(&(self.mover.forward(&x)? + logit(&seen)?)?)?;
            decoded.states.push(self.norm.forward(&x)?);
            decoded.before.push(anchors);
            decoded.after.push(moved.clone());
            (seen, anchors) = (moved.detach(), moved);
        }
        Ok(decoded)
    }
}
