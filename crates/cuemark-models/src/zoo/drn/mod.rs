//! DRN: every clip inside the moment regresses its distances to start and end, on a pyramid that the query gates.
//! Zeng et al., "Dense Regression Network for Video Grounding", CVPR 2020.
//!
//! Trained in three stages: scores and distances, then the overlap head alone, then everything. Differs from the published
//! code: clips are means instead of maxima of their features; in the overlap loss all spans are clamped, not only the first
//! (`clamp = "first"`), and overlaps are targets without a gradient; published word vectors are not trained further. Answers
//! always weigh scores with the overlap head, which hardly tells spans apart before its stage.

mod answers;
mod blocks;
mod check;
mod config;
mod losses;
#[cfg(test)]
mod tests;

use candle_core::{DType, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_tensor::Pass;

use crate::layers::{Linear, QueryWords, Steps, linear};
use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

use answers::Scores;
use blocks::{Block, Head, QueryEncoder, repeated};
pub use config::{Clamp, DrnConfig, Level};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "drn",
    title: "DRN",
    paper: "Zeng et al., Dense Regression Network for Video Grounding, CVPR 2020",
    family: Family::Regression,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
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
    build: |settings, given, vb| Ok(Box::new(Drn::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<DrnConfig>(),
    check: check::check,
};

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
}

/// The locations of all levels side by side.
fn all<'a, T>(levels: &'a [T], part: impl Fn(&'a T) -> &'a Tensor) -> Result<Tensor> {
    Ok(Tensor::cat(&levels.iter().map(part).collect::<Vec<_>>(), 1)?)
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
