//! VSLNet: reads the video like a text passage and finds the moment as an answer span, guided by a highlight gate.
//! Zhang et al., "Span-based Localizing Network for Natural Language Video Localization", ACL 2020.
//!
//! Follows the authors' PyTorch port where it and the paper differ (one linear layer after the attention, a bias on the
//! attention's projections). In the port, values near the end of a video depend on how far its batch is padded; `padding =
//! "leaks"` keeps that, the default masks it. Characters are those of a fixed alphabet, not those seen five times.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{attention, bce_with_logits, log_softmax, mask_out, sigmoid, softmax};
use cuemark_tensor::{Device, Pass};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    LayerNorm, Linear, Recurrent, Ways, best_clips, nearest_clips, rank_boundaries, see_only, uniform, xavier,
};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, QueryBatch, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "vslnet",
    title: "VSLNet",
    paper: "Zhang et al., Span-based Localizing Network for Natural Language Video Localization, ACL 2020",
    family: Family::Span,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "scores clips as starts and ends of an answer span, through a query-guided highlight gate",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "character_width = 100",
            visual: 1024,
            words: 300,
            millions: None,
        },
        FullSize { dataset: "charades-sta", settings: "", visual: 1024, words: 300, millions: Some(0.78) },
        FullSize { dataset: "tacos", settings: "", visual: 1024, words: 300, millions: Some(0.78) },
    ],
    build: |table, given, vb| Ok(Box::new(VslNet::new(&read_settings("vslnet", table)?, given, vb)?)),
    settings: |table| fill_settings::<VslNetConfig>("vslnet", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VslNetConfig {
    /// The most clips of a video and words of a query: longer videos are averaged to it. Default: 128
    pub positions: usize,
    /// Width of everything. Default: 128
    pub hidden: usize,
    /// Width of a character's vector; 0 reads words alone. Default: 50
    pub character_width: usize,
    /// Filters that span 1, 2, 3, … characters. Default: 10, 20, 30, 40
    pub character_filters: Vec<usize>,
    /// Heads of the attention. Default: 8
    pub heads: usize,
    /// Convolutions of an encoder. Default: 4
    pub convolutions: usize,
    /// Clips or words that a convolution spans. Default: 7
    pub kernel: usize,
    /// What finds the boundaries. Default: rnn
    pub predictor: PredictorKind,
    /// Whether padding reaches real clips. Default: masked
    pub padding: Padding,
    /// Weight of the highlight loss. Default: 5.0
    pub highlight_weight: f64,
    /// Weight of a highlighted clip in it. Default: 2.0
    pub highlight_positive: f64,
    /// By what share of its length a span is widened to be highlighted, on either side. Default: 0.1
    pub highlight_extend: f64,
    /// Share of values that training drops. Default: 0.2
    pub dropout: f64,
}

impl Default for VslNetConfig {
    fn default() -> Self {
        Self {
            positions: 128,
            hidden: 128,
            character_width: 50,
            character_filters: vec![10, 20, 30, 40],
            heads: 8,
            convolutions: 4,
            kernel: 7,
            predictor: PredictorKind::Rnn,
            padding: Padding::Masked,
            highlight_weight: 5.0,
            highlight_positive: 2.0,
            highlight_extend: 0.1,
            dropout: 0.2,
        }
    }
}

/// What finds the boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictorKind {
    /// Two recurrent networks, the second on top of the first.
    Rnn,
    /// One encoder, applied twice.
    Transformer,
}

/// Whether padding reaches real clips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// Convolutions see zeros past the end.
    Masked,
    /// Convolutions see whatever stands past the end, as in the published code.
    Leaks,
}

/// Characters by number: 0 is padding, 1 any other character, then these.
const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz0123456789'-.,!?&\":;()/$%";
/// The most characters of a word that are read.
const WORD_LENGTH: usize = 16;
/// Added to a variance before its root.
const EPS: f64 = 1e-6;
/// The logit of a clip that is not there.
const NOWHERE: f64 = -1e30;

/// The network.
#[derive(Debug)]
pub struct VslNet {
    config: VslNetConfig,
    characters: Option<Characters>,
    query_in: Linear,
    video_in: Linear,
    encoder: FeatureEncoder,
    context: ContextQuery,
    pool: Tensor,
    pooled: Linear,
    highlight: Linear,
    predictor: Predictor,
}

/// Everything on the way to the boundaries.
struct Forward {
    query_in: Tensor,
    video: Tensor,
    query: Tensor,
    attended: Tensor,
    fused: Tensor,
    highlight: Tensor,
    gated: Tensor,
    starts: Tensor,
    ends: Tensor,
}

/// What is asked: vectors, characters and which of them are real.
struct Asked<'a> {
    words: &'a Tensor,
    characters: Option<&'a Tensor>,
    mask: &'a Tensor,
}

impl VslNet {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &VslNetConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        Self::with_alphabet(config, given, ALPHABET.len() + 2, &vb)
    }

    fn with_alphabet(config: &VslNetConfig, given: &Given, alphabet: usize, vb: &VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        let embedding = vb.pp("embedding_net");
        let characters = match config.character_width {
            0 => None,
            _ => Some(Characters::new(config, alphabet, &embedding.pp("char_emb"))?),
        };
        let words = given.words + characters.as_ref().map_or(0, |_| config.character_filters.iter().sum());
        Ok(Self {
            characters,
            query_in: convolution(words, hidden, &embedding.pp("linear"))?,
            video_in: convolution(given.visual, hidden, &vb.pp("video_affine.linear"))?,
            encoder: FeatureEncoder::new(config, &vb.pp("feature_encoder"))?,
            context: ContextQuery::new(hidden, config.dropout, &vb.pp("cq_attention"))?,
            pool: vb.pp("cq_concat.weighted_pool").get_with_hints((hidden, 1), "weight", xavier(hidden, 1))?,
            pooled: convolution(2 * hidden, hidden, &vb.pp("cq_concat.conv1d"))?,
            highlight: convolution(hidden, 1, &vb.pp("highlight_layer.conv1d"))?,
            predictor: Predictor::new(config, &vb.pp("predictor"))?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, clips, d_visual]` with `mask [batch, clips]`; words `[batch, words, d_word]`, characters
    ///   `[batch, words, characters]` and mask `[batch, words]` of the query
    /// - starts and ends of the result `[batch, clips]`, logits
    fn forward(&self, visual: &Tensor, mask: &Tensor, asked: &Asked, pass: &Pass) -> Result<Forward> {
        let drop = |x: &Tensor| pass.dropout(x, self.config.dropout);
        let mut words = drop(asked.words)?;
        if let (Some(net), Some(characters)) = (&self.characters, asked.characters) {
            words = Tensor::cat(&[words, net.forward(characters, self.config.dropout, pass)?], D::Minus1)?;
        }
        let query_in = self.query_in.forward(&words)?;
        let video = self.encoder.forward(&self.video_in.forward(&drop(visual)?)?, mask, pass)?;
        let query = self.encoder.forward(&query_in, asked.mask, pass)?;
        let attended = self.context.forward(&video, mask, &query, asked.mask, pass)?;
        let importance = mask_out(&times(&query, &self.pool)?, &asked.mask.unsqueeze(2)?, NOWHERE)?;
        let pooled = query.broadcast_mul(&softmax(&importance, 1)?)?.sum_keepdim(1)?;
        let fused = Tensor::cat(&[attended.clone(), pooled.broadcast_as(attended.shape())?], D::Minus1)?;
        let fused = self.pooled.forward(&fused)?;
        let highlight = self.highlight.forward(&fused)?.squeeze(2)?;
        let gate = (sigmoid(&highlight)? * mask)?;
        let gated = fused.broadcast_mul(&gate.unsqueeze(2)?)?;
        let [starts, ends] = self.predictor.forward(&gated, mask, pass)?;
        Ok(Forward { query_in, video, query, attended, fused, highlight, gated, starts, ends })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let queries = &batch.queries;
        let most = queries.words.dim(1)?.min(self.config.positions);
        let characters = match &self.characters {
            Some(_) => Some(spell(queries, most)?),
            None => None,
        };
        let (words, mask) = (queries.words.narrow(1, 0, most)?, queries.mask.narrow(1, 0, most)?);
        let asked = Asked { words: &words, characters: characters.as_ref(), mask: &mask };
        self.forward(&batch.videos.visual, &batch.videos.mask, &asked, pass)
    }

    /// The parts of the loss: span, highlight.
    fn losses(&self, forward: &Forward, mask: &Tensor, truth: &Truth) -> Result<[Tensor; 2]> {
        let span = (cross_entropy(&forward.starts, &truth.starts)? + cross_entropy(&forward.ends, &truth.ends)?)?;
        let weight = truth.highlight.affine(self.config.highlight_positive - 1.0, 1.0)?;
        let errors = (bce_with_logits(&forward.highlight, &truth.highlight)? * weight)?;
        let highlight = ((errors * mask)?.sum_all()? / (mask.sum_all()? + 1e-12)?)?;
        Ok([span, highlight])
    }

    fn total(&self, [span, highlight]: &[Tensor; 2]) -> Result<Tensor> {
        Ok((span + (highlight * self.config.highlight_weight)?)?)
    }
}

/// Where the boundaries lie, one-hot `[batch, clips]`, and which clips are highlighted.
struct Truth {
    starts: Tensor,
    ends: Tensor,
    highlight: Tensor,
}

impl Truth {
    fn of_batch(batch: &Batch, extend: f64) -> Result<Self> {
        let clips = batch.videos.visual.dim(1)?;
        let spans = batch.targets(CARD.name)?.spans.iter().zip(&batch.videos.lengths);
        let [mut starts, mut ends, mut highlight] = [(); 3].map(|()| vec![0f32; clips * batch.len()]);
        for (row, (span, length)) in spans.enumerate() {
            let (first, last) = nearest_clips(*span, *length);
            starts[row * clips + first] = 1.0;
            ends[row * clips + last] = 1.0;
            let more = (extend * (last + 1 - first) as f64).round_ties_even() as usize;
            let lit = first.saturating_sub(more)..=(last + more).min(length.saturating_sub(1));
            lit.for_each(|clip| highlight[row * clips + clip] = 1.0);
        }
        let tensor = |values: Vec<f32>| Tensor::from_vec(values, (batch.len(), clips), batch.videos.visual.device());
        Ok(Self { starts: tensor(starts)?, ends: tensor(ends)?, highlight: tensor(highlight)? })
    }
}

/// Mean over the rows of minus the log probability where `one_hot` is 1.
fn cross_entropy(logits: &Tensor, one_hot: &Tensor) -> Result<Tensor> {
    Ok((log_softmax(logits, 1)? * one_hot)?.sum(1)?.mean_all()?.neg()?)
}

/// `x [batch, steps, width]` times `matrix [width, outputs]`.
fn times(x: &Tensor, matrix: &Tensor) -> candle_core::Result<Tensor> {
    x.times(matrix)
}

/// A convolution of kernel 1 under the port's name for it.
fn convolution(inputs: usize, outputs: usize, vb: &VarBuilder) -> Result<Linear> {
    let vb = vb.pp("conv1d");
    let weight = vb.get_with_hints((outputs, inputs, 1), "weight", xavier(inputs, outputs))?;
    let bias = vb.get_with_hints(outputs, "bias", Init::Const(0.0))?;
    Ok(Linear::new(weight.reshape((outputs, inputs))?, Some(bias)))
}

/// Numbers of the characters of every word, `[queries, words, characters]`, 0 padded.
fn spell(queries: &QueryBatch, words: usize) -> Result<Tensor> {
    let parses = queries.parses(CARD.name)?;
    let mut ids = vec![0u32; parses.len() * words * WORD_LENGTH];
    for (query, parse) in parses.iter().enumerate() {
        for (word, token) in parse.tokens.iter().take(words).enumerate() {
            let row = (query * words + word) * WORD_LENGTH;
            let number = |letter: char| ALPHABET.find(letter).map_or(1, |place| place as u32 + 2);
            let letters = token.text.chars().flat_map(char::to_lowercase).map(number);
            letters.take(WORD_LENGTH).enumerate().for_each(|(place, id)| ids[row + place] = id);
        }
    }
    Ok(Tensor::from_vec(ids, (parses.len(), words, WORD_LENGTH), queries.words.device())?)
}

/// A vector for every word from the characters it is spelt with.
#[derive(Debug)]
struct Characters {
    table: Tensor,
    filters: Vec<(Tensor, Tensor)>,
}

impl Characters {
    fn new(config: &VslNetConfig, alphabet: usize, vb: &VarBuilder) -> Result<Self> {
        let width = config.character_width;
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        let filter = |(number, outputs): (usize, &usize)| -> Result<(Tensor, Tensor)> {
            let (kernel, vb) = (number + 1, vb.pp(format!("char_convs.{number}.0")));
            let weight = vb.get_with_hints((*outputs, width, 1, kernel), "weight", uniform(width * kernel))?;
            let weight = weight.squeeze(2)?.permute((2, 1, 0))?.reshape((kernel * width, *outputs))?;
            Ok((weight, vb.get_with_hints(*outputs, "bias", uniform(width * kernel))?))
        };
        Ok(Self {
            table: vb.pp("char_emb").get_with_hints((alphabet, width), "weight", normal)?,
            filters: config.character_filters.iter().enumerate().map(filter).collect::<Result<_>>()?,
        })
    }

    /// `ids [batch, words, characters]` to `[batch, words, filters]`.
    fn forward(&self, ids: &Tensor, dropout: f64, pass: &Pass) -> Result<Tensor> {
        let (batch, words, letters) = ids.dims3()?;
        let width = self.table.dim(1)?;
        // Padding is zero, whatever its row in the table holds.
        let real = ids.clamp(0u32, 1u32)?.to_dtype(self.table.dtype())?.reshape((batch * words, letters, 1))?;
        let x = self.table.index_select(&ids.flatten_all()?, 0)?.reshape((batch * words, letters, width))?;
        let x = pass.dropout(&x.broadcast_mul(&real)?, dropout)?;
        let x = match self.filters.len().checked_sub(letters) {
            Some(missing) => x.pad_with_zeros(1, 0, missing)?,
            None => x,
        };
        let apply = |(weight, bias): &(Tensor, Tensor)| -> Result<Tensor> {
            let kernel = weight.dim(0)? / width;
            let length = x.dim(1)? + 1 - kernel;
            let pieces =
                (0..kernel).map(|place| x.narrow(1, place, length)).collect::<candle_core::Result<Vec<_>>>()?;
            let windows = Tensor::cat(&pieces, 2)?;
            Ok(times(&windows, weight)?.broadcast_add(bias)?.relu()?.max(1)?)
        };
        let found = self.filters.iter().map(apply).collect::<Result<Vec<_>>>()?;
        Ok(Tensor::cat(&found, 1)?.reshape((batch, words, ()))?)
    }
}

/// Convolutions and attention on one sequence; one set of weights serves videos and queries.
#[derive(Debug)]
struct FeatureEncoder {
    positions: Tensor,
    convolutions: Vec<Separable>,
    norms: [LayerNorm; 2],
    projections: [Linear; 3],
    out: Linear,
    heads: usize,
    padding: Padding,
    dropout: f64,
}

/// Per channel along time, then across channels.
#[derive(Debug)]
struct Separable {
    norm: LayerNorm,
    depth: Tensor,
    point: Linear,
}

impl FeatureEncoder {
    fn new(config: &VslNetConfig, vb: &VarBuilder) -> Result<Self> {
        let (hidden, kernel) = (config.hidden, config.kernel);
        let layer = |number: usize| -> Result<Separable> {
            let block = vb.pp("conv_block");
            let pair = block.pp(format!("depthwise_separable_conv.{number}"));
            let depth = pair.get_with_hints((hidden, 1, kernel), "0.weight", xavier(kernel, hidden * kernel))?;
            let weight = pair.get_with_hints((hidden, hidden, 1), "1.weight", xavier(hidden, hidden))?;
            let bias = pair.get_with_hints(hidden, "1.bias", Init::Const(0.0))?;
            Ok(Separable {
                norm: LayerNorm::new(hidden, EPS, block.pp(format!("layer_norms.{number}")))?,
                depth: depth.squeeze(1)?,
                point: Linear::new(weight.reshape((hidden, hidden))?, Some(bias)),
            })
        };
        let block = vb.pp("attention_block");
        let project = |name: &str| convolution(hidden, hidden, &block.pp(name));
        let norm = |name: &str| LayerNorm::new(hidden, EPS, block.pp(name));
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        let positions = vb.pp("pos_embedding.position_embeddings");
        Ok(Self {
            positions: positions.get_with_hints((config.positions, hidden), "weight", normal)?,
            convolutions: (0..config.convolutions).map(layer).collect::<Result<_>>()?,
            norms: [norm("layer_norm1")?, norm("layer_norm2")?],
            projections: [project("query")?, project("key")?, project("value")?],
            out: project("out_layer")?,
            heads: config.heads,
            padding: config.padding,
            dropout: config.dropout,
        })
    }

    /// `x [batch, steps, hidden]` with `mask [batch, steps]`; returns the shape of `x`.
    fn forward(&self, x: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let (batch, steps, hidden) = x.dims3()?;
        let drop = |x: &Tensor| pass.dropout(x, self.dropout);
        let mut x = x.broadcast_add(&self.positions.narrow(0, 0, steps)?)?;
        for layer in &self.convolutions {
            let mut y = layer.norm.forward(&x)?;
            if self.padding == Padding::Masked {
                y = y.broadcast_mul(&mask.unsqueeze(2)?)?;
            }
            x = (drop(&layer.point.forward(&depthwise(&y, &layer.depth)?)?.relu()?)? + x)?;
        }
        let y = drop(&self.norms[0].forward(&x)?)?;
        let split = |x: Tensor| x.reshape((batch, steps, self.heads, hidden / self.heads))?.transpose(1, 2);
        let [q, k, v] = &self.projections;
        let (q, k, v) = (split(q.forward(&y)?)?, split(k.forward(&y)?)?, split(v.forward(&y)?)?);
        // The port also drops weights of the attention; we spare the mask of steps × steps.
        let (seen, _) = attention(&q, &k, &v, Some(&see_only(mask)?))?;
        let seen = seen.transpose(1, 2)?.reshape((batch, steps, hidden))?;
        let x = (drop(&seen)? + x)?;
        let y = self.out.forward(&drop(&self.norms[1].forward(&x)?)?)?;
        Ok((drop(&y)? + x)?)
    }
}

/// Each channel convolved along time with its own kernel, zeros beyond both ends.
fn depthwise(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (steps, kernel) = (x.dim(1)?, weight.dim(1)?);
    let padded = x.pad_with_zeros(1, kernel / 2, kernel / 2)?;
    let piece = |place: usize| padded.narrow(1, place, steps)?.broadcast_mul(&weight.narrow(1, place, 1)?.squeeze(1)?);
    let first = piece(0)?;
    Ok((1..kernel).try_fold(first, |sum, place| sum + piece(place)?)?)
}

/// What the video and the query say about each other, clip by clip.
#[derive(Debug)]
struct ContextQuery {
    of_video: Tensor,
    of_query: Tensor,
    of_both: Tensor,
    out: Linear,
    dropout: f64,
}

impl ContextQuery {
    fn new(hidden: usize, dropout: f64, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            of_video: vb.get_with_hints((hidden, 1), "w4C", xavier(hidden, 1))?,
            of_query: vb.get_with_hints((hidden, 1), "w4Q", xavier(hidden, 1))?,
            of_both: vb.get_with_hints((1, 1, hidden), "w4mlu", xavier(hidden, 1))?,
            out: convolution(4 * hidden, hidden, &vb.pp("cqa_linear"))?,
            dropout,
        })
    }

    fn forward(&self, video: &Tensor, mask: &Tensor, query: &Tensor, asked: &Tensor, pass: &Pass) -> Result<Tensor> {
        let (v, q) = (pass.dropout(video, self.dropout)?, pass.dropout(query, self.dropout)?);
        let product = v.broadcast_mul(&self.of_both)?.times(&q.t()?.contiguous()?)?;
        let alike = product.broadcast_add(&times(&v, &self.of_video)?)?;
        let alike = alike.broadcast_add(&times(&q, &self.of_query)?.transpose(1, 2)?)?; // [batch, clips, words]
        let by_word = softmax(&mask_out(&alike, &asked.unsqueeze(1)?, NOWHERE)?, 2)?;
        let by_clip = softmax(&mask_out(&alike, &mask.unsqueeze(2)?, NOWHERE)?, 1)?;
        let to_query = by_word.times(query)?;
        let to_video = by_word.times(&by_clip.t()?.contiguous()?.times(video)?)?;
        let all = [video.clone(), to_query.clone(), (video * to_query)?, (video * to_video)?];
        Ok(self.out.forward(&Tensor::cat(&all, 2)?)?)
    }
}

/// From gated clips to boundaries.
#[derive(Debug)]
struct Predictor {
    encoder: BoundaryEncoder,
    heads: [(Linear, Linear); 2],
}

#[derive(Debug)]
enum BoundaryEncoder {
    Rnn { start: Recurrent, end: Recurrent },
    Transformer { both: Box<FeatureEncoder>, norms: [LayerNorm; 2] },
}

impl Predictor {
    fn new(config: &VslNetConfig, vb: &VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        let lstm = |name: &str| Recurrent::lstm(hidden, hidden, 1, Ways::Forward, vb.pp(name).pp("lstm"));
        let norm = |name: &str| LayerNorm::new(hidden, EPS, vb.pp(name));
        let head = |name: &str| -> Result<(Linear, Linear)> {
            let vb = vb.pp(name);
            Ok((convolution(2 * hidden, hidden, &vb.pp(0))?, convolution(hidden, 1, &vb.pp(2))?))
        };
        Ok(Self {
            encoder: match config.predictor {
                PredictorKind::Rnn => BoundaryEncoder::Rnn { start: lstm("start_encoder")?, end: lstm("end_encoder")? },
                PredictorKind::Transformer => BoundaryEncoder::Transformer {
                    both: Box::new(FeatureEncoder::new(config, &vb.pp("encoder"))?),
                    norms: [norm("start_layer_norm")?, norm("end_layer_norm")?],
                },
            },
            heads: [head("start_block")?, head("end_block")?],
        })
    }

    /// `x [batch, clips, hidden]`; start and end logits `[batch, clips]`.
    fn forward(&self, x: &Tensor, mask: &Tensor, pass: &Pass) -> Result<[Tensor; 2]> {
        let (start, end) = match &self.encoder {
            BoundaryEncoder::Rnn { start, end } => {
                let real = mask.unsqueeze(2)?;
                let start = start.forward(x)?.broadcast_mul(&real)?;
                let end = end.forward(&start)?.broadcast_mul(&real)?;
                (start, end)
            }
            BoundaryEncoder::Transformer { both, norms } => {
                let start = both.forward(x, mask, pass)?;
                let end = both.forward(&start, mask, pass)?;
                (norms[0].forward(&start)?, norms[1].forward(&end)?)
            }
        };
        let logits = |(wide, narrow): &(Linear, Linear), boundary: Tensor| -> Result<Tensor> {
            let both = wide.forward(&Tensor::cat(&[&boundary, x], 2)?)?.relu()?;
            Ok(mask_out(&narrow.forward(&both)?.squeeze(2)?, mask, NOWHERE)?)
        };
        Ok([logits(&self.heads[0], start)?, logits(&self.heads[1], end)?])
    }
}

impl Model for VslNet {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBinsIfLonger { rows: self.config.positions },
            parses: self.characters.is_some(),
            ..Input::pairs(self.config.positions)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let truth = Truth::of_batch(batch, self.config.highlight_extend)?;
        let losses = self.losses(&self.of_batch(batch, pass)?, &batch.videos.mask, &truth)?;
        let total = self.total(&losses)?;
        let [span, highlight] = losses;
        Ok(Loss { total, parts: vec![("span", span), ("highlight", highlight)] })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let forward = self.of_batch(batch, &Pass::answering())?;
        let (starts, ends) = (softmax(&forward.starts, 1)?, softmax(&forward.ends, 1)?);
        Ok(rank_boundaries(&starts, &ends, &batch.videos.lengths)?)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let mut filters = Vec::new();
    let convolution = |number: usize| format!("embedding_net.char_emb.char_convs.{number}.0.weight");
    while let Ok(shape) = fixture.shape(&convolution(filters.len())) {
        filters.push(shape.first().copied().unwrap_or_default());
    }
    let config = VslNetConfig {
        positions: fixture.number("max_pos_len")?,
        hidden: fixture.number("dim")?,
        character_width: fixture.number("char_dim")?,
        character_filters: filters,
        heads: fixture.number("num_heads")?,
        convolutions: fixture.number("conv_layers")?,
        kernel: fixture.number("conv_kernel")?,
        predictor: match fixture.config("predictor")?.as_str() {
            Some("transformer") => PredictorKind::Transformer,
            _ => PredictorKind::Rnn,
        },
        padding: Padding::Leaks,
        highlight_weight: fixture.real("highlight_loss_weight")?,
        highlight_positive: fixture.real("highlight_positive_weight")?,
        highlight_extend: fixture.real("highlight_extend")?,
        dropout: 0.0,
    };
    let table = vb.pp("embedding_net.word_emb");
    let width = fixture.number("word_dim")?;
    let known = fixture.shape("embedding_net.word_emb.glove_vec")?.first().copied().unwrap_or_default();
    let rows =
        [table.get((1, width), "pad_vec")?, table.get((1, width), "unk_vec")?, table.get((known, width), "glove_vec")?];
    let ids = fixture.ids("word_ids")?;
    let (batch, steps) = ids.dims2()?;
    let words = Tensor::cat(&rows, 0)?.index_select(&ids.flatten_all()?, 0)?.reshape((batch, steps, width))?;
    let visual = fixture.input("video_features")?;
    let given = Given::widths(visual.dim(2)?, width, 0);
    let net = VslNet::with_alphabet(&config, &given, fixture.number("char_size")?, vb)?;
    let other = VslNetConfig { predictor: PredictorKind::Transformer, ..config.clone() };
    let other = Predictor::new(&other, &vb.pp("transformer_head"))?;

    let (mask, asked_mask) = (fixture.input("video_mask")?, fixture.input("query_mask")?);
    let characters = fixture.ids("char_ids")?;
    let asked = Asked { words: &words, characters: Some(&characters), mask: &asked_mask };
    let pass = Pass::answering();
    let forward = net.forward(&visual, &mask, &asked, &pass)?;
    let [other_starts, other_ends] = other.forward(&forward.gated, &mask, &pass)?;
    let clips = visual.dim(1)?;
    let truth = Truth {
        starts: one_hot(fixture, "start_index", clips, mask.device())?,
        ends: one_hot(fixture, "end_index", clips, mask.device())?,
        highlight: fixture.input("highlight_labels")?,
    };
    let losses = net.losses(&forward, &mask, &truth)?;
    let (starts, ends) = (softmax(&forward.starts, 1)?.to_vec2::<f32>()?, softmax(&forward.ends, 1)?.to_vec2::<f32>()?);
    let best: Vec<_> =
        starts.iter().zip(&ends).filter_map(|(starts, ends)| best_clips(starts, ends).first().copied()).collect();
    let column = |value: fn(&crate::layers::ScoredClips) -> usize| {
        Tensor::new(best.iter().map(|best| value(best) as f32).collect::<Vec<_>>(), visual.device())
    };

    let mut trace = Trace::new();
    trace.out("query_embedding", &forward.query_in);
    trace.out("query_encoded", &forward.query);
    trace.out("video_encoded", &forward.video);
    trace.out("cq_attention", &forward.attended);
    trace.out("cq_concat", &forward.fused);
    trace.out("highlight_score", &(sigmoid(&forward.highlight)? * &mask)?);
    trace.out_where("start_logits", &forward.starts, &mask);
    trace.out_where("end_logits", &forward.ends, &mask);
    trace.out_where("transformer_head_start_logits", &other_starts, &mask);
    trace.out_where("transformer_head_end_logits", &other_ends, &mask);
    trace.out("pred_start", &column(|best| best.first)?);
    trace.out("pred_end", &column(|best| best.last)?);
    trace.loss("span", &losses[0]);
    trace.loss("highlight", &losses[1]);
    trace.loss("total", &net.total(&losses)?);
    Ok(trace)
}

/// An input of indices as rows of `clips` with a 1 at each.
fn one_hot(fixture: &Fixture, name: &str, clips: usize, device: &Device) -> Result<Tensor> {
    let indices = fixture.counts(name)?;
    let mut values = vec![0f32; indices.len() * clips];
    for (row, index) in indices.iter().enumerate() {
        let place = values.get_mut(row * clips..(row + 1) * clips).and_then(|row| row.get_mut(*index));
        *place.ok_or_else(|| fixture.fault(&format!("in.{name}"), format!("holds {index}, past {clips} clips")))? = 1.0;
    }
    Ok(Tensor::from_vec(values, (indices.len(), clips), device)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::Params;
    use cuemark_text::{Parse, Pos, TaggedToken};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config(predictor: PredictorKind, padding: Padding) -> VslNetConfig {
        VslNetConfig {
            positions: 12,
            hidden: 16,
            character_width: 4,
            character_filters: vec![2, 3],
            heads: 2,
            convolutions: 2,
            kernel: 3,
            predictor,
            padding,
            dropout: 0.0,
            ..VslNetConfig::default()
        }
    }

    /// The toy batch with spelt words.
    fn batch() -> Batch {
        let mut batch = TOY.batch(1);
        let word = |place: usize| TaggedToken { text: "cupboard"[place..].to_owned(), tag: Pos::Noun, bytes: None };
        let parse = |length: &usize| Parse { tokens: (0..*length).map(word).collect(), ..Parse::default() };
        batch.queries.parses = Some(batch.queries.lengths.iter().map(parse).collect());
        batch
    }

    fn net(predictor: PredictorKind, padding: Padding) -> VslNet {
        let params = Params::seeded(1, &Device::Cpu);
        VslNet::new(&config(predictor, padding), &TOY.given(), params.builder()).unwrap()
    }

    #[test]
    fn proposals_are_ordered_and_lie_within_the_real_clips() {
        let mut batch = batch().with_longer_videos(3);
        batch.videos.lengths[0] = 6;
        let ranked = net(PredictorKind::Transformer, Padding::Masked).propose(&batch).unwrap();
        assert_eq!(ranked.iter().map(Vec::len).collect::<Vec<_>>(), [21, 36, 36, 36]);
        for proposals in ranked {
            assert!(proposals.iter().all(|proposal| proposal.span.end() <= 1.0));
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padding_changes_nothing_unless_it_is_let_through_as_published() {
        let (short, pass) = (batch(), Pass::answering());
        let longer = short.with_longer_videos(2).with_longer_words(3);
        for predictor in [PredictorKind::Rnn, PredictorKind::Transformer] {
            for (padding, same) in [(Padding::Masked, true), (Padding::Leaks, false)] {
                let net = net(predictor, padding);
                let few = net.of_batch(&short, &pass).unwrap().starts;
                let more = net.of_batch(&longer, &pass).unwrap().starts.narrow(1, 0, TOY.clips).unwrap();
                assert_eq!(gap(&few, &more) < 1e-4, same, "{predictor:?} {padding:?}: {}", gap(&few, &more));
            }
        }
    }

    #[test]
    fn a_word_is_read_by_its_characters_in_either_case() {
        let mut queries = batch().queries;
        let ids = spell(&queries, 2).unwrap().to_vec3::<u32>().unwrap();
        assert_eq!(ids[0][0][..9], [4, 22, 17, 3, 16, 2, 19, 5, 0]);
        queries.parses.as_mut().unwrap()[0].tokens[0].text = "CUP€".to_owned();
        assert_eq!(spell(&queries, 2).unwrap().to_vec3::<u32>().unwrap()[0][0][..5], [4, 22, 17, 1, 0]);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = batch();
        for predictor in [PredictorKind::Rnn, PredictorKind::Transformer] {
            let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
                Ok(Box::new(VslNet::new(&config(predictor, Padding::Masked), &TOY.given(), vb)?))
            };
            let (model, first, last) = overfit(build, &batch, 80, 1e-2);
            let overlaps = best_overlaps(model.as_ref(), &batch);
            assert!(last < 0.1 * first, "{predictor:?}: {first} to {last}");
            assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{predictor:?}: {overlaps:?}");
        }
    }
}
