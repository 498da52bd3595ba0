//! RaNet: reads a video as answer choices, fuses each with the sentence and its words, and compares choices that share a
//! start or an end.
//! Gao et al., "Relation-aware Video Reading Comprehension for Temporal Language Grounding", EMNLP 2021.
//!
//! Follows the published code, its leaks included: the backward half of the LSTM begins in the padding
//! (`recurrence = "length-aware"` is our way out of that), and maximum and softmax over words count padded words, so
//! that an answer depends on how its batch is padded. Invalid cells take part in the comparison, as published, so that
//! it runs on the whole map; its convolution ablation runs on the valid cells, as 2D-TAN's does.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{attention, l2_normalise, sigmoid, softmax};
use cuemark_tensor::map::span_max;
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    ClipProjection, Conv1d, Linear, MapSize, MapStack, MapSupport, MomentMap, Recurrent, Steps, Ways, largest, linear,
    pointwise, uniform,
};
use crate::losses::ScaledIou;
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "ranet",
    title: "RaNet",
    paper: "Gao et al., Relation-aware Video Reading Comprehension for Temporal Language Grounding, EMNLP 2021",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "compares spans that share a start or an end by attention along rows and columns of the map",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "map = { pre_clips = 256, clips = 64, counts = [15, 8, 8] }\nposition_embedding = true\nnms = 0.52",
            visual: 500,
            words: 300,
            millions: Some(10.99),
        },
        FullSize {
            dataset: "tacos",
            settings: "map = { pre_clips = 256, clips = 128, counts = [15, 8, 8, 8] }\nnms = 0.4\n\
                       targets = { min_iou = 0.3, max_iou = 0.7 }",
            visual: 4096,
            words: 300,
            millions: Some(12.80),
        },
        FullSize {
            dataset: "charades-sta",
            settings: "map = { pre_clips = 256, clips = 64, counts = [15, 8, 8] }\n\
                       relation = { kind = \"attention\", blocks = 2 }",
            visual: 1024,
            words: 300,
            millions: Some(14.93),
        },
        FullSize {
            dataset: "charades-sta",
            settings: "map = { pre_clips = 256, clips = 16, counts = [15] }\nneighbours = 3",
            visual: 4096,
            words: 300,
            millions: None,
        },
    ],
    build: |table, given, vb| Ok(Box::new(RaNet::new(&read_settings("ranet", table)?, given, vb)?)),
    settings: |table| fill_settings::<RaNetConfig>("ranet", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaNetConfig {
    /// Sizes of the map.
    pub map: MapSize,
    /// Width of everything; even. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Whether clips get a learnt vector for their place, followed by dropout of 0.1. Default: false
    #[serde(default)]
    pub position_embedding: bool,
    /// Clips that each clip is compared with, itself included. Default: 5
    #[serde(default = "neighbours")]
    pub neighbours: usize,
    /// Groups of the graph block's convolutions. Default: 32
    #[serde(default = "groups")]
    pub groups: usize,
    /// Channels of each group. Default: 4
    #[serde(default = "group_width")]
    pub group_width: usize,
    /// Layers of the query's LSTM. Default: 3
    #[serde(default = "lstm_layers")]
    pub lstm_layers: usize,
    /// Where the backward half of the LSTM begins. Default: padding, as published
    #[serde(default)]
    pub recurrence: Recurrence,
    /// How cells are made from clips. Default: boundary
    #[serde(default)]
    pub choices: Choices,
    /// How cells meet the query. Default: dynamic
    #[serde(default)]
    pub interaction: Interaction,
    /// How cells are compared. Default: one block of attention
    #[serde(default)]
    pub relation: Relation,
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

/// How a cell is made from the clips of its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choices {
    /// Its first clip beside its last. Default.
    #[default]
    Boundary,
    /// The largest value of each channel.
    Pool,
    /// The sum of its first and its last clip.
    BoundarySum,
}

/// How a cell meets the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interaction {
    /// With the sentence and with its words. Default.
    #[default]
    Dynamic,
    /// With the sentence alone.
    Dot,
}

/// How cells are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Relation {
    /// Attention along the row and the column of every cell. Default.
    Attention {
        /// Number of blocks. Default: 1
        #[serde(default = "blocks")]
        blocks: usize,
        /// Rounds of attention in a block, with the same weights. Default: 2
        #[serde(default = "rounds")]
        rounds: usize,
        /// `hidden` over the width inside a block. Default: 4
        #[serde(default = "narrowing")]
        narrowing: usize,
    },
    /// 2D-TAN's masked convolutions.
    Convolution {
        /// Side of the kernel.
        kernel: usize,
        /// Number of convolutions.
        layers: usize,
    },
}

impl Default for Relation {
    fn default() -> Self {
        Self::Attention { blocks: blocks(), rounds: rounds(), narrowing: narrowing() }
    }
}

fn hidden() -> usize {
    512
}

fn neighbours() -> usize {
    5
}

fn groups() -> usize {
    32
}

fn group_width() -> usize {
    4
}

fn lstm_layers() -> usize {
    3
}

fn blocks() -> usize {
    1
}

fn rounds() -> usize {
    2
}

fn narrowing() -> usize {
    4
}

fn nms() -> f64 {
    0.44
}

/// The network.
#[derive(Debug)]
pub struct RaNet {
    config: RaNetConfig,
    map: MomentMap,
    clips: ClipProjection,
    position: Option<Tensor>,
    graph: GraphBlock,
    words: Recurrent,
    interactor: Interactor,
    relation: Comparison,
    score: Linear,
}

#[derive(Debug)]
enum Comparison {
    Attention(Vec<RelationBlock>),
    Convolution(MapStack),
}

/// Everything on the way to the scores. `fused` has one row per valid cell after one that stands for every invalid cell.
struct Forward {
    clips: Tensor,
    words: Tensor,
    choices: Tensor,
    fused: Tensor,
    compared: Tensor,
    logits: Tensor,
}

impl RaNet {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that do not fit each other.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &RaNetConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let RaNetConfig { hidden, neighbours, .. } = *config;
        let clips = config.map.clips;
        let settings = |problem: String| Err(ModelError::Settings { model: CARD.name, problem });
        if hidden % 2 == 1 {
            return settings(format!("`hidden`: {hidden} is odd, and the LSTM has two halves"));
        }
        if neighbours == 0 || neighbours > clips {
            return settings(format!("`neighbours`: {neighbours}, expected 1 to {clips}, the clips there are"));
        }
        let map = MomentMap::new(clips, &config.map.counts)?;
        let encoder = vb.pp("encoder_layer");
        let frames = encoder.pp("frame_encoder");
        let position = || {
            let init = Init::Uniform { lo: 0.0, up: 1.0 };
            frames.get_with_hints((clips, hidden), "pos_embed.pos_embed.weight", init)
        };
        let width = if config.choices == Choices::Boundary { 2 * hidden } else { hidden };
        let relation = vb.pp("relation_layer");
        Ok(Self {
            clips: ClipProjection::new(given.visual, hidden, clips, frames.pp("vis_conv"))?,
            position: config.position_embedding.then(position).transpose()?,
            graph: GraphBlock::new(config, &encoder.pp("gcnext_layer.backbone.0"))?,
            words: Recurrent::lstm(
                given.words,
                hidden / 2,
                config.lstm_layers,
                Ways::Both,
                encoder.pp("lstm_encoder"),
            )?,
            interactor: Interactor::new(width, hidden, config.interaction, &vb.pp("interactor_layer"))?,
            relation: match config.relation {
                Relation::Attention { blocks, rounds, narrowing } => {
                    if narrowing == 0 || hidden / narrowing < QUERY_NARROWING {
                        return settings(format!("`relation.narrowing`: {narrowing} leaves too little of {hidden}"));
                    }
                    let block = |number: usize| {
                        RelationBlock::new(hidden, hidden / narrowing, rounds, &relation.pp("gat_block").pp(number))
                    };
                    Comparison::Attention((0..blocks).map(block).collect::<Result<_>>()?)
                }
                Relation::Convolution { kernel, layers } => Comparison::Convolution(MapStack::new(
                    &map,
                    hidden,
                    kernel,
                    layers,
                    MapSupport::Exact,
                    relation.pp("convs"),
                )?),
            },
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
            clips = pass.dropout(&clips.broadcast_add(position)?, 0.1)?;
        }
        let clips = self.graph.forward(&clips)?;
        let words = match self.config.recurrence {
            Recurrence::Padding => self.words.forward(words)?,
            Recurrence::LengthAware => self.words.forward_packed(words, &lengths(mask)?)?,
        };
        let words = words.broadcast_mul(&mask.unsqueeze(2)?)?;
        let choices = self.choices(&clips)?;
        // Interaction looks at one cell at a time, so that one row stands for all invalid cells, which are zero.
        let fused = self.interactor.forward(&choices.pad_with_zeros(1, 1, 0)?, &words)?;
        let compared = match &self.relation {
            Comparison::Attention(blocks) => {
                let mask = self.map.mask(visual.device())?.unsqueeze(2)?;
                let whole = self.spread(&fused)?;
                let compared = blocks.iter().try_fold(whole, |x, block| block.forward(&x, &mask))?;
                compared.flatten(1, 2)?.index_select(&self.map.squares(visual.device())?, 1)?
            }
            Comparison::Convolution(stack) => stack.forward(&fused.narrow(1, 1, fused.dim(1)? - 1)?)?,
        };
        let logits = self.score.forward(&compared)?.squeeze(D::Minus1)?;
        Ok(Forward { clips, words, choices, fused, compared, logits })
    }

    /// Cells from clips, `[batch, clips, hidden]` to `[batch, cells, width]`.
    fn choices(&self, clips: &Tensor) -> Result<Tensor> {
        if self.config.choices == Choices::Pool {
            return Ok(span_max(clips, self.map.layout())?);
        }
        let cells = self.map.layout().cells();
        let at = |clip: fn(&(u32, u32)) -> u32| {
            let rows: Vec<u32> = cells.iter().map(clip).collect();
            clips.contiguous()?.index_select(&Tensor::new(rows, clips.device())?, 1)
        };
        let (first, last) = (at(|cell| cell.0)?, at(|cell| cell.1)?);
        match self.config.choices {
            Choices::BoundarySum => Ok((first + last)?),
            Choices::Boundary | Choices::Pool => Ok(Tensor::cat(&[first, last], D::Minus1)?),
        }
    }

    /// Rows of valid cells, and the one before them at every invalid square: `[batch, 1 + cells, width]` to
    /// `[batch, clips, clips, width]`.
    fn spread(&self, rows: &Tensor) -> Result<Tensor> {
        let (batch, _, width) = rows.dims3()?;
        let clips = self.config.map.clips;
        let row = |square: usize| {
            self.map.layout().number(square / clips, square % clips).map_or(0, |number| number as u32 + 1)
        };
        let squares = Tensor::new((0..clips * clips).map(row).collect::<Vec<u32>>(), rows.device())?;
        Ok(rows.contiguous()?.index_select(&squares, 1)?.reshape((batch, clips, clips, width))?)
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        self.forward(&batch.videos.visual, &batch.queries.words, &batch.queries.mask, pass)
    }
}

/// Real words of each query, from their mask `[batch, words]`.
fn lengths(mask: &Tensor) -> Result<Vec<usize>> {
    Ok(mask.sum(1)?.to_vec1::<f32>()?.into_iter().map(|length| length as usize).collect())
}

/// Convolutions along time and over the nearest clips in feature space (GCNeXt), added to the clips.
#[derive(Debug)]
struct GraphBlock {
    neighbours: usize,
    time: (Linear, Conv1d, Linear),
    meaning: (Linear, Conv1d, Linear),
}

impl GraphBlock {
    fn new(config: &RaNetConfig, vb: &VarBuilder) -> Result<Self> {
        let RaNetConfig { hidden, groups, group_width, neighbours, .. } = *config;
        let width = groups * group_width;
        let (time, meaning) = (vb.pp("tconvs"), vb.pp("sconvs"));
        let steps = Steps { padding: 1, groups, ..Steps::default() };
        let over_time = Conv1d::new(width, width, 3, steps, time.pp(2))?;
        // Stored as a convolution over a map of one row.
        let (stored, fan) = (meaning.pp(2), uniform(group_width * neighbours));
        let weight = stored.get_with_hints((width, group_width, 1, neighbours), "weight", fan)?.squeeze(2)?;
        let steps = Steps { padding: (neighbours - 1) / 2, ..steps };
        let over_neighbours = Conv1d::of(weight, Some(stored.get_with_hints(width, "bias", fan)?), steps);
        Ok(Self {
            neighbours,
            time: (pointwise(hidden, width, 1, time.pp(0))?, over_time, pointwise(width, hidden, 1, time.pp(4))?),
            meaning: (
                pointwise(2 * hidden, width, 2, meaning.pp(0))?,
                over_neighbours,
                pointwise(width, hidden, 2, meaning.pp(4))?,
            ),
        })
    }

    /// `[batch, clips, hidden]` to the same.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (before, convolve, after) = &self.time;
        let over_time = after.forward(&convolve.forward(&before.forward(x)?.relu()?)?.relu()?)?;

        let (batch, clips, hidden) = x.dims3()?;
        let rows = x.reshape((batch * clips, hidden))?;
        let near = rows.index_select(&nearest(x, self.neighbours)?, 0)?.reshape((batch * clips, (), hidden))?;
        let own = rows.unsqueeze(1)?.broadcast_as(near.shape())?;
        let (before, convolve, after) = &self.meaning;
        let pairs = Tensor::cat(&[near, own.contiguous()?], D::Minus1)?;
        let over_near = after.forward(&convolve.forward(&before.forward(&pairs)?.relu()?)?.relu()?)?;
        let over_near = largest(&over_near, 1)?.reshape((batch, clips, hidden))?;
        Ok(((over_time + (x * 2.0)?)? + over_near)?.relu()?)
    }
}

/// For every clip the rows of its `count` nearest clips, nearest first and itself before all, of `x [batch, clips, hidden]`
/// as `batch * clips` rows; the earlier of two equally near ones comes first.
fn nearest(x: &Tensor, count: usize) -> Result<Tensor> {
    let x = x.detach();
    let squares = x.sqr()?.sum_keepdim(2)?;
    let products = x.contiguous()?.times(&x.t()?.contiguous()?)?;
    let distances = (products * -2.0)?.broadcast_add(&squares)?.broadcast_add(&squares.t()?)?.to_vec3::<f32>()?;
    let mut rows = Vec::new();
    for (video, distances) in distances.iter().enumerate() {
        for (clip, distances) in distances.iter().enumerate() {
            let mut others: Vec<usize> = (0..distances.len()).filter(|other| *other != clip).collect();
            others.sort_by(|a, b| distances[*a].total_cmp(&distances[*b]));
            let near = std::iter::once(clip).chain(others).take(count);
            rows.extend(near.map(|near| (video * distances.len() + near) as u32));
        }
    }
    Ok(Tensor::new(rows, x.device())?)
}

/// Where a cell meets the sentence, and each of its words.
#[derive(Debug)]
struct Interactor {
    sentence: Linear,
    sentence_cells: Linear,
    tokens: Option<Tokens>,
}

#[derive(Debug)]
struct Tokens {
    key: Linear,
    value: Linear,
    ask: Linear,
    cells: Linear,
}

impl Interactor {
    fn new(width: usize, hidden: usize, interaction: Interaction, vb: &VarBuilder) -> Result<Self> {
        let tokens = || -> Result<Tokens> {
            Ok(Tokens {
                key: linear(hidden, hidden, vb.pp("txt_linear_b2_a"))?,
                value: linear(hidden, hidden, vb.pp("txt_linear_b2_b"))?,
                ask: pointwise(width, hidden, 2, vb.pp("vis_conv_b2_a"))?,
                cells: pointwise(width, hidden, 2, vb.pp("vis_conv_b2_b"))?,
            })
        };
        Ok(Self {
            sentence: linear(hidden, hidden, vb.pp("txt_linear_b1"))?,
            sentence_cells: pointwise(width, hidden, 2, vb.pp("vis_conv_b1"))?,
            tokens: (interaction == Interaction::Dynamic).then(tokens).transpose()?,
        })
    }

    /// # Shapes
    /// - cells `[batch, cells, width]`; words `[batch, words, hidden]`, zero where there is none
    /// - returns `[batch, cells, hidden]`
    fn forward(&self, cells: &Tensor, words: &Tensor) -> Result<Tensor> {
        let sentence = self.sentence.forward(&largest(words, 1)?)?.unsqueeze(1)?;
        let by_sentence = l2_normalise(&self.sentence_cells.forward(cells)?.broadcast_mul(&sentence)?)?;
        let Some(tokens) = &self.tokens else { return Ok(by_sentence) };
        let (key, value) = (tokens.key.forward(words)?, tokens.value.forward(words)?);
        let (attended, _) = attention(&tokens.ask.forward(cells)?, &key, &value, None)?;
        let by_words = l2_normalise(&(attended * tokens.cells.forward(cells)?)?)?;
        Ok((by_sentence + by_words)?.relu()?)
    }
}

/// The width inside a relation block over that of its queries and keys.
const QUERY_NARROWING: usize = 8;

/// Compares cells that share a start or an end, on the whole map.
#[derive(Debug)]
struct RelationBlock {
    narrow: Tensor,
    after: Tensor,
    join: Tensor,
    ask: Linear,
    key: Linear,
    value: Linear,
    gamma: Tensor,
    rounds: usize,
}

impl RelationBlock {
    fn new(hidden: usize, width: usize, rounds: usize, vb: &VarBuilder) -> Result<Self> {
        let kernel = |inputs: usize, outputs: usize, name: &str| {
            vb.pp(name).get_with_hints((outputs, inputs, 3, 3), "0.weight", uniform(inputs * 9))
        };
        let attention = vb.pp("gat");
        Ok(Self {
            narrow: kernel(hidden, width, "conva")?,
            after: kernel(width, width, "convb")?,
            join: kernel(hidden + width, hidden, "convc")?,
            ask: pointwise(width, width / QUERY_NARROWING, 2, attention.pp("query_conv"))?,
            key: pointwise(width, width / QUERY_NARROWING, 2, attention.pp("key_conv"))?,
            value: pointwise(width, width, 2, attention.pp("value_conv"))?,
            gamma: attention.get_with_hints(1, "gamma", Init::Const(0.0))?,
            rounds,
        })
    }

    /// # Shapes
    /// - x `[batch, clips, clips, hidden]`; mask `[clips, clips, 1]`
    /// - returns as x, zero where the mask is
    fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let mut compared = convolve(x, &self.narrow)?.relu()?;
        for _ in 0..self.rounds {
            compared = (self.attend(&compared)?.broadcast_mul(&self.gamma)? + compared)?;
        }
        let compared = convolve(&compared, &self.after)?.relu()?;
        let joined = convolve(&Tensor::cat(&[x, &compared], 3)?, &self.join)?.relu()?;
        Ok(joined.broadcast_mul(mask)?)
    }

    /// Attention of every cell over its row and the rest of its column, one softmax over both; `[batch, N, N, width]`.
    fn attend(&self, x: &Tensor) -> Result<Tensor> {
        let clips = x.dim(1)?;
        let (ask, key, value) = (self.ask.forward(x)?, self.key.forward(x)?, self.value.forward(x)?);
        let turned = |x: &Tensor| x.transpose(1, 2)?.contiguous(); // [batch, end, start, _]
        let products = |ask: &Tensor, key: &Tensor| ask.times(&key.t()?.contiguous()?);
        let by_row = products(&ask, &key)?; // [batch, start, end, end']
        let by_column = products(&turned(&ask)?, &turned(&key)?)?; // [batch, end, start, start']
        let own = (0..clips * clips).map(|at| if at / clips == at % clips { f32::NEG_INFINITY } else { 0.0 });
        let own = Tensor::from_vec(own.collect::<Vec<f32>>(), (clips, clips), x.device())?;
        let by_column = turned(&by_column.broadcast_add(&own)?)?; // [batch, start, end, start']
        let shares = softmax(&Tensor::cat(&[by_row, by_column], 3)?, D::Minus1)?;
        let from_row = shares.narrow(3, 0, clips)?.contiguous()?.times(&value)?;
        let from_column = turned(&shares.narrow(3, clips, clips)?)?.times(&turned(&value)?)?;
        Ok((from_row + turned(&from_column)?)?)
    }
}

/// A 3×3 convolution that keeps the size of `x [batch, height, breadth, inputs]`; weight `[outputs, inputs, 3, 3]`.
fn convolve(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (batch, height, breadth, inputs) = x.dims4()?;
    let outputs = weight.dim(0)?;
    let padded = x.pad_with_zeros(1, 1, 1)?.pad_with_zeros(2, 1, 1)?;
    let place = |place: usize| padded.narrow(1, place / 3, height)?.narrow(2, place % 3, breadth);
    let windows = Tensor::cat(&(0..9).map(place).collect::<candle_core::Result<Vec<_>>>()?, 3)?;
    let weight = weight.permute((2, 3, 1, 0))?.reshape((9 * inputs, outputs))?;
    let y = windows.reshape((batch * height * breadth, 9 * inputs))?.times(&weight)?;
    Ok(y.reshape((batch, height, breadth, outputs))?)
}

impl Model for RaNet {
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
    let config = RaNetConfig {
        map: MapSize::of_fixture(fixture, "pooling_counts")?,
        hidden: fixture.number("hidden")?,
        position_embedding: fixture.config("position_embedding")?.as_bool().unwrap_or(false),
        neighbours: fixture.number("gcnext.k")?,
        groups: fixture.number("gcnext.groups")?,
        group_width: fixture.number("gcnext.width_per_group")?,
        lstm_layers: fixture.number("lstm.layers")?,
        recurrence: Recurrence::Padding,
        choices: Choices::Boundary,
        interaction: Interaction::Dynamic,
        relation: Relation::Attention {
            blocks: fixture.number("relation.blocks")?,
            rounds: fixture.number("relation.loops")?,
            narrowing: fixture.number("relation.inter_prop")?,
        },
        targets: ScaledIou::of_fixture(fixture)?,
        nms: fixture.real("nms_threshold")?,
    };
    let (visual, words) = (fixture.input("visual")?, fixture.input("text")?);
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let net = RaNet::new(&config, &given, vb.clone())?;
    let forward = net.forward(&visual, &words, &fixture.input("text_mask")?.squeeze(2)?, &Pass::answering())?;
    let ious = net.map.from_square(&fixture.input("map_gt")?)?.squeeze(2)?;
    let probabilities = sigmoid(&forward.logits)?;

    let mut trace = Trace::new();
    let square = |x: &Tensor| net.map.to_square(x);
    trace.out("clip_feat", &forward.clips.transpose(1, 2)?);
    trace.out("word_feat", &forward.words);
    trace.out("map_mask", &net.map.mask(visual.device())?);
    trace.out("choice_map", &square(&forward.choices)?);
    trace.out("fused", &net.spread(&forward.fused)?.permute((0, 3, 1, 2))?);
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
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, assert_learnt_by_heart, gap};

    fn config() -> RaNetConfig {
        RaNetConfig {
            map: MapSize { pre_clips: 8, clips: 8, counts: vec![7] },
            hidden: 16,
            position_embedding: true,
            neighbours: 3,
            groups: 4,
            group_width: 2,
            lstm_layers: 1,
            recurrence: Recurrence::Padding,
            choices: Choices::Boundary,
            interaction: Interaction::Dynamic,
            relation: Relation::Attention { blocks: 1, rounds: 2, narrowing: 2 },
            targets: ScaledIou::default(),
            nms: 0.44,
        }
    }

    fn net(config: &RaNetConfig) -> RaNet {
        RaNet::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_valid_cell_is_proposed_once_with_a_probability() {
        let attention = |blocks: usize| Relation::Attention { blocks, rounds: 2, narrowing: 2 };
        for (choices, interaction, relation) in [
            (Choices::Boundary, Interaction::Dynamic, attention(2)),
            (Choices::Pool, Interaction::Dot, attention(1)),
            (Choices::BoundarySum, Interaction::Dynamic, Relation::Convolution { kernel: 3, layers: 2 }),
        ] {
            let ranked =
                net(&RaNetConfig { choices, interaction, relation, ..config() }).propose(&TOY.batch(1)).unwrap();
            assert_eq!(ranked.len(), TOY.pairs);
            for proposals in ranked {
                assert_eq!(proposals.len(), 36);
                assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
                assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
            }
        }
    }

    #[test]
    fn padded_words_leak_into_answers_as_published_but_not_into_length_aware_words() {
        let (short, long) = (TOY.batch(1), TOY.batch(1).with_longer_words(3));
        let leaks = |recurrence: Recurrence| {
            let net = net(&RaNetConfig { recurrence, ..config() });
            let of = |batch: &Batch| net.of_batch(batch, &Pass::answering()).unwrap();
            let (short, long) = (of(&short), of(&long));
            let words = gap(&short.words, &long.words.narrow(1, 0, TOY.words).unwrap());
            (words, gap(&short.logits, &long.logits))
        };
        let (words, logits) = leaks(Recurrence::Padding);
        assert!(words > 1e-5 && logits > 1e-6, "{words} {logits}");
        let (words, logits) = leaks(Recurrence::LengthAware);
        // The softmax over words still counts the padded ones.
        assert!(words < 1e-6 && logits > 1e-6, "{words} {logits}");
    }

    #[test]
    fn the_nearest_clips_begin_with_the_clip_itself_and_come_by_distance() {
        let x = Tensor::new(&[[[0f32], [5.0], [1.0], [5.0]]], &Device::Cpu).unwrap();
        let rows = nearest(&x, 3).unwrap().to_vec1::<u32>().unwrap();
        assert_eq!(rows, [0, 2, 1, 1, 3, 2, 2, 0, 1, 3, 1, 2]);
    }

    #[test]
    fn more_neighbours_than_clips_are_refused() {
        let config = RaNetConfig { neighbours: 9, ..config() };
        let error = RaNet::new(&config, &TOY.given(), Params::counted().builder()).unwrap_err();
        let message = "`[model]` of `ranet`: `neighbours`: 9, expected 1 to 8, the clips there are";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn the_whole_map_is_convolved_as_candle_does_it() {
        let x = Tensor::arange(0f32, 120.0, &Device::Cpu).unwrap().reshape((2, 4, 5, 3)).unwrap().sin().unwrap();
        let weight = Tensor::arange(0f32, 54.0, &Device::Cpu).unwrap().reshape((2, 3, 3, 3)).unwrap().cos().unwrap();
        let plain = x.permute((0, 3, 1, 2)).unwrap().contiguous().unwrap().conv2d(&weight, 1, 1, 1, 1).unwrap();
        assert!(gap(&convolve(&x, &weight).unwrap(), &plain.permute((0, 2, 3, 1)).unwrap()) < 1e-4);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let config = RaNetConfig { position_embedding: false, ..config() };
        let build = |vb: VarBuilder| RaNet::new(&config, &TOY.given(), vb);
        assert_learnt_by_heart(build, &batch, 120, 1e-2, 0.3);
    }
}
