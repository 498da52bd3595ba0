//! CSMGAN: frames and words as nodes of a graph, one step of messages across and one within, then anchors at every frame.
//! Liu et al., "Jointly Cross- and Self-Modal Graph Attention Network for Query-Based Moment Localization", ACM MM 2020.
//!
//! Follows the published code where it and the paper differ: one joint layer, and attention normalised over the receiver.
//! Differs from it: padded words are masked everywhere (`padded_words = "published"` lets them take part), the position
//! code's dropout is off when answering, and gates start from PyTorch's defaults instead of orthogonal matrices.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    AnchorForward, AnchorInputs, AnchorLayers, AnchorQuery, AnchorRules, AnchorSettings, Conv1d, FrameSettings, Linear,
    Movers, PaddedWords, Positives, Recurrent, Running, Steps, Ways, linear, linear_no_bias,
};
use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "csmgan",
    title: "CSMGAN",
    paper: "Liu et al., Jointly Cross- and Self-Modal Graph Attention Network for Query-Based Moment Localization, \
            ACM MM 2020",
    family: Family::Anchor,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "messages between and within frames and words as graph nodes; anchors with offsets",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "video = { frames = 200 }\nanchors = { widths = [16, 32, 64, 96, 128, 160, 192] }",
            visual: 500,
            words: 300,
            millions: Some(15.6),
        },
        FullSize {
            dataset: "charades-sta",
            settings: "video = { frames = 64, width = 500 }\nanchors = { widths = [16, 24, 32, 40], spread = 0.125 }\n\
                       positives = { at-least = 0.45 }\noffset_weight = 0.005",
            visual: 1024,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "tacos",
            settings: "video = { frames = 200, width = 500 }\nanchors = { widths = [8, 16, 32, 64], spread = 0.125 }\n\
                       positives = { at-least = 0.45 }\noffset_weight = 0.005",
            visual: 4096,
            words: 300,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Csmgan::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<CsmganConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CsmganConfig {
    /// How frames are encoded.
    pub video: FrameSettings,
    /// Which anchors there are.
    pub anchors: AnchorSettings,
    /// Width of all states. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Joint layers, all with the same weights; the paper has 2, the published code 1. Default: 1
    #[serde(default = "joint_layers")]
    pub joint_layers: usize,
    /// Whether attention sees padded words. Default: masked
    #[serde(default)]
    pub padded_words: PaddedWords,
    /// Which anchors learn their offsets. Default: 0.8 times the largest overlap
    #[serde(default = "positives")]
    pub positives: Positives,
    /// Share of values dropped. Default: 0.2
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Weight of the offsets' loss. Default: 0.001
    #[serde(default = "offset_weight")]
    pub offset_weight: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.45
    #[serde(default = "nms")]
    pub nms: f64,
}

fn hidden() -> usize {
    512
}

fn joint_layers() -> usize {
    1
}

fn positives() -> Positives {
    Positives::TimesMax(0.8)
}

fn dropout() -> f64 {
    0.2
}

fn offset_weight() -> f64 {
    0.001
}

fn nms() -> f64 {
    0.45
}

/// The network.
#[derive(Debug)]
pub struct Csmgan {
    config: CsmganConfig,
    layers: AnchorLayers,
    sentence: SentenceEncoder,
    joint: Joint,
}

/// Words, phrases of up to three words, and the sentence, read together.
#[derive(Debug)]
struct SentenceEncoder {
    phrases: [Conv1d; 3],
    sentence: Recurrent,
    together: Recurrent,
    padded_words: PaddedWords,
    dropout: f64,
}

/// One step of messages between frames and words and one within each.
#[derive(Debug)]
struct Joint {
    query: Linear,
    across: [Update; 2],
    within: [Update; 2],
}

/// Gated update of a node by its message.
#[derive(Debug)]
struct Update {
    keep: Linear,
    reset: Linear,
    new: Linear,
}

impl Csmgan {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that cannot be.
    pub fn new(config: &CsmganConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        Ok(Self {
            layers: AnchorLayers::new(&config.video, &config.anchors, given.visual, hidden, config.dropout, &vb)?,
            sentence: SentenceEncoder::new(config, given.words, &vb.pp("sentence_encoder"))?,
            joint: Joint::new(hidden, &vb)?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, frames, d_visual]`; words `[batch, words, d_word]`, mask `[batch, words]`
    /// - `[batch, frames, hidden]` on the way, one logit and two offsets per anchor in the end
    fn forward(&self, visual: &Tensor, query: &AnchorQuery, pass: &Pass) -> Result<AnchorForward> {
        let p = self.config.dropout;
        let video = self.layers.encode(visual, pass)?;
        let words = self.sentence.forward(query.words, query.lengths, pass)?;
        let seen = self.config.padded_words.seen(query.mask)?;
        let mut nodes = (video.clone(), words.clone());
        for _ in 0..self.config.joint_layers {
            nodes = self.joint.forward(&nodes.0, &nodes.1, &seen, |x| Ok(pass.dropout(x, p)?))?;
        }
        let attended = self.layers.attend(&nodes.0, &nodes.1, query)?;
        let (fused, anchored) = self.layers.score(&nodes.0, &attended, pass)?;
        Ok(AnchorForward { video, words, attended, fused, anchored })
    }
}

impl SentenceEncoder {
    fn new(config: &CsmganConfig, words: usize, vb: &VarBuilder) -> Result<Self> {
        let conv = |kernel: usize, padding: usize, name: &str| -> Result<Conv1d> {
            let steps = Steps { padding, dilation: if kernel == 1 { 1 } else { 2 }, ..Steps::default() };
            Ok(Conv1d::new(words, words, kernel, steps, vb.pp(name))?)
        };
        let half = words / 2;
        Ok(Self {
            phrases: [conv(1, 0, "unigram_conv")?, conv(2, 1, "bigram_conv")?, conv(3, 2, "trigram_conv")?],
            sentence: Recurrent::lstm(words, half, 2, Ways::Both, vb.pp("bilstm"))?,
            together: Recurrent::gru(2 * words + 2 * half, config.hidden / 2, 1, Ways::Both, vb.pp("concat.gru"))?,
            padded_words: config.padded_words,
            dropout: config.dropout,
        })
    }

    /// # Shapes
    /// - words `[batch, words, d_word]`; returns `[batch, words, hidden]`, zero at padding
    fn forward(&self, words: &Tensor, lengths: &[usize], pass: &Pass) -> Result<Tensor> {
        let words = pass.dropout(words, self.dropout)?;
        let [one, two, three] = &self.phrases;
        let phrases = one.forward(&words)?.maximum(&two.forward(&words)?)?.maximum(&three.forward(&words)?)?;
        let lengths_seen = match self.padded_words {
            PaddedWords::Masked => Some(lengths),
            PaddedWords::Published => None,
        };
        let running = Running { lengths: lengths_seen, dropout: self.dropout, ..Running::default() };
        let sentence = self.sentence.every_layer(&phrases, running, pass)?.pop().unwrap_or_else(|| phrases.clone());
        let all = Tensor::cat(&[words, phrases, sentence], 2)?;
        Ok(pass.dropout(&self.together.forward_packed(&all, lengths)?, self.dropout)?)
    }
}

impl Joint {
    fn new(hidden: usize, vb: &VarBuilder) -> Result<Self> {
        let update = |name: &str| Update::new(hidden, &vb.pp(name));
        Ok(Self {
            query: linear_no_bias(hidden, hidden, vb.pp("atten.q_proj"))?,
            across: [update("update_v")?, update("update_s")?],
            within: [update("update_v_intra")?, update("update_s_intra")?],
        })
    }

    /// # Shapes
    /// - video `[batch, frames, hidden]`, words `[batch, words, hidden]`, seen `[batch, words]`; returns both, updated
    fn forward(
        &self,
        video: &Tensor,
        words: &Tensor,
        seen: &Tensor,
        drop: impl Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<(Tensor, Tensor)> {
        let query = self.query.forward(video)?;
        let logits = query.times(&words.t()?)?;
        // Each weight is normalised over those who receive, not over those who send.
        let to_words = softmax(&mask_out(&logits, &seen.unsqueeze(1)?, -1e30)?, D::Minus1)?;
        let to_video = softmax(&logits, 1)?.broadcast_mul(&seen.unsqueeze(1)?)?;
        let heard_by_words = to_words.t()?.contiguous()?.times(&query)?;
        let heard_by_video = to_video.times(words)?;
        let video = self.across[0].forward(video, &heard_by_video)?;
        let words = self.across[1].forward(words, &heard_by_words)?;
        let every_frame = Tensor::ones((video.dim(0)?, video.dim(1)?), video.dtype(), video.device())?;
        Ok((
            self.within[0].forward(&video, &heard_within(&video, &every_frame, &drop)?)?,
            self.within[1].forward(&words, &heard_within(&words, seen, &drop)?)?,
        ))
    }
}

/// What each node hears from nodes of its own kind, by how alike they are where they stand.
///
/// # Shapes
/// - nodes `[batch, n, hidden]`, seen `[batch, n]`; returns `[batch, n, hidden]`
fn heard_within(nodes: &Tensor, seen: &Tensor, drop: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let placed = drop(&nodes.broadcast_add(&places(nodes)?)?)?;
    let logits = placed.times(&placed.t()?.contiguous()?)?;
    let weights = softmax(&mask_out(&logits, &seen.unsqueeze(2)?, -1e30)?, 1)?;
    Ok(weights.broadcast_mul(&seen.unsqueeze(1)?)?.times(nodes)?)
}

/// Sine and cosine of every position at falling rates, `[n, hidden]`.
fn places(nodes: &Tensor) -> Result<Tensor> {
    let (_, n, hidden) = nodes.dims3()?;
    let value = |place: usize, channel: usize| {
        let rate = 10_000f64.powf(-((channel / 2 * 2) as f64) / hidden as f64);
        let angle = place as f64 * rate;
        (if channel.is_multiple_of(2) { angle.sin() } else { angle.cos() }) as f32
    };
    let values = (0..n).flat_map(|place| (0..hidden).map(move |channel| value(place, channel)));
    Ok(Tensor::from_vec(values.collect(), (n, hidden), nodes.device())?)
}

impl Update {
    fn new(hidden: usize, vb: &VarBuilder) -> Result<Self> {
        let gate = |name: &str| linear(2 * hidden, hidden, vb.pp(name));
        Ok(Self { keep: gate("update_gate")?, reset: gate("reset_gate")?, new: gate("out_gate")? })
    }

    fn forward(&self, node: &Tensor, message: &Tensor) -> Result<Tensor> {
        let both = Tensor::cat(&[message, node], 2)?;
        let keep = sigmoid(&self.keep.forward(&both)?)?;
        let reset = sigmoid(&self.reset.forward(&both)?)?;
        let new = self.new.forward(&Tensor::cat(&[message, &(reset * node)?], 2)?)?.tanh()?;
        Ok((node + (keep * (new - node)?)?)?)
    }
}

impl Csmgan {
    fn rules(&self) -> AnchorRules {
        let CsmganConfig { positives, offset_weight, .. } = self.config;
        let movers = Movers::Positive(positives);
        AnchorRules { clear: 0.0, movers, offset_weight }
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<AnchorForward> {
        self.forward(&batch.videos.visual, &AnchorQuery::from(&batch.queries), pass)
    }
}

impl Model for Csmgan {
    fn input(&self) -> Input {
        self.layers.input()
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let spans = &batch.targets(CARD.name)?.spans;
        self.layers.loss(&self.of_batch(batch, pass)?, spans, &self.rules())
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        self.layers.rank(&self.of_batch(batch, &Pass::answering())?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let inputs = AnchorInputs::of_fixture(fixture)?;
    let config = CsmganConfig {
        video: FrameSettings::of_fixture(fixture)?,
        anchors: AnchorSettings::of_fixture(fixture)?,
        hidden: fixture.number("d_model")?,
        joint_layers: fixture.number("joint_graph_layers")?,
        padded_words: PaddedWords::Published,
        positives: Positives::AtLeast(0.0),
        dropout: 0.0,
        offset_weight: fixture.real("reg_weight")?,
        nms: nms(),
    };
    let net = Csmgan::new(&config, &inputs.given()?, vb.clone())?;
    let forward = net.forward(&inputs.visual, &inputs.query(), &Pass::answering())?;
    net.layers.trace(&forward, &net.rules(), fixture)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::layers::anchor_trial::{
        anchors, assert_every_anchor_inside_the_video_is_proposed, difference_of_padded_words,
    };
    use crate::testing::{TOY, assert_learnt_by_heart};

    fn config(padded_words: PaddedWords) -> CsmganConfig {
        CsmganConfig {
            video: FrameSettings { frames: 8, width: Some(8), heads: 2, layers: 1, reach: 2 },
            anchors: anchors(),
            hidden: 16,
            joint_layers: 1,
            padded_words,
            positives: positives(),
            dropout: 0.0,
            offset_weight: 0.001,
            nms: 0.45,
        }
    }

    fn net(padded_words: PaddedWords) -> Csmgan {
        Csmgan::new(&config(padded_words), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_anchor_inside_the_video_is_proposed() {
        assert_every_anchor_inside_the_video_is_proposed(&net(PaddedWords::Masked), &TOY.batch(1));
    }

    #[test]
    fn padded_words_change_nothing_unless_the_published_attention_is_asked_for() {
        let difference = |padded_words| {
            difference_of_padded_words(|batch, pass| net(padded_words).of_batch(batch, pass), &TOY.batch(1))
        };
        assert!(difference(PaddedWords::Masked) < 1e-6);
        assert!(difference(PaddedWords::Published) > 1e-6);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let build = |vb: VarBuilder| Csmgan::new(&config(PaddedWords::Masked), &TOY.given(), vb);
        assert_learnt_by_heart(build, &TOY.batch(1), 80, 1e-2, 0.8);
    }
}
