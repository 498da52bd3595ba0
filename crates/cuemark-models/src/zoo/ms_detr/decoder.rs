//! The decoder: proposals refined layer by layer from what each covers on every level.

use candle_core::Tensor;
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;

use super::MsDetr;
use crate::Result;
use crate::layers::{DecoderLayer, Linear, linear};

/// One layer of the decoder with its heads.
#[derive(Debug)]
pub(super) struct Refinement {
    pub(super) layer: DecoderLayer,
    pub(super) score: Mlp,
    pub(super) offset: Mlp,
    pub(super) pool: Mlp,
}

/// What one layer of the decoder proposes: start and end as fractions, `[batch, proposals, 2]`, and a logit.
pub(super) struct Proposed {
    pub(super) bounds: Tensor,
    pub(super) scores: Tensor,
}

impl MsDetr {
    pub(super) fn decode(&self, memory: &Tensor, levels: &[Tensor], pass: &Pass) -> Result<Vec<Proposed>> {
        let (batch, count) = (memory.dim(0)?, self.config.proposals);
        let embeddings = self.proposals.unsqueeze(0)?.broadcast_as((batch, count, self.config.hidden))?.contiguous()?;
        let centres: Vec<f32> =
            (0..count).flat_map(|number| [logit_of(number as f64 / count as f64, 1e-12), 0.0]).collect();
        let mut before = Tensor::from_vec(centres, (1, count, 2), memory.device())?.broadcast_as((batch, count, 2))?;
        let mut x = embeddings.clone();
        let mut layers = Vec::with_capacity(self.decoder.len());
        for (number, refinement) in self.decoder.iter().enumerate() {
            x = refinement.layer.forward(&x, memory, [None, None], None, pass)?;
            let scores = refinement.score.forward(&x)?.squeeze(2)?;
            let place = sigmoid(&(refinement.offset.forward(&x)? + &before)?)?;
            let (centre, half) = (place.narrow(2, 0, 1)?, (place.narrow(2, 1, 1)? / 2.0)?);
            let mut bounds = Tensor::cat(&[(&centre - &half)?, (&centre + &half)?], 2)?;
            if !pass.is_training() {
                bounds = bounds.clamp(0f32, 1f32)?; // training lets proposals reach past the video
            }
            if number + 1 < self.decoder.len() {
                before = logits(&place, 1e-5)?;
                let pooled = self.pool(&bounds.detach(), levels)?;
                x = (refinement.pool.forward(&pooled)? + &embeddings)?;
            }
            layers.push(Proposed { bounds, scores });
        }
        Ok(layers)
    }

    /// What every proposal covers on every level, cut into pieces: `[batch, proposals, levels × pieces × hidden]`.
    fn pool(&self, bounds: &Tensor, levels: &[Tensor]) -> Result<Tensor> {
        let boxes = bounds.to_vec3::<f32>()?;
        let (batch, count, pieces) = (boxes.len(), self.config.proposals, self.config.pieces);
        let pooled = |level: &Tensor| -> Result<Tensor> {
            let (_, clips, hidden) = level.dims3()?;
            let mut weights = vec![0f32; batch * count * pieces * clips];
            for (row, bounds) in boxes.iter().flatten().enumerate() {
                let rows = &mut weights[row * pieces * clips..(row + 1) * pieces * clips];
                piece_weights(bounds[0], bounds[1], clips, pieces, rows);
            }
            let weights = Tensor::from_vec(weights, (batch, count * pieces, clips), level.device())?;
            Ok(weights.times(level)?.reshape((batch, count, pieces * hidden))?)
        };
        Ok(Tensor::cat(&levels.iter().map(pooled).collect::<Result<Vec<_>>>()?, 2)?)
    }
}

/// `log(x / (1 - x))`, both kept above `eps`.
fn logits(x: &Tensor, eps: f64) -> Result<Tensor> {
    Ok((x.maximum(eps)?.log()? - x.affine(-1.0, 1.0)?.maximum(eps)?.log()?)?)
}

/// As [`logits`], of one value.
fn logit_of(x: f64, eps: f64) -> f32 {
    (x.max(eps).ln() - (1.0 - x).max(eps).ln()) as f32
}

/// How much of each of `clips` clips is in every piece of a span, by linear interpolation between the middles of clips at
/// evenly spread points (one-dimensional RoI-align). Points more than a clip outside count nothing.
fn piece_weights(start: f32, end: f32, clips: usize, pieces: usize, weights: &mut [f32]) {
    let (start, end) = (start * clips as f32 - 0.5, end * clips as f32 - 0.5);
    let piece = (end - start) / pieces as f32;
    let points = piece.ceil().clamp(0.0, 2.0 * clips as f32) as usize;
    for (number, row) in weights.chunks_mut(clips.max(1)).enumerate().take(pieces) {
        for point in 0..points {
            let place = start + (number as f32 + (point as f32 + 0.5) / points as f32) * piece;
            if !(-1.0..=clips as f32).contains(&place) {
                continue;
            }
            let place = place.clamp(0.0, (clips - 1) as f32);
            let low = place.floor();
            let share = place - low;
            row[low as usize] += (1.0 - share) / points as f32;
            if let Some(next) = row.get_mut(low as usize + 1) {
                *next += share / points as f32;
            }
        }
    }
}

/// Two linear layers.
#[derive(Debug)]
pub(super) struct Mlp {
    first: Linear,
    second: Linear,
}

impl Mlp {
    pub(super) fn new([inputs, hidden, outputs]: [usize; 3], vb: &VarBuilder) -> Result<Self> {
        let vb = vb.pp("layers");
        Ok(Self { first: linear(inputs, hidden, vb.pp(0))?, second: linear(hidden, outputs, vb.pp(1))? })
    }

    /// One that begins by moving nothing.
    pub(super) fn offset(hidden: usize, vb: &VarBuilder) -> Result<Self> {
        let last = vb.pp("layers.1");
        let weight = last.get_with_hints((2, hidden), "weight", Init::Const(0.0))?;
        let bias = last.get_with_hints(2, "bias", Init::Const(0.0))?;
        Ok(Self { first: linear(hidden, hidden, vb.pp("layers.0"))?, second: Linear::new(weight, Some(bias)) })
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.second.forward(&self.first.forward(x)?.relu()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_constant_are_that_constant_and_of_a_ramp_its_middles() {
        let mut weights = vec![0f32; 4 * 16];
        piece_weights(0.25, 0.75, 16, 4, &mut weights);
        for (number, row) in weights.chunks(16).enumerate() {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            // Clip k stands at k + 0.5, so the ramp k has the value place - 0.5 at a place counted in clips.
            let ramp: f32 = row.iter().enumerate().map(|(clip, weight)| clip as f32 * weight).sum();
            assert!((ramp - (4.0 + (number as f32 + 0.5) * 2.0 - 0.5)).abs() < 1e-5, "{ramp}");
        }
        let mut empty = vec![0f32; 4 * 16];
        piece_weights(0.5, 0.5, 16, 4, &mut empty);
        assert!(empty.iter().all(|weight| *weight == 0.0));
    }
}
