//! MGPN: reads twice: video and query first meet as wholes, then phrases and boundaries gate every span before
//! neighbouring spans are compared.
//! Sun et al., "You Need to Read Again: Multi-granularity Perception Network for Moment Retrieval in Videos", SIGIR 2022.
//!
//! Follows the published code, its leaks included: the backward half of the word GRU begins in the padding
//! (`recurrence = "length-aware"` is our way out of that), softmax and maximum over words count padded words, and words
//! are normalised along the sentence rather than each by itself. Without the convolution that the code holds and never
//! uses.

use std::sync::Arc;

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{l2_normalise, l2_normalise_along, sigmoid, softmax};
use cuemark_tensor::map::{LayerPlan, StackPlan, Support, map_conv, span_max};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    BatchNorm, ClipProjection, ConstantRows, Conv1d, Linear, MapSize, MomentMap, Recurrent, Steps, Ways, largest,
    linear, pointwise, uniform,
};
use crate::losses::ScaledIou;
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "mgpn",
    title: "MGPN",
    paper: "Sun et al., You Need to Read Again: Multi-granularity Perception Network for Moment Retrieval in Videos, \
            SIGIR 2022",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
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
    build: |table, given, vb| Ok(Box::new(Mgpn::new(&read_settings("mgpn", table)?, given, vb)?)),
    settings: |table| fill_settings::<MgpnConfig>("mgpn", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MgpnConfig {
    /// Sizes of the map.
    pub map: MapSize,
    /// Width of everything; even. Default: 256
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Whether clips get a learnt vector for their place, followed by dropout. Default: false
    #[serde(default)]
    pub position_embedding: bool,
    /// Layers of the GRUs over clips and over words. Default: 2
    #[serde(default = "gru_layers")]
    pub gru_layers: usize,
    /// Where the backward half of the word GRU begins. Default: padding, as published
    #[serde(default)]
    pub recurrence: Recurrence,
    /// Dropout on placed clips and in the feed-forward layer. Default: 0.1
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Number of convolutions that compare spans. Default: 4
    #[serde(default = "blocks")]
    pub blocks: usize,
    /// Side of their kernel. Default: 7
    #[serde(default = "kernel")]
    pub kernel: usize,
    /// Groups of their channels; divides `hidden`. Default: 32
    #[serde(default = "groups")]
    pub groups: usize,
    /// How overlaps become targets. Default: 0 up to 0.5, 1 at 1.0
    #[serde(default)]
    pub targets: ScaledIou,
    /// Overlap above which the worse of two answers is dropped. Default: 0.44
    #[serde(default = "nms")]
    pub nms: f64,
}

/// Where the half of a recurrence that reads backwards begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recurrence {
    /// At the end of the padded batch, as published. Default.
    #[default]
    Padding,
    /// At each query's last word.
    LengthAware,
}

fn hidden() -> usize {
    256
}

fn gru_layers() -> usize {
    2
}

fn dropout() -> f64 {
    0.1
}

fn blocks() -> usize {
    4
}

fn kernel() -> usize {
    7
}

fn groups() -> usize {
    32
}

fn nms() -> f64 {
    0.44
}

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
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
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

/// The mean of the steps weighted by a softmax of their scores, `[batch, steps, width]` to `[batch, 1, width]`.
fn pooled(steps: &Tensor, score: &Linear) -> Result<Tensor> {
    let shares = softmax(&score.forward(steps)?, 1)?;
    Ok(steps.broadcast_mul(&shares)?.sum_keepdim(1)?)
}

/// `x + W2 relu(W1 norm(x))`, with a norm that divides by the unbiased deviation plus 1e-6.
#[derive(Debug)]
struct FeedForward {
    scale: Tensor,
    shift: Tensor,
    first: Linear,
    second: Linear,
    dropout: f64,
}

impl FeedForward {
    fn new(hidden: usize, dropout: f64, vb: &VarBuilder) -> Result<Self> {
        let norm = vb.pp("vis_sublayer.norm");
        Ok(Self {
            scale: norm.get_with_hints(hidden, "a_2", Init::Const(1.0))?,
            shift: norm.get_with_hints(hidden, "b_2", Init::Const(0.0))?,
            first: linear(hidden, hidden, vb.pp("feed_forward.w_1"))?,
            second: linear(hidden, hidden, vb.pp("feed_forward.w_2"))?,
            dropout,
        })
    }

    fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let others = (x.dim(D::Minus1)? as f64 - 1.0).max(1.0);
        let variance = (centred.sqr()?.sum_keepdim(D::Minus1)? / others)?;
        // The root's gradient is infinite at 0: equal channels keep a finite one.
        let deviation = (variance.maximum(1e-24)?.sqrt()? + 1e-6)?;
        let norm = centred.broadcast_div(&deviation)?.broadcast_mul(&self.scale)?.broadcast_add(&self.shift)?;
        let inner = pass.dropout(&self.first.forward(&norm)?.relu()?, self.dropout)?;
        Ok((x + pass.dropout(&self.second.forward(&inner)?, self.dropout)?)?)
    }
}

/// Which cells a block computes: while answering the valid ones; while training all that the kernel reaches, because the
/// published batch norm takes its statistics over the whole map.
#[derive(Debug, Clone)]
struct Plans {
    answering: Arc<LayerPlan>,
    training: Arc<LayerPlan>,
    /// For each valid cell its row among those of `training`.
    valid_rows: Vec<u32>,
    /// Cells of the whole map that no valid cell reaches: there the convolution gives its bias.
    unreached: usize,
}

impl Plans {
    fn new(map: &MomentMap, kernel: usize) -> candle_core::Result<Self> {
        let reached = StackPlan::new(map.layout(), kernel, 1, Support::Reached)?;
        let same = LayerPlan::same(map.layout(), kernel)?;
        let [training] = &reached.layers[..] else { candle_core::bail!("a plan of one layer has another number") };
        Ok(Self {
            answering: Arc::new(same),
            training: Arc::clone(training),
            valid_rows: reached.valid_rows().to_vec(),
            unreached: training.dense_cells() - training.output_count(),
        })
    }
}

/// Grouped convolution over neighbouring spans, batch norm, ReLU.
#[derive(Debug)]
struct Block {
    weight: Tensor,
    bias: Tensor,
    norm: BatchNorm,
    groups: usize,
    plans: Plans,
}

impl Block {
    fn new(inputs: usize, outputs: usize, groups: usize, plans: &Plans, vb: &VarBuilder) -> Result<Self> {
        let (kernel, conv) = (plans.answering.kernel(), vb.pp("conv"));
        let fan = uniform(inputs / groups * kernel * kernel);
        Ok(Self {
            weight: conv.get_with_hints((outputs, inputs / groups, kernel, kernel), "weight", fan)?,
            bias: conv.get_with_hints(outputs, "bias", fan)?,
            norm: BatchNorm::new(outputs, vb.pp("bn"))?,
            groups,
            plans: plans.clone(),
        })
    }

    /// `[batch, cells, inputs]` to `[batch, cells, outputs]`.
    fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let convolve = |plan| map_conv(x, &self.weight, Some(&self.bias), plan, self.groups);
        if !pass.is_training() {
            return Ok(self.norm.forward(&convolve(&self.plans.answering)?, pass)?.relu()?);
        }
        let constant = ConstantRows { rows: self.plans.unreached * x.dim(0)?, value: &self.bias };
        let y = self.norm.forward_among(&convolve(&self.plans.training)?, Some(constant), pass)?;
        let valid = Tensor::new(self.plans.valid_rows.as_slice(), x.device())?;
        Ok(y.index_select(&valid, 1)?.relu()?)
    }
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
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = MgpnConfig {
        map: MapSize::of_fixture(fixture, "pooling_counts")?,
        hidden: fixture.number("hidden")?,
        position_embedding: fixture.config("position_embedding")?.as_bool().unwrap_or(false),
        gru_layers: fixture.number("gru.layers")?,
        recurrence: Recurrence::Padding,
        dropout: 0.0,
        blocks: fixture.number("comparison.blocks")?,
        kernel: fixture.number("comparison.kernel")?,
        groups: fixture.number("comparison.groups")?,
        targets: ScaledIou::of_fixture(fixture)?,
        nms: fixture.real("nms_threshold")?,
    };
    let (visual, words) = (fixture.input("visual")?, fixture.input("text")?);
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let net = Mgpn::new(&config, &given, vb.clone())?;
    let forward = net.forward(&visual, &words, &fixture.input("text_mask")?.squeeze(2)?, &Pass::answering())?;
    let ious = net.map.from_square(&fixture.input("map_gt")?)?.squeeze(2)?;
    let probabilities = sigmoid(&forward.logits)?;

    let mut trace = Trace::new();
    let square = |x: &Tensor| net.map.to_square(x);
    trace.out("vis_encoded", &forward.clips.transpose(1, 2)?);
    trace.out("txt_encoded", &forward.words);
    trace.out("vis_fused", &forward.clips_fused.transpose(1, 2)?);
    trace.out("txt_fused", &forward.words_fused);
    trace.out("vis_fine", &forward.clips_fine.transpose(1, 2)?);
    trace.out("txt_fine", &forward.words_fine);
    trace.out("map_mask", &net.map.mask(visual.device())?);
    trace.out("boundary_map", &square(&forward.boundary)?);
    trace.out("content_map", &square(&forward.content)?);
    trace.out("fused", &square(&forward.fused)?);
    trace.out("relation", &square(&forward.compared)?);
    trace.out("score_logit", &square(&forward.logits.unsqueeze(2)?)?);
    trace.out("prob", &square(&probabilities.unsqueeze(2)?)?);
    trace.out(
        "segments_top5",
        &fixture.top_segments(&net.map.rank(&probabilities)?, &fixture.durations()?, config.nms)?,
    );
    trace.loss("bce", &config.targets.loss(&forward.logits, &ious)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, assert_learnt_by_heart, gap};

    fn config() -> MgpnConfig {
        MgpnConfig {
            map: MapSize { pre_clips: 8, clips: 8, counts: vec![3, 2] },
            hidden: 16,
            position_embedding: true,
            gru_layers: 1,
            recurrence: Recurrence::Padding,
            dropout: 0.1,
            blocks: 3,
            kernel: 3,
            groups: 4,
            targets: ScaledIou::default(),
            nms: 0.44,
        }
    }

    fn net(config: &MgpnConfig) -> Mgpn {
        Mgpn::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_valid_cell_is_proposed_once_with_a_probability() {
        let ranked = net(&config()).propose(&TOY.batch(1)).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 8 + 7 + 6 + 5 + 2 + 1);
            assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padded_words_leak_into_answers_as_published_but_not_into_length_aware_words() {
        let (short, long) = (TOY.batch(1), TOY.batch(1).with_longer_words(3));
        let leaks = |recurrence: Recurrence| {
            let net = net(&MgpnConfig { recurrence, ..config() });
            let of = |batch: &Batch| net.of_batch(batch, &Pass::answering()).unwrap();
            let (short, long) = (of(&short), of(&long));
            let words = gap(&short.words, &long.words.narrow(1, 0, TOY.words).unwrap());
            (
                words,
                gap(&short.words_fine, &long.words_fine.narrow(1, 0, TOY.words).unwrap()),
                gap(&short.clips_fused, &long.clips_fused),
            )
        };
        let (words, fine, clips) = leaks(Recurrence::Padding);
        assert!(words > 1e-5 && fine > 1e-6 && clips > 1e-7, "{words} {fine} {clips}");
        let (words, _, _) = leaks(Recurrence::LengthAware);
        assert!(words < 1e-6, "{words}");
    }

    /// A block on the whole map, with nothing of ours but the weights.
    fn dense(block: &Block, map: &MomentMap, x: &Tensor) -> Tensor {
        let padding = block.plans.answering.kernel() / 2;
        let y = map.to_square(x).unwrap().conv2d(&block.weight, padding, 1, 1, block.groups).unwrap();
        let y = y.broadcast_add(&block.bias.reshape((1, (), 1, 1)).unwrap()).unwrap();
        let channels = y.dim(1).unwrap();
        let rows = y.transpose(0, 1).unwrap().reshape((channels, ())).unwrap();
        let mean = rows.mean_keepdim(1).unwrap();
        let centred = rows.broadcast_sub(&mean).unwrap();
        let variance = centred.sqr().unwrap().mean_keepdim(1).unwrap();
        let shape = (1, channels, 1, 1);
        let y = y.broadcast_sub(&mean.reshape(shape).unwrap()).unwrap();
        let y = y.broadcast_div(&(variance + 1e-5).unwrap().sqrt().unwrap().reshape(shape).unwrap()).unwrap();
        map.from_square(&y.relu().unwrap()).unwrap()
    }

    #[test]
    fn batch_norm_takes_its_training_statistics_over_the_whole_map() {
        let net = net(&config());
        let x =
            Tensor::arange(0f32, 2.0 * 29.0 * 32.0, &Device::Cpu).unwrap().reshape((2, 29, 32)).unwrap().sin().unwrap();
        let block = &net.blocks[0];
        let pass = Pass::training(0, 1, Rng::new(1));
        assert!(gap(&block.forward(&x, &pass).unwrap(), &dense(block, &net.map, &x)) < 1e-4);
    }

    #[test]
    fn channels_that_groups_do_not_divide_are_refused() {
        let config = MgpnConfig { groups: 5, ..config() };
        let error = Mgpn::new(&config, &TOY.given(), Params::counted().builder()).unwrap_err();
        assert_eq!(error.to_string(), "`[model]` of `mgpn`: `groups`: 5 do not divide `hidden` of 16");
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let config = MgpnConfig {
            map: MapSize { pre_clips: 8, clips: 8, counts: vec![7] },
            position_embedding: false,
            dropout: 0.0,
            ..config()
        };
        let build = |vb: VarBuilder| Mgpn::new(&config, &TOY.given(), vb);
        assert_learnt_by_heart(build, &batch, 150, 1e-2, 0.3);
    }
}
