//! MS-DETR: a pyramid of clips that looks at the words while it shrinks, then proposals refined layer by layer from what each
//! covers on every level.
//! Wang et al., "MS-DETR: Natural Language Video Localization with Sampling Moment-Moment Interaction", ACL 2023.
//!
//! As published, the head that guesses hidden words reads their embeddings, which have not seen the video; `word_head =
//! "encoded"` lets it read what the encoder made of them. The last encoder layer then has an effect; else it is not computed.
//! Groups of proposals that the authors' code builds and does not use are left out. Proposals begin half as long as the video,
//! in the code an eighth.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{bce_with_logits, gelu, log_softmax, sigmoid, softmax};
use cuemark_tensor::{DType, Pass};
use cuemark_text::Vocabulary;
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{Conv1d, DecoderLayer, LayerNorm, Linear, Steps, TransformerSize, linear, see_only};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, QueryBatch, Result,
    Supervision, Task, fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "ms-detr",
    title: "MS-DETR",
    paper: "Wang et al., MS-DETR: Natural Language Video Localization with Sampling Moment-Moment Interaction, ACL 2023",
    family: Family::Span,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "learned proposals, refined layer by layer from what each covers on a pyramid of clips",
    full_sizes: &[
        FullSize { dataset: "activitynet-captions", settings: "", visual: 500, words: 300, millions: None },
        FullSize { dataset: "charades-sta", settings: "", visual: 1024, words: 300, millions: None },
        FullSize { dataset: "tacos", settings: "", visual: 4096, words: 300, millions: None },
    ],
    build: |table, given, vb| Ok(Box::new(MsDetr::new(&read_settings("ms-detr", table)?, given, vb)?)),
    settings: |table| fill_settings::<MsDetrConfig>("ms-detr", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MsDetrConfig {
    /// Clips that every video is brought to; halved twice. Default: 128
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 100
    pub words: usize,
    /// Width of everything. Default: 512
    pub hidden: usize,
    /// Heads of the attention. Default: 16
    pub heads: usize,
    /// Width inside the feed-forward parts. Default: 512
    pub ffn: usize,
    /// For every encoder layer, how much fewer clips are looked at than there are. Default: 4, 2, 1, 1, 1
    pub reduce: Vec<usize>,
    /// For every encoder layer, whether the clips are halved before it. Default: yes, yes, no, no, no
    pub halve: Vec<bool>,
    /// The encoder layers whose inputs are the levels of the pyramid. Default: 0, 1, 4
    pub levels: Vec<usize>,
    /// Layers of the decoder. Default: 3
    pub decoder_layers: usize,
    /// Learned proposals. Default: 300
    pub proposals: usize,
    /// Pieces that a proposal is cut into on every level. Default: 4
    pub pieces: usize,
    /// What the head that guesses hidden words reads. Default: embedded
    pub word_head: WordHead,
    /// The most frequent words that are guessed; rarer ones count as unknown. Default: all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// Share of words hidden while training. Default: 0.15
    pub hide: f64,
    /// How many of the nearest proposals are right and drawn to the span. Default: 1
    pub best: usize,
    /// Overlap below which any other proposal is wrong. Default: 0.7
    pub min_iou: f64,
    /// Weight of every decoder layer. Default: 0.1, 0.5, 5.0
    pub layer_weights: Vec<f64>,
    /// Weight of the scores within a layer. Default: 5.0
    pub score_weight: f64,
    /// Weight of the distance within a layer. Default: 1.0
    pub distance_weight: f64,
    /// Weight of telling clips inside the span from those outside. Default: 5.0
    pub inside_weight: f64,
    /// Weight of guessing hidden words. Default: 0.5
    pub word_weight: f64,
    /// How little easy examples count. Default: 2.0
    pub focus: f64,
    /// Weight of right proposals among scores. Default: 0.25
    pub score_balance: f64,
    /// Weight of clips inside the span. Default: 0.5
    pub inside_balance: f64,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
}

impl Default for MsDetrConfig {
    fn default() -> Self {
        Self {
            clips: 128,
            words: 100,
            hidden: 512,
            heads: 16,
            ffn: 512,
            reduce: vec![4, 2, 1, 1, 1],
            halve: vec![true, true, false, false, false],
            levels: vec![0, 1, 4],
            decoder_layers: 3,
            proposals: 300,
            pieces: 4,
            word_head: WordHead::Embedded,
            vocabulary: None,
            hide: 0.15,
            best: 1,
            min_iou: 0.7,
            layer_weights: vec![0.1, 0.5, 5.0],
            score_weight: 5.0,
            distance_weight: 1.0,
            inside_weight: 5.0,
            word_weight: 0.5,
            focus: 2.0,
            score_balance: 0.25,
            inside_balance: 0.5,
            dropout: 0.1,
        }
    }
}

/// What the head that guesses hidden words reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WordHead {
    /// Words before they have seen the video, as in the published code.
    Embedded,
    /// Words as they leave the encoder.
    Encoded,
}

/// Added to a variance before its root in the encoder.
const EPS: f64 = 1e-12;

/// The network.
#[derive(Debug)]
pub struct MsDetr {
    config: MsDetrConfig,
    vocabulary: usize,
    clips_in: Linear,
    clip_norm: LayerNorm,
    clip_places: Tensor,
    words_in: Linear,
    word_norm: LayerNorm,
    word_places: Tensor,
    hidden_word: Tensor,
    encoder: Vec<EncoderLayer>,
    proposals: Tensor,
    decoder: Vec<Refinement>,
    stages_in: Linear,
    stages: Vec<Mlp>,
    guess: Mlp,
}

/// One layer of the decoder with its heads.
#[derive(Debug)]
struct Refinement {
    layer: DecoderLayer,
    score: Mlp,
    offset: Mlp,
    pool: Mlp,
}

/// What one layer of the decoder proposes: start and end as fractions, `[batch, proposals, 2]`, and a logit.
struct Proposed {
    bounds: Tensor,
    scores: Tensor,
}

struct Forward {
    words: Tensor,
    encoded_words: Tensor,
    levels: Vec<Tensor>,
    layers: Vec<Proposed>,
    stages: Tensor,
}

/// Words `[batch, words, width]`, 1 where one is real and 1 where one is hidden, `[batch, words]` both.
struct Asked<'a> {
    words: &'a Tensor,
    mask: &'a Tensor,
    hidden: Option<&'a Tensor>,
}

/// What is to be found: start and end `[batch, 2]`, numbers of the words and which of them count.
struct Truth<'a> {
    bounds: &'a Tensor,
    ids: &'a Tensor,
    guessed: Option<&'a Tensor>,
}

/// The parts of the loss.
struct Losses {
    layers: Vec<Tensor>,
    inside: Tensor,
    words: Tensor,
}

impl MsDetr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for levels that no encoder layer begins with.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &MsDetrConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let MsDetrConfig { hidden, heads, ffn, dropout, .. } = *config;
        let layers = config.reduce.len();
        if config.halve.len() != layers
            || config.levels.is_empty()
            || config.levels.iter().any(|level| *level >= layers)
        {
            let problem = "`reduce` and `halve` need one value per encoder layer, `levels` numbers of such layers";
            return Err(ModelError::Settings { model: CARD.name, problem: problem.to_owned() });
        }
        let vocabulary = config.vocabulary.unwrap_or(given.vocabulary);
        let (body, head) = (vb.pp("backbone"), vb.pp("head"));
        let small = Init::Randn { mean: 0.0, stdev: 0.02 };
        let table = |rows: usize, name: &str| body.pp(name).get_with_hints((rows, hidden), "weight", small);
        let size = TransformerSize { width: hidden, heads, ffn, dropout };
        let refinement = |number: usize| -> Result<Refinement> {
            let of = |name: &str| head.pp(name).pp(number);
            let pooled = config.levels.len() * config.pieces * hidden;
            Ok(Refinement {
                layer: DecoderLayer::new(size, of("layers"))?,
                score: Mlp::new([hidden, hidden, 1], &of("score_heads"))?,
                offset: Mlp::offset(hidden, &of("bbox_heads"))?,
                pool: Mlp::new([pooled, hidden, hidden], &of("pool_ffns"))?,
            })
        };
        let stage = |number: usize| Mlp::new([hidden, hidden, 1], &vb.pp("stage_mlps").pp(number));
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        Ok(Self {
            clips_in: linear(given.visual, hidden, body.pp("vid_proj"))?,
            clip_norm: LayerNorm::new(hidden, EPS, body.pp("vid_ln"))?,
            clip_places: table(config.clips, "vid_pe")?,
            words_in: linear(given.words, hidden, body.pp("txt_proj"))?,
            word_norm: LayerNorm::new(hidden, EPS, body.pp("txt_ln"))?,
            word_places: table(config.words, "txt_pe")?,
            hidden_word: table(1, "mask_embedding")?,
            encoder: (0..layers)
                .map(|number| EncoderLayer::new(config, number, &body.pp("encoder")))
                .collect::<Result<_>>()?,
            proposals: head.pp("query_embeddings.0").get_with_hints((config.proposals, hidden), "weight", normal)?,
            decoder: (0..config.decoder_layers).map(refinement).collect::<Result<_>>()?,
            stages_in: linear(hidden, 3 * hidden, vb.pp("stage_mlp1"))?,
            stages: (0..3).map(stage).collect::<Result<_>>()?,
            guess: Mlp::new([hidden, hidden, vocabulary], &vb.pp("text_mlp"))?,
            vocabulary,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, clips, d_visual]`, all real
    fn forward(&self, visual: &Tensor, asked: &Asked, pass: &Pass) -> Result<Forward> {
        let drop = |x: &Tensor| pass.dropout(x, self.config.dropout);
        let mut clips = self.clips_in.forward(visual)?.broadcast_add(&self.clip_places)?;
        clips = drop(&self.clip_norm.forward(&clips)?)?;
        let mut words = self.words_in.forward(asked.words)?;
        if let Some(hidden) = asked.hidden {
            let hidden = hidden.unsqueeze(2)?;
            let stand_in = self.hidden_word.unsqueeze(0)?.broadcast_mul(&hidden)?;
            words = (words.broadcast_mul(&hidden.affine(-1.0, 1.0)?)? + stand_in)?;
        }
        let places = self.word_places.narrow(0, 0, words.dim(1)?)?;
        let words = drop(&self.word_norm.forward(&words.broadcast_add(&places)?)?)?;

        let needed = self.config.levels.iter().max().copied().unwrap_or_default();
        let bias = see_only(asked.mask)?;
        let mut places = self.clip_places.unsqueeze(0)?;
        let mut encoded_words = words.clone();
        let mut states = Vec::with_capacity(self.encoder.len());
        for (number, layer) in self.encoder.iter().enumerate() {
            if layer.halve {
                (clips, places) = layer.halved(&clips, &places)?;
            }
            states.push(clips.clone());
            if number == needed && self.config.word_head == WordHead::Embedded {
                break; // nothing reads what later layers would make
            }
            encoded_words = layer.word_norm.forward(&layer.words.forward(&encoded_words)?)?;
            (clips, encoded_words) = layer.forward(&clips, &encoded_words, &bias, pass)?;
        }
        let levels: Vec<Tensor> = self.config.levels.iter().filter_map(|level| states.get(*level).cloned()).collect();
        let memory = levels.last().unwrap_or(&clips);
        let layers = self.decode(memory, &levels, pass)?;
        let parts = self.stages_in.forward(memory)?;
        let stage = |(number, mlp): (usize, &Mlp)| {
            mlp.forward(&parts.narrow(2, number * self.config.hidden, self.config.hidden)?)
        };
        let stages = Tensor::cat(&self.stages.iter().enumerate().map(stage).collect::<Result<Vec<_>>>()?, 2)?;
        Ok(Forward { words, encoded_words, levels, layers, stages })
    }

    fn decode(&self, memory: &Tensor, levels: &[Tensor], pass: &Pass) -> Result<Vec<Proposed>> {
        let (batch, count) = (memory.dim(0)?, self.config.proposals);
        let embeddings = self.proposals.unsqueeze(0)?.broadcast_as((batch, count, self.config.hidden))?.contiguous()?;
        let centres: Vec<f32> =
            (0..count).flat_map(|number| [logit_of(number as f64 / count as f64, 1e-12), 0.0]).collect();
        let mut before = Tensor::from_vec(centres, (1, count, 2), memory.device())?.broadcast_as((batch, count, 2))?;
        let mut x = embeddings.clone();
        let mut layers = Vec::with_capacity(self.decoder.len());
        for (number, refinement) in self.decoder.iter().enumerate() {
            x = refinement.layer.forward(&x, memory, [None, None], None, pass)?;
            let scores = refinement.score.forward(&x)?.squeeze(2)?;
            let place = sigmoid(&(refinement.offset.forward(&x)? + &before)?)?;
            let (centre, half) = (place.narrow(2, 0, 1)?, (place.narrow(2, 1, 1)? / 2.0)?);
            let mut bounds = Tensor::cat(&[(&centre - &half)?, (&centre + &half)?], 2)?;
            if !pass.is_training() {
                bounds = bounds.clamp(0f32, 1f32)?; // training lets proposals reach past the video
            }
            if number + 1 < self.decoder.len() {
                before = logits(&place, 1e-5)?;
                let pooled = self.pool(&bounds.detach(), levels)?;
                x = (refinement.pool.forward(&pooled)? + &embeddings)?;
            }
            layers.push(Proposed { bounds, scores });
        }
        Ok(layers)
    }

    /// What every proposal covers on every level, cut into pieces: `[batch, proposals, levels × pieces × hidden]`.
    fn pool(&self, bounds: &Tensor, levels: &[Tensor]) -> Result<Tensor> {
        let boxes = bounds.to_vec3::<f32>()?;
        let (batch, count, pieces) = (boxes.len(), self.config.proposals, self.config.pieces);
        let pooled = |level: &Tensor| -> Result<Tensor> {
            let (_, clips, hidden) = level.dims3()?;
            let mut weights = vec![0f32; batch * count * pieces * clips];
            for (row, bounds) in boxes.iter().flatten().enumerate() {
                let rows = &mut weights[row * pieces * clips..(row + 1) * pieces * clips];
                piece_weights(bounds[0], bounds[1], clips, pieces, rows);
            }
            let weights = Tensor::from_vec(weights, (batch, count * pieces, clips), level.device())?;
            Ok(weights.times(level)?.reshape((batch, count, pieces * hidden))?)
        };
        Ok(Tensor::cat(&levels.iter().map(pooled).collect::<Result<Vec<_>>>()?, 2)?)
    }

    fn losses(&self, forward: &Forward, truth: &Truth) -> Result<Losses> {
        let layer = |proposed: &Proposed| self.layer_loss(proposed, truth.bounds);
        let inside = forward.stages.narrow(2, 0, 1)?.squeeze(2)?;
        let labels = inside_labels(truth.bounds, inside.dim(1)?)?;
        let words = match truth.guessed {
            Some(guessed) => {
                let read = match self.config.word_head {
                    WordHead::Embedded => &forward.words,
                    WordHead::Encoded => &forward.encoded_words,
                };
                let log = log_softmax(&self.guess.forward(read)?, D::Minus1)?;
                let right = log.gather(&truth.ids.unsqueeze(2)?.contiguous()?, 2)?.squeeze(2)?;
                (right * guessed)?.mean_all()?.neg()?
            }
            None => Tensor::zeros((), DType::F32, inside.device())?,
        };
        Ok(Losses {
            layers: forward.layers.iter().map(layer).collect::<Result<_>>()?,
            inside: focal(&inside, &labels, self.config.inside_balance, self.config.focus)?,
            words,
        })
    }

    /// Scores follow the overlap; the best proposals alone are drawn to the span.
    fn layer_loss(&self, proposed: &Proposed, truth: &Tensor) -> Result<Tensor> {
        let (boxes, spans) = (proposed.bounds.detach().to_vec3::<f32>()?, truth.to_vec2::<f32>()?);
        let (mut wanted, mut best_rows, mut best_spans) = (Vec::new(), Vec::new(), Vec::new());
        for (row, (boxes, span)) in boxes.iter().zip(&spans).enumerate() {
            let ious: Vec<f32> = boxes.iter().map(|bounds| iou([bounds[0], bounds[1]], [span[0], span[1]])).collect();
            let mut order: Vec<usize> = (0..ious.len()).collect();
            order.sort_by(|a, b| ious[*b].total_cmp(&ious[*a]));
            order.truncate(self.config.best);
            let target = |(number, iou): (usize, &f32)| match *iou {
                _ if order.contains(&number) => 1.0,
                iou if f64::from(iou) < self.config.min_iou => 0.0,
                iou => iou,
            };
            wanted.extend(ious.iter().enumerate().map(target));
            best_rows.extend(order.iter().map(|best| (row * boxes.len() + best) as u32));
            best_spans.extend(order.iter().flat_map(|_| [span[0], span[1]]));
        }
        let device = truth.device();
        let wanted = Tensor::from_vec(wanted, proposed.scores.shape(), device)?;
        let scores = focal(&proposed.scores, &wanted, self.config.score_balance, self.config.focus)?;
        let best_spans = Tensor::from_vec(best_spans, (best_rows.len(), 2), device)?;
        let best = proposed.bounds.flatten_to(1)?.index_select(&Tensor::new(best_rows, device)?, 0)?;
        let distance = (best - best_spans)?.abs()?.mean_all()?;
        Ok(((scores * self.config.score_weight)? + (distance * self.config.distance_weight)?)?)
    }

    fn total(&self, losses: &Losses) -> Result<Tensor> {
        let mut total = ((&losses.inside * self.config.inside_weight)? + (&losses.words * self.config.word_weight)?)?;
        for (number, layer) in losses.layers.iter().enumerate() {
            // Layers beyond the listed weights count as the last of them.
            let weights = &self.config.layer_weights;
            let weight = weights.get(number).or(weights.last()).copied().unwrap_or(1.0);
            total = (total + (layer * weight)?)?;
        }
        Ok(total)
    }

    /// Words of a batch, cut to the length there are places for.
    fn cut(&self, queries: &QueryBatch) -> Result<[Tensor; 3]> {
        let words = queries.words.dim(1)?.min(self.config.words);
        let cut = |x: &Tensor| x.narrow(1, 0, words)?.contiguous();
        let known = |id: u32| if (id as usize) < self.vocabulary { id } else { Vocabulary::UNKNOWN };
        let ids = cut(&queries.word_ids)?.flatten_all()?.to_vec1::<u32>()?.into_iter().map(known);
        let ids = Tensor::from_vec(ids.collect::<Vec<_>>(), (queries.ids.len(), words), queries.words.device())?;
        Ok([cut(&queries.words)?, cut(&queries.mask)?, ids])
    }
}

/// `log(x / (1 - x))`, both kept above `eps`.
fn logits(x: &Tensor, eps: f64) -> Result<Tensor> {
    Ok((x.maximum(eps)?.log()? - x.affine(-1.0, 1.0)?.maximum(eps)?.log()?)?)
}

/// As [`logits`], of one value.
fn logit_of(x: f64, eps: f64) -> f32 {
    (x.max(eps).ln() - (1.0 - x).max(eps).ln()) as f32
}

fn iou(a: [f32; 2], b: [f32; 2]) -> f32 {
    let both = (a[1].min(b[1]) - a[0].max(b[0])).max(0.0);
    let union = (a[1] - a[0]) + (b[1] - b[0]) - both;
    if union > 0.0 { both / union } else { 0.0 }
}

/// Cross entropy in which easy examples count little and right ones `balance`, mean.
fn focal(logits: &Tensor, targets: &Tensor, balance: f64, focus: f64) -> Result<Tensor> {
    let share = sigmoid(logits)?;
    let wrong = ((&share + targets)? - (share * targets)?.affine(2.0, 0.0)?)?; // 1 - p_t
    let weight = targets.affine(2.0 * balance - 1.0, 1.0 - balance)?;
    Ok(((bce_with_logits(logits, targets)? * wrong.powf(focus)?)? * weight)?.mean_all()?)
}

/// 1 for the clips from the one nearest to the start to the one nearest to the end, `[batch, clips]`.
fn inside_labels(bounds: &Tensor, clips: usize) -> Result<Tensor> {
    let last = clips.saturating_sub(1) as f64;
    let label = |span: &Vec<f32>| {
        let [first, end] = [span[0], span[1]].map(|bound| (f64::from(bound) * last).round_ties_even());
        (0..clips).map(move |clip| f32::from(u8::from((first..=end).contains(&(clip as f64))))).collect::<Vec<_>>()
    };
    let rows = bounds.to_vec2::<f32>()?;
    let labels: Vec<f32> = rows.iter().flat_map(label).collect();
    Ok(Tensor::from_vec(labels, (rows.len(), clips), bounds.device())?)
}

/// How much of each of `clips` clips is in every piece of a span, by linear interpolation between the middles of clips at
/// evenly spread points (one-dimensional RoI-align). Points more than a clip outside count nothing.
fn piece_weights(start: f32, end: f32, clips: usize, pieces: usize, weights: &mut [f32]) {
    let (start, end) = (start * clips as f32 - 0.5, end * clips as f32 - 0.5);
    let piece = (end - start) / pieces as f32;
    let points = piece.ceil().clamp(0.0, 2.0 * clips as f32) as usize;
    for (number, row) in weights.chunks_mut(clips.max(1)).enumerate().take(pieces) {
        for point in 0..points {
            let place = start + (number as f32 + (point as f32 + 0.5) / points as f32) * piece;
            if !(-1.0..=clips as f32).contains(&place) {
                continue;
            }
            let place = place.clamp(0.0, (clips - 1) as f32);
            let low = place.floor();
            let share = place - low;
            row[low as usize] += (1.0 - share) / points as f32;
            if let Some(next) = row.get_mut(low as usize + 1) {
                *next += share / points as f32;
            }
        }
    }
}

/// Two linear layers.
#[derive(Debug)]
struct Mlp {
    first: Linear,
    second: Linear,
}

impl Mlp {
    fn new([inputs, hidden, outputs]: [usize; 3], vb: &VarBuilder) -> Result<Self> {
        let vb = vb.pp("layers");
        Ok(Self { first: linear(inputs, hidden, vb.pp(0))?, second: linear(hidden, outputs, vb.pp(1))? })
    }

    /// One that begins by moving nothing.
    fn offset(hidden: usize, vb: &VarBuilder) -> Result<Self> {
        let last = vb.pp("layers.1");
        let weight = last.get_with_hints((2, hidden), "weight", Init::Const(0.0))?;
        let bias = last.get_with_hints(2, "bias", Init::Const(0.0))?;
        Ok(Self { first: linear(hidden, hidden, vb.pp("layers.0"))?, second: Linear::new(weight, Some(bias)) })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.second.forward(&self.first.forward(x)?.relu()?)?)
    }
}

/// Clips and words that look at each other and at themselves.
#[derive(Debug)]
struct EncoderLayer {
    halve: bool,
    merge: Conv1d,
    place_norm: LayerNorm,
    words: Linear,
    word_norm: LayerNorm,
    reduce: Option<Conv1d>,
    clips_to_clips: [Linear; 3],
    words_to_clips: [Linear; 3],
    clips_to_words: [Linear; 3],
    words_to_words: [Linear; 3],
    clip_parts: Parts,
    word_parts: Parts,
    heads: usize,
    dropout: f64,
}

/// What follows the attention, for clips or for words.
#[derive(Debug)]
struct Parts {
    out: Linear,
    norm: LayerNorm,
    widen: Linear,
    narrow: Linear,
    last_norm: LayerNorm,
}

impl EncoderLayer {
    fn new(config: &MsDetrConfig, number: usize, encoder: &VarBuilder) -> Result<Self> {
        let MsDetrConfig { hidden, ffn, .. } = *config;
        let vb = encoder.pp("layers").pp(number);
        let attention = vb.pp("cross_attn");
        let project = |name: &str| -> Result<[Linear; 3]> {
            let vb = attention.pp(name);
            let part = |part: usize| linear(hidden, hidden, vb.pp(part));
            Ok([part(0)?, part(1)?, part(2)?])
        };
        let parts = |out: &str, short: &str| -> Result<Parts> {
            let forward = vb.pp(format!("ff_{short}.layers"));
            Ok(Parts {
                out: linear(hidden, hidden, attention.pp(out))?,
                norm: LayerNorm::new(hidden, EPS, attention.pp(format!("ln_{short}")))?,
                widen: linear(hidden, ffn, forward.pp(0))?,
                narrow: linear(ffn, hidden, forward.pp(1))?,
                last_norm: LayerNorm::new(hidden, EPS, vb.pp(format!("ln_{short}")))?,
            })
        };
        let words = encoder.pp("txt_lvl_projs").pp(number);
        let fewer = config.reduce.get(number).copied().unwrap_or(1);
        let reduce = Steps { padding: (fewer.max(1) - 1) / 2, stride: fewer, ..Steps::default() };
        let merge = Steps { padding: 1, stride: 2, ..Steps::default() };
        Ok(Self {
            halve: config.halve.get(number).copied().unwrap_or_default(),
            merge: Conv1d::new(hidden, hidden, 3, merge, encoder.pp("patch_merge").pp(number))?,
            place_norm: LayerNorm::new(hidden, EPS, encoder.pp("pe_lns").pp(number))?,
            words: linear(hidden, hidden, words.pp(0))?,
            word_norm: LayerNorm::new(hidden, EPS, words.pp(1))?,
            reduce: match fewer {
                0 | 1 => None,
                _ => Some(Conv1d::new(hidden, hidden, fewer, reduce, attention.pp("sr"))?),
            },
            clips_to_clips: project("v2v_proj")?,
            words_to_clips: project("t2v_proj")?,
            clips_to_words: project("v2t_proj")?,
            words_to_words: project("t2t_proj")?,
            clip_parts: parts("ff_vid", "vid")?,
            word_parts: parts("ff_text", "txt")?,
            heads: config.heads,
            dropout: config.dropout,
        })
    }

    /// Half as many clips, and the means of neighbouring places.
    fn halved(&self, clips: &Tensor, places: &Tensor) -> Result<(Tensor, Tensor)> {
        let (rows, steps, hidden) = places.dims3()?;
        let places = places.narrow(1, 0, steps / 2 * 2)?.reshape((rows, steps / 2, 2, hidden))?.mean(2)?;
        let clips = self.merge.forward(clips)?.broadcast_add(&places)?;
        Ok((self.place_norm.forward(&clips)?, places))
    }

    /// `bias` hides padded words from everything, `[batch, 1, 1, words]`.
    fn forward(&self, clips: &Tensor, words: &Tensor, bias: &Tensor, pass: &Pass) -> Result<(Tensor, Tensor)> {
        let fewer = match &self.reduce {
            Some(reduce) => reduce.forward(clips)?,
            None => clips.clone(),
        };
        let look = |x: &Tensor, at_clips: &[Linear; 3], at_words: &[Linear; 3]| -> Result<Tensor> {
            let at = |[query, key, _]: &[Linear; 3], seen: &Tensor| -> Result<Tensor> {
                let (query, key) = (self.split(&query.forward(x)?)?, self.split(&key.forward(seen)?)?);
                Ok(query.times(&key.t()?.contiguous()?)?)
            };
            let fit = Tensor::cat(&[at(at_clips, &fewer)?, at(at_words, words)?.broadcast_add(bias)?], 3)?;
            // Dropped before the softmax, as in the published code.
            let scale = (x.dim(2)? as f64 / self.heads as f64).sqrt().recip();
            let weights = softmax(&(pass.dropout(&fit, self.dropout)? * scale)?, D::Minus1)?;
            let values = [self.split(&at_clips[2].forward(&fewer)?)?, self.split(&at_words[2].forward(words)?)?];
            Ok(weights.times(&Tensor::cat(&values, 2)?)?.transpose(1, 2)?.flatten_from(2)?)
        };
        let seen_by_clips = look(clips, &self.clips_to_clips, &self.words_to_clips)?;
        let seen_by_words = look(words, &self.clips_to_words, &self.words_to_words)?;
        Ok((
            self.clip_parts.forward(clips, &seen_by_clips, self.dropout, pass)?,
            self.word_parts.forward(words, &seen_by_words, self.dropout, pass)?,
        ))
    }

    /// `[batch, steps, width]` to `[batch, heads, steps, width / heads]`.
    fn split(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, steps, width) = x.dims3()?;
        Ok(x.reshape((batch, steps, self.heads, width / self.heads))?.transpose(1, 2)?.contiguous()?)
    }
}

impl Parts {
    fn forward(&self, x: &Tensor, seen: &Tensor, dropout: f64, pass: &Pass) -> Result<Tensor> {
        let seen = pass.dropout(&self.out.forward(seen)?, dropout)?;
        let x = self.norm.forward(&(x + seen)?)?;
        let thought = self.narrow.forward(&pass.dropout(&gelu(&self.widen.forward(&x)?)?, dropout)?)?;
        Ok(self.last_norm.forward(&(&x + pass.dropout(&thought, dropout)?)?)?)
    }
}

impl Model for MsDetr {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBins { rows: self.config.clips },
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let spans = &batch.targets(CARD.name)?.spans;
        let bounds = spans.iter().flat_map(|span| [span.start().max(0.0) as f32, span.end().min(1.0) as f32]);
        let bounds = Tensor::from_vec(bounds.collect::<Vec<_>>(), (spans.len(), 2), batch.videos.visual.device())?;
        let [words, mask, ids] = self.cut(&batch.queries)?;
        let hidden = pass.draw(|rng| -> Vec<f32> {
            (0..mask.elem_count()).map(|_| f32::from(u8::from(rng.chance(self.config.hide)))).collect()
        });
        let hidden = match hidden {
            Some(hidden) => Some((Tensor::from_vec(hidden, mask.shape(), mask.device())? * &mask)?),
            None => None,
        };
        let asked = Asked { words: &words, mask: &mask, hidden: hidden.as_ref() };
        let forward = self.forward(&batch.videos.visual, &asked, pass)?;
        let losses = self.losses(&forward, &Truth { bounds: &bounds, ids: &ids, guessed: hidden.as_ref() })?;
        let total = self.total(&losses)?;
        let mut parts = vec![("inside", losses.inside), ("words", losses.words)];
        parts.extend(losses.layers.into_iter().next_back().map(|last| ("boundaries", last)));
        Ok(Loss { total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let [words, mask, _] = self.cut(&batch.queries)?;
        let asked = Asked { words: &words, mask: &mask, hidden: None };
        let forward = self.forward(&batch.videos.visual, &asked, &Pass::answering())?;
        let Some(last) = forward.layers.last() else { return Ok(vec![Vec::new(); batch.len()]) };
        let rows = last.bounds.to_vec3::<f32>()?.into_iter().zip(sigmoid(&last.scores)?.to_vec2::<f32>()?);
        let rank = |(boxes, scores): (Vec<Vec<f32>>, Vec<f32>)| {
            let proposal = |(bounds, score): (Vec<f32>, f32)| {
                let span = NormSpan::new(f64::from(bounds[0]), f64::from(bounds[1]))?.clipped();
                Some(Proposal { span, score })
            };
            let mut ranked: Vec<Proposal> = boxes.into_iter().zip(scores).filter_map(proposal).collect();
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
            ranked
        };
        Ok(rows.map(rank).collect())
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let rows = |parameter: &str| Ok::<_, ModelError>(fixture.shape(parameter)?.first().copied().unwrap_or_default());
    let flags = serde_json::from_value(fixture.config("patch_merge")?.clone());
    let weights = serde_json::from_value(fixture.config("w_bd_loss")?.clone());
    let bad = |key: &str| fixture.fault(&format!("config.{key}"), "is no such list");
    let config = MsDetrConfig {
        clips: rows("backbone.vid_pe.weight")?,
        words: rows("backbone.txt_pe.weight")?,
        hidden: fixture.number("d_model")?,
        heads: fixture.number("nhead")?,
        ffn: fixture.number("ff_dim")?,
        reduce: fixture.numbers("sr_ratio")?,
        halve: flags.map_err(|_| bad("patch_merge"))?,
        levels: fixture.numbers("output_layers")?,
        decoder_layers: fixture.number("decoder_layers")?,
        proposals: fixture.number("num_query")?,
        pieces: fixture.number("pooler_resolution")?,
        word_head: WordHead::Embedded,
        vocabulary: Some(rows("text_mlp.layers.1.weight")?),
        hide: 0.0,
        best: fixture.number("topk")?,
        min_iou: fixture.real("iou_cutoff")?,
        layer_weights: weights.map_err(|_| bad("w_bd_loss"))?,
        score_weight: fixture.real("w_iou_loss")?,
        distance_weight: fixture.real("w_l1_loss")?,
        inside_weight: fixture.real("w_span_loss")?,
        word_weight: fixture.real("w_mask_loss")?,
        focus: fixture.real("focal.gamma")?,
        score_balance: fixture.real("focal.score_alpha")?,
        inside_balance: fixture.real("focal.span_alpha")?,
        dropout: 0.0,
    };
    let (visual, words) = (fixture.input("video")?, fixture.input("text")?);
    let net = MsDetr::new(&config, &Given::widths(visual.dim(2)?, words.dim(2)?, 0), vb.clone())?;
    // What the authors' code builds and never uses: other groups of proposals, and a head for their first places.
    for (name, tensor) in fixture.parameters() {
        let spare = name.starts_with("head.query_embeddings.") && name != "head.query_embeddings.0.weight";
        if spare || name.starts_with("head.reference_head.") {
            vb.get(tensor.shape(), &name)?;
        }
    }
    let (mask, guessed, bounds) = (fixture.input("text_mask")?, fixture.input("word_mask")?, fixture.input("gt")?);
    let ids = fixture.ids("word_label")?;
    let asked = Asked { words: &words, mask: &mask, hidden: None };
    let forward = net.forward(&visual, &asked, &Pass::answering())?;
    let losses = net.losses(&forward, &Truth { bounds: &bounds, ids: &ids, guessed: Some(&guessed) })?;

    let mut trace = Trace::new();
    trace.out("text_embedding", &forward.words);
    trace.out("stage_logits", &forward.stages);
    forward.levels.iter().enumerate().for_each(|(number, level)| trace.out(&format!("level_{number}"), level));
    for (number, layer) in forward.layers.iter().enumerate() {
        trace.out(&format!("boxes_{number}"), &layer.bounds);
        trace.out(&format!("scores_{number}"), &layer.scores);
        if number + 1 == forward.layers.len() {
            trace.out("final_boxes", &layer.bounds);
            trace.out("final_scores", &layer.scores);
        }
    }
    losses.layers.iter().enumerate().for_each(|(number, loss)| trace.loss(&format!("bd_{number}"), loss));
    trace.loss("mask", &losses.words);
    trace.loss("span", &losses.inside);
    trace.loss("total", &net.total(&losses)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config(word_head: WordHead) -> MsDetrConfig {
        MsDetrConfig {
            clips: 8,
            words: 9,
            hidden: 16,
            heads: 2,
            ffn: 16,
            reduce: vec![2, 1, 1],
            halve: vec![true, true, false],
            levels: vec![0, 1, 2],
            decoder_layers: 2,
            proposals: 8,
            pieces: 2,
            word_head,
            min_iou: 0.5,
            dropout: 0.0,
            ..MsDetrConfig::default()
        }
    }

    fn net(word_head: WordHead) -> MsDetr {
        MsDetr::new(&config(word_head), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    fn forward(net: &MsDetr, batch: &Batch) -> Forward {
        let [words, mask, _] = net.cut(&batch.queries).unwrap();
        let asked = Asked { words: &words, mask: &mask, hidden: None };
        net.forward(&batch.videos.visual, &asked, &Pass::answering()).unwrap()
    }

    #[test]
    fn levels_halve_and_every_proposal_is_ranked() {
        let (net, batch) = (net(WordHead::Embedded), TOY.batch(1));
        let lengths: Vec<usize> = forward(&net, &batch).levels.iter().map(|level| level.dim(1).unwrap()).collect();
        assert_eq!(lengths, [4, 2, 2]);
        for proposals in net.propose(&batch).unwrap() {
            assert_eq!(proposals.len(), 8);
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padded_words_change_no_clip() {
        let batch = TOY.batch(1);
        for word_head in [WordHead::Embedded, WordHead::Encoded] {
            let net = net(word_head);
            let (short, long) = (forward(&net, &batch), forward(&net, &batch.with_longer_words(3)));
            assert!(gap(&short.levels[2], &long.levels[2]) < 1e-5);
            assert!(gap(&short.layers[1].bounds, &long.layers[1].bounds) < 1e-5);
        }
    }

    #[test]
    fn pieces_of_a_constant_are_that_constant_and_of_a_ramp_its_middles() {
        let mut weights = vec![0f32; 4 * 16];
        piece_weights(0.25, 0.75, 16, 4, &mut weights);
        for (number, row) in weights.chunks(16).enumerate() {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            // Clip k stands at k + 0.5, so the ramp k has the value place - 0.5 at a place counted in clips.
            let ramp: f32 = row.iter().enumerate().map(|(clip, weight)| clip as f32 * weight).sum();
            assert!((ramp - (4.0 + (number as f32 + 0.5) * 2.0 - 0.5)).abs() < 1e-5, "{ramp}");
        }
        let mut empty = vec![0f32; 4 * 16];
        piece_weights(0.5, 0.5, 16, 4, &mut empty);
        assert!(empty.iter().all(|weight| *weight == 0.0));
    }

    #[test]
    fn an_unlearnt_proposal_stays_at_its_place() {
        let net = net(WordHead::Embedded);
        let bounds = forward(&net, &TOY.batch(1)).layers[0].bounds.to_vec3::<f32>().unwrap();
        let whole = |(_, bounds): &(usize, &Vec<f32>)| bounds[0] > 0.01 && bounds[1] < 0.99; // not cut to the video
        assert_eq!(bounds[0].iter().enumerate().filter(whole).count(), 3);
        for (number, bounds) in bounds[0].iter().enumerate().filter(whole) {
            let centre = (bounds[0] + bounds[1]) / 2.0;
            assert!((centre - number as f32 / 8.0).abs() < 1e-5, "{number}: {centre}");
        }
    }

    #[test]
    fn levels_that_no_layer_begins_with_are_refused() {
        let wrong = MsDetrConfig { levels: vec![0, 7], ..config(WordHead::Embedded) };
        assert!(MsDetr::new(&wrong, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).is_err());
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
            Ok(Box::new(MsDetr::new(&config(WordHead::Encoded), &TOY.given(), vb)?))
        };
        let (model, first, last) = overfit(build, &batch, 250, 3e-3);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.5 * first, "{first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    }
}
