//! TGN: reads the video once with recurrent cells, re-reads the query at every clip, and scores spans that end there.
//! Chen et al., "Temporally Grounding Natural Sentence in Video", EMNLP 2018.
//!
//! The paper has no official code; this follows the public re-implementation. Differs from it: weights start from
//! PyTorch's defaults; padded words are masked in the attention (`padded_words = "published"` lets them take part); the
//! weight of a positive is counted in each batch unless `positive_weights` states it.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax, softplus};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{Linear, PaddedWords, Recurrent, Ways, linear, real_steps, uniform};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "tgn",
    title: "TGN",
    paper: "Chen et al., Temporally Grounding Natural Sentence in Video, EMNLP 2018",
    family: Family::Anchor,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "one recurrent pass that scores, at every clip, the spans that end there",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "anchors = { first = 1, last = 100 }\nwindow = 128",
            visual: 4096,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "charades-sta",
            settings: "anchors = { first = 3, last = 22 }\nwindow = 50\nsentence = \"both\"\npositive_iou = 0.85\n\
                       negative_iou = 0.15",
            visual: 4096,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "tacos",
            settings: "anchors = { first = 1, last = 32 }\nwindow = 60\npositive_iou = 0.5\nnegative_iou = 0.5\nnms = 0.3\n\
                       between = \"negative\"\ndropout = 0.3",
            visual: 4096,
            words: 300,
            millions: None,
        },
    ],
    build: |table, given, vb| Ok(Box::new(Tgn::new(&read_settings("tgn", table)?, given, vb)?)),
    settings: |table| fill_settings::<TgnConfig>("tgn", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TgnConfig {
    /// Lengths of the candidate spans, in clips.
    pub anchors: Lengths,
    /// The most clips that are read of a video; what lies after them is out of reach. Default: 1024
    #[serde(default = "clips")]
    pub clips: usize,
    /// Clips of the random stretch that is read of a longer video while training.
    pub window: usize,
    /// Width of all states. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Width of the attention. Default: 512
    #[serde(default = "hidden")]
    pub attention: usize,
    /// Which ways the query is read. Default: forward
    #[serde(default)]
    pub sentence: SentenceWays,
    /// Whether attention sees padded words. Default: masked
    #[serde(default)]
    pub padded_words: PaddedWords,
    /// A candidate with more overlap is a positive. Default: 0.7
    #[serde(default = "positive_iou")]
    pub positive_iou: f64,
    /// A candidate with less overlap is a negative. Default: 0.3
    #[serde(default = "negative_iou")]
    pub negative_iou: f64,
    /// What the candidates between the two are. Default: ignored
    #[serde(default)]
    pub between: Between,
    /// Weight of a positive, one per anchor. Default: negatives over positives of the batch, at most 100
    #[serde(default)]
    pub positive_weights: Vec<f64>,
    /// Share of values dropped from the inputs of every cell and from the query's states. Default: 0.5
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.55
    #[serde(default = "nms")]
    pub nms: f64,
}

/// Lengths of anchors in clips, as run files state them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Lengths {
    /// These.
    List(Vec<usize>),
    /// Every length from `first` to `last`.
    Range {
        /// The shortest.
        first: usize,
        /// The longest.
        last: usize,
    },
}

/// Which ways the query is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SentenceWays {
    /// Left to right. Default.
    #[default]
    Forward,
    /// Both ways, the states side by side: twice as wide.
    Both,
}

/// What candidates are whose overlap is neither high nor low.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Left out of the loss. Default.
    #[default]
    Ignored,
    /// Negatives.
    Negative,
}

impl Lengths {
    fn list(&self) -> Result<Vec<usize>> {
        let lengths: Vec<usize> = match self {
            Self::List(lengths) => lengths.clone(),
            Self::Range { first, last } => (*first..=*last).take(MAX_ANCHORS + 1).collect(),
        };
        if lengths.is_empty() || lengths.len() > MAX_ANCHORS || lengths.contains(&0) {
            let problem = format!("`anchors` must be 1 to {MAX_ANCHORS} lengths of at least one clip");
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        Ok(lengths)
    }
}

fn clips() -> usize {
    1024
}

fn hidden() -> usize {
    512
}

fn positive_iou() -> f64 {
    0.7
}

fn negative_iou() -> f64 {
    0.3
}

fn dropout() -> f64 {
    0.5
}

fn nms() -> f64 {
    0.55
}

/// More lengths than any video has clips.
const MAX_ANCHORS: usize = 4096;

/// The largest weight of a positive that a batch can ask for.
const MAX_WEIGHT: f32 = 100.0;

/// The network.
#[derive(Debug)]
pub struct Tgn {
    config: TgnConfig,
    anchors: Vec<usize>,
    sentence: Recurrent,
    video: Recurrent,
    attention: WordAttention,
    interaction: Cell,
    score: Linear,
}

/// Additive attention over words, its first layer split by what it reads: only the state's part waits for the step before.
#[derive(Debug)]
struct WordAttention {
    from_state: Linear,
    from_clip: Linear,
    from_word: Linear,
    score: Linear,
}

/// One LSTM step; gates input, forget, cell, output.
#[derive(Debug)]
struct Cell {
    from_input: Linear,
    from_state: Linear,
}

/// States of the query, attention over words at every clip, and one logit per clip and anchor.
struct Forward {
    words: Tensor,
    attention: Tensor,
    logits: Tensor,
}

/// The clips of a batch that are read in one pass: all of them, or a stretch of each.
struct Stretch {
    visual: Tensor,
    /// Real clips of each.
    lengths: Vec<usize>,
    /// The true spans in clips of the stretch.
    spans: Vec<(f64, f64)>,
}

/// What every candidate should score: `[batch, clips, anchors]` each, 0 or 1.
struct Labels {
    positive: Tensor,
    counted: Tensor,
}

impl Tgn {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &TgnConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        let (ways, sentence) = match config.sentence {
            SentenceWays::Forward => (Ways::Forward, hidden),
            SentenceWays::Both => (Ways::Both, 2 * hidden),
        };
        let anchors = config.anchors.list()?;
        // The reference's cells have one layer and no number.
        let cells = vb.clone().rename_f(|name| name.replace("_l0", ""));
        Ok(Self {
            sentence: Recurrent::lstm(given.words, hidden, 1, ways, cells.pp("sentence"))?,
            video: Recurrent::lstm(given.visual, hidden, 1, Ways::Forward, cells.pp("video"))?,
            attention: WordAttention::new(hidden, sentence, config.attention, &vb)?,
            interaction: Cell::new(hidden + sentence, hidden, &vb.pp("interactor"))?,
            score: linear(hidden, anchors.len(), vb.pp("pred"))?,
            anchors,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, clips, d_visual]`; words `[batch, words, d_word]`, seen `[batch, words]`
    /// - logits of the result `[batch, clips, anchors]`, for spans that end at the clip
    fn forward(
        &self,
        visual: &Tensor,
        words: &Tensor,
        lengths: &[usize],
        seen: &Tensor,
        pass: &Pass,
    ) -> Result<Forward> {
        let p = self.config.dropout;
        let words = self.sentence.forward_packed(&pass.dropout(words, p)?, lengths)?;
        let words = pass.dropout(&words, p)?;
        let clips = self.video.forward(&pass.dropout(visual, p)?)?;
        let from_words = self.attention.from_word.forward(&words)?;
        let from_clips = self.attention.from_clip.forward(&clips)?;
        let batch = words.dim(0)?;
        let mut state = Tensor::zeros((batch, self.config.hidden), words.dtype(), words.device())?;
        let mut cell = state.clone();
        let (mut states, mut attention) = (Vec::new(), Vec::new());
        for step in 0..clips.dim(1)? {
            let at = |x: &Tensor| -> Result<Tensor> { Ok(x.narrow(1, step, 1)?.squeeze(1)?) };
            let query = (at(&from_clips)? + self.attention.from_state.forward(&state)?)?;
            let weights = self.attention.weights(&query, &from_words, seen)?;
            let context = weights.unsqueeze(1)?.times(&words)?.squeeze(1)?;
            let input = pass.dropout(&Tensor::cat(&[at(&clips)?, context], 1)?, p)?;
            (state, cell) = self.interaction.step(&input, &state, &cell)?;
            states.push(state.clone());
            attention.push(weights);
        }
        let logits = self.score.forward(&Tensor::stack(&states, 1)?)?;
        Ok(Forward { words, attention: Tensor::stack(&attention, 1)?, logits })
    }

    fn of_batch(&self, visual: &Tensor, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let seen = self.config.padded_words.seen(&batch.queries.mask)?;
        self.forward(visual, &batch.queries.words, &batch.queries.lengths, &seen, pass)
    }

    /// A random stretch of every video that is longer than the window.
    fn stretch(&self, batch: &Batch, spans: &[NormSpan], pass: &Pass) -> Result<Stretch> {
        let (pairs, clips, width) = batch.videos.visual.dims3()?;
        let window = self.config.window.min(clips);
        let firsts: Vec<usize> = batch
            .videos
            .lengths
            .iter()
            .map(|length| pass.draw(|rng| rng.below(length.saturating_sub(window) + 1)).unwrap_or(0))
            .collect();
        let visual = if window == clips {
            batch.videos.visual.clone()
        } else {
            let rows = firsts.iter().enumerate();
            let rows = rows.flat_map(|(pair, first)| (0..window).map(move |row| (pair * clips + first + row) as u32));
            let rows = Tensor::new(rows.collect::<Vec<u32>>(), batch.videos.visual.device())?;
            let all = batch.videos.visual.reshape((pairs * clips, width))?;
            all.index_select(&rows, 0)?.reshape((pairs, window, width))?
        };
        let lengths: Vec<usize> = batch.videos.lengths.iter().map(|length| (*length).min(window)).collect();
        let inside = |(pair, span): (usize, &NormSpan)| {
            let (first, real) = (firsts[pair] as f64, lengths[pair] as f64);
            let at = |fraction: f64| (fraction * batch.videos.lengths[pair] as f64 - first).clamp(0.0, real);
            (at(span.start()), at(span.end()))
        };
        Ok(Stretch { spans: spans.iter().enumerate().map(inside).collect(), visual, lengths })
    }

    fn labels(&self, stretch: &Stretch) -> Result<Labels> {
        let (pairs, clips, _) = stretch.visual.dims3()?;
        let device = stretch.visual.device();
        let (mut positive, mut counted) = (Vec::new(), Vec::new());
        for (span, length) in stretch.spans.iter().zip(&stretch.lengths) {
            for clip in 0..clips {
                for anchor in &self.anchors {
                    let overlap = overlap_nearby(*span, clip, *anchor);
                    let above = overlap.is_some_and(|iou| iou > self.config.positive_iou);
                    let below = overlap.is_none_or(|iou| iou < self.config.negative_iou);
                    let real = clip < *length;
                    positive.push(f32::from(u8::from(above && real)));
                    counted.push(f32::from(u8::from(above || below || self.config.between == Between::Negative)));
                }
            }
        }
        let shape = (pairs, clips, self.anchors.len());
        Ok(Labels {
            positive: Tensor::from_vec(positive, shape, device)?,
            counted: Tensor::from_vec(counted, shape, device)?,
        })
    }

    /// Weight of a positive, one per anchor.
    fn positive_weights(&self, labels: &Labels, frames: &Tensor) -> Result<Tensor> {
        let device = frames.device();
        if self.config.positive_weights.len() == self.anchors.len() {
            let stated: Vec<f32> = self.config.positive_weights.iter().map(|weight| *weight as f32).collect();
            return Ok(Tensor::new(stated, device)?);
        }
        let counted = labels.counted.broadcast_mul(&frames.unsqueeze(2)?)?.sum((0, 1))?.to_vec1::<f32>()?;
        let positive = labels.positive.sum((0, 1))?.to_vec1::<f32>()?;
        let weight = |(counted, positive): (&f32, &f32)| {
            if *positive > 0.0 { ((counted - positive) / positive).min(MAX_WEIGHT) } else { MAX_WEIGHT }
        };
        Ok(Tensor::new(counted.iter().zip(&positive).map(weight).collect::<Vec<f32>>(), device)?)
    }

    /// Every candidate that begins in the video, best first, as fractions of its `length` real clips.
    fn rank(&self, scores: &[Vec<f32>], length: usize) -> Vec<Proposal> {
        let whole = length.max(1) as f64;
        let mut ranked = Vec::new();
        for (clip, row) in scores.iter().take(length).enumerate() {
            let end = clip as f64 + 0.5;
            for (anchor, score) in self.anchors.iter().zip(row) {
                let start = end - *anchor as f64;
                let span = NormSpan::new(start.max(0.0) / whole, end / whole);
                ranked.extend(span.filter(|_| start >= -0.5).map(|span| Proposal { span, score: *score }));
            }
        }
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked
    }
}

/// The overlap of `span` with the `anchor` clips that end in the middle of `clip`; `None` far from the span, where every
/// candidate is a negative.
fn overlap_nearby((start, end): (f64, f64), clip: usize, anchor: usize) -> Option<f64> {
    let (first, last) = (start.floor(), end.floor());
    let at = clip as f64;
    if at < ((first + last) / 2.0).floor() || at >= last + (last - first + 1.0) {
        return None;
    }
    let (from, to) = (at + 0.5 - anchor as f64, at + 0.5);
    let inter = (end.min(to) - start.max(from)).max(0.0);
    let hull = end.max(to) - start.min(from);
    Some(inter / (hull.min(end - start + to - from) + 1e-8))
}

/// Weighted cross entropy over the candidates that count, summed over anchors, a mean over real clips.
///
/// # Shapes
/// - logits, positive and counted `[batch, clips, anchors]`; weights `[anchors]`; frames `[batch, clips]`, 1 at real clips
fn weighted_loss(logits: &Tensor, labels: &Labels, weights: &Tensor, frames: &Tensor) -> Result<Tensor> {
    let y = &labels.positive;
    let factor = (y.broadcast_mul(&(weights - 1.0)?)? + 1.0)?;
    let each = (y.affine(-1.0, 1.0)?.mul(logits)? + factor.mul(&softplus(&logits.neg()?)?)?)?;
    let of_clips = each.mul(&labels.counted)?.sum(2)?.mul(frames)?;
    Ok(of_clips.sum_all()?.div(&frames.sum_all()?.maximum(1.0)?)?)
}

impl WordAttention {
    fn new(hidden: usize, words: usize, width: usize, vb: &VarBuilder) -> Result<Self> {
        let inputs = 2 * hidden + words;
        let first = vb.pp("att1");
        let weight = first.get_with_hints((width, inputs), "weight", uniform(inputs))?;
        let bias = first.get_with_hints(width, "bias", uniform(inputs))?;
        let part = |from: usize, len: usize| -> Result<Tensor> { Ok(weight.narrow(1, from, len)?.contiguous()?) };
        Ok(Self {
            from_state: Linear::new(part(0, hidden)?, None),
            from_clip: Linear::new(part(hidden, hidden)?, Some(bias)),
            from_word: Linear::new(part(2 * hidden, words)?, None),
            score: linear(width, 1, vb.pp("att2"))?,
        })
    }

    /// # Shapes
    /// - query `[batch, width]`, words `[batch, words, width]`, seen `[batch, words]`
    /// - returns `[batch, words]`, rows of sum 1
    fn weights(&self, query: &Tensor, words: &Tensor, seen: &Tensor) -> Result<Tensor> {
        let scores = self.score.forward(&words.broadcast_add(&query.unsqueeze(1)?)?.tanh()?)?.squeeze(D::Minus1)?;
        Ok(softmax(&mask_out(&scores, seen, -1e30)?, D::Minus1)?)
    }
}

impl Cell {
    fn new(inputs: usize, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        let part = |inputs: usize, what: &str| -> Result<Linear> {
            let weight = vb.get_with_hints((4 * hidden, inputs), &format!("weight_{what}"), uniform(hidden))?;
            Ok(Linear::new(weight, Some(vb.get_with_hints(4 * hidden, &format!("bias_{what}"), uniform(hidden))?)))
        };
        Ok(Self { from_input: part(inputs, "ih")?, from_state: part(hidden, "hh")? })
    }

    /// The next state and cell of `[batch, hidden]` ones.
    fn step(&self, input: &Tensor, state: &Tensor, cell: &Tensor) -> Result<(Tensor, Tensor)> {
        let gates = (self.from_input.forward(input)? + self.from_state.forward(state)?)?;
        let hidden = state.dim(1)?;
        let gate = |number: usize| gates.narrow(1, number * hidden, hidden);
        let cell = ((sigmoid(&gate(1)?)? * cell)? + (sigmoid(&gate(0)?)? * gate(2)?.tanh()?)?)?;
        Ok(((sigmoid(&gate(3)?)? * cell.tanh()?)?, cell))
    }
}

impl Model for Tgn {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::Cut { rows: self.config.clips },
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let stretch = self.stretch(batch, &batch.targets(CARD.name)?.spans, pass)?;
        let labels = self.labels(&stretch)?;
        let frames = real_steps(&stretch.lengths, stretch.visual.dim(1)?, stretch.visual.device())?;
        let logits = self.of_batch(&stretch.visual, batch, pass)?.logits;
        Ok(weighted_loss(&logits, &labels, &self.positive_weights(&labels, &frames)?, &frames)?.into())
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let forward = self.of_batch(&batch.videos.visual, batch, &Pass::answering())?;
        let scores = sigmoid(&forward.logits)?.to_vec3::<f32>()?;
        Ok(scores.iter().zip(&batch.videos.lengths).map(|(scores, length)| self.rank(scores, *length)).collect())
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let (visual, words) = (fixture.input("video")?, fixture.input("words")?);
    let config = TgnConfig {
        anchors: Lengths::List(fixture.numbers("anchors")?),
        clips: visual.dim(1)?,
        window: visual.dim(1)?,
        hidden: fixture.number("rnn")?,
        attention: fixture.number("attention_hidden")?,
        sentence: if fixture.shape("att1.weight")?.get(1) == Some(&(4 * fixture.number("rnn")?)) {
            SentenceWays::Both
        } else {
            SentenceWays::Forward
        },
        padded_words: PaddedWords::Published,
        positive_iou: fixture.real("pos_threshold")?,
        negative_iou: fixture.real("neg_threshold")?,
        between: Between::Ignored,
        positive_weights: Vec::new(),
        dropout: 0.0,
        nms: nms(),
    };
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let net = Tgn::new(&config, &given, vb.clone())?;
    let seen = config.padded_words.seen(&fixture.input("word_mask")?)?;
    let forward = net.forward(&visual, &words, &fixture.lengths("word_mask")?, &seen, &Pass::answering())?;
    let labels = Labels { positive: fixture.input("label")?, counted: fixture.input("anchor_mask")? };
    let all = Labels { counted: labels.counted.ones_like()?, positive: labels.positive.clone() };
    let (weights, frames) = (fixture.input("pos_weight")?, fixture.input("video_mask")?);

    let mut trace = Trace::new();
    trace.out("sentence_states", &forward.words);
    trace.out("attention", &forward.attention);
    trace.out("logit", &forward.logits);
    trace.out("prob", &sigmoid(&forward.logits)?);
    trace.loss("masked", &weighted_loss(&forward.logits, &labels, &weights, &frames)?);
    trace.loss("unmasked", &weighted_loss(&forward.logits, &all, &weights, &frames)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, assert_learnt_by_heart, gap};

    fn config(padded_words: PaddedWords, window: usize) -> TgnConfig {
        TgnConfig {
            anchors: Lengths::Range { first: 2, last: 6 },
            clips: 8,
            window,
            hidden: 12,
            attention: 8,
            sentence: SentenceWays::Both,
            padded_words,
            positive_iou: 0.7,
            negative_iou: 0.3,
            between: Between::Ignored,
            positive_weights: Vec::new(),
            dropout: 0.0,
            nms: 0.55,
        }
    }

    fn net(padded_words: PaddedWords) -> Tgn {
        Tgn::new(&config(padded_words, 8), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    fn logits(net: &Tgn, batch: &Batch) -> Tensor {
        net.of_batch(&batch.videos.visual, batch, &Pass::answering()).unwrap().logits
    }

    #[test]
    fn every_candidate_that_begins_in_the_video_is_proposed() {
        let ranked = net(PaddedWords::Masked).propose(&TOY.batch(1)).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            // Length a fits where it ends at clip a - 1 or later: 7 + 6 + 5 + 4 + 3 of the 8 clips.
            assert_eq!(proposals.len(), 25);
            assert!(proposals.iter().all(|proposal| proposal.span.start() >= 0.0 && proposal.span.end() <= 1.0));
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padded_words_change_nothing_unless_the_published_attention_is_asked_for() {
        let batch = TOY.batch(1);
        let difference = |padded_words| {
            let net = net(padded_words);
            gap(&logits(&net, &batch), &logits(&net, &batch.with_longer_words(3)))
        };
        assert!(difference(PaddedWords::Masked) < 1e-6);
        assert!(difference(PaddedWords::Published) > 1e-6);
    }

    #[test]
    fn padded_clips_change_neither_loss_nor_answers() {
        let (net, batch) = (net(PaddedWords::Masked), TOY.batch(1));
        let longer = batch.with_longer_videos(4);
        let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total.to_scalar::<f32>().unwrap();
        let wide = Tgn { config: TgnConfig { window: 12, ..net.config.clone() }, ..self::net(PaddedWords::Masked) };
        let padded = wide.loss(&longer, &Pass::answering()).unwrap().total.to_scalar::<f32>().unwrap();
        assert!((loss(&batch) - padded).abs() < 1e-6);
        assert_eq!(net.propose(&batch).unwrap().len(), net.propose(&longer).unwrap().len());
        for (a, b) in net.propose(&batch).unwrap().iter().zip(net.propose(&longer).unwrap()) {
            assert_eq!(a.len(), b.len());
            assert_eq!(a[0].span, b[0].span);
        }
    }

    #[test]
    fn a_stretch_of_a_longer_video_keeps_its_clips_and_its_span_together() {
        let net = Tgn::new(&config(PaddedWords::Masked, 5), &TOY.given(), Params::seeded(1, &Device::Cpu).builder());
        let (net, batch) = (net.unwrap(), TOY.batch(1));
        let spans = &batch.targets.as_ref().unwrap().spans;
        let pass = Pass::training(0, 1, cuemark_core::Rng::new(4));
        let stretch = net.stretch(&batch, spans, &pass).unwrap();
        assert_eq!(stretch.visual.dims(), [TOY.pairs, 5, TOY.visual]);
        let whole = batch.videos.visual.to_vec3::<f32>().unwrap();
        for (pair, rows) in stretch.visual.to_vec3::<f32>().unwrap().iter().enumerate() {
            let first = whole[pair].iter().position(|row| row == &rows[0]).unwrap();
            assert_eq!(rows[..], whole[pair][first..first + 5]);
            let start = (spans[pair].start() * 8.0 - first as f64).clamp(0.0, 5.0);
            assert!((stretch.spans[pair].0 - start).abs() < 1e-9);
        }
    }

    #[test]
    fn a_candidate_is_compared_only_near_the_span() {
        // Clips 2 to 6: looked at from the middle clip 4 to clip 6 + 5 - 1.
        assert!(overlap_nearby((2.0, 6.0), 3, 4).is_none());
        assert!(overlap_nearby((2.0, 6.0), 11, 4).is_none());
        let iou = overlap_nearby((2.0, 6.0), 6, 4).unwrap();
        assert!((iou - 3.5 / 4.5).abs() < 1e-6);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| Tgn::new(&config(PaddedWords::Masked, 8), &TOY.given(), vb);
        assert_learnt_by_heart(build, &batch, 60, 1e-2, 0.1);
    }
}
