//! IA-Net: rounds of attention between and within frames and words, each calibrated by a gate, then anchors at every frame.
//! Liu et al., "Progressively Guide to Attend: An Iterative Alignment Framework for Temporal Sentence Grounding", EMNLP 2021.
//!
//! Differs from the published code: padded words are masked in every round (`padded_words = "published"` lets them take
//! part, and change what valid frames see).

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    AnchorHead, AnchorSettings, Anchored, FrameEncoder, FrameRange, FrameSettings, FrameToWords, Linear, PaddedWords,
    Positives, Recurrent, Ways, linear, linear_no_bias, ranges_of_fixture,
};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
    fill_settings, read_settings,
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
    bi_encoder: false,
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
    build: |table, given, vb| Ok(Box::new(IaNet::new(&read_settings("ia-net", table)?, given, vb)?)),
    settings: |table| fill_settings::<IaNetConfig>("ia-net", table),
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
    video: FrameEncoder,
    words: Recurrent,
    rounds: Vec<(Step, Step)>,
    attention: FrameToWords,
    fuse: Recurrent,
    head: AnchorHead,
}

/// Attention of both kinds of nodes, and the calibration of each: frames first, words second.
#[derive(Debug)]
struct Step {
    project: [Linear; 2],
    gate: [Linear; 2],
    new: [Linear; 2],
    heads: usize,
}

/// Everything on the way to the anchors.
struct Forward {
    video: Tensor,
    words: Tensor,
    attended: Tensor,
    fused: Tensor,
    anchored: Anchored,
}

impl IaNet {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that cannot be.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &IaNetConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let (hidden, heads) = (config.hidden, config.video.heads);
        let step = |name: String| Step::new(hidden, heads, &vb.pp(name));
        let round = |number: usize| Ok((step(format!("co{number}"))?, step(format!("se{number}"))?));
        Ok(Self {
            video: FrameEncoder::new(&config.video, given.visual, hidden, config.dropout, vb.pp("video_encoder"))?,
            words: Recurrent::gru(given.words, hidden / 2, 1, Ways::Both, vb.pp("sentence_encoder.rnn.gru"))?,
            rounds: (1..=config.rounds).map(round).collect::<Result<_>>()?,
            attention: FrameToWords::new(hidden, vb.pp("v2s"))?,
            fuse: Recurrent::gru(2 * hidden, hidden / 2, 1, Ways::Both, vb.pp("rnn.gru"))?,
            head: AnchorHead::new(&config.anchors, config.video.frames, hidden, vb.clone())?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, frames, d_visual]`; words `[batch, words, d_word]`, mask `[batch, words]`
    /// - `[batch, frames, hidden]` on the way, one logit and two offsets per anchor in the end
    fn forward(
        &self,
        visual: &Tensor,
        words: &Tensor,
        lengths: &[usize],
        mask: &Tensor,
        pass: &Pass,
    ) -> Result<Forward> {
        let p = self.config.dropout;
        let video = self.video.forward(visual, pass)?;
        let words = self.words.forward_packed(&pass.dropout(words, p)?, lengths)?;
        let words = pass.dropout(&words, p)?;
        let seen = self.config.padded_words.seen(mask)?;
        let mut nodes = (video.clone(), words.clone());
        for (across, within) in &self.rounds {
            nodes = across.across(&nodes.0, &nodes.1, &seen)?;
            nodes = within.within(&nodes.0, &nodes.1, &seen)?;
        }
        let attended = self.attention.forward(&nodes.0, &nodes.1, mask)?;
        let fused = pass.dropout(&self.fuse.forward(&Tensor::cat(&[&nodes.0, &attended], 2)?)?, p)?;
        let anchored = self.head.forward(&fused)?;
        Ok(Forward { video, words, attended, fused, anchored })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Anchored> {
        let queries = &batch.queries;
        Ok(self.forward(&batch.videos.visual, &queries.words, &queries.lengths, &queries.mask, pass)?.anchored)
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

impl Model for IaNet {
    fn input(&self) -> Input {
        let frames = self.config.video.frames;
        Input { normalise: Normalise::None, resample: Resample::Linspace { rows: frames }, ..Input::pairs(frames) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let truth: Vec<FrameRange> =
            batch.targets(CARD.name)?.spans.iter().map(|span| self.head.range(*span)).collect();
        let ious: Vec<Vec<f32>> = truth.iter().map(|range| self.head.ious(*range)).collect();
        let anchored = self.of_batch(batch, pass)?;
        let targets = self.head.targets(&ious, 0.0, &anchored.logits)?;
        let chosen = self.config.positives.choose(&ious);
        Ok(self.head.losses(&anchored, &targets, &chosen, &truth, self.config.offset_weight)?.into())
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.head.rank(&self.of_batch(batch, &Pass::answering())?)?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let (visual, words) = (fixture.input("frames")?, fixture.input("words")?);
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
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let net = IaNet::new(&config, &given, vb.clone())?;
    let (mask, lengths) = (fixture.input("word_mask")?, fixture.lengths("word_mask")?);
    let forward = net.forward(&visual, &words, &lengths, &mask, &Pass::answering())?;
    let chosen = config.positives.choose(&fixture.input("positive_iou")?.to_vec2()?);
    let truth = ranges_of_fixture(fixture)?;
    let losses = net.head.losses(&forward.anchored, &fixture.input("label")?, &chosen, &truth, config.offset_weight)?;

    let mut trace = Trace::new();
    trace.out("video", &forward.video);
    trace.out("words", &forward.words);
    trace.out("attended", &forward.attended);
    trace.out("fused_rnn", &forward.fused);
    net.head.trace(&forward.anchored, &mut trace)?;
    losses.trace(&mut trace);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config(padded_words: PaddedWords) -> IaNetConfig {
        IaNetConfig {
            video: FrameSettings { frames: 8, width: Some(8), heads: 2, layers: 1, reach: 2 },
            anchors: AnchorSettings { widths: vec![2.0, 3.0, 4.0, 5.0], spread: 0.5 },
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
        let ranked = net(PaddedWords::Masked).propose(&TOY.batch(1)).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 7 + 6 + 5 + 4);
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padded_words_change_nothing_unless_the_published_attention_is_asked_for() {
        let batch = TOY.batch(1);
        let difference = |padded_words| {
            let net = net(padded_words);
            let logits = |batch: &Batch| net.of_batch(batch, &Pass::answering()).unwrap().logits;
            gap(&logits(&batch), &logits(&batch.with_longer_words(3)))
        };
        assert!(difference(PaddedWords::Masked) < 1e-6);
        assert!(difference(PaddedWords::Published) > 1e-6);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
            Ok(Box::new(IaNet::new(&config(PaddedWords::Masked), &TOY.given(), vb)?))
        };
        let (model, first, last) = overfit(build, &batch, 80, 1e-2);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.8 * first, "{first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    }
}
