//! DRN: every clip inside the moment regresses its distances to start and end, on a pyramid that the query gates.
//! Zeng et al., "Dense Regression Network for Video Grounding", CVPR 2020.
//!
//! Trained in three stages: scores and distances, then the overlap head alone, then everything. Differs from the published
//! code: clips are means instead of maxima of their features; in the overlap loss all spans are clamped, not only the first
//! (`clamp = "first"`), and overlaps are targets without a gradient; published word vectors are not trained further. Answers
//! always weigh scores with the overlap head, which hardly tells spans apart before its stage.

use candle_core::{D, DType, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax, softplus};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{BatchNorm, Conv1d, Linear, QueryWords, Recurrent, Steps, Ways, WordSource, last_step, linear};
use crate::losses::smooth_l1;
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "drn",
    title: "DRN",
    paper: "Zeng et al., Dense Regression Network for Video Grounding, CVPR 2020",
    family: Family::Regression,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "every clip of the moment regresses its ends on a query-gated pyramid, re-scored by a predicted overlap",
    full_sizes: &[
        FullSize { dataset: "activitynet-captions", settings: "", visual: 4096, words: 300, millions: None },
        FullSize {
            dataset: "charades-sta",
            settings: "word_vectors = { own-of = 1111 }",
            visual: 4096,
            words: 300,
            millions: Some(39.2),
        },
    ],
    build: |table, given, vb| Ok(Box::new(Drn::new(&read_settings("drn", table)?, given, vb)?)),
    settings: |table| fill_settings::<DrnConfig>("drn", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrnConfig {
    /// Clips that a video's features are averaged to; the last stride divides it. Default: 32
    #[serde(default = "clips")]
    pub clips: usize,
    /// Width of the query's LSTM, each way. Default: 512
    #[serde(default = "lstm")]
    pub lstm: usize,
    /// Layers of the query's LSTM. Default: 1
    #[serde(default = "one")]
    pub lstm_layers: usize,
    /// Channels of the first level; every level has twice those of the one before. Default: 256
    #[serde(default = "first")]
    pub first: usize,
    /// Channels of the pyramid. Default: 512
    #[serde(default = "pyramid")]
    pub pyramid: usize,
    /// Width of a clip's position code. Default: 256
    #[serde(default = "position")]
    pub position: usize,
    /// Convolutions of each tower of the head. Default: 1
    #[serde(default = "one")]
    pub tower: usize,
    /// The levels, finest first.
    #[serde(default = "levels")]
    pub levels: Vec<Level>,
    /// How much a positive counts in the focal loss; a negative counts the rest. Default: 0.25
    #[serde(default = "alpha")]
    pub alpha: f64,
    /// How much the focal loss turns from easy locations. Default: 2.0
    #[serde(default = "gamma")]
    pub gamma: f64,
    /// Predictions with more overlap teach the overlap head. Default: 0.9
    #[serde(default = "overlap")]
    pub overlap: f64,
    /// Which spans are clamped to the video in the overlap loss. Default: all
    #[serde(default)]
    pub clamp: Clamp,
    /// Locations with a lower score are no answers. Default: 0.05
    #[serde(default = "min_score")]
    pub min_score: f64,
    /// The most answers of one level. Default: 32
    #[serde(default = "top")]
    pub top: usize,
    /// Where word vectors come from. Default: given
    #[serde(default)]
    pub word_vectors: WordSource,
    /// Overlap above which the worse of two answers is dropped. Default: 0.45
    #[serde(default = "nms")]
    pub nms: f64,
}

/// One level of the pyramid.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Clips between two locations; a multiple of the level before.
    pub stride: usize,
    /// Distances below this are another level's, in clips.
    pub from: f64,
    /// Distances above this are another level's, in clips.
    pub to: f64,
}

/// Which predicted spans are clamped to the video before their overlap is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clamp {
    /// All of them. Default.
    #[default]
    All,
    /// That of the first location alone, as a slip in the published code has it.
    First,
}

fn clips() -> usize {
    32
}

fn lstm() -> usize {
    512
}

fn first() -> usize {
    256
}

fn pyramid() -> usize {
    512
}

fn position() -> usize {
    256
}

fn one() -> usize {
    1
}

/// The published ranges overlap on purpose between the first two levels.
fn levels() -> Vec<Level> {
    vec![
        Level { stride: 1, from: -1.0, to: 6.0 },
        Level { stride: 2, from: 5.6, to: 11.0 },
        Level { stride: 4, from: 11.0, to: 1e8 },
    ]
}

fn alpha() -> f64 {
    0.25
}

fn gamma() -> f64 {
    2.0
}

fn overlap() -> f64 {
    0.9
}

fn min_score() -> f64 {
    0.05
}

fn top() -> usize {
    32
}

fn nms() -> f64 {
    0.45
}

/// The probability that the score head starts with everywhere.
const PRIOR: f64 = 0.01;

/// More than any video could fill; every level doubles the channels.
const MAX_LEVELS: usize = 8;

/// The network.
#[derive(Debug)]
pub struct Drn {
    config: DrnConfig,
    words: QueryWords,
    query: QueryEncoder,
    of_query: Vec<Linear>,
    clips: Linear,
    position: Linear,
    backbone: Vec<Block>,
    lateral: Vec<Block>,
    smooth: Vec<Block>,
    head: Head,
}

/// One query vector per level.
#[derive(Debug)]
struct QueryEncoder {
    words: Recurrent,
    sentence: Linear,
    of_level: Vec<Linear>,
    score: Linear,
}

/// Convolution, batch norm, ReLU.
#[derive(Debug)]
struct Block {
    conv: Conv1d,
    norm: BatchNorm,
}

/// What is read off every location; one set of weights for all levels.
#[derive(Debug)]
struct Head {
    class_tower: Vec<Block>,
    box_tower: Vec<Block>,
    class: Conv1d,
    distances: Conv1d,
    scales: Vec<Tensor>,
    mix: Block,
    overlap: (Block, Conv1d),
}

/// What the head says about one level.
struct LevelOut {
    /// `[batch, locations]`.
    class: Tensor,
    /// `[batch, locations, 2]`, to start and end, in clips.
    distances: Tensor,
    /// `[batch, locations]`.
    overlap: Tensor,
}

/// Query vectors, pyramid and head, a level each.
struct Forward {
    commands: Vec<Tensor>,
    pyramid: Vec<Tensor>,
    levels: Vec<LevelOut>,
}

/// What locations of one level should say.
struct LevelTruth {
    /// `[batch, locations]`, 1 where a location answers for the moment.
    positive: Tensor,
    /// `[batch, locations, 2]`, in clips, negative outside the moment.
    distances: Tensor,
}

/// The inputs of one pass.
struct Pair<'a> {
    /// `[batch, clips, d_visual]`.
    visual: &'a Tensor,
    /// `[batch, clips, 2]`, ends of each clip as fractions.
    ends: &'a Tensor,
    /// `[batch, words, d_word]`.
    words: &'a Tensor,
    /// Number of real words of each.
    lengths: &'a [usize],
}

impl Drn {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for strides that do not divide the clips.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &DrnConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let strides = config.relative_strides()?;
        let channels = |level: usize| config.first << level;
        let inputs = |level: usize| if level == 0 { given.visual } else { channels(level - 1) };
        let of_query = |level: usize| linear(2 * config.lstm, inputs(level), vb.pp(format!("qInput{level}")));
        let backbone = |(level, stride): (usize, &usize)| {
            let inputs = inputs(level) + if level == 0 { config.position } else { 0 };
            let steps = Steps { padding: 1, stride: *stride, ..Steps::default() };
            Block::without_bias(inputs, channels(level), 3, steps, &vb.pp(format!("backbone_net.forward_conv{level}")))
        };
        let lateral = |level: usize| {
            let vb = vb.pp(format!("fpn.fpn_inner{}", level + 1));
            Block::without_bias(channels(level), config.pyramid, 1, Steps::default(), &vb)
        };
        let smooth = |level: usize| {
            let steps = Steps { padding: 1, ..Steps::default() };
            let vb = vb.pp(format!("fpn.fpn_layer{}", level + 1));
            Block::without_bias(config.pyramid, config.pyramid, 3, steps, &vb)
        };
        let count = config.levels.len();
        Ok(Self {
            words: QueryWords::new(config.word_vectors, given, "query_encoder.embedding.weight", &vb)?,
            query: QueryEncoder::new(given.words, config, &vb.pp("query_encoder"))?,
            of_query: (0..count).map(of_query).collect::<candle_core::Result<_>>()?,
            clips: linear(given.visual, given.visual, vb.pp("prop_fc"))?,
            position: linear(3, config.position, vb.pp("position_transform"))?,
            backbone: strides.iter().enumerate().map(backbone).collect::<Result<_>>()?,
            lateral: (0..count).map(lateral).collect::<Result<_>>()?,
            smooth: (0..count).map(smooth).collect::<Result<_>>()?,
            head: Head::new(config.pyramid, config.tower, count, &vb.pp("fcos.head"))?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - see [`Pair`]; a level of the result has `clips / stride` locations
    fn forward(&self, pair: &Pair, pass: &Pass) -> Result<Forward> {
        let commands = self.query.forward(pair.words, pair.lengths)?;
        let (start, end) = (pair.ends.narrow(2, 0, 1)?, pair.ends.narrow(2, 1, 1)?);
        let position = self.position.forward(&Tensor::cat(&[&start, &end, &(&end - &start)?], 2)?)?;
        let mut x = self.clips.forward(pair.visual)?;
        let mut of_levels = Vec::with_capacity(self.backbone.len());
        for (level, block) in self.backbone.iter().enumerate() {
            x = x.broadcast_mul(&self.of_query[level].forward(&commands[level])?.unsqueeze(1)?)?;
            if level == 0 {
                x = Tensor::cat(&[&x, &position], 2)?;
            }
            x = block.forward(&x, pass)?;
            of_levels.push(x.clone());
        }
        let pyramid = self.pyramid(&of_levels, pass)?;
        let levels = pyramid.iter().zip(&self.head.scales);
        let levels = levels.map(|(x, scale)| self.head.forward(x, scale, pass)).collect::<Result<_>>()?;
        Ok(Forward { commands, pyramid, levels })
    }

    /// Top-down: each level with the one above repeated onto it.
    fn pyramid(&self, of_levels: &[Tensor], pass: &Pass) -> Result<Vec<Tensor>> {
        let mut above: Option<Tensor> = None;
        let mut pyramid = Vec::with_capacity(of_levels.len());
        for (level, x) in of_levels.iter().enumerate().rev() {
            let mut x = self.lateral[level].forward(x, pass)?;
            if let Some(above) = &above {
                x = (&x + repeated(above, x.dim(1)?)?)?;
            }
            pyramid.push(self.smooth[level].forward(&x, pass)?);
            above = Some(x);
        }
        pyramid.reverse();
        Ok(pyramid)
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let words = self.words.forward(&batch.queries)?;
        let (pairs, clips, _) = batch.videos.visual.dims3()?;
        let ends: Vec<f32> =
            (0..clips).flat_map(|clip| [clip, clip + 1].map(|end| end as f32 / clips as f32)).collect();
        let ends =
            Tensor::from_vec(ends, (1, clips, 2), words.device())?.broadcast_as((pairs, clips, 2))?.contiguous()?;
        let pair = Pair { visual: &batch.videos.visual, ends: &ends, words: &words, lengths: &batch.queries.lengths };
        self.forward(&pair, pass)
    }

    /// Middle of every location of a level, in clips.
    fn locations(&self, level: usize) -> Vec<f64> {
        let stride = self.config.levels[level].stride;
        (0..self.config.clips / stride).map(|place| (place as f64 + 0.5) * stride as f64).collect()
    }

    /// What the locations of each level should say about `spans`, start and end as fractions.
    fn truth(&self, spans: &[(f64, f64)], like: &Tensor) -> Result<Vec<LevelTruth>> {
        let whole = self.config.clips as f64;
        let of_level = |level: usize| {
            let (locations, bounds) = (self.locations(level), self.config.levels[level]);
            let (mut positive, mut distances) = (Vec::new(), Vec::new());
            for (start, end) in spans {
                for location in &locations {
                    let (left, right) = (location - start * whole, end * whole - location);
                    let inside = left.min(right) > 0.0 && (bounds.from..=bounds.to).contains(&left.max(right));
                    positive.push(f32::from(u8::from(inside)));
                    distances.extend([left as f32, right as f32]);
                }
            }
            let (rows, count) = (spans.len(), locations.len());
            Ok(LevelTruth {
                positive: Tensor::from_vec(positive, (rows, count), like.device())?,
                distances: Tensor::from_vec(distances, (rows, count, 2), like.device())?,
            })
        };
        (0..self.config.levels.len()).map(of_level).collect()
    }

    /// Focal loss of the scores over all locations, divided by positives and queries.
    fn class_loss(&self, forward: &Forward, truth: &[LevelTruth]) -> Result<Tensor> {
        let (logits, positive) = (all(&forward.levels, |level| &level.class)?, all(truth, |level| &level.positive)?);
        let p = sigmoid(&logits)?;
        let missed = p.affine(-1.0, 1.0)?.powf(self.config.gamma)?.mul(&softplus(&logits.neg()?)?)?;
        let false_alarm = p.powf(self.config.gamma)?.mul(&softplus(&logits)?)?;
        let each = ((positive.mul(&missed)? * self.config.alpha)?
            + (positive.affine(-1.0, 1.0)?.mul(&false_alarm)? * (1.0 - self.config.alpha))?)?;
        let count = (positive.sum_all()? + logits.dim(0)? as f64)?;
        Ok(each.sum_all()?.div(&count)?)
    }

    /// Minus the log of the overlap with the truth, a mean over positive locations; 0 without one.
    fn distance_loss(&self, forward: &Forward, truth: &[LevelTruth]) -> Result<Tensor> {
        let positive = all(truth, |level| &level.positive)?;
        let (ours, theirs) = (all(&forward.levels, |level| &level.distances)?, all(truth, |level| &level.distances)?);
        let count = positive.sum_all()?;
        // Where a location is no positive its distances may be negative: any overlap will do, it counts for nothing.
        let theirs = mask_out(&theirs, &positive.unsqueeze(2)?, 1.0)?;
        let inter = ours.minimum(&theirs)?.sum(2)?;
        let union = ((ours.sum(2)? + theirs.sum(2)?)? - &inter)?;
        let each = ((union + 1e-8)?.log()? - (inter + 1e-8)?.log()?)?;
        Ok(each.mul(&positive)?.sum_all()?.div(&count.maximum(1.0)?)?)
    }

    /// How well the overlap head knows the overlap of good predictions, a mean over them; 0 without one.
    fn overlap_loss(&self, forward: &Forward, spans: &[(f64, f64)]) -> Result<Tensor> {
        let logits = all(&forward.levels, |level| &level.overlap)?;
        let decoded = self.decoded(forward)?.to_vec3::<f32>()?;
        let (mut ious, mut good) = (Vec::new(), Vec::new());
        for (rows, (start, end)) in decoded.iter().zip(spans) {
            for (place, row) in rows.iter().enumerate() {
                let clamped = place == 0 || self.config.clamp == Clamp::All;
                let bound = |x: f32| if clamped { f64::from(x).clamp(0.0, 1.0) } else { f64::from(x) };
                let (from, to) = (bound(row[0]), bound(row[1]));
                let iou = (to.min(*end) - from.max(*start)).max(0.0) / (to.max(*end) - from.min(*start)).max(1e-8);
                ious.push(iou as f32);
                good.push(f32::from(u8::from(iou > self.config.overlap)));
            }
        }
        let ious = Tensor::from_vec(ious, logits.shape(), logits.device())?;
        let good = Tensor::from_vec(good, logits.shape(), logits.device())?;
        let each = smooth_l1(&(sigmoid(&logits)? - ious)?)?.mul(&good)?;
        Ok(each.sum_all()?.div(&good.sum_all()?.maximum(1.0)?)?)
    }

    /// Spans of all locations as fractions, not clamped, `[batch, locations, 2]`.
    fn decoded(&self, forward: &Forward) -> Result<Tensor> {
        let middles: Vec<f32> =
            (0..self.config.levels.len()).flat_map(|level| self.locations(level)).map(|x| x as f32).collect();
        let distances = all(&forward.levels, |level| &level.distances)?;
        let middles = Tensor::from_vec(middles, (1, distances.dim(1)?), distances.device())?;
        let start = middles.broadcast_sub(&distances.narrow(2, 0, 1)?.squeeze(2)?)?;
        let end = middles.broadcast_add(&distances.narrow(2, 1, 1)?.squeeze(2)?)?;
        Ok((Tensor::stack(&[start, end], 2)? * (1.0 / self.config.clips as f64))?)
    }

    /// The answers of each query by level and location, before they are sorted; the whole video when there is none.
    fn detections(&self, forward: &Forward, scores: Scores) -> Result<Vec<Vec<Proposal>>> {
        let class = sigmoid(&all(&forward.levels, |level| &level.class)?)?.to_vec2::<f32>()?;
        let overlap = sigmoid(&all(&forward.levels, |level| &level.overlap)?)?.to_vec2::<f32>()?;
        let decoded = self.decoded(forward)?.to_vec3::<f32>()?;
        let counts: Vec<usize> = (0..self.config.levels.len()).map(|level| self.locations(level).len()).collect();
        let of_query = |query: usize| {
            let mut found = Vec::new();
            let mut from = 0;
            for count in &counts {
                let mut places: Vec<usize> = (from..from + count).collect();
                places.retain(|place| f64::from(class[query][*place]) > self.config.min_score);
                if places.len() > self.config.top {
                    places.sort_by(|a, b| class[query][*b].total_cmp(&class[query][*a]));
                    places.truncate(self.config.top);
                    places.sort_unstable();
                }
                found.extend(places.into_iter().filter_map(|place| {
                    let row = &decoded[query][place];
                    let span = NormSpan::new(f64::from(row[0]), f64::from(row[1]))?.clipped();
                    let factor = if scores == Scores::Class { 1.0 } else { overlap[query][place] };
                    Some(Proposal { span, score: (class[query][place] * factor).sqrt() })
                }));
                from += count;
            }
            if found.is_empty() {
                found.extend(NormSpan::new(0.0, 1.0).map(|span| Proposal { span, score: 1.0 }));
            }
            found
        };
        Ok((0..class.len()).map(of_query).collect())
    }
}

/// What an answer's score is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scores {
    /// The score head alone, as in the first stage.
    Class,
    /// The score head and the overlap head.
    ClassAndOverlap,
}

impl DrnConfig {
    /// How many locations of the level before lie between two of each level.
    fn relative_strides(&self) -> Result<Vec<usize>> {
        if !(1..=MAX_LEVELS).contains(&self.levels.len()) {
            let problem = format!("`levels`: {} of them, from 1 to {MAX_LEVELS} can be", self.levels.len());
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let mut before = 1;
        let mut strides = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            let fits =
                level.stride > 0 && level.stride.is_multiple_of(before) && self.clips.is_multiple_of(level.stride);
            if !fits {
                let problem = format!(
                    "`levels`: stride {} does not divide `clips` = {} or is no multiple of the one before",
                    level.stride, self.clips
                );
                return Err(ModelError::Settings { model: CARD.name, problem });
            }
            strides.push(level.stride / before);
            before = level.stride;
        }
        Ok(strides)
    }
}

/// The locations of all levels side by side.
fn all<'a, T>(levels: &'a [T], part: impl Fn(&'a T) -> &'a Tensor) -> Result<Tensor> {
    Ok(Tensor::cat(&levels.iter().map(part).collect::<Vec<_>>(), 1)?)
}

/// Every step of `x [batch, steps, width]` repeated until there are `steps`.
fn repeated(x: &Tensor, steps: usize) -> Result<Tensor> {
    let (batch, few, width) = x.dims3()?;
    let times = steps / few.max(1);
    Ok(x.unsqueeze(2)?.broadcast_as((batch, few, times, width))?.reshape((batch, few * times, width))?)
}

impl QueryEncoder {
    fn new(words: usize, config: &DrnConfig, vb: &VarBuilder) -> Result<Self> {
        let (lstm, levels) = (config.lstm, config.levels.len());
        let of_level = |level: usize| linear(lstm, 2 * lstm, vb.pp(format!("qInput{level}")));
        Ok(Self {
            words: Recurrent::lstm(words, lstm, config.lstm_layers, Ways::Both, vb.pp("biLSTM"))?,
            sentence: linear(4 * lstm, lstm, vb.pp("qInput"))?,
            of_level: (0..levels).map(of_level).collect::<candle_core::Result<_>>()?,
            score: linear(2 * lstm, 1, vb.pp("cmd_inter2logits"))?,
        })
    }

    /// One vector per level, `[batch, 2 lstm]`.
    fn forward(&self, words: &Tensor, lengths: &[usize]) -> Result<Vec<Tensor>> {
        let words = self.words.forward_packed(words, lengths)?;
        let first = words.narrow(1, 0, 1)?.squeeze(1)?;
        let sentence = Tensor::cat(&[first, last_step(&words, lengths)?], 1)?;
        let sentence = self.sentence.forward(&sentence)?.relu()?;
        let count = words.dim(1)?;
        let real = lengths.iter().flat_map(|length| (0..count).map(move |word| f32::from(u8::from(word < *length))));
        let real = Tensor::from_vec(real.collect(), (lengths.len(), count), words.device())?;
        let command = |of_level: &Linear| {
            let guide = of_level.forward(&sentence)?.unsqueeze(1)?;
            let scores = self.score.forward(&words.broadcast_mul(&guide)?)?.squeeze(D::Minus1)?;
            let weights = softmax(&mask_out(&scores, &real, -1e30)?, D::Minus1)?;
            Ok(weights.unsqueeze(1)?.times(&words)?.squeeze(1)?)
        };
        self.of_level.iter().map(command).collect()
    }
}

impl Block {
    fn without_bias(inputs: usize, outputs: usize, kernel: usize, steps: Steps, vb: &VarBuilder) -> Result<Self> {
        let conv = Conv1d::without_bias(inputs, outputs, kernel, steps, vb.pp(0))?;
        Ok(Self { conv, norm: BatchNorm::new(outputs, vb.pp(1))? })
    }

    fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        Ok(self.norm.forward(&self.conv.forward(x)?, pass)?.relu()?)
    }
}

/// A convolution of the head: small weights, so that it begins with its bias everywhere.
fn head_conv(inputs: usize, outputs: usize, kernel: usize, bias: f64, vb: &VarBuilder) -> Result<Conv1d> {
    // Whoever asks for a parameter first decides what it begins with.
    vb.get_with_hints((outputs, inputs, kernel), "weight", Init::Randn { mean: 0.0, stdev: 0.01 })?;
    vb.get_with_hints(outputs, "bias", Init::Const(bias))?;
    let steps = Steps { padding: kernel / 2, ..Steps::default() };
    Ok(Conv1d::new(inputs, outputs, kernel, steps, vb.clone())?)
}

impl Head {
    fn new(width: usize, tower: usize, levels: usize, vb: &VarBuilder) -> Result<Self> {
        let block = |inputs: usize, outputs: usize, kernel: usize, vb: VarBuilder, place: usize| -> Result<Block> {
            let conv = head_conv(inputs, outputs, kernel, 0.0, &vb.pp(place))?;
            Ok(Block { conv, norm: BatchNorm::new(outputs, vb.pp(place + 1))? })
        };
        // A tower counts its ReLUs: three places per convolution.
        let towers = |name: &str| (0..tower).map(|n| block(width, width, 3, vb.pp(name), 3 * n)).collect::<Result<_>>();
        let scale = |level: usize| vb.pp("scales").pp(level).get_with_hints(1, "scale", Init::Const(1.0));
        // Published checkpoints hold this layer and never use it.
        head_conv(width, 1, 3, 0.0, &vb.pp("centerness"))?;
        Ok(Self {
            class_tower: towers("cls_tower")?,
            box_tower: towers("bbox_tower")?,
            class: head_conv(width, 1, 3, -((1.0 - PRIOR) / PRIOR).ln(), &vb.pp("cls_logits"))?,
            distances: head_conv(width, 2, 3, 0.0, &vb.pp("bbox_pred"))?,
            scales: (0..levels).map(scale).collect::<candle_core::Result<_>>()?,
            mix: block(2 * width, width, 1, vb.pp("mix_fc"), 0)?,
            overlap: (
                block(width, width / 2, 3, vb.pp("iou_scores"), 0)?,
                head_conv(width / 2, 1, 1, 0.0, &vb.pp("iou_scores.3"))?,
            ),
        })
    }

    /// # Shapes
    /// - x `[batch, locations, width]`, scale `[1]`
    fn forward(&self, x: &Tensor, scale: &Tensor, pass: &Pass) -> Result<LevelOut> {
        let run = |tower: &[Block]| tower.iter().try_fold(x.clone(), |x, block| block.forward(&x, pass));
        let (of_class, of_box) = (run(&self.class_tower)?, run(&self.box_tower)?);
        let distances = self.distances.forward(&of_box)?.broadcast_mul(scale)?.exp()?;
        let mixed = self.mix.forward(&Tensor::cat(&[&of_class, &of_box], 2)?, pass)?;
        let overlap = self.overlap.1.forward(&self.overlap.0.forward(&mixed, pass)?)?;
        Ok(LevelOut { class: self.class.forward(&of_class)?.squeeze(2)?, distances, overlap: overlap.squeeze(2)? })
    }
}

/// Whether a parameter belongs to the overlap head.
fn of_overlap_head(parameter: &str) -> bool {
    parameter.contains("head.mix_fc.") || parameter.contains("head.iou_scores.")
}

impl Model for Drn {
    fn input(&self) -> Input {
        Input { normalise: Normalise::None, ..Input::pairs(self.config.clips) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let spans: Vec<(f64, f64)> =
            batch.targets(CARD.name)?.spans.iter().map(|span| (span.start(), span.end())).collect();
        let forward = self.of_batch(batch, pass)?;
        let truth = self.truth(&spans, &batch.videos.visual)?;
        let mut parts = Vec::new();
        if pass.stage() != 1 {
            parts.push(("class", self.class_loss(&forward, &truth)?));
            parts.push(("distance", self.distance_loss(&forward, &truth)?));
        }
        if pass.stage() > 0 {
            parts.push(("overlap", self.overlap_loss(&forward, &spans)?));
        }
        let mut total = Tensor::zeros((), DType::F32, batch.videos.visual.device())?;
        for (_, part) in &parts {
            total = (total + part)?;
        }
        Ok(Loss { total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let forward = self.of_batch(batch, &Pass::answering())?;
        let mut ranked = self.detections(&forward, Scores::ClassAndOverlap)?;
        for proposals in &mut ranked {
            proposals.sort_by(|a, b| b.score.total_cmp(&a.score));
        }
        Ok(ranked)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        match pass.stage() {
            0 if of_overlap_head(parameter) => 0.0,
            1 if !of_overlap_head(parameter) => 0.0,
            _ => 1.0,
        }
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let strides = fixture.numbers("fpn_stride")?;
    let level = |(number, stride): (usize, &usize)| -> Result<Level> {
        let bound = |end: usize| fixture.real(&format!("level_ranges.{number}.{end}"));
        Ok(Level { stride: *stride, from: bound(0)?, to: bound(1)? })
    };
    let visual = fixture.input("features")?;
    let config = DrnConfig {
        clips: visual.dim(1)?,
        lstm: fixture.number("hidden_dim")?,
        lstm_layers: fixture.number("lstm_layers")?,
        first: fixture.number("first_output_dim")?,
        pyramid: fixture.number("fpn_feature_dim")?,
        position: fixture.number("position_dim")?,
        tower: fixture.number("fcos_conv_layers")?,
        levels: strides.iter().enumerate().map(level).collect::<Result<_>>()?,
        alpha: fixture.real("fcos_loss_alpha")?,
        gamma: fixture.real("fcos_loss_gamma")?,
        overlap: fixture.real("stage2_iou_threshold")?,
        clamp: Clamp::First,
        min_score: fixture.real("fcos_inference_thr")?,
        top: fixture.number("fcos_pre_nms_top_n")?,
        word_vectors: WordSource::Own,
        nms: nms(),
    };
    let table = fixture.tensor("param.query_encoder.embedding.weight")?.dims2()?;
    let net = Drn::new(&config, &Given::widths(visual.dim(2)?, table.1, table.0), vb.clone())?;
    let words = net.words.look_up(&fixture.ids("query_tokens")?, &visual)?;
    let (ends, lengths) = (fixture.input("clip_start_end")?, fixture.counts("query_len")?);
    let pair = Pair { visual: &visual, ends: &ends, words: &words, lengths: &lengths };
    let forward = net.forward(&pair, &Pass::answering())?;
    let spans: Vec<(f64, f64)> = fixture
        .input("gt_start_end")?
        .to_vec2::<f32>()?
        .into_iter()
        .map(|row| (f64::from(row[0]), f64::from(row[1])))
        .collect();
    let truth = net.truth(&spans, &visual)?;
    let class = net.class_loss(&forward, &truth)?;
    let distance = net.distance_loss(&forward, &truth)?;

    let mut trace = Trace::new();
    for number in 0..strides.len() {
        let (out, truth) = (&forward.levels[number], &truth[number]);
        let locations: Vec<f32> = net.locations(number).into_iter().map(|x| x as f32).collect();
        trace.out(&format!("query_command_{number}"), &forward.commands[number]);
        trace.out(&format!("fpn_level_{number}"), &forward.pyramid[number].transpose(1, 2)?);
        trace.out(&format!("cls_logits_{number}"), &out.class.unsqueeze(1)?);
        trace.out(&format!("bbox_reg_{number}"), &out.distances.transpose(1, 2)?);
        trace.out(&format!("iou_logits_{number}"), &out.overlap.unsqueeze(1)?);
        trace.out(&format!("locations_{number}"), &Tensor::new(locations, visual.device())?);
        trace.out(&format!("labels_{number}"), &truth.positive);
        trace.out(&format!("reg_targets_{number}"), &truth.distances);
    }
    trace.out("decoded_unclamped", &net.decoded(&forward)?);
    for (name, scores) in [("stage1", Scores::Class), ("stage23", Scores::ClassAndOverlap)] {
        for (query, found) in net.detections(&forward, scores)?.iter().enumerate() {
            let rows = found
                .iter()
                .flat_map(|proposal| [proposal.span.start() as f32, proposal.span.end() as f32, proposal.score]);
            let rows = Tensor::from_vec(rows.collect(), (found.len(), 3), visual.device())?;
            trace.out(&format!("{name}_detections_{query}"), &rows);
        }
    }
    trace.loss("stage1_total", &(&class + &distance)?);
    trace.loss("stage1_cls", &class);
    trace.loss("stage1_reg", &distance);
    trace.loss("stage2_iou", &net.overlap_loss(&forward, &spans)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};
    use cuemark_core::Rng;
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config() -> DrnConfig {
        DrnConfig {
            clips: 8,
            lstm: 8,
            lstm_layers: 1,
            first: 8,
            pyramid: 12,
            position: 4,
            tower: 1,
            levels: vec![Level { stride: 1, from: -1.0, to: 3.0 }, Level { stride: 2, from: 2.0, to: 1e8 }],
            alpha: 0.25,
            gamma: 2.0,
            overlap: 0.9,
            clamp: Clamp::All,
            min_score: 0.05,
            top: 32,
            word_vectors: WordSource::Given,
            nms: 0.45,
        }
    }

    fn build(vb: VarBuilder) -> Result<Box<dyn Model>> {
        Ok(Box::new(Drn::new(&config(), &TOY.given(), vb)?))
    }

    #[test]
    fn a_pyramid_of_two_levels_has_all_its_locations() {
        let net = Drn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let forward = net.of_batch(&TOY.batch(1), &Pass::answering()).unwrap();
        let counts: Vec<&[usize]> = forward.levels.iter().map(|level| level.distances.dims()).collect();
        assert_eq!(counts, [[TOY.pairs, 8, 2], [TOY.pairs, 4, 2]]);
        // Nothing scores more than 0.05 before training: the whole video is the answer.
        let ranked = net.propose(&TOY.batch(1)).unwrap();
        assert!(ranked.iter().all(|proposals| proposals.len() == 1 && proposals[0].span.len() >= 1.0));
    }

    #[test]
    fn padded_words_change_nothing() {
        let net = Drn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let logits = |batch: &Batch| {
            all(&net.of_batch(batch, &Pass::answering()).unwrap().levels, |level| &level.class).unwrap()
        };
        let batch = TOY.batch(1);
        assert!(gap(&logits(&batch), &logits(&batch.with_longer_words(3))) < 1e-6);
    }

    #[test]
    fn a_location_answers_for_the_moments_of_its_level() {
        let net = Drn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
        // Clips 2 to 6 of 8: locations 2.5 to 5.5 lie inside, the larger distance is 3.5, 2.5, 2.5, 3.5.
        let like = Tensor::zeros(1, DType::F32, &Device::Cpu).unwrap();
        let truth = net.truth(&[(0.25, 0.75)], &like).unwrap();
        let positive = |level: usize| truth[level].positive.to_vec2::<f32>().unwrap().remove(0);
        assert_eq!(positive(0), [0., 0., 0., 1., 1., 0., 0., 0.]);
        assert_eq!(positive(1), [0., 1., 1., 0.]);
    }

    #[test]
    fn every_stage_trains_its_own_part() {
        let batch = TOY.batch(1);
        let params = Params::seeded(1, &Device::Cpu);
        let model = build(params.builder()).unwrap();
        for (stage, parts) in
            [(0, vec!["class", "distance"]), (1, vec!["overlap"]), (2, vec!["class", "distance", "overlap"])]
        {
            let pass = Pass::training(stage, 1, Rng::new(1));
            let loss = model.loss(&batch, &pass).unwrap();
            assert_eq!(loss.parts.iter().map(|part| part.0).collect::<Vec<_>>(), parts);
            let rate = |name: &str| model.rate(name, &pass);
            assert_eq!(rate("fcos.head.mix_fc.0.weight"), if stage == 0 { 0.0 } else { 1.0 });
            assert_eq!(rate("prop_fc.weight"), if stage == 1 { 0.0 } else { 1.0 });
        }
    }

    #[test]
    fn the_overlap_head_learns_in_its_stage() {
        let batch = TOY.batch(1);
        let params = Params::seeded(1, &Device::Cpu);
        let net = Drn::new(&DrnConfig { overlap: 0.1, ..config() }, &TOY.given(), params.builder()).unwrap();
        let vars = params.vars().into_iter().filter(|(name, _)| of_overlap_head(name)).map(|(_, var)| var).collect();
        let mut optimiser = AdamW::new(vars, ParamsAdamW { lr: 1e-2, ..ParamsAdamW::default() }).unwrap();
        let mut losses = Vec::new();
        for step in 0..30 {
            let loss = net.loss(&batch, &Pass::training(1, 1, Rng::new(step))).unwrap().total;
            losses.push(loss.to_scalar::<f32>().unwrap());
            optimiser.backward_step(&loss).unwrap();
        }
        assert!(losses[0] > 0.0 && losses[29] < 0.5 * losses[0], "{losses:?}");
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let (model, first, last) = overfit(build, &batch, 150, 1e-2);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.2 * first, "{first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    }
}
