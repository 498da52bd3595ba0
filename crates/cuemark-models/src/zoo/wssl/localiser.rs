//! From a sentence to a moment.

use candle_core::Tensor;
use candle_nn::{Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_tensor::functional::{sigmoid, softmax};
use cuemark_tensor::{Init, Pass};

use super::WsslConfig;
use super::reader::{Clips, Reader, Sentences, attend, look_up};
use crate::layers::{BatchNorm, Linear, last_step, linear, linear_no_bias};
use crate::{Proposal, Result};

/// The latest end, so that it always lies within the last clip.
pub(super) const LATEST: f64 = 1.0 - 1e-4;

/// Centre and width of every anchor, as fractions.
pub(super) fn anchors() -> Vec<[f32; 2]> {
    let of_width = |width: f32, centres: &[f32]| centres.iter().map(|centre| [*centre, width]).collect::<Vec<_>>();
    let eighths: Vec<f32> = (0..8).map(|number| (2 * number + 1) as f32 / 16.0).collect();
    [
        of_width(0.5, &[0.25, 0.5, 0.75]),
        of_width(1.0 / 3.0, &[1.0 / 6.0, 0.5, 5.0 / 6.0]),
        of_width(0.125, &eighths),
        of_width(1.0, &[0.5]),
    ]
    .concat()
}

/// Finds the span of a sentence among anchors.
#[derive(Debug)]
pub(super) struct Localiser {
    pub(super) anchors: Vec<[f32; 2]>,
    reach: f64,
    pub(super) dropout: f64,
    pub(super) video: Reader,
    pub(super) words: Tensor,
    text: Reader,
    look_at_text: Linear,
    look_at_video: Linear,
    norms: [BatchNorm; 2],
    mix: Linear,
    combine: [(Linear, BatchNorm); 2],
    choose: Linear,
    pub(super) refine: Linear,
}

/// Logits `[sentences, anchors]` and how each anchor would be moved, `[sentences, anchors, 2]`, both at least 0.
pub(super) struct Localised {
    pub(super) logits: Tensor,
    pub(super) refine: Tensor,
}

impl Localiser {
    pub(super) fn new(
        config: &WsslConfig,
        anchors: Vec<[f32; 2]>,
        visual: usize,
        vocabulary: usize,
        vb: &VarBuilder,
    ) -> Result<Self> {
        let (hidden, states) = (config.hidden, config.hidden * config.layers);
        let mixer = vb.pp("feature_mixer");
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        let combine = |number: usize| -> Result<(Linear, BatchNorm)> {
            let vb = mixer.pp("combiner");
            let product = linear_no_bias(3 * hidden, 3 * hidden, vb.pp(number))?;
            Ok((product, BatchNorm::new(3 * hidden, vb.pp(number + 1))?))
        };
        Ok(Self {
            video: Reader::of_clips(config, visual, &vb.pp("video_encoder"))?,
            words: vb.pp("sent_embedding").get_with_hints((vocabulary, config.localiser_words), "weight", normal)?,
            text: Reader::of_words(config, config.localiser_words, &vb.pp("text_encoder"))?,
            look_at_text: linear_no_bias(hidden, states, mixer.pp("text_attention.linear"))?,
            look_at_video: linear_no_bias(hidden, states, mixer.pp("video_attention.linear"))?,
            norms: [
                BatchNorm::new(hidden, mixer.pp("text_batch_norm"))?,
                BatchNorm::new(hidden, mixer.pp("video_batch_norm"))?,
            ],
            mix: linear(2 * hidden, hidden, mixer.pp("fc"))?,
            combine: [combine(0)?, combine(4)?],
            choose: linear(3 * hidden, anchors.len(), vb.pp("predictor"))?,
            refine: linear(3 * hidden, 2 * anchors.len(), vb.pp("refiner"))?,
            anchors,
            reach: config.reach,
            dropout: config.dropout,
        })
    }

    pub(super) fn localise(&self, clips: Clips, sentences: &Sentences, pass: &Pass) -> Result<Localised> {
        let video = self.video.read(clips.x, pass)?;
        let text = self.text.read(&look_up(&self.words, &sentences.ids)?, pass)?;
        let of_sentences = |x: &Tensor| x.contiguous()?.index_select(&sentences.video, 0);
        let video_end = of_sentences(&last_step(&video.states, clips.lengths)?)?;
        let text_end = last_step(&text.states, &sentences.lengths)?;
        let (outputs, mask) = (of_sentences(&video.outputs)?, of_sentences(clips.mask)?);
        let text = attend(&self.look_at_text, &text.outputs, &video_end, &sentences.mask)?;
        let video = attend(&self.look_at_video, &outputs, &text_end, &mask)?;
        let (text, video) = (self.norms[0].forward(&text, pass)?, self.norms[1].forward(&video, pass)?);
        let mixed = self.mix.forward(&Tensor::cat(&[&text, &video], 1)?)?;
        let mut x = Tensor::cat(&[mixed, (&text * &video)?, (&text + &video)?], 1)?;
        for (number, (product, norm)) in self.combine.iter().enumerate() {
            x = norm.forward(&product.forward(&x)?, pass)?.relu()?;
            if number == 0 {
                x = pass.dropout(&x, self.dropout)?;
            }
        }
        let refine = (sigmoid(&self.refine.forward(&x)?)? * self.reach)?.reshape(((), self.anchors.len(), 2))?;
        Ok(Localised { logits: self.choose.forward(&x)?, refine })
    }
}

impl Localised {
    /// Centre and width of the best anchor of each sentence as it is moved, its centre shifted back by `shift`, `[sentences, 2]`.
    pub(super) fn moved(&self, localiser: &Localiser, shift: f64) -> Result<Tensor> {
        let best = self.logits.detach().argmax(1)?.to_vec1::<u32>()?;
        let rows = (0..best.len()).map(|row| (row * localiser.anchors.len()) as u32 + best[row]);
        let rows = Tensor::new(rows.collect::<Vec<_>>(), self.refine.device())?;
        let refined = self.refine.flatten_to(1)?.index_select(&rows, 0)?;
        let place = best.iter().flat_map(|best| {
            let [centre, width] = localiser.anchors[*best as usize];
            [centre - shift as f32, width]
        });
        Ok((refined + Tensor::from_vec(place.collect::<Vec<_>>(), (best.len(), 2), self.refine.device())?)?)
    }

    /// Every anchor as it is moved, best first.
    pub(super) fn rank(&self, localiser: &Localiser) -> Result<Vec<Vec<Proposal>>> {
        let logits = softmax(&self.logits, 1)?.to_vec2::<f32>()?.into_iter();
        let rank = |(scores, refined): (Vec<f32>, Vec<Vec<f32>>)| {
            let scored = scores.into_iter().zip(refined).zip(&localiser.anchors);
            let mut ranked: Vec<Proposal> = scored
                .filter_map(|((score, moved), anchor)| {
                    let [centre, width] = [moved[0] + anchor[0], moved[1] + anchor[1]].map(f64::from);
                    let centre = centre - localiser.reach / 2.0;
                    let start = (centre - width / 2.0).max(0.0);
                    Some(Proposal { span: NormSpan::new(start, (centre + width / 2.0).min(LATEST))?, score })
                })
                .collect();
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
            ranked
        };
        Ok(logits.zip(self.refine.to_vec3::<f32>()?).map(rank).collect())
    }
}
