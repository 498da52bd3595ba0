//! The optional loss that draws matched proposals and the words of their query together.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::l2_normalise;

use super::Alignment;
use crate::Result;
use crate::layers::{Linear, linear};
use crate::losses::Matching;

#[derive(Debug)]
pub(super) struct Aligner {
    settings: Alignment,
    proposals: Linear,
    words: Linear,
}

impl Aligner {
    pub(super) fn new(settings: Alignment, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        let part = |name: &str| linear(hidden, settings.width, vb.pp(format!("contrastive_align_projection_{name}")));
        part("vid")?; // in checkpoints, and never read
        Ok(Self { settings, proposals: part("query")?, words: part("txt")? })
    }

    /// Unit vectors of proposals.
    pub(super) fn proposals(&self, states: &Tensor) -> Result<Tensor> {
        Ok(l2_normalise(&self.proposals.forward(states)?)?)
    }

    /// Unit vectors of all word slots, padded ones included as published; the words stand after `clips` clips.
    pub(super) fn words(&self, memory: &Tensor, clips: usize) -> Result<Tensor> {
        let words = memory.narrow(1, clips, memory.dim(1)? - clips)?;
        Ok(l2_normalise(&self.words.forward(&words)?)?)
    }

    pub(super) fn loss(&self, proposals: &Tensor, words: &Tensor, matchings: &[Matching]) -> Result<Tensor> {
        let (batch, count, _) = proposals.dims3()?;
        let logits = (proposals.times(&words.t()?.contiguous()?)?.sum(2)? / self.settings.temperature)?;
        let mut weights = vec![0f32; batch * count];
        for (sample, matching) in matchings.iter().enumerate() {
            let share = 1.0 / matching.len().max(1) as f32;
            matching.iter().for_each(|(proposal, _)| weights[sample * count + proposal] = share);
        }
        let right = (&logits * Tensor::from_vec(weights, (batch, count), logits.device())?)?.sum(1)?;
        Ok((logits.log_sum_exp(D::Minus1)? - right)?.mean_all()?)
    }

    pub(super) fn weighted(&self, loss: &Tensor) -> Result<Tensor> {
        Ok((loss * self.settings.weight)?)
    }
}
