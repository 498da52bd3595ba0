//! IA-Net: rounds of attention between and within frames and words, each calibrated by a gate, then anchors at every frame.
//! Liu et al., "Progressively Guide to Attend: An Iterative Alignment Framework for Temporal Sentence Grounding", EMNLP 2021.
//!
//! Differs from the published code: padded words are masked in every round (`padded_words = "published"` lets them take
//! part, and change what valid frames see).

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    AnchorForward, AnchorInputs, AnchorLayers, AnchorQuery, AnchorRules, AnchorSettings, FrameSettings, Linear, Movers,
    PaddedWords, Positives, Recurrent, Ways, linear, linear_no_bias,
};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "ia-net",
    title: "IA-Net",
    paper: "Liu et al., Progressively Guide to Attend: An Iterative Alignment Framework for Temporal Sentence Grounding, \
            EMNLP 2021",
    family: Family::Anchor,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "rounds of attention between and within frames and words with gated calibration; anchors with offsets",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "video = { frames = 200 }\nanchors = { widths = [16, 32, 64, 96, 128, 160, 192] }",
            visual: 500,
            words: 300,
            millions: Some(22.3),
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
    build: |settings, given, vb| Ok(Box::new(IaNet::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<IaNetConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IaNetConfig {
    /// How frames are encoded; its heads are also those of the rounds.
    pub video: FrameSettings,
    /// Which anchors there are.
    pub anchors: AnchorSettings,
    /// Width of all states. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Rounds of attention, each with weights of its own. Default: 3
    #[serde(default = "rounds")]
    pub rounds: usize,
    /// Whether attention sees padded words. Default: masked
    #[serde(default)]
    pub padded_words: PaddedWords,
    /// Which anchors learn their offsets. Default: 0.8 times the largest overlap
    #[serde(default = "positives")]
    pub positives: Positives,
    /// Share of values dropped outside the rounds. Default: 0.2
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

fn rounds() -> usize {
    3
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
pub struct IaNet {
    config: IaNetConfig,
    layers: AnchorLayers,
    words: Recurrent,
    rounds: Vec<(Step, Step)>,
}

/// Attention of both kinds of nodes, and the calibration of each: frames first, words second.
#[derive(Debug)]
struct Step {
    project: [Linear; 2],
    gate: [Linear; 2],
    new: [Linear; 2],
    heads: usize,
}

impl IaNet {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that cannot be.
    pub fn new(config: &IaNetConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let (hidden, heads) = (config.hidden, config.video.heads);
        let step = |name: String| Step::new(hidden, heads, &vb.pp(name));
        let round = |number: usize| Ok((step(format!("co{number}"))?, step(format!("se{number}"))?));
        Ok(Self {
            layers: AnchorLayers::new(&config.video, &config.anchors, given.visual, hidden, config.dropout, &vb)?,
            words: Recurrent::gru(given.words, hidden / 2, 1, Ways::Both, vb.pp("sentence_encoder.rnn.gru"))?,
            rounds: (1..=config.rounds).map(round).collect::<Result<_>>()?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, frames, d_visual]`; words `[batch, words, d_word]`, mask `[batch, words]`
    /// - `[batch, frames, hidden]` on the way, one logit and two offsets per anchor in the end
    fn forward(&self, visual: &Tensor, query: &AnchorQuery, pass: &Pass) -> Result<AnchorForward> {
        let p = self.config.dropout;
        let video = self.layers.encode(visual, pass)?;
        let words = self.words.forward_packed(&pass.dropout(query.words, p)?, query.lengths)?;
        let words = pass.dropout(&words, p)?;
        let seen = self.config.padded_words.seen(query.mask)?;
        let mut nodes = (video.clone(), words.clone());
        for (across, within) in &self.rounds {
            nodes = across.across(&nodes.0, &nodes.1, &seen)?;
            nodes = within.within(&nodes.0, &nodes.1, &seen)?;
        }
        let attended = self.layers.attend(&nodes.0, &nodes.1, query)?;
        let (fused, anchored) = self.layers.score(&nodes.0, &attended, pass)?;
        Ok(AnchorForward { video, words, attended, fused, anchored })
    }
}

impl Step {
    fn new(hidden: usize, heads: usize, vb: &VarBuilder) -> Result<Self> {
        if heads == 0 || !hidden.is_multiple_of(heads) {
            let problem = format!("`video.heads` = {heads} does not divide `hidden` = {hidden}");
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let project = |number: usize| linear_no_bias(hidden, hidden, vb.pp("dense_coattn.linears").pp(number));
        let gate = |name: &str, number: usize| linear(2 * hidden, hidden, vb.pp(name).pp(number).pp(0));
        Ok(Self {
            project: [project(0)?, project(1)?],
            gate: [gate("linears_re", 0)?, gate("linears_re", 1)?],
            new: [gate("linears", 0)?, gate("linears", 1)?],
            heads,
        })
    }

    /// Frames attend to words and words to frames.
    fn across(&self, video: &Tensor, words: &Tensor, seen: &Tensor) -> Result<(Tensor, Tensor)> {
        let (from_video, from_words) = (self.heads(0, video)?, self.heads(1, words)?);
        let to_video = attend(&from_video, &from_words, words, Some(seen))?;
        let to_words = attend(&from_words, &from_video, video, None)?;
        Ok((self.calibrate(0, video, &to_video)?, self.calibrate(1, words, &to_words)?))
    }

    /// Frames attend to frames and words to words.
    fn within(&self, video: &Tensor, words: &Tensor, seen: &Tensor) -> Result<(Tensor, Tensor)> {
        let (from_video, from_words) = (self.heads(0, video)?, self.heads(1, words)?);
        let to_video = attend(&from_video, &from_video, video, None)?;
        let to_words = attend(&from_words, &from_words, words, Some(seen))?;
        Ok((self.calibrate(0, video, &to_video)?, self.calibrate(1, words, &to_words)?))
    }

    /// Projected nodes, `[batch, n, hidden]` to `[batch, heads, n, hidden / heads]`.
    fn heads(&self, kind: usize, nodes: &Tensor) -> Result<Tensor> {
        let (batch, n, hidden) = nodes.dims3()?;
        let projected = self.project[kind].forward(nodes)?.reshape((batch, n, self.heads, hidden / self.heads))?;
        Ok(projected.transpose(1, 2)?.contiguous()?)
    }

    /// `g x + (1 - g) n` with a gate and a candidate that read a node and what it attended to.
    fn calibrate(&self, kind: usize, nodes: &Tensor, attended: &Tensor) -> Result<Tensor> {
        let both = Tensor::cat(&[nodes, attended], 2)?;
        let gate = sigmoid(&self.gate[kind].forward(&both)?)?;
        let new = self.new[kind].forward(&both)?.tanh()?;
        Ok((&new + (gate * (nodes - &new)?)?)?)
    }
}

/// The mean over heads of what each attends to; values are not projected.
///
/// # Shapes
/// - q `[batch, heads, n, d]`, k `[batch, heads, m, d]`, values `[batch, m, hidden]`, seen `[batch, m]`
/// - returns `[batch, n, hidden]`
fn attend(q: &Tensor, k: &Tensor, values: &Tensor, seen: Option<&Tensor>) -> Result<Tensor> {
    let scale = (q.dim(D::Minus1)? as f64).sqrt().recip();
    let mut logits = (q.times(&k.t()?.contiguous()?)? * scale)?;
    if let Some(seen) = seen {
        logits = mask_out(&logits, &seen.unsqueeze(1)?.unsqueeze(1)?, -1e30)?;
    }
    // The heads share their values: averaging the weights first is the same and cheaper.
    Ok(softmax(&logits, D::Minus1)?.mean(1)?.times(values)?)
}

impl IaNet {
    fn rules(&self) -> AnchorRules {
        let IaNetConfig { positives, offset_weight, .. } = self.config;
        let movers = Movers::Positive(positives);
        AnchorRules { clear: 0.0, movers, offset_weight }
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<AnchorForward> {
        self.forward(&batch.videos.visual, &AnchorQuery::from(&batch.queries), pass)
    }
}

impl Model for IaNet {
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
    let config = IaNetConfig {
        video: FrameSettings::of_fixture(fixture)?,
        anchors: AnchorSettings::of_fixture(fixture)?,
        hidden: fixture.number("d_model")?,
        rounds: fixture.number("coattention_steps")?,
        padded_words: PaddedWords::Published,
        positives: Positives::AtLeast(0.0),
        dropout: 0.0,
        offset_weight: fixture.real("reg_weight")?,
        nms: nms(),
    };
    let net = IaNet::new(&config, &inputs.given()?, vb.clone())?;
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

    fn config(padded_words: PaddedWords) -> IaNetConfig {
        IaNetConfig {
            video: FrameSettings { frames: 8, width: Some(8), heads: 2, layers: 1, reach: 2 },
            anchors: anchors(),
            hidden: 16,
            rounds: 2,
            padded_words,
            positives: positives(),
            dropout: 0.0,
            offset_weight: 0.001,
            nms: 0.45,
        }
    }

    fn net(padded_words: PaddedWords) -> IaNet {
        IaNet::new(&config(padded_words), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
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
        let build = |vb: VarBuilder| IaNet::new(&config(PaddedWords::Masked), &TOY.given(), vb);
        assert_learnt_by_heart(build, &TOY.batch(1), 80, 1e-2, 0.8);
    }
}
