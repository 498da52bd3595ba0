//! MS-SL: a video fits a sentence as well as its best pooled clip does, and as the frames do that this clip looks at.
//! Dong et al., "Partially Relevant Video Retrieval", ACM MM 2022. The first stage of MVMR's pipeline, where it is called PRMR.
//!
//! It ranks videos and never sees a span; its best clip is a coarse answer. Differs from the published code: pieces are
//! averaged from at most `frames` rows, where the code averages them from all rows of longer videos; equal scores keep
//! the order of the videos.

mod check;
mod config;
mod corpus;
mod losses;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::ClipRange;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{cosine, mask_out, softmax};
use cuemark_tensor::{Device, Pass};

use crate::layers::{
    InputProjection, Linear, Positions, SelfAttention, WordPooling, bert_linear_no_bias, fit_steps, sliding_windows,
    window_means,
};
use crate::{
    Batch, BatchBy, BiEncoder, Corpus, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result,
    Supervision, Task, VideoBatch,
};

pub use config::{MsSlConfig, Ranking};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "ms-sl",
    title: "MS-SL",
    paper: "Dong et al., Partially Relevant Video Retrieval, ACM MM 2022",
    family: Family::Corpus,
    tasks: &[Task::Corpus],
    supervision: Supervision::Weak,
    idea: "scores a video by its best pooled clip and by the frames that this clip attends to",
    full_sizes: &[
        FullSize { dataset: "tvr", settings: "ranking = { margin = 0.1 }", visual: 3072, words: 768, millions: None },
        FullSize { dataset: "activitynet-captions", settings: "", visual: 1024, words: 1024, millions: None },
        FullSize { dataset: "charades-sta", settings: "clip_share = 0.5", visual: 1024, words: 1024, millions: None },
    ],
    build: |settings, given, vb| Ok(Box::new(MsSl::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<MsSlConfig>(),
    check: check::check,
};

/// Value that replaces the attention to frames that are not there.
const NO_FRAME: f64 = -1e9;

/// The network.
#[derive(Debug)]
pub struct MsSl {
    config: MsSlConfig,
    query: Branch,
    pooling: WordPooling,
    clip: Branch,
    frame: Branch,
    key: Linear,
    value: Linear,
    windows: Vec<ClipRange>,
}

/// Projection, positions and one self-attention.
#[derive(Debug)]
struct Branch {
    project: InputProjection,
    positions: Positions,
    encoder: SelfAttention,
}

/// Videos as the model sees them.
struct Context {
    /// `[videos, pieces, hidden]`.
    clips: Tensor,
    /// `[videos, proposals, hidden]`, by length, then by start.
    proposals: Tensor,
    /// `[videos, frames, hidden]`.
    frames: Tensor,
    mask: Tensor,
}

impl Branch {
    fn new(name: &str, inputs: usize, steps: usize, config: &MsSlConfig, vb: &VarBuilder) -> Result<Self> {
        let MsSlConfig { hidden, heads, dropout, .. } = *config;
        Ok(Self {
            project: InputProjection::new(inputs, hidden, dropout, vb.pp(format!("{name}_input_proj")))?,
            positions: Positions::new(steps, hidden, dropout, vb.pp(format!("{name}_pos_embed")))?,
            encoder: SelfAttention::new(hidden, heads, dropout, vb.pp(format!("{name}_encoder")))?,
        })
    }

    fn forward(&self, x: &Tensor, mask: Option<&Tensor>, pass: &Pass) -> Result<Tensor> {
        let x = self.positions.forward(&self.project.forward(x, pass)?, pass)?;
        Ok(self.encoder.forward(&x, mask, pass)?)
    }
}

impl MsSl {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &MsSlConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let lengths: Vec<usize> = (1..=config.pieces).collect();
        Ok(Self {
            query: Branch::new("query", given.words, config.words, config, &vb)?,
            pooling: WordPooling::new(config.hidden, 1, vb.pp("modular_vector_mapping"))?,
            clip: Branch::new("clip", given.visual, config.frames.max(config.pieces), config, &vb)?,
            frame: Branch::new("frame", given.visual, config.frames, config, &vb)?,
            key: bert_linear_no_bias(config.hidden, config.hidden, vb.pp("mapping_linear.0"))?,
            value: bert_linear_no_bias(config.hidden, config.hidden, vb.pp("mapping_linear.1"))?,
            windows: sliding_windows(config.pieces, &lengths, config.pieces.max(1)),
            config: config.clone(),
        })
    }

    /// One vector per query, `[queries, hidden]`.
    fn queries(&self, words: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let most = self.config.words.min(words.dim(1)?);
        let (words, mask) = (fit_steps(words, most)?, fit_steps(mask, most)?);
        let words = self.query.forward(&words, Some(&mask), pass)?;
        Ok(self.pooling.forward(&words, &mask)?.0.squeeze(1)?)
    }

    /// # Shapes
    /// - pieces `[videos, pieces, d_visual]`, frames `[videos, frames, d_visual]`, mask `[videos, frames]`
    fn context(&self, pieces: &Tensor, frames: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Context> {
        let clips = self.clip.forward(pieces, None, pass)?;
        let means = window_means(&self.windows, self.config.pieces, clips.device())?;
        Ok(Context {
            proposals: means.unsqueeze(0)?.times(&clips)?,
            clips,
            frames: self.frame.forward(frames, Some(mask), pass)?,
            mask: mask.clone(),
        })
    }

    fn context_of(&self, videos: &VideoBatch, pass: &Pass) -> Result<Context> {
        let most = self.config.frames.min(videos.visual.dim(1)?);
        let (visual, mask) = (fit_steps(&videos.visual, most)?, fit_steps(&videos.mask, most)?);
        let device = visual.device();
        let of = |length: &usize| averaging((*length).min(most), most, self.config.pieces, device);
        let averaging = videos.lengths.iter().map(of).collect::<Result<Vec<_>>>()?;
        let pieces = unit_rows(&Tensor::stack(&averaging, 0)?.times(&visual)?)?;
        self.context(&pieces, &unit_rows(&visual)?, &mask, pass)
    }

    /// For every query and video the best cosine of any proposal and which it is, and the best product.
    fn clip_scores(queries: &Tensor, proposals: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
        let (videos, count, _) = proposals.dims3()?;
        let rows = proposals.flatten_to(1)?;
        let cosines = cosine(queries, &rows)?.reshape(((), videos, count))?;
        let products = queries.times(&rows.t()?)?.reshape(((), videos, count))?;
        Ok((cosines.max(D::Minus1)?, cosines.argmax(D::Minus1)?, products.max(D::Minus1)?))
    }

    /// What each chosen proposal sees in the frames of its video.
    ///
    /// # Shapes
    /// - frames `[rows, frames, hidden]`, mask `[rows, frames]`, chosen `[rows, hidden]`; returns `[rows, hidden]`
    fn attend(&self, frames: &Tensor, mask: &Tensor, chosen: &Tensor) -> Result<Tensor> {
        let logits = self.key.forward(frames)?.broadcast_mul(&chosen.unsqueeze(1)?)?.sum(2)?;
        let weights = softmax(&mask_out(&logits, mask, NO_FRAME)?, 1)?;
        Ok(weights.unsqueeze(1)?.times(&self.value.forward(frames)?)?.squeeze(1)?)
    }

    /// For every query what the best proposal of its own video sees, `[queries, hidden]`.
    fn attend_own(&self, context: &Context, best: &Tensor, own: &[usize]) -> Result<Tensor> {
        let count = context.proposals.dim(1)?;
        let best = best.to_vec2::<u32>()?;
        let rows = own.iter().zip(&best).map(|(video, best)| (video * count) as u32 + best[*video]);
        let rows = Tensor::new(rows.collect::<Vec<u32>>(), context.proposals.device())?;
        let chosen = context.proposals.flatten_to(1)?.index_select(&rows, 0)?;
        let videos =
            Tensor::new(own.iter().map(|video| *video as u32).collect::<Vec<_>>(), context.proposals.device())?;
        self.attend(&context.frames.index_select(&videos, 0)?, &context.mask.index_select(&videos, 0)?, &chosen)
    }
}

/// What `length` rows must be multiplied with to give `pieces` means, `[pieces, rows]`: bins between rounded edges that never
/// reach past the last row; an empty bin is the row it begins at.
fn averaging(length: usize, rows: usize, pieces: usize, device: &Device) -> Result<Tensor> {
    let last = length.saturating_sub(1);
    let edge = |piece: usize| ((piece as f64 / pieces as f64 * length as f64).round_ties_even() as usize).min(last);
    let bin = |piece: usize| ClipRange::new(edge(piece), edge(piece + 1).max(edge(piece) + 1));
    let bins: Vec<ClipRange> = (0..pieces).filter_map(bin).collect();
    Ok(window_means(&bins, rows, device)?)
}

/// `x / (‖x‖ + 1e-5)` along the last axis.
fn unit_rows(x: &Tensor) -> Result<Tensor> {
    let norm = (x.sqr()?.sum_keepdim(D::Minus1)?.sqrt()? + 1e-5)?;
    Ok(x.broadcast_div(&norm)?)
}

impl Model for MsSl {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBinsIfLonger { rows: self.config.frames },
            batch_by: BatchBy::Videos,
            spans: false,
            ..Input::pairs(self.config.frames)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let queries = self.queries(&batch.queries.words, &batch.queries.mask, pass)?;
        let context = self.context_of(&batch.videos, pass)?;
        let own = &batch.queries.video;
        let ranks = self.draw_ranks(own, batch.videos.ids.len(), pass);
        let losses = self.losses(&queries, &context, own, &ranks)?;
        let total = self.total(&losses)?;
        let parts = vec![
            ("clip_contrast", losses.clip_nce),
            ("clip_ranking", losses.clip_triplet),
            ("frame_contrast", losses.frame_nce),
            ("frame_ranking", losses.frame_triplet),
        ];
        Ok(Loss { total, parts })
    }

    /// The best pooled clips of the video: coarse, and all that a model without spans can say.
    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let codes = self.encode(&batch.videos)?;
        let of = |(query, video): (usize, &usize)| {
            let answers = self.search(&batch.queries.select(&[query])?, &[&codes[*video]])?;
            Ok(answers.into_iter().flatten().next().unwrap_or_default().moments)
        };
        batch.queries.video.iter().enumerate().map(of).collect()
    }

    fn corpus(&self) -> Option<&dyn Corpus> {
        Some(self)
    }

    fn bi_encoder(&self) -> Option<&dyn BiEncoder> {
        Some(self)
    }
}
