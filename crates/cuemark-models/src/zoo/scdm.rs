//! SCDM: temporal convolutions whose normalisation the query modulates position by position, with anchors on every map.
//! Yuan et al., "Semantic Conditioned Dynamic Modulation for Temporal Sentence Grounding in Videos", NeurIPS 2019.
//!
//! Re-derived from the published TensorFlow graph (simple recurrent units for the sentence, where the paper says GRU).
//! Differs from it: videos with more rows than the grid are averaged instead of cut, so that no moment is out of reach;
//! running statistics move by a tenth; published word vectors are not trained further.

use candle_core::{D, DType, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{bce_with_logits, mask_out, masked_mean, sigmoid, softmax};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{BatchNorm, Conv1d, Linear, QueryWords, Steps, WordSource, linear, linear_no_bias, uniform};
use crate::losses::smooth_l1;
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "scdm",
    title: "SCDM",
    paper: "Yuan et al., Semantic Conditioned Dynamic Modulation for Temporal Sentence Grounding in Videos, NeurIPS 2019",
    family: Family::Regression,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "the query modulates the normalisation of a temporal pyramid at every position; anchors on every map",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "grid = 1024\nmaps = 7\nfirst_kernel = 5\nsentence_blocks = 2\nmin_anchor = 1.0\nnms = 0.55\n\
                       weights = { centre = 1.0, width = 1.0 }",
            visual: 4096,
            words: 300,
            millions: None,
        },
        FullSize { dataset: "charades-sta", settings: "grid = 64\nmaps = 5", visual: 1024, words: 300, millions: None },
        FullSize {
            dataset: "tacos",
            settings: "grid = 1024\nmaps = 5\nfirst_kernel = 5\nsentence_blocks = 2\nmin_anchor = 1.0\nmax_anchor = 64.0\n\
                       nms = 0.5\nnegative_iou = 0.5\nhard_logit = 0.1\nweights = { centre = 10.0, width = 10.0 }",
            visual: 4096,
            words: 300,
            millions: None,
        },
    ],
    build: |table, given, vb| Ok(Box::new(Scdm::new(&read_settings("scdm", table)?, given, vb)?)),
    settings: |table| fill_settings::<ScdmConfig>("scdm", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScdmConfig {
    /// Positions of the grid; longer videos are averaged to so many, shorter ones end in zeros.
    pub grid: usize,
    /// Anchor maps; the first has a quarter of the grid's positions, each other half of the one before.
    pub maps: usize,
    /// Width of the sentence's units, each way, and of the attention. Default: 256
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Channels of the convolutions. Default: 512
    #[serde(default = "channels")]
    pub channels: usize,
    /// Channels inside a prediction branch. Default: 64
    #[serde(default = "branch")]
    pub branch: usize,
    /// Length of the first convolution and of the first block's. Default: 3
    #[serde(default = "first_kernel")]
    pub first_kernel: usize,
    /// Leading blocks that read the sentence's mean instead of attending to words. Default: 0
    #[serde(default)]
    pub sentence_blocks: usize,
    /// Widths of anchors as shares of a map's cell. Default: 0.25, 0.5, 0.75, 1
    #[serde(default = "ratios")]
    pub ratios: Vec<f64>,
    /// Anchors no wider than this are left out, in positions. Default: 0
    #[serde(default)]
    pub min_anchor: f64,
    /// Anchors at least so wide are left out, in positions. Default: none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_anchor: Option<f64>,
    /// Anchors with more overlap are positives. Default: 0.5
    #[serde(default = "positive_iou")]
    pub positive_iou: f64,
    /// Anchors with less overlap are negatives. Default: 0.3
    #[serde(default = "negative_iou")]
    pub negative_iou: f64,
    /// Negatives with a higher logit are hard. Default: 2.0
    #[serde(default = "hard_logit")]
    pub hard_logit: f64,
    /// How far offsets reach, as a share of the anchor's width. Default: 0.1
    #[serde(default = "offset_scale")]
    pub offset_scale: OffsetScale,
    /// Weights of the losses.
    #[serde(default)]
    pub weights: Weights,
    /// What is added to the variance that a block divides by. Default: 1e-6
    #[serde(default = "modulation_eps")]
    pub modulation_eps: f64,
    /// The same in the prediction branches' batch norms. Default: 1e-3
    #[serde(default = "batch_norm_eps")]
    pub batch_norm_eps: f64,
    /// Share of the sentence's states dropped. Default: 0.2
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Where word vectors come from. Default: given
    #[serde(default)]
    pub word_vectors: WordSource,
    /// Overlap above which the worse of two answers is dropped. Default: 0.7
    #[serde(default = "nms")]
    pub nms: f64,
}

/// How far an offset of 1 moves an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffsetScale {
    /// Its centre, as a share of its width.
    pub centre: f64,
    /// The logarithm of its width.
    pub width: f64,
}

/// Weights of the losses of every map.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// Scores of positives. Default: 100
    pub positive: f64,
    /// Scores of hard negatives. Default: 50
    pub hard: f64,
    /// Scores of other negatives. Default: 50
    pub easy: f64,
    /// Centres of positives. Default: 50
    pub centre: f64,
    /// Widths of positives. Default: 20
    pub width: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { positive: 100.0, hard: 50.0, easy: 50.0, centre: 50.0, width: 20.0 }
    }
}

fn hidden() -> usize {
    256
}

fn channels() -> usize {
    512
}

fn branch() -> usize {
    64
}

fn first_kernel() -> usize {
    3
}

fn ratios() -> Vec<f64> {
    vec![0.25, 0.5, 0.75, 1.0]
}

fn positive_iou() -> f64 {
    0.5
}

fn negative_iou() -> f64 {
    0.3
}

fn hard_logit() -> f64 {
    2.0
}

fn offset_scale() -> OffsetScale {
    OffsetScale { centre: 0.1, width: 0.1 }
}

fn dropout() -> f64 {
    0.2
}

fn nms() -> f64 {
    0.7
}

fn modulation_eps() -> f64 {
    1e-6
}

/// TensorFlow's default.
fn batch_norm_eps() -> f64 {
    1e-3
}

/// More than any video could fill.
const MAX_MAPS: usize = 24;

/// The network.
#[derive(Debug)]
pub struct Scdm {
    config: ScdmConfig,
    words: QueryWords,
    sentence: [SimpleUnit; 2],
    fuse: Linear,
    first: SameConv,
    blocks: Vec<Block>,
    overlap: Vec<Branch>,
    offsets: Vec<Branch>,
    anchors: Vec<Vec<Anchor>>,
}

/// A simple recurrent unit.
#[derive(Debug)]
struct SimpleUnit {
    new: Linear,
    gates: Linear,
    hidden: usize,
}

/// A convolution padded as TensorFlow's `SAME`: of an odd number of zeros the last stands on the right.
#[derive(Debug)]
struct SameConv {
    conv: Conv1d,
    kernel: usize,
    stride: usize,
}

/// Modulation by the query, ReLU, convolution.
#[derive(Debug)]
struct Block {
    attention: Option<WordAttention>,
    gamma: Linear,
    beta: Linear,
    conv: SameConv,
    eps: f64,
}

/// What a block is modulated by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// The words that each position attends to.
    Words,
    /// The mean of all words.
    Sentence,
}

/// Additive attention of every position over words.
#[derive(Debug)]
struct WordAttention {
    from_position: Linear,
    from_word: Linear,
    bias: Tensor,
    score: Tensor,
}

/// Batch norm, ReLU, convolution, twice.
#[derive(Debug)]
struct Branch {
    first: (BatchNorm, SameConv),
    second: (BatchNorm, SameConv),
}

/// A candidate span of one map, in positions.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    centre: f64,
    width: f64,
}

/// What one map says, `[batch, anchors]` each.
struct MapOut {
    features: Tensor,
    logits: Tensor,
    /// `[batch, cells, 2 × widths]`, centre and width in turn.
    offsets: Tensor,
    centres: Tensor,
    widths: Tensor,
}

/// Everything on the way to the maps.
struct Forward {
    words: Tensor,
    sentence: Tensor,
    /// Word attention of the blocks that have one, `[batch, positions, words]`.
    attention: Vec<Tensor>,
    maps: Vec<MapOut>,
}

/// The losses of one map, unweighted but for the last.
struct MapLoss {
    positive: Tensor,
    hard: Tensor,
    easy: Tensor,
    centre: Tensor,
    width: Tensor,
    weighted: Tensor,
}

impl Scdm {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for a grid that the maps do not divide.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &ScdmConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        if !(1..=MAX_MAPS).contains(&config.maps) || config.grid == 0 || !config.grid.is_multiple_of(2 << config.maps) {
            let problem = format!("`grid` = {} cannot be halved for {} `maps`", config.grid, config.maps);
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let (hidden, channels, widths) = (config.hidden, config.channels, config.ratios.len());
        let block = |number: usize| {
            let kernel = if number == 0 { config.first_kernel } else { 3 };
            let stride = if number == 0 { 1 } else { 2 };
            let reads = if number < config.sentence_blocks { Reads::Sentence } else { Reads::Words };
            Block::new(config, kernel, stride, reads, &vb.pp("blocks").pp(number))
        };
        let branch = |name: &str, outputs: usize| -> Result<Vec<Branch>> {
            let branch = |map: usize| Branch::new(config, outputs, &vb.pp(name).pp(map));
            (0..config.maps).map(branch).collect()
        };
        Ok(Self {
            words: QueryWords::new(config.word_vectors, given, "Wemb", &vb)?,
            sentence: [
                SimpleUnit::new(given.words, hidden, &vb.pp("fw"))?,
                SimpleUnit::new(given.words, hidden, &vb.pp("bw"))?,
            ],
            fuse: linear(given.visual + 2 * hidden, channels, vb.pp("fuse"))?,
            first: SameConv::new(channels, channels, config.first_kernel, 1, &vb.pp("conv1"))?,
            blocks: (0..=config.maps).map(block).collect::<Result<_>>()?,
            overlap: branch("overlap", widths)?,
            offsets: branch("reg", 2 * widths)?,
            anchors: config.anchors(),
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, grid, d_visual]`; words `[batch, words, d_word]`
    fn forward(&self, visual: &Tensor, words: &Tensor, lengths: &[usize], pass: &Pass) -> Result<Forward> {
        let (words, mask) = self.word_states(words, lengths)?;
        let words = pass.dropout(&words, self.config.dropout)?;
        let sentence = masked_mean(&words, &mask.unsqueeze(2)?, 1)?;
        let (batch, grid, _) = visual.dims3()?;
        let beside = sentence.unsqueeze(1)?.broadcast_as((batch, grid, sentence.dim(1)?))?.contiguous()?;
        let mut x = self.fuse.forward(&Tensor::cat(&[visual, &beside], 2)?)?.relu()?;
        x = self.first.forward(&x)?;
        let (mut attention, mut maps) = (Vec::new(), Vec::new());
        for (number, block) in self.blocks.iter().enumerate() {
            let (next, weights) = block.forward(&x, &words, &sentence, &mask)?;
            attention.extend(weights);
            x = next;
            if number == 0 {
                x = halved(&x)?;
            } else {
                maps.push(self.read(number - 1, &x, pass)?);
            }
        }
        Ok(Forward { words, sentence, attention, maps })
    }

    /// States of all words, zero at padding, and 1 at real ones, `[batch, words]`.
    fn word_states(&self, words: &Tensor, lengths: &[usize]) -> Result<(Tensor, Tensor)> {
        let (batch, count, width) = words.dims3()?;
        let real = lengths.iter().flat_map(|length| (0..count).map(move |word| f32::from(u8::from(word < *length))));
        let mask = Tensor::from_vec(real.collect::<Vec<f32>>(), (batch, count), words.device())?;
        let turned = |(row, length): (usize, &usize)| {
            let length = (*length).min(count);
            (0..count).map(move |word| (row * count + if word < length { length - 1 - word } else { word }) as u32)
        };
        let turned = Tensor::new(lengths.iter().enumerate().flat_map(turned).collect::<Vec<u32>>(), words.device())?;
        let turn = |x: &Tensor, width: usize| -> Result<Tensor> {
            let rows = x.reshape((batch * count, width))?.index_select(&turned, 0)?;
            Ok(rows.reshape((batch, count, width))?)
        };
        let [forward, backward] = &self.sentence;
        let backward = turn(&backward.forward(&turn(words, width)?)?, self.config.hidden)?;
        let states = Tensor::cat(&[forward.forward(words)?, backward], 2)?;
        Ok((states.broadcast_mul(&mask.unsqueeze(2)?)?, mask))
    }

    /// What map `map` says about its anchors.
    fn read(&self, map: usize, x: &Tensor, pass: &Pass) -> Result<MapOut> {
        let (batch, count) = (x.dim(0)?, self.anchors[map].len());
        let logits = self.overlap[map].forward(x, pass)?.reshape((batch, count))?;
        let offsets = self.offsets[map].forward(x, pass)?.tanh()?;
        let both = offsets.reshape((batch, count, 2))?;
        let part = |number: usize, scale: f64| both.narrow(2, number, 1)?.squeeze(2)? * scale;
        let of_anchors = |value: fn(&Anchor) -> f64| {
            let values: Vec<f32> = self.anchors[map].iter().map(|anchor| value(anchor) as f32).collect();
            Tensor::from_vec(values, (1, count), x.device())
        };
        let (centres, widths) = (of_anchors(|anchor| anchor.centre)?, of_anchors(|anchor| anchor.width)?);
        let scale = self.config.offset_scale;
        Ok(MapOut {
            centres: part(0, scale.centre)?.broadcast_mul(&widths)?.broadcast_add(&centres)?,
            widths: part(1, scale.width)?.exp()?.broadcast_mul(&widths)?,
            features: x.clone(),
            logits,
            offsets,
        })
    }

    /// The clips of a batch on the grid: zeros after the last.
    fn on_grid(&self, visual: &Tensor) -> Result<Tensor> {
        let (clips, grid) = (visual.dim(1)?, self.config.grid);
        Ok(match clips.cmp(&grid) {
            std::cmp::Ordering::Less => visual.pad_with_zeros(1, 0, grid - clips)?,
            std::cmp::Ordering::Equal => visual.clone(),
            std::cmp::Ordering::Greater => visual.narrow(1, 0, grid)?.contiguous()?,
        })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let words = self.words.forward(&batch.queries)?;
        self.forward(&self.on_grid(&batch.videos.visual)?, &words, &batch.queries.lengths, pass)
    }

    /// Overlap of every anchor of a map with each of `spans` (in positions), `[spans, anchors]`.
    fn ious(&self, map: usize, spans: &[(f64, f64)], like: &Tensor) -> Result<Tensor> {
        let of_span = |(start, end): &(f64, f64)| {
            let (start, end) = (*start, *end);
            self.anchors[map].iter().map(move |anchor| {
                let (from, to) = anchor.ends();
                let inter = (end.min(to) - start.max(from)).max(0.0);
                let union = end.max(to) - start.min(from);
                if union > 0.0 { (inter / union) as f32 } else { 0.0 }
            })
        };
        let values: Vec<f32> = spans.iter().flat_map(of_span).collect();
        Ok(Tensor::from_vec(values, (spans.len(), self.anchors[map].len()), like.device())?)
    }

    fn map_loss(&self, map: usize, out: &MapOut, spans: &[(f64, f64)]) -> Result<MapLoss> {
        let ious = self.ious(map, spans, &out.logits)?;
        let legal: Vec<f32> =
            self.anchors[map].iter().map(|anchor| f32::from(u8::from(self.config.is_legal(*anchor)))).collect();
        let legal = Tensor::from_vec(legal, (1, self.anchors[map].len()), out.logits.device())?;
        let positive = ious.gt(self.config.positive_iou)?.to_dtype(DType::F32)?.broadcast_mul(&legal)?;
        let negative = ious.lt(self.config.negative_iou)?.to_dtype(DType::F32)?.broadcast_mul(&legal)?;
        let hard = out.logits.gt(self.config.hard_logit)?.to_dtype(DType::F32)?.mul(&negative)?;
        let easy = (negative - &hard)?;
        let entropy = bce_with_logits(&out.logits, &ious)?;
        let truth = |value: fn(&(f64, f64)) -> f64| {
            let values: Vec<f32> = spans.iter().map(|span| value(span) as f32).collect();
            Tensor::from_vec(values, (spans.len(), 1), out.logits.device())
        };
        let mean_over = |each: &Tensor, mask: &Tensor| -> Result<Tensor> {
            Ok(each.mul(mask)?.sum_all()?.div(&mask.sum_all()?.maximum(1.0)?)?)
        };
        let centre = smooth_l1(&out.centres.broadcast_sub(&truth(|span| span.0.midpoint(span.1))?)?)?;
        let width = smooth_l1(&out.widths.broadcast_sub(&truth(|span| span.1 - span.0)?)?)?;
        let mut loss = MapLoss {
            positive: mean_over(&entropy, &positive)?,
            hard: mean_over(&entropy, &hard)?,
            easy: mean_over(&entropy, &easy)?,
            centre: mean_over(&centre, &positive)?,
            width: mean_over(&width, &positive)?,
            weighted: Tensor::zeros((), DType::F32, out.logits.device())?,
        };
        let weights = self.config.weights;
        for (part, weight) in [
            (&loss.positive, weights.positive),
            (&loss.hard, weights.hard),
            (&loss.easy, weights.easy),
            (&loss.centre, weights.centre),
            (&loss.width, weights.width),
        ] {
            loss.weighted = (&loss.weighted + (part * weight)?)?;
        }
        Ok(loss)
    }

    /// Decoded anchors no longer than the video, best first, as fractions of its `length` real clips.
    fn rank(&self, query: usize, maps: &[[Vec<Vec<f32>>; 3]], length: usize) -> Vec<Proposal> {
        let whole = length.clamp(1, self.config.grid) as f64;
        let mut ranked = Vec::new();
        for (map, [scores, centres, widths]) in maps.iter().enumerate() {
            for (place, anchor) in self.anchors[map].iter().enumerate() {
                let (centre, width) = (f64::from(centres[query][place]), f64::from(widths[query][place]));
                let (start, end) = ((centre - width / 2.0).max(0.0), (centre + width / 2.0).min(whole));
                let fits = self.config.is_legal(*anchor) && width <= whole && start < end;
                let span = NormSpan::new(start / whole, end / whole).filter(|_| fits);
                ranked.extend(span.map(|span| Proposal { span, score: scores[query][place] }));
            }
        }
        if ranked.is_empty() {
            ranked.extend(NormSpan::new(0.0, 1.0).map(|span| Proposal { span, score: 0.0 }));
        }
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked
    }
}

impl ScdmConfig {
    fn anchors(&self) -> Vec<Vec<Anchor>> {
        let of_map = |map: usize| {
            let cells = self.grid >> (map + 2);
            let cell = self.grid as f64 / cells as f64;
            let of_cell = move |number: usize| {
                let centre = (number as f64 + 0.5) * cell;
                self.ratios.iter().map(move |ratio| Anchor { centre, width: ratio * cell })
            };
            (0..cells).flat_map(of_cell).collect()
        };
        (0..self.maps).map(of_map).collect()
    }

    fn is_legal(&self, anchor: Anchor) -> bool {
        anchor.width > self.min_anchor && self.max_anchor.is_none_or(|most| anchor.width < most)
    }
}

impl Anchor {
    fn ends(self) -> (f64, f64) {
        (self.centre - self.width / 2.0, self.centre + self.width / 2.0)
    }
}

/// The larger of every two steps.
fn halved(x: &Tensor) -> Result<Tensor> {
    let (batch, steps, channels) = x.dims3()?;
    let pairs = x.reshape((batch, steps / 2, 2, channels))?;
    let of_pair = |number: usize| pairs.narrow(2, number, 1)?.squeeze(2);
    Ok(of_pair(0)?.maximum(&of_pair(1)?)?)
}

impl SimpleUnit {
    fn new(inputs: usize, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            new: linear_no_bias(inputs, hidden, vb.pp("x_hat"))?,
            gates: linear(inputs, 2 * hidden, vb.pp("gates"))?,
            hidden,
        })
    }

    /// # Shapes
    /// - x `[batch, steps, inputs]`; returns `[batch, steps, hidden]`
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let new = self.new.forward(x)?;
        let gates = sigmoid(&self.gates.forward(x)?)?;
        let (forget, reset) = (gates.narrow(2, 0, self.hidden)?, gates.narrow(2, self.hidden, self.hidden)?);
        let mut state = Tensor::zeros((x.dim(0)?, self.hidden), x.dtype(), x.device())?;
        let mut states = Vec::with_capacity(x.dim(1)?);
        for step in 0..x.dim(1)? {
            let at = |x: &Tensor| x.narrow(1, step, 1)?.squeeze(1);
            let new = at(&new)?;
            state = (&new + (at(&forget)? * (state - &new)?)?)?.tanh()?;
            states.push(state.clone());
        }
        let states = Tensor::stack(&states, 1)?;
        Ok((&new + (reset * (states - &new)?)?)?)
    }
}

impl SameConv {
    fn new(inputs: usize, outputs: usize, kernel: usize, stride: usize, vb: &VarBuilder) -> Result<Self> {
        let steps = Steps { stride, ..Steps::default() };
        Ok(Self { conv: Conv1d::new(inputs, outputs, kernel, steps, vb.clone())?, kernel, stride })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let steps = x.dim(1)?;
        let outputs = steps.div_ceil(self.stride);
        let zeros = ((outputs - 1) * self.stride + self.kernel).saturating_sub(steps);
        Ok(self.conv.forward(&x.pad_with_zeros(1, zeros / 2, zeros - zeros / 2)?)?)
    }
}

impl Block {
    fn new(config: &ScdmConfig, kernel: usize, stride: usize, reads: Reads, vb: &VarBuilder) -> Result<Self> {
        let (channels, sentence) = (config.channels, 2 * config.hidden);
        let attention = match reads {
            Reads::Words => Some(WordAttention::new(channels, sentence, config.hidden, vb)?),
            Reads::Sentence => None,
        };
        Ok(Self {
            attention,
            gamma: linear(sentence, channels, vb.pp("sentence_gamma"))?,
            beta: linear(sentence, channels, vb.pp("sentence_beta"))?,
            conv: SameConv::new(channels, channels, kernel, stride, &vb.pp("conv"))?,
            eps: config.modulation_eps,
        })
    }

    /// # Shapes
    /// - x `[batch, positions, channels]`, words `[batch, words, 2 hidden]`, sentence `[batch, 2 hidden]`
    /// - returns `[batch, positions / stride, channels]` and the attention over words, if there is one
    fn forward(
        &self,
        x: &Tensor,
        words: &Tensor,
        sentence: &Tensor,
        mask: &Tensor,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let (context, weights) = match &self.attention {
            Some(attention) => {
                let weights = attention.forward(x, words, mask)?;
                (weights.times(words)?, Some(weights))
            }
            None => (sentence.unsqueeze(1)?, None),
        };
        let (gamma, beta) = (self.gamma.forward(&context)?.tanh()?, self.beta.forward(&context)?.tanh()?);
        // Statistics over time, padded positions included, as published.
        let centred = x.broadcast_sub(&x.mean_keepdim(1)?)?;
        let deviation = (centred.sqr()?.mean_keepdim(1)? + self.eps)?.sqrt()?;
        let modulated = centred.broadcast_div(&deviation)?.broadcast_mul(&gamma)?.broadcast_add(&beta)?;
        Ok((self.conv.forward(&modulated.relu()?)?, weights))
    }
}

impl WordAttention {
    fn new(channels: usize, words: usize, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            from_position: linear_no_bias(channels, hidden, vb.pp("W_k"))?,
            from_word: linear_no_bias(words, hidden, vb.pp("W_v"))?,
            bias: vb.get_with_hints(hidden, "b", Init::Const(0.0))?,
            score: vb.get_with_hints(hidden, "W_interaction", uniform(hidden))?,
        })
    }

    /// # Shapes
    /// - x `[batch, positions, channels]`, words `[batch, words, 2 hidden]`, mask `[batch, words]`
    /// - returns `[batch, positions, words]`, rows of sum 1
    fn forward(&self, x: &Tensor, words: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let from_words = self.from_word.forward(words)?.broadcast_add(&self.bias)?.unsqueeze(1)?;
        let both = self.from_position.forward(x)?.unsqueeze(2)?.broadcast_add(&from_words)?.tanh()?;
        let scores = both.broadcast_mul(&self.score)?.sum(D::Minus1)?;
        Ok(softmax(&mask_out(&scores, &mask.unsqueeze(1)?, -1e8)?, D::Minus1)?)
    }
}

impl Branch {
    fn new(config: &ScdmConfig, outputs: usize, vb: &VarBuilder) -> Result<Self> {
        let layer = |inputs: usize, outputs: usize, number: usize| -> Result<(BatchNorm, SameConv)> {
            let norm = BatchNorm::new(inputs, vb.pp(format!("bn{number}")))?.with_eps(config.batch_norm_eps);
            Ok((norm, SameConv::new(inputs, outputs, 3, 1, &vb.pp(format!("conv{number}")))?))
        };
        Ok(Self { first: layer(config.channels, config.branch, 1)?, second: layer(config.branch, outputs, 2)? })
    }

    fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let run = |(norm, conv): &(BatchNorm, SameConv), x: &Tensor| conv.forward(&norm.forward(x, pass)?.relu()?);
        run(&self.second, &run(&self.first, x)?)
    }
}

impl Model for Scdm {
    fn input(&self) -> Input {
        let rows = self.config.grid;
        Input { normalise: Normalise::None, resample: Resample::MeanBinsIfLonger { rows }, ..Input::pairs(rows) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let spans = &batch.targets(CARD.name)?.spans;
        let spans: Vec<(f64, f64)> = spans
            .iter()
            .zip(&batch.videos.lengths)
            .map(|(span, length)| (span.start() * *length as f64, span.end() * *length as f64))
            .collect();
        let forward = self.of_batch(batch, pass)?;
        let mut total = Tensor::zeros((), DType::F32, batch.videos.visual.device())?;
        for (map, out) in forward.maps.iter().enumerate() {
            total = (total + self.map_loss(map, out, &spans)?.weighted)?;
        }
        Ok(total.into())
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let forward = self.of_batch(batch, &Pass::answering())?;
        let read = |out: &MapOut| -> Result<[Vec<Vec<f32>>; 3]> {
            Ok([sigmoid(&out.logits)?.to_vec2()?, out.centres.to_vec2()?, out.widths.to_vec2()?])
        };
        let maps = forward.maps.iter().map(read).collect::<Result<Vec<_>>>()?;
        let lengths = batch.videos.lengths.iter().enumerate();
        Ok(lengths.map(|(query, length)| self.rank(query, &maps, *length)).collect())
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let visual = fixture.input("video")?;
    let ratios = fixture.config("ratios")?;
    let config = ScdmConfig {
        grid: fixture.number("grid")?,
        maps: fixture.numbers("maps")?.len(),
        hidden: fixture.number("h")?,
        channels: fixture.number("channels")?,
        branch: fixture.number("pred_hidden")?,
        first_kernel: fixture.shape("conv1.weight")?.last().copied().unwrap_or(3),
        sentence_blocks: 0,
        ratios: serde_json::from_value(ratios.clone())
            .map_err(|_| fixture.fault("config.ratios", format!("{ratios} is no list of numbers")))?,
        min_anchor: 0.0,
        max_anchor: None,
        positive_iou: fixture.real("thresholds.pos")?,
        negative_iou: fixture.real("thresholds.neg")?,
        hard_logit: fixture.real("thresholds.hard_logit")?,
        offset_scale: OffsetScale {
            centre: fixture.real("offset_scale.center")?,
            width: fixture.real("offset_scale.width")?,
        },
        weights: Weights {
            positive: fixture.real("loss_weights.pos")?,
            hard: fixture.real("loss_weights.hard")?,
            easy: fixture.real("loss_weights.easy")?,
            centre: fixture.real("loss_weights.center")?,
            width: fixture.real("loss_weights.width")?,
        },
        modulation_eps: fixture.real("modulation_eps")?,
        batch_norm_eps: fixture.real("batchnorm_eps")?,
        dropout: 0.0,
        word_vectors: WordSource::Own,
        nms: nms(),
    };
    let table = fixture.tensor("param.Wemb")?.dims2()?;
    let net = Scdm::new(&config, &Given::widths(visual.dim(2)?, table.1, table.0), vb.clone())?;
    let words = net.words.look_up(&fixture.ids("words")?, &visual)?;
    let forward = net.forward(&visual, &words, &fixture.counts("words_len")?, &Pass::answering())?;
    let truth = fixture.input("gt")?.to_vec2::<f32>()?;
    let spans: Vec<(f64, f64)> = truth.iter().map(|row| (f64::from(row[0]), f64::from(row[1]))).collect();

    let mut trace = Trace::new();
    trace.out("word_states", &forward.words);
    trace.out("sentence", &forward.sentence);
    if let Some(first) = forward.attention.first() {
        trace.out("attention_block0", first);
    }
    let mut total = Tensor::zeros((), DType::F32, visual.device())?;
    for (map, out) in forward.maps.iter().enumerate() {
        let (batch, cells, widths) = (visual.dim(0)?, out.features.dim(1)?, config.ratios.len());
        let ends: Vec<f32> =
            net.anchors[map].iter().flat_map(|anchor| [anchor.ends().0 as f32, anchor.ends().1 as f32]).collect();
        let half = (&out.widths * 0.5)?;
        let decoded = Tensor::stack(&[(&out.centres - &half)?, (&out.centres + &half)?], 2)?;
        let per_cell = |x: &Tensor| x.reshape((batch, cells, widths));
        trace.out(&format!("anchor_features_{map}"), &out.features.transpose(1, 2)?);
        trace.out(&format!("anchors_{map}"), &Tensor::from_vec(ends, (cells, widths, 2), visual.device())?);
        trace.out(&format!("decoded_{map}"), &decoded.reshape((batch, cells, widths, 2))?);
        trace.out(&format!("iou_target_{map}"), &per_cell(&net.ious(map, &spans, &visual)?)?);
        trace.out(&format!("offsets_{map}"), &out.offsets);
        trace.out(&format!("overlap_logits_{map}"), &per_cell(&out.logits)?);
        let loss = net.map_loss(map, out, &spans)?;
        for (name, part) in [
            ("pos", &loss.positive),
            ("hard", &loss.hard),
            ("easy", &loss.easy),
            ("center", &loss.centre),
            ("width", &loss.width),
            ("weighted", &loss.weighted),
        ] {
            trace.loss(&format!("map{map}_{name}"), part);
        }
        total = (total + loss.weighted)?;
    }
    trace.loss("total", &total);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config(sentence_blocks: usize) -> ScdmConfig {
        let settings = format!(
            "grid = 8\nmaps = 2\nhidden = 6\nchannels = 12\nbranch = 8\ndropout = 0.0\nsentence_blocks = {sentence_blocks}\n\
             ratios = [0.375, 0.5, 0.625, 0.75, 1.0]"
        );
        read_settings("scdm", &settings.parse().unwrap()).unwrap()
    }

    fn net(sentence_blocks: usize) -> Scdm {
        Scdm::new(&config(sentence_blocks), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_anchor_of_every_map_is_proposed() {
        for sentence_blocks in [0, 2] {
            let ranked = net(sentence_blocks).propose(&TOY.batch(1)).unwrap();
            assert_eq!(ranked.len(), TOY.pairs);
            for proposals in ranked {
                // Maps of 2 and 1 cells with 5 widths; an anchor as wide as the video may have grown beyond it.
                assert!((14..=15).contains(&proposals.len()), "{}", proposals.len());
                assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
            }
        }
    }

    #[test]
    fn the_published_grid_has_124_anchors() {
        let settings = "grid = 64\nmaps = 5".parse().unwrap();
        let config: ScdmConfig = read_settings("scdm", &settings).unwrap();
        let anchors: Vec<Anchor> = config.anchors().into_iter().flatten().collect();
        assert_eq!(anchors.len(), 124);
        assert!(anchors.iter().all(|anchor| anchor.ends().0 >= 0.0 && anchor.ends().1 <= 64.0));
    }

    #[test]
    fn padding_changes_nothing() {
        let (net, batch) = (net(0), TOY.batch(1));
        let logits = |batch: &Batch| {
            let forward = net.of_batch(batch, &Pass::answering()).unwrap();
            Tensor::cat(&forward.maps.iter().map(|map| &map.logits).collect::<Vec<_>>(), 1).unwrap()
        };
        assert!(gap(&logits(&batch), &logits(&batch.with_longer_words(3))) < 1e-6);
        assert!(gap(&logits(&batch), &logits(&batch.with_longer_videos(3))) < 1e-6);
    }

    #[test]
    fn a_grid_that_cannot_be_halved_is_refused() {
        let config = ScdmConfig { grid: 12, ..config(0) };
        let refused = Scdm::new(&config, &TOY.given(), Params::counted().builder()).unwrap_err().to_string();
        assert_eq!(refused, "`[model]` of `scdm`: `grid` = 12 cannot be halved for 2 `maps`");
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        // Anchors stand on a coarse grid: the moments are put where anchors can reach them.
        let mut batch = TOY.batch(1);
        let spans = [(0.0, 0.5), (0.25, 0.75), (0.5, 1.0), (0.2, 0.8)];
        batch.targets.as_mut().unwrap().spans =
            spans.iter().map(|(start, end)| NormSpan::new(*start, *end).unwrap()).collect();
        let build =
            |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Scdm::new(&config(0), &TOY.given(), vb)?)) };
        let (model, first, last) = overfit(build, &batch, 120, 5e-3);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.7 * first, "{first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    }
}
