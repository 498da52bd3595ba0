//! RaNet: reads a video as answer choices, fuses each with the sentence and its words, and compares choices that share a
//! start or an end.
//! Gao et al., "Relation-aware Video Reading Comprehension for Temporal Language Grounding", EMNLP 2021.
//!
//! Follows the published code, its leaks included: the backward half of the LSTM begins in the padding
//! (`recurrence = "length-aware"` is our way out of that), and maximum and softmax over words count padded words, so
//! that an answer depends on how its batch is padded. Invalid cells take part in the comparison, as published, so that
//! it runs on the whole map; its convolution ablation runs on the valid cells, as 2D-TAN's does.

mod blocks;
mod check;
mod config;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;
use cuemark_tensor::map::span_max;

use crate::layers::{ClipProjection, Linear, MapStack, MapSupport, MomentMap, Recurrent, Ways, pointwise};
use crate::{
    Batch, Family, FullSize, Given, Grid, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision,
    Task,
};

use blocks::{GraphBlock, Interactor, QUERY_NARROWING, RelationBlock};
pub use config::{Choices, Interaction, RaNetConfig, Recurrence, Relation};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "ranet",
    title: "RaNet",
    paper: "Gao et al., Relation-aware Video Reading Comprehension for Temporal Language Grounding, EMNLP 2021",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
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
    build: |settings, given, vb| Ok(Box::new(RaNet::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<RaNetConfig>(),
    check: check::check,
};

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
    relation: RelationNetwork,
    score: Linear,
}

#[derive(Debug)]
enum RelationNetwork {
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
                    RelationNetwork::Attention((0..blocks).map(block).collect::<Result<_>>()?)
                }
                Relation::Convolution { kernel, layers } => RelationNetwork::Convolution(MapStack::new(
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
            RelationNetwork::Attention(blocks) => {
                let mask = self.map.mask(visual.device())?.unsqueeze(2)?;
                let whole = self.spread(&fused)?;
                let compared = blocks.iter().try_fold(whole, |x, block| block.forward(&x, &mask))?;
                compared.flatten(1, 2)?.index_select(&self.map.squares(visual.device())?, 1)?
            }
            RelationNetwork::Convolution(stack) => stack.forward(&fused.narrow(1, 1, fused.dim(1)? - 1)?)?,
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

    fn grid(&self) -> Option<Grid> {
        Some(Grid { clips: self.config.map.clips })
    }
}
