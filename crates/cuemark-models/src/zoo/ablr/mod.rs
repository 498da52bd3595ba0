//! ABLR: video and query attend to each other in turn; start and end are regressed from the attention weights.
//! Yuan et al., "To Find Where You Talk: Temporal Sentence Localization in Video with Attention Based Location Regression",
//! AAAI 2019.
//!
//! Re-derived from the published TensorFlow graph. Differs from it: every video is averaged to exactly `clips` rows, so that
//! an attention weight stands for the same fraction of every video; the last bias begins at 0.5, because a ReLU that begins
//! at 0 may never wake; answers are clamped and put in order, and moved to the grid of clips only when asked
//! (`answers = "grid"`); published word vectors are not trained further.

mod blocks;
mod check;
mod config;
#[cfg(test)]
mod tests;

use candle_core::{DType, Tensor};
use candle_nn::{Init, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::masked_mean;

use crate::layers::{Pair, QueryWords};
use crate::losses::smooth_l1;
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
};

use blocks::{Attention, BothWays, Dense};
pub use config::{AblrConfig, Answers, Regression};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "ablr",
    title: "ABLR",
    paper: "Yuan et al., To Find Where You Talk: Temporal Sentence Localization in Video with Attention Based Location \
            Regression, AAAI 2019",
    family: Family::Regression,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "co-attention of video and query; one span regressed from the attention weights",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "clips = 128",
            visual: 500,
            words: 300,
            millions: Some(3.2),
        },
        FullSize {
            dataset: "tacos",
            settings: "clips = 256\nproject = 500",
            visual: 4096,
            words: 300,
            millions: Some(5.3),
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Ablr::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<AblrConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Ablr {
    config: AblrConfig,
    words: QueryWords,
    project: Option<Dense>,
    video: BothWays,
    sentence: BothWays,
    video_attention: Attention,
    word_attention: Attention,
    regression: Vec<Dense>,
}

/// Everything on the way to start and end.
struct Forward {
    video: Tensor,
    words: Tensor,
    sentence: Tensor,
    first: Tensor,
    of_words: Tensor,
    last: Tensor,
    ends: Tensor,
}

impl Ablr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &AblrConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        if config.clips == 0 {
            return Err(ModelError::Settings { model: CARD.name, problem: "`clips` = 0".to_owned() });
        }
        let hidden = config.hidden;
        let project = match config.project {
            Some(width) => Some(Dense::new(given.visual, width, "w_project", "b_project", &vb)?),
            None => None,
        };
        let small = config.regression_hidden;
        let mut regression = match config.regression {
            Regression::Weights => vec![Dense::new(config.clips, small, "regress_w", "regress_b", &vb)?],
            Regression::Features => vec![
                Dense::new(2 * hidden, hidden, "regress_w_0", "regress_b_0", &vb)?,
                Dense::new(hidden, small, "regress_w", "regress_b", &vb)?,
            ],
        };
        // Asked for first: the layer would let it begin at 0.
        vb.get_with_hints(2, "regress_b_2", Init::Const(0.5))?;
        regression.push(Dense::new(small, 2, "regress_w_2", "regress_b_2", &vb)?);
        Ok(Self {
            words: QueryWords::new(config.word_vectors, given, "Wemb", &vb)?,
            project,
            video: BothWays::new(config.project.unwrap_or(given.visual), config, "video", &vb)?,
            sentence: BothWays::new(given.words, config, "sentence", &vb)?,
            video_attention: Attention::new(
                hidden,
                ["embed_att_Wa", "embed_att_Ua", "embed_att_ba", "embed_att_w"],
                &vb,
            )?,
            word_attention: Attention::new(
                hidden,
                ["embed_att_W_qa", "embed_att_U_qa", "embed_att_b_qa", "embed_att_w_q"],
                &vb,
            )?,
            regression,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - see [`Pair`]; ends of the result `[batch, 2]`, as fractions, not below 0
    fn forward(&self, pair: &Pair, pass: &Pass) -> Result<Forward> {
        let visual = match &self.project {
            Some(project) => project.forward(pair.visual)?,
            None => pair.visual.clone(),
        };
        let (batch, clips, _) = visual.dims3()?;
        // The video is read from its very end, padding included; a query from its last word.
        let video = self.video.forward(&visual, &vec![clips; batch], pass)?;
        let words = self.sentence.forward(pair.words, pair.lengths, pass)?;
        let sentence = masked_mean(&words, &pair.word_mask.unsqueeze(2)?, 1)?;
        let (first, seen) = self.video_attention.forward(&sentence, &video, pair.clip_mask)?;
        let (of_words, said) = self.word_attention.forward(&seen, &words, pair.word_mask)?;
        let (last, seen) = self.video_attention.forward(&said, &video, pair.clip_mask)?;
        let mut ends = match self.config.regression {
            Regression::Weights => last.clone(),
            Regression::Features => Tensor::cat(&[&seen, &said], 1)?,
        };
        for (number, layer) in self.regression.iter().enumerate() {
            ends = layer.forward(&ends)?;
            // The layers are linear but for the first of three and the output.
            if number + 1 == self.regression.len() || (number == 0 && self.config.regression == Regression::Features) {
                ends = ends.relu()?;
            }
        }
        Ok(Forward { video, words, sentence, first, of_words, last, ends })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let clips = batch.videos.visual.dim(1)?;
        if clips != self.config.clips {
            let problem = format!("`clips` = {}, and a video has {clips}", self.config.clips);
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let words = self.words.forward(&batch.queries)?;
        self.forward(&Pair::of(batch, &words), pass)
    }

    /// Regression and attention, both weighted, then the total.
    ///
    /// # Shapes
    /// - truth `[batch, 2]`, share `[batch, clips]`: how much attention each clip should get
    fn losses(&self, forward: &Forward, truth: &Tensor, share: &Tensor) -> Result<[Tensor; 3]> {
        let regression = (smooth_l1(&(&forward.ends - truth)?)?.sum_all()? * self.config.regression_weight)?;
        let attention = (forward.last.clone() + 1e-12)?.log()?.mul(share)?.sum(1)?.mean_all()?;
        let attention = (attention * -self.config.attention_weight)?;
        let total = (&regression + &attention)?;
        Ok([regression, attention, total])
    }

    /// Even shares of the clips that a span touches.
    fn shares(&self, span: NormSpan) -> Vec<f32> {
        let clips = self.config.clips;
        let at = |fraction: f64| ((fraction * clips as f64).max(0.0) as usize).min(clips - 1);
        let (first, last) = (at(span.start()), at(span.end()));
        let share = 1.0 / (last - first + 1) as f32;
        (0..clips).map(|clip| if (first..=last).contains(&clip) { share } else { 0.0 }).collect()
    }

    fn answer(&self, row: &[f32]) -> Option<Proposal> {
        let clips = self.config.clips as f64;
        let end = |value: f32| match self.config.answers {
            Answers::Exact => f64::from(value),
            Answers::Grid => (f64::from(value) * clips).floor() / clips,
        };
        let span = NormSpan::new(end(*row.first()?), end(*row.get(1)?))?.clipped();
        Some(Proposal { span, score: 1.0 })
    }
}

impl Model for Ablr {
    fn input(&self) -> Input {
        Input { normalise: Normalise::None, ..Input::pairs(self.config.clips) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let (spans, device) = (&batch.targets(CARD.name)?.spans, batch.videos.visual.device());
        let ends: Vec<f32> = spans.iter().flat_map(|span| [span.start() as f32, span.end() as f32]).collect();
        let ends = Tensor::from_vec(ends, (spans.len(), 2), device)?;
        let shares: Vec<f32> = spans.iter().flat_map(|span| self.shares(*span)).collect();
        let shares = Tensor::from_vec(shares, (spans.len(), self.config.clips), device)?;
        let [regression, attention, total] = self.losses(&self.of_batch(batch, pass)?, &ends, &shares)?;
        Ok(Loss { total, parts: vec![("regression", regression), ("attention", attention)] })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let ends = self.of_batch(batch, &Pass::answering())?.ends.to_dtype(DType::F32)?.to_vec2::<f32>()?;
        Ok(ends.iter().map(|row| self.answer(row).into_iter().collect()).collect())
    }
}
