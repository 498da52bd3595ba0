//! SCDM: temporal convolutions whose normalisation the query modulates position by position, with anchors on every map.
//! Yuan et al., "Semantic Conditioned Dynamic Modulation for Temporal Sentence Grounding in Videos", NeurIPS 2019.
//!
//! Re-derived from the published TensorFlow graph (simple recurrent units for the sentence, where the paper says GRU).
//! Differs from it: videos with more rows than the grid are averaged instead of cut, so that no moment is out of reach;
//! running statistics move by a tenth; published word vectors are not trained further.

mod anchors;
mod blocks;
mod check;
mod config;
#[cfg(test)]
mod tests;

use candle_core::{DType, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{masked_mean, sigmoid};

use crate::layers::{Linear, QueryWords, linear, real_steps};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
};

use anchors::Anchor;
use blocks::{Block, Branch, Reads, SameConv, SimpleUnit, halved};
pub use config::{OffsetScale, ScdmConfig, Weights};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "scdm",
    title: "SCDM",
    paper: "Yuan et al., Semantic Conditioned Dynamic Modulation for Temporal Sentence Grounding in Videos, NeurIPS 2019",
    family: Family::Regression,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
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
    build: |settings, given, vb| Ok(Box::new(Scdm::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<ScdmConfig>(),
    check: check::check,
};

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

impl Scdm {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for a grid that the maps do not divide.
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
        let mask = real_steps(lengths, count, words.device())?;
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
