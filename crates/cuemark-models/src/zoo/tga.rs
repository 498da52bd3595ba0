//! TGA: one space for videos and sentences, learnt from pairs alone; how much a sentence attends to a window ranks the windows.
//! Mithun et al., "Weakly Supervised Video Moment Retrieval from Text Queries", CVPR 2019.
//!
//! Windows keep exact book of where they lie; the published evaluation guesses it from their number and is off by one or
//! more. All parameters are trained, in the authors' code all but the first projection (`still_windows = true`). Sentences are
//! read without markers of their start and end.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{l2_normalise, mask_out, softmax};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{Linear, Recurrent, Ways, last_step, real_steps, xavier};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task, VideoBatch,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "tga",
    title: "TGA",
    paper: "Mithun et al., Weakly Supervised Video Moment Retrieval from Text Queries, CVPR 2019",
    family: Family::Weak,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Weak,
    idea: "a joint space learnt from pairs; the attention of the sentence to sliding windows ranks them",
    full_sizes: &[FullSize { dataset: "charades-sta", settings: "", visual: 4096, words: 300, millions: None }],
    build: |settings, given, vb| Ok(Box::new(Tga::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<TgaConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TgaConfig {
    /// The most clips of a video; later ones are cut off. Default: 1200
    pub clips: usize,
    /// Lengths of windows, in clips. Default: 8 and 16
    pub windows: Vec<usize>,
    /// Share of a window that lies in the next of its length. Default: 0.0
    pub overlap: f64,
    /// Width of the joint space. Default: 1024
    pub hidden: usize,
    /// Layers of the sentence's network. Default: 1
    pub layers: usize,
    /// What words are read as. Default: trained
    pub words: WordVectors,
    /// By how much a pair must be closer than what does not belong together. Default: 0.1
    pub margin: f64,
    /// Which mismatched pairs count. Default: all
    pub negatives: Mismatches,
    /// Whether the projection of windows stays as it was drawn, as in the authors' code. Default: false
    pub still_windows: bool,
}

impl Default for TgaConfig {
    fn default() -> Self {
        Self {
            clips: 1200,
            windows: vec![8, 16],
            overlap: 0.0,
            hidden: 1024,
            layers: 1,
            words: WordVectors::Trained,
            margin: 0.1,
            negatives: Mismatches::All,
            still_windows: false,
        }
    }
}

/// What words are read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WordVectors {
    /// Vectors of the model's own, trained with it.
    Trained,
    /// The vectors that the run brings.
    Given,
}

/// Which mismatched pairs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mismatches {
    /// Every one of the batch.
    All,
    /// For each video and each sentence the one that comes closest.
    Hardest,
}

/// The network.
#[derive(Debug)]
pub struct Tga {
    config: TgaConfig,
    table: Option<Tensor>,
    sentence: Recurrent,
    window: Linear,
    video: Linear,
}

/// Windows of some videos: features `[videos, windows, width]`, 1 where there is one `[videos, windows]`, and where they lie.
struct Windows {
    features: Tensor,
    mask: Tensor,
    spans: Vec<Vec<NormSpan>>,
}

/// Every video as seen with its own sentence.
struct Forward {
    sentence: Tensor,
    attention: Tensor,
    video: Tensor,
}

impl Tga {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &TgaConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        // The authors draw both projections within the bound of the second.
        let project = |inputs: usize, name: &str| -> Result<Linear> {
            let vb = vb.pp("img_enc").pp(name);
            let weight = vb.get_with_hints((hidden, inputs), "weight", xavier(hidden, hidden))?;
            Ok(Linear::new(weight, Some(vb.get_with_hints(hidden, "bias", Init::Const(0.0))?)))
        };
        let (text, small) = (vb.pp("txt_enc"), Init::Uniform { lo: -0.1, up: 0.1 });
        let table = match config.words {
            WordVectors::Trained => {
                Some(text.pp("embed").get_with_hints((given.vocabulary, given.words), "weight", small)?)
            }
            WordVectors::Given => None,
        };
        Ok(Self {
            table,
            sentence: Recurrent::gru(given.words, hidden, config.layers, Ways::Forward, text.pp("rnn"))?,
            window: project(given.visual, "ws1")?,
            video: project(hidden, "fc")?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - words `[batch, words, d_word]` with `lengths` real ones
    fn forward(&self, windows: &Tensor, mask: &Tensor, words: &Tensor, lengths: &[usize]) -> Result<Forward> {
        let sentence = l2_normalise(&last_step(&self.sentence.forward(words)?, lengths)?)?;
        let windows = self.window.forward(windows)?;
        let fit = windows.times(&sentence.unsqueeze(2)?)?.squeeze(2)?;
        // What is attended to is not learnt through the attention: its weights are constants to the gradient.
        let attention = (softmax(&mask_out(&fit, mask, -1e9)?, D::Minus1)? * mask)?.detach();
        let seen = windows.broadcast_mul(&attention.unsqueeze(2)?)?.sum(1)?;
        Ok(Forward { sentence, attention, video: l2_normalise(&self.video.forward(&seen)?)? })
    }

    fn of_batch(&self, batch: &Batch) -> Result<(Windows, Forward)> {
        let windows = self.windows(&batch.videos)?;
        let queries = &batch.queries;
        let words = match &self.table {
            Some(table) => look_up(table, &queries.word_ids)?,
            None => queries.words.clone(),
        };
        let forward = self.forward(&windows.features, &windows.mask, &words, &queries.lengths)?;
        Ok((windows, forward))
    }

    /// Means over windows of every length; one that reaches past the end counts zeros there, as the authors' does.
    fn windows(&self, videos: &VideoBatch) -> Result<Windows> {
        let clips = videos.visual.dim(1)?;
        let cut = |length: &usize| cut_windows(*length, &self.config.windows, self.config.overlap);
        let all: Vec<Vec<Window>> = videos.lengths.iter().map(cut).collect();
        let most = all.iter().map(Vec::len).max().unwrap_or_default();
        let mut means = vec![0f32; all.len() * most * clips];
        let mut mask = vec![0f32; all.len() * most];
        for (video, windows) in all.iter().enumerate() {
            for (number, window) in windows.iter().enumerate() {
                let row = video * most + number;
                mask[row] = 1.0;
                means[row * clips + window.first..row * clips + window.end].fill(1.0 / window.size as f32);
            }
        }
        let device = videos.visual.device();
        let means = Tensor::from_vec(means, (all.len(), most, clips), device)?;
        let spans = |(windows, length): (&Vec<Window>, &usize)| {
            let whole = *length as f64;
            windows.iter().filter_map(|one| NormSpan::new(one.first as f64 / whole, one.end as f64 / whole)).collect()
        };
        Ok(Windows {
            features: means.times(&videos.visual)?,
            mask: Tensor::from_vec(mask, (all.len(), most), device)?,
            spans: all.iter().zip(&videos.lengths).map(spans).collect(),
        })
    }
}

/// Clips `first..end`, averaged over `size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    first: usize,
    end: usize,
    size: usize,
}

/// All windows of a video of `clips` clips, one size after the other.
fn cut_windows(clips: usize, sizes: &[usize], overlap: f64) -> Vec<Window> {
    let of_size = |size: &usize| {
        let size = (*size).max(1);
        let step = ((size as f64 * (1.0 - overlap)).round() as usize).clamp(1, size);
        // A window that adds no clip to the one before it is left out.
        let count = 1 + clips.saturating_sub(size).div_ceil(step);
        (0..count).map(move |number| {
            let first = number * step;
            Window { first, end: (first + size).min(clips), size }
        })
    };
    sizes.iter().flat_map(of_size).filter(|window| window.first < window.end).collect()
}

fn look_up(table: &Tensor, ids: &Tensor) -> Result<Tensor> {
    let (queries, words) = ids.dims2()?;
    Ok(table.index_select(&ids.flatten_all()?, 0)?.reshape((queries, words, ()))?)
}

/// What mismatched pairs cost: how far each is from lying `margin` below both pairs it is made of, summed.
///
/// # Shapes
/// - scores `[videos, sentences]`, pairs on the diagonal
fn hinge(scores: &Tensor, margin: f64, negatives: Mismatches) -> Result<Tensor> {
    let eye = Tensor::eye(scores.dim(0)?, scores.dtype(), scores.device())?;
    let pairs = (scores * &eye)?.sum(1)?;
    let others = eye.affine(-1.0, 1.0)?;
    let by_video = ((scores.broadcast_sub(&pairs.unsqueeze(1)?)? + margin)?.relu()? * &others)?;
    let by_sentence = ((scores.broadcast_sub(&pairs.unsqueeze(0)?)? + margin)?.relu()? * &others)?;
    Ok(match negatives {
        Mismatches::All => (by_video.sum_all()? + by_sentence.sum_all()?)?,
        Mismatches::Hardest => (by_video.max(1)?.sum_all()? + by_sentence.max(0)?.sum_all()?)?,
    })
}

impl Model for Tga {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::Cut { rows: self.config.clips },
            spans: false,
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, _: &Pass) -> Result<Loss> {
        let (_, forward) = self.of_batch(batch)?;
        let scores = forward.video.times(&forward.sentence.t()?)?;
        Ok(hinge(&scores, self.config.margin, self.config.negatives)?.into())
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let (windows, forward) = self.of_batch(batch)?;
        let rows = windows.spans.into_iter().zip(forward.attention.to_vec2::<f32>()?);
        let rank = |(spans, row): (Vec<NormSpan>, Vec<f32>)| {
            let mut ranked: Vec<Proposal> =
                spans.into_iter().zip(row).map(|(span, score)| Proposal { span, score }).collect();
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
            ranked
        };
        Ok(rows.map(rank).collect())
    }

    fn rate(&self, parameter: &str, _: &Pass) -> f64 {
        if self.config.still_windows && parameter.starts_with("img_enc.ws1") { 0.0 } else { 1.0 }
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = TgaConfig {
        hidden: fixture.number("embed_size")?,
        layers: fixture.number("gru_layers")?,
        margin: fixture.real("margin")?,
        ..TgaConfig::default()
    };
    let segments = fixture.input("segments")?;
    let given = Given::widths(segments.dim(2)?, fixture.number("word_dim")?, fixture.number("vocab")?);
    let net = Tga::new(&config, &given, vb.clone())?;
    let table = vb.pp("txt_enc.embed").get((given.vocabulary, given.words), "weight")?;
    let words = look_up(&table, &fixture.ids("captions")?)?;
    let mask = real_steps(&fixture.counts("segment_len")?, segments.dim(1)?, segments.device())?;
    let forward = net.forward(&segments, &mask, &words, &fixture.counts("caption_len")?)?;
    let scores = forward.video.times(&forward.sentence.t()?)?;

    let mut trace = Trace::new();
    trace.out("text_embedding", &forward.sentence);
    trace.out("attention", &forward.attention);
    trace.out("video_embedding", &forward.video);
    trace.out("similarity", &scores);
    trace.loss("sum_hinge", &hinge(&scores, config.margin, Mismatches::All)?);
    trace.loss("max_violation", &hinge(&scores, config.margin, Mismatches::Hardest)?);
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, gap, overfit};

    fn config(words: WordVectors) -> TgaConfig {
        TgaConfig { clips: 16, windows: vec![2, 4], hidden: 16, words, ..TgaConfig::default() }
    }

    fn net(words: WordVectors) -> Tga {
        Tga::new(&config(words), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn a_video_of_62_clips_has_8_short_and_4_long_windows() {
        let windows = cut_windows(62, &[8, 16], 0.0);
        assert_eq!(windows.len(), 12);
        assert_eq!(windows[7], Window { first: 56, end: 62, size: 8 });
        assert_eq!(windows[8], Window { first: 0, end: 16, size: 16 });
        assert_eq!(cut_windows(5, &[8, 16], 0.0).len(), 2);
        assert_eq!(cut_windows(8, &[4], 0.5).iter().map(|window| window.first).collect::<Vec<_>>(), [0, 2, 4]);
    }

    #[test]
    fn attention_sums_to_one_over_the_windows_there_are() {
        let mut batch = TOY.batch(1).with_longer_videos(2);
        batch.videos.lengths[0] = 4;
        let ranked = net(WordVectors::Given).propose(&batch).unwrap();
        assert_eq!(ranked.iter().map(Vec::len).collect::<Vec<_>>(), [3, 6, 6, 6]);
        for proposals in ranked {
            assert!((proposals.iter().map(|one| one.score).sum::<f32>() - 1.0).abs() < 1e-5);
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padding_changes_nothing() {
        let (batch, net) = (TOY.batch(1), net(WordVectors::Trained));
        let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&batch.with_longer_words(2).with_longer_videos(3))) < 1e-5);
    }

    #[test]
    fn spans_are_neither_asked_for_nor_read() {
        let (mut batch, net) = (TOY.batch(1), net(WordVectors::Trained));
        assert!(!net.input().spans);
        let loss = |batch: &Batch| net.loss(batch, &Pass::training(0, 1, Rng::new(3))).unwrap().total;
        let with = loss(&batch);
        batch.targets = None;
        assert_eq!(gap(&with, &loss(&batch)), 0.0);
    }

    #[test]
    fn pairs_far_enough_apart_cost_nothing() {
        let scores = Tensor::new(&[[0.9f32, 0.7], [0.2, 0.8]], &Device::Cpu).unwrap();
        let cost = |margin| hinge(&scores, margin, Mismatches::All).unwrap().to_scalar::<f32>().unwrap();
        assert_eq!(cost(0.09), 0.0);
        // 0.7 is 0.2 below its video's pair and 0.1 below its sentence's; 0.2 is 0.6 and 0.7 below.
        assert!((cost(0.3) - (0.1 + 0.2)).abs() < 1e-5);
    }

    #[test]
    fn the_pairs_of_one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        for words in [WordVectors::Trained, WordVectors::Given] {
            let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
                Ok(Box::new(Tga::new(&config(words), &TOY.given(), vb)?))
            };
            let (_, first, last) = overfit(build, &batch, 100, 1e-2);
            assert!(last < 0.05 * first, "{words:?}: {first} to {last}");
        }
    }
}
