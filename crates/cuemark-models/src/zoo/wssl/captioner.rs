//! From a moment back to a sentence.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::functional::{log_softmax, sigmoid};
use cuemark_tensor::{Init, Pass};

use super::WsslConfig;
use super::localiser::LATEST;
use super::reader::{Clips, Reader, Sentences, look_up};
use crate::Result;
use crate::layers::{Linear, Recurrent, Running, Ways, linear};

/// Says what happens in a span.
#[derive(Debug)]
pub(super) struct Captioner {
    pub(super) video: Reader,
    pub(super) words: Tensor,
    speaker: Recurrent,
    out: Linear,
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) sharpness: f64,
    pub(super) dropout: f64,
}

/// How much each clip lies left of a span, in it and right of it, `[spans, clips, 1]`.
pub(super) struct SoftMasks {
    pub(super) left: Tensor,
    pub(super) inside: Tensor,
    pub(super) right: Tensor,
}

impl SoftMasks {
    /// `span [spans, 2]`: centre and width in **clips**; mask `[spans, clips]`, 1 where there is a clip.
    pub(super) fn new(span: &Tensor, mask: &Tensor, sharpness: f64) -> Result<Self> {
        let places = Tensor::arange(0f32, mask.dim(1)? as f32, span.device())?.unsqueeze(0)?;
        let (centre, half) = (span.narrow(1, 0, 1)?, (span.narrow(1, 1, 1)? / 2.0)?);
        let after = |edge: &Tensor| -> Result<Tensor> { Ok((places.broadcast_sub(edge)? * sharpness)?) };
        let (start, end) = (after(&(&centre - &half)?)?, after(&(&centre + &half)?)?);
        let masked = |x: Tensor| -> Result<Tensor> { Ok((x * mask)?.unsqueeze(2)?) };
        Ok(Self {
            inside: masked((sigmoid(&start)? - sigmoid(&end)?)?)?,
            left: masked(sigmoid(&start.neg()?)?)?,
            right: masked(sigmoid(&end)?)?,
        })
    }
}

impl Captioner {
    pub(super) fn new(config: &WsslConfig, visual: usize, vocabulary: usize, vb: &VarBuilder) -> Result<Self> {
        let WsslConfig { hidden, layers, captioner_words, .. } = *config;
        let decoder = vb.pp("decoder");
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        let inputs = captioner_words + 3 * hidden;
        Ok(Self {
            video: Reader::of_clips(config, visual, &vb.pp("video_encoder"))?,
            words: decoder.pp("embedding").get_with_hints((vocabulary, captioner_words), "weight", normal)?,
            speaker: Recurrent::gru(inputs, hidden, layers, Ways::Forward, decoder.pp("rnn_cell"))?,
            out: linear(hidden, vocabulary, decoder.pp("output_layer"))?,
            hidden,
            layers,
            sharpness: config.sharpness,
            dropout: config.dropout,
        })
    }

    /// Log probabilities of every next word given the real ones before it, `[sentences, tokens, vocabulary]`, zero at the start.
    ///
    /// # Shapes
    /// - span `[sentences, 2]`, centre and width as fractions of the real clips
    pub(super) fn say(&self, clips: Clips, sentences: &Sentences, span: &Tensor, pass: &Pass) -> Result<Tensor> {
        let read = self.video.read(clips.x, pass)?;
        let of_sentences = |x: &Tensor| x.contiguous()?.index_select(&sentences.video, 0);
        let (outputs, states, mask) =
            (of_sentences(&read.outputs)?, of_sentences(&read.states)?, of_sentences(clips.mask)?);
        let rows = mask.sum_keepdim(1)?;
        let masks = SoftMasks::new(&span.broadcast_mul(&rows)?, &mask, self.sharpness)?;
        let context = |mask: &Tensor| -> Result<Tensor> {
            Ok(outputs.broadcast_mul(mask)?.sum(1)?.broadcast_div(&(mask.sum(1)? + 1e-4)?)?)
        };
        let context = Tensor::cat(&[context(&masks.left)?, context(&masks.inside)?, context(&masks.right)?], 1)?;
        let start = self.states_at_end(&states, span, &rows)?;
        let (count, tokens) = sentences.ids.dims2()?;
        let before = look_up(&self.words, &sentences.ids.narrow(1, 0, tokens - 1)?.contiguous()?)?;
        let context = context.unsqueeze(1)?.broadcast_as((count, tokens - 1, 3 * self.hidden))?;
        let x = Tensor::cat(&[before, context.contiguous()?], 2)?;
        let running = Running { start: Some(&start), dropout: self.dropout, ..Running::default() };
        let spoken = self.speaker.every_layer(&x, running, pass)?.pop().unwrap_or(x);
        let log = log_softmax(&self.out.forward(&pass.dropout(&spoken, self.dropout)?)?, D::Minus1)?;
        Ok(log.pad_with_zeros(1, 1, 0)?)
    }

    /// The states of each layer at the clip where the span ends; which clip that is has no gradient.
    fn states_at_end(&self, states: &Tensor, span: &Tensor, rows: &Tensor) -> Result<Vec<Tensor>> {
        let steps = states.dim(1)?;
        let spans = span.detach().to_vec2::<f32>()?.into_iter().zip(rows.flatten_all()?.to_vec1::<f32>()?);
        let end = |(number, (span, rows)): (usize, (Vec<f32>, f32))| {
            let end = (span[0] + span[1] / 2.0).clamp(0.0, LATEST as f32);
            (number * steps) as u32 + (end * rows).floor() as u32
        };
        let at = Tensor::new(spans.enumerate().map(end).collect::<Vec<_>>(), states.device())?;
        let states = states.flatten_to(1)?.index_select(&at, 0)?;
        let layer = |number: usize| Ok(states.narrow(1, number * self.hidden, self.hidden)?.contiguous()?);
        (0..self.layers).map(layer).collect()
    }
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{DType, Device};

    use super::*;
    use crate::testing::gap;

    #[test]
    fn soft_masks_share_every_clip_out() {
        let mask = Tensor::ones((1, 10), DType::F32, &Device::Cpu).unwrap();
        let masks = SoftMasks::new(&Tensor::new(&[[4f32, 3.0]], &Device::Cpu).unwrap(), &mask, 0.1).unwrap();
        let sum = ((masks.left + masks.inside).unwrap() + masks.right).unwrap().squeeze(2).unwrap();
        assert!(gap(&sum, &mask) < 1e-6);
    }
}
