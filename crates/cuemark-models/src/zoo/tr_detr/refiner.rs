//! The refiner: every clip is joined with the words it is like and with the whole sentence.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::functional::{mask_out, softmax};
use cuemark_tensor::{MatrixProduct as _, Pass};

use crate::Result;
use crate::layers::detr::JointInputs;
use crate::layers::{Linear, pointwise, xavier};

/// What stands for a logit that must not be seen.
const UNSEEN: f64 = -1e30;

#[derive(Debug)]
pub(super) struct Refiner {
    of_clip: Tensor,
    of_word: Tensor,
    of_both: Tensor,
    join: Linear,
    pool: Tensor,
    out: Linear,
    dropout: f64,
}

impl Refiner {
    pub(super) fn new(width: usize, dropout: f64, vb: &VarBuilder) -> Result<Self> {
        let (attention, concat) = (vb.pp("cq_attention"), vb.pp("cq_concat"));
        let column = |vb: &VarBuilder, name: &str| vb.get_with_hints((width, 1), name, xavier(width, 1));
        Ok(Self {
            of_clip: column(&attention, "w4C")?,
            of_word: column(&attention, "w4Q")?,
            of_both: attention.get_with_hints((1, 1, width), "w4mlu", xavier(width, width))?,
            join: pointwise(4 * width, width, 1, attention.pp("cqa_linear.conv1d"))?,
            pool: column(&concat.pp("weighted_pool"), "weight")?,
            out: pointwise(2 * width, width, 1, concat.pp("conv1d.conv1d"))?,
            dropout,
        })
    }

    /// # Shapes
    /// - clips `[batch, clips, width]`, words `[batch, words, width]`; returns as clips
    pub(super) fn forward(&self, clips: &Tensor, words: &Tensor, inputs: &JointInputs, pass: &Pass) -> Result<Tensor> {
        let (v, t) = (pass.dropout(clips, self.dropout)?, pass.dropout(words, self.dropout)?);
        let alike = v.broadcast_mul(&self.of_both)?.times(&t.t()?.contiguous()?)?;
        let of_word = t.times(&self.of_word)?.t()?;
        let alike = alike.broadcast_add(&v.times(&self.of_clip)?)?.broadcast_add(&of_word)?;
        let (text_mask, video_mask) = (inputs.text_mask.unsqueeze(1)?, inputs.video_mask.unsqueeze(2)?);
        let over_words = softmax(&mask_out(&alike, &text_mask, UNSEEN)?, D::Minus1)?;
        let over_clips = softmax(&mask_out(&alike, &video_mask, UNSEEN)?.t()?.contiguous()?, D::Minus1)?;
        let to_words = over_words.times(words)?;
        let to_clips = over_words.times(&over_clips.times(clips)?)?;
        let joined = Tensor::cat(&[clips, &to_words, &(clips * &to_words)?, &(clips * &to_clips)?], 2)?;
        let joined = self.join.forward(&joined)?;
        let weights = mask_out(&words.times(&self.pool)?.squeeze(2)?, &inputs.text_mask, UNSEEN)?;
        let sentence = softmax(&weights, D::Minus1)?.unsqueeze(1)?.times(words)?;
        let sentence = sentence.broadcast_as(joined.shape())?.contiguous()?;
        Ok(self.out.forward(&Tensor::cat(&[&joined, &sentence], 2)?)?.relu()?)
    }
}
