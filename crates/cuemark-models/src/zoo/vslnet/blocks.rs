//! What the network is made of: the encoder of clips and words, their attention to each other, and the predictor.

use candle_core::Tensor;
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{attention, mask_out, softmax};

use super::{EPS, NOWHERE, Padding, PredictorKind, VslNetConfig};
use crate::Result;
use crate::layers::{LayerNorm, Linear, Recurrent, Ways, see_only, xavier};

/// `x [batch, steps, width]` times `matrix [width, outputs]`.
pub(super) fn times(x: &Tensor, matrix: &Tensor) -> candle_core::Result<Tensor> {
    x.times(matrix)
}

/// A convolution of kernel 1 under the port's name for it.
pub(super) fn convolution(inputs: usize, outputs: usize, vb: &VarBuilder) -> Result<Linear> {
    let vb = vb.pp("conv1d");
    let weight = vb.get_with_hints((outputs, inputs, 1), "weight", xavier(inputs, outputs))?;
    let bias = vb.get_with_hints(outputs, "bias", Init::Const(0.0))?;
    Ok(Linear::new(weight.reshape((outputs, inputs))?, Some(bias)))
}

/// Convolutions and attention on one sequence; one set of weights serves videos and queries.
#[derive(Debug)]
pub(super) struct FeatureEncoder {
    pub(super) positions: Tensor,
    convolutions: Vec<Separable>,
    norms: [LayerNorm; 2],
    projections: [Linear; 3],
    out: Linear,
    heads: usize,
    padding: Padding,
    pub(super) dropout: f64,
}

/// Per channel along time, then across channels.
#[derive(Debug)]
struct Separable {
    norm: LayerNorm,
    depth: Tensor,
    point: Linear,
}

impl FeatureEncoder {
    pub(super) fn new(config: &VslNetConfig, vb: &VarBuilder) -> Result<Self> {
        let (hidden, kernel) = (config.hidden, config.kernel);
        let layer = |number: usize| -> Result<Separable> {
            let block = vb.pp("conv_block");
            let pair = block.pp(format!("depthwise_separable_conv.{number}"));
            let depth = pair.get_with_hints((hidden, 1, kernel), "0.weight", xavier(kernel, hidden * kernel))?;
            let weight = pair.get_with_hints((hidden, hidden, 1), "1.weight", xavier(hidden, hidden))?;
            let bias = pair.get_with_hints(hidden, "1.bias", Init::Const(0.0))?;
            Ok(Separable {
                norm: LayerNorm::new(hidden, EPS, block.pp(format!("layer_norms.{number}")))?,
                depth: depth.squeeze(1)?,
                point: Linear::new(weight.reshape((hidden, hidden))?, Some(bias)),
            })
        };
        let block = vb.pp("attention_block");
        let project = |name: &str| convolution(hidden, hidden, &block.pp(name));
        let norm = |name: &str| LayerNorm::new(hidden, EPS, block.pp(name));
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        let positions = vb.pp("pos_embedding.position_embeddings");
        Ok(Self {
            positions: positions.get_with_hints((config.positions, hidden), "weight", normal)?,
            convolutions: (0..config.convolutions).map(layer).collect::<Result<_>>()?,
            norms: [norm("layer_norm1")?, norm("layer_norm2")?],
            projections: [project("query")?, project("key")?, project("value")?],
            out: project("out_layer")?,
            heads: config.heads,
            padding: config.padding,
            dropout: config.dropout,
        })
    }

    /// `x [batch, steps, hidden]` with `mask [batch, steps]`; returns the shape of `x`.
    pub(super) fn forward(&self, x: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let (batch, steps, hidden) = x.dims3()?;
        let drop = |x: &Tensor| pass.dropout(x, self.dropout);
        let mut x = x.broadcast_add(&self.positions.narrow(0, 0, steps)?)?;
        for layer in &self.convolutions {
            let mut y = layer.norm.forward(&x)?;
            if self.padding == Padding::Masked {
                y = y.broadcast_mul(&mask.unsqueeze(2)?)?;
            }
            x = (drop(&layer.point.forward(&depthwise(&y, &layer.depth)?)?.relu()?)? + x)?;
        }
        let y = drop(&self.norms[0].forward(&x)?)?;
        let split = |x: Tensor| x.reshape((batch, steps, self.heads, hidden / self.heads))?.transpose(1, 2);
        let [q, k, v] = &self.projections;
        let (q, k, v) = (split(q.forward(&y)?)?, split(k.forward(&y)?)?, split(v.forward(&y)?)?);
        // The port also drops weights of the attention; we spare the mask of steps × steps.
        let (seen, _) = attention(&q, &k, &v, Some(&see_only(mask)?))?;
        let seen = seen.transpose(1, 2)?.reshape((batch, steps, hidden))?;
        let x = (drop(&seen)? + x)?;
        let y = self.out.forward(&drop(&self.norms[1].forward(&x)?)?)?;
        Ok((drop(&y)? + x)?)
    }
}

/// Each channel convolved along time with its own kernel, zeros beyond both ends.
fn depthwise(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (steps, kernel) = (x.dim(1)?, weight.dim(1)?);
    let padded = x.pad_with_zeros(1, kernel / 2, kernel / 2)?;
    let piece = |place: usize| padded.narrow(1, place, steps)?.broadcast_mul(&weight.narrow(1, place, 1)?.squeeze(1)?);
    let first = piece(0)?;
    Ok((1..kernel).try_fold(first, |sum, place| sum + piece(place)?)?)
}

/// What the video and the query say about each other, clip by clip.
#[derive(Debug)]
pub(super) struct ContextQuery {
    of_video: Tensor,
    of_query: Tensor,
    of_both: Tensor,
    out: Linear,
    pub(super) dropout: f64,
}

impl ContextQuery {
    pub(super) fn new(hidden: usize, dropout: f64, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            of_video: vb.get_with_hints((hidden, 1), "w4C", xavier(hidden, 1))?,
            of_query: vb.get_with_hints((hidden, 1), "w4Q", xavier(hidden, 1))?,
            of_both: vb.get_with_hints((1, 1, hidden), "w4mlu", xavier(hidden, 1))?,
            out: convolution(4 * hidden, hidden, &vb.pp("cqa_linear"))?,
            dropout,
        })
    }

    pub(super) fn forward(
        &self,
        video: &Tensor,
        mask: &Tensor,
        query: &Tensor,
        asked: &Tensor,
        pass: &Pass,
    ) -> Result<Tensor> {
        let (v, q) = (pass.dropout(video, self.dropout)?, pass.dropout(query, self.dropout)?);
        let product = v.broadcast_mul(&self.of_both)?.times(&q.t()?.contiguous()?)?;
        let alike = product.broadcast_add(&times(&v, &self.of_video)?)?;
        let alike = alike.broadcast_add(&times(&q, &self.of_query)?.transpose(1, 2)?)?; // [batch, clips, words]
        let by_word = softmax(&mask_out(&alike, &asked.unsqueeze(1)?, NOWHERE)?, 2)?;
        let by_clip = softmax(&mask_out(&alike, &mask.unsqueeze(2)?, NOWHERE)?, 1)?;
        let to_query = by_word.times(query)?;
        let to_video = by_word.times(&by_clip.t()?.contiguous()?.times(video)?)?;
        let all = [video.clone(), to_query.clone(), (video * to_query)?, (video * to_video)?];
        Ok(self.out.forward(&Tensor::cat(&all, 2)?)?)
    }
}

/// From gated clips to boundaries.
#[derive(Debug)]
pub(super) struct Predictor {
    pub(super) encoder: BoundaryEncoder,
    heads: [(Linear, Linear); 2],
}

#[derive(Debug)]
pub(super) enum BoundaryEncoder {
    Rnn { start: Recurrent, end: Recurrent },
    Transformer { both: Box<FeatureEncoder>, norms: [LayerNorm; 2] },
}

impl Predictor {
    pub(super) fn new(config: &VslNetConfig, vb: &VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        let lstm = |name: &str| Recurrent::lstm(hidden, hidden, 1, Ways::Forward, vb.pp(name).pp("lstm"));
        let norm = |name: &str| LayerNorm::new(hidden, EPS, vb.pp(name));
        let head = |name: &str| -> Result<(Linear, Linear)> {
            let vb = vb.pp(name);
            Ok((convolution(2 * hidden, hidden, &vb.pp(0))?, convolution(hidden, 1, &vb.pp(2))?))
        };
        Ok(Self {
            encoder: match config.predictor {
                PredictorKind::Rnn => BoundaryEncoder::Rnn { start: lstm("start_encoder")?, end: lstm("end_encoder")? },
                PredictorKind::Transformer => BoundaryEncoder::Transformer {
                    both: Box::new(FeatureEncoder::new(config, &vb.pp("encoder"))?),
                    norms: [norm("start_layer_norm")?, norm("end_layer_norm")?],
                },
            },
            heads: [head("start_block")?, head("end_block")?],
        })
    }

    /// `x [batch, clips, hidden]`; start and end logits `[batch, clips]`.
    pub(super) fn forward(&self, x: &Tensor, mask: &Tensor, pass: &Pass) -> Result<[Tensor; 2]> {
        let (start, end) = match &self.encoder {
            BoundaryEncoder::Rnn { start, end } => {
                let real = mask.unsqueeze(2)?;
                let start = start.forward(x)?.broadcast_mul(&real)?;
                let end = end.forward(&start)?.broadcast_mul(&real)?;
                (start, end)
            }
            BoundaryEncoder::Transformer { both, norms } => {
                let start = both.forward(x, mask, pass)?;
                let end = both.forward(&start, mask, pass)?;
                (norms[0].forward(&start)?, norms[1].forward(&end)?)
            }
        };
        let logits = |(wide, narrow): &(Linear, Linear), boundary: Tensor| -> Result<Tensor> {
            let both = wide.forward(&Tensor::cat(&[&boundary, x], 2)?)?.relu()?;
            Ok(mask_out(&narrow.forward(&both)?.squeeze(2)?, mask, NOWHERE)?)
        };
        Ok([logits(&self.heads[0], start)?, logits(&self.heads[1], end)?])
    }
}
