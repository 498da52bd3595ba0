//! MGPN: reads twice: video and query first meet as wholes, then phrases and boundaries gate every span before
//! neighbouring spans are compared.
//! Sun et al., "You Need to Read Again: Multi-granularity Perception Network for Moment Retrieval in Videos", SIGIR 2022.
//!
//! Follows the published code, its leaks included: the backward half of the word GRU begins in the padding
//! (`recurrence = "length-aware"` is our way out of that), softmax and maximum over words count padded words, and words
//! are normalised along the sentence rather than each by itself. Without the convolution that the code holds and never
//! uses.

mod blocks;
mod check;
mod config;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{l2_normalise, l2_normalise_along, sigmoid};
use cuemark_tensor::map::span_max;

use crate::layers::{ClipProjection, Conv1d, Linear, MomentMap, Recurrent, Steps, Ways, largest, linear, pointwise};
use crate::{
    Batch, Family, FullSize, Given, Grid, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision,
    Task,
};

use blocks::{Block, FeedForward, Plans, pooled};
pub use config::{MgpnConfig, Recurrence};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "mgpn",
    title: "MGPN",
    paper: "Sun et al., You Need to Read Again: Multi-granularity Perception Network for Moment Retrieval in Videos, \
            SIGIR 2022",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "a coarse pass over video and query, then phrases and boundaries gate every span",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "map = { pre_clips = 256, clips = 64, counts = [15, 8, 8] }\nposition_embedding = true\nnms = 0.52",
            visual: 500,
            words: 300,
            millions: Some(3.55),
        },
        FullSize {
            dataset: "activitynet-captions",
            settings: "map = { pre_clips = 256, clips = 64, counts = [15, 8, 8] }\nhidden = 512\n\
                       position_embedding = true\nnms = 0.52",
            visual: 500,
            words: 300,
            millions: Some(13.4),
        },
        FullSize {
            dataset: "charades-sta",
            settings: "map = { pre_clips = 256, clips = 64, counts = [15, 8, 8] }",
            visual: 1024,
            words: 300,
            millions: Some(3.67),
        },
        FullSize {
            dataset: "charades-sta",
            settings: "map = { pre_clips = 256, clips = 16, counts = [15] }",
            visual: 4096,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "tacos",
            settings: "map = { pre_clips = 256, clips = 128, counts = [15, 8, 8, 8] }\ngru_layers = 3\nnms = 0.4\n\
                       targets = { min_iou = 0.3, max_iou = 0.7 }",
            visual: 4096,
            words: 300,
            millions: Some(5.05),
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Mgpn::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<MgpnConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Mgpn {
    config: MgpnConfig,
    map: MomentMap,
    clips: ClipProjection,
    position: Option<Tensor>,
    clip_states: Recurrent,
    word_states: Recurrent,
    word_shares: Linear,
    clip_shares: Linear,
    phrases: [Conv1d; 3],
    phrases_to_text: Linear,
    feed_forward: FeedForward,
    text_to_gate: Linear,
    video_to_gate: Linear,
    join: Linear,
    blocks: Vec<Block>,
    score: Linear,
}

/// Everything on the way to the scores; maps have one row per valid cell.
struct Forward {
    clips: Tensor,
    words: Tensor,
    clips_fused: Tensor,
    words_fused: Tensor,
    clips_fine: Tensor,
    words_fine: Tensor,
    boundary: Tensor,
    content: Tensor,
    fused: Tensor,
    compared: Tensor,
    logits: Tensor,
}

impl Mgpn {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that do not fit each other.
    pub fn new(config: &MgpnConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let MgpnConfig { hidden, groups, gru_layers, .. } = *config;
        let clips = config.map.clips;
        let settings = |problem: String| Err(ModelError::Settings { model: CARD.name, problem });
        if hidden % 2 == 1 {
            return settings(format!("`hidden`: {hidden} is odd, and the GRUs have two halves"));
        }
        if groups == 0 || !hidden.is_multiple_of(groups) {
            return settings(format!("`groups`: {groups} do not divide `hidden` of {hidden}"));
        }
        let map = MomentMap::new(clips, &config.map.counts)?;
        let encoder = vb.pp("encoder_layer");
        let frames = encoder.pp("frame_encoder");
        let (coarse, fine) = (vb.pp("interactor_layer1"), vb.pp("finegrained_layer"));
        let (gates, relation) = (vb.pp("interactor_layer2"), vb.pp("relation_layer"));
        let position = || {
            let init = Init::Uniform { lo: 0.0, up: 1.0 };
            frames.get_with_hints((clips, hidden), "pos_embed.pos_embed.weight", init)
        };
        let gru =
            |inputs: usize, name: &str| Recurrent::gru(inputs, hidden / 2, gru_layers, Ways::Both, encoder.pp(name));
        let phrase = |words: usize, name: &str| {
            // Of two words these see the ones before and after, of three also the one in between.
            let steps = if words == 1 {
                Steps::default()
            } else {
                Steps { padding: words - 1, dilation: 2, ..Steps::default() }
            };
            Conv1d::new(hidden, hidden, words, steps, fine.pp("phrase_encode").pp(name))
        };
        let plans = Plans::new(&map, config.kernel)?;
        let block = |number: usize| {
            let inputs = if number < 2 { 2 * hidden } else { hidden };
            let outputs = if number == 0 && config.blocks > 1 { 2 * hidden } else { hidden };
            Block::new(inputs, outputs, groups, &plans, &relation.pp(format!("conv_block{}", number + 1)))
        };
        Ok(Self {
            clips: ClipProjection::new(given.visual, hidden, clips, frames.pp("vis_conv"))?,
            position: config.position_embedding.then(position).transpose()?,
            clip_states: gru(hidden, "vis_encoder")?,
            word_states: gru(given.words, "txt_encoder")?,
            word_shares: linear(hidden, 1, coarse.pp("txt_linear1"))?,
            clip_shares: pointwise(hidden, 1, 1, coarse.pp("vis_conv"))?,
            phrases: [phrase(1, "unigram_conv")?, phrase(2, "bigram_conv")?, phrase(3, "trigram_conv")?],
            phrases_to_text: linear(3 * hidden, hidden, fine.pp("txt_linear"))?,
            feed_forward: FeedForward::new(hidden, config.dropout, &fine)?,
            text_to_gate: linear(hidden, hidden, gates.pp("txt_linear_b1"))?,
            video_to_gate: linear(hidden, hidden, gates.pp("vis_linear_b2"))?,
            join: pointwise(4 * hidden, 2 * hidden, 2, relation.pp("conv_layer"))?,
            blocks: (0..config.blocks).map(block).collect::<Result<_>>()?,
            score: pointwise(hidden, 1, 2, vb.pp("pred_layer"))?,
            map,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, pre_clips, d_visual]`; words `[batch, words, d_word]`, mask `[batch, words]`
    /// - logits of the result `[batch, cells]`, one per valid cell
    fn forward(&self, visual: &Tensor, words: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Forward> {
        let mut clips = self.clips.forward(visual)?;
        if let Some(position) = &self.position {
            clips = pass.dropout(&clips.broadcast_add(position)?, self.config.dropout)?;
        }
        let clips = self.clip_states.forward(&clips)?;
        let words = match self.config.recurrence {
            Recurrence::Padding => self.word_states.forward(words)?,
            Recurrence::LengthAware => self.word_states.forward_packed(words, &lengths(mask)?)?,
        };
        let words = words.broadcast_mul(&mask.unsqueeze(2)?)?;

        let clips_fused = l2_normalise(&clips.broadcast_mul(&pooled(&words, &self.word_shares)?)?)?;
        // Along the words: what the published call does for its shape.
        let words_fused = l2_normalise_along(&words.broadcast_mul(&pooled(&clips, &self.clip_shares)?)?, 1)?;
        let (boundary, content) = (self.boundary(&clips_fused)?, span_max(&clips_fused, self.map.layout())?);

        let phrases = self.phrases.iter().map(|phrase| phrase.forward(&words_fused));
        let phrases = Tensor::cat(&phrases.collect::<candle_core::Result<Vec<_>>>()?, D::Minus1)?;
        let words_fine = self.phrases_to_text.forward(&phrases)?;
        let clips_fine = self.feed_forward.forward(&clips_fused, pass)?;

        let by_text = self.text_to_gate.forward(&largest(&words_fine, 1)?)?.unsqueeze(1)?;
        let by_video = self.video_to_gate.forward(&clips_fine.mean(1)?)?.unsqueeze(1)?;
        let gated = |by: &Tensor| -> Result<Tensor> { Ok((sigmoid(&boundary.broadcast_mul(by)?)? * &content)?) };
        let fused = Tensor::cat(&[gated(&by_text)?, gated(&by_video)?], D::Minus1)?;

        let joined = self.join.forward(&Tensor::cat(&[&fused, &boundary, &content], D::Minus1)?)?;
        let joined = (joined.relu()? + &fused)?;
        let compared = self.blocks.iter().try_fold(joined, |x, block| block.forward(&x, pass))?;
        let logits = self.score.forward(&compared)?.squeeze(D::Minus1)?;
        Ok(Forward {
            clips,
            words,
            clips_fused,
            words_fused,
            clips_fine,
            words_fine,
            boundary,
            content,
            fused,
            compared,
            logits,
        })
    }

    /// The mean of each span's first and last clip, `[batch, clips, hidden]` to `[batch, cells, hidden]`.
    fn boundary(&self, clips: &Tensor) -> Result<Tensor> {
        let cells = self.map.layout().cells();
        let at = |clip: fn(&(u32, u32)) -> u32| {
            let rows: Vec<u32> = cells.iter().map(clip).collect();
            clips.contiguous()?.index_select(&Tensor::new(rows, clips.device())?, 1)
        };
        Ok(((at(|cell| cell.0)? + at(|cell| cell.1)?)? * 0.5)?)
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        self.forward(&batch.videos.visual, &batch.queries.words, &batch.queries.mask, pass)
    }
}

/// Real words of each query, from their mask `[batch, words]`.
fn lengths(mask: &Tensor) -> Result<Vec<usize>> {
    Ok(mask.sum(1)?.to_vec1::<f32>()?.into_iter().map(|length| length as usize).collect())
}

impl Model for Mgpn {
    fn input(&self) -> Input {
        Input::pairs(self.config.map.pre_clips)
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let ious = self.map.ious(&batch.targets(CARD.name)?.spans, batch.videos.visual.device())?;
        Ok(self.config.targets.loss(&self.of_batch(batch, pass)?.logits, &ious)?.into())
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.map.rank(&sigmoid(&self.of_batch(batch, &Pass::answering())?.logits)?)?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }

    fn grid(&self) -> Option<Grid> {
        Some(Grid { clips: self.config.map.clips })
    }
}
