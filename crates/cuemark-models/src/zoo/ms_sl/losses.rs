//! What training makes smaller: drawn negatives and contrast, for clips and for frames.

use candle_core::Tensor;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{cosine, mask_out};

use super::{Context, MsSl, Ranking};
use crate::Result;
use crate::layers::NOT_THERE;
use crate::losses::{DrawnNegatives, RankingLoss};

/// The ranks of the negatives of one step.
pub(super) struct Ranks {
    /// For each video among the sentences of others, from 1.
    pub(super) sentences: Vec<usize>,
    /// For each query among the other videos, from 1.
    pub(super) videos: Vec<usize>,
    /// For each query among the other rows and columns on frames, from 1.
    pub(super) frames: [Vec<usize>; 2],
}

/// The four losses before weighting.
pub(super) struct Losses {
    pub(super) clip_nce: Tensor,
    pub(super) clip_triplet: Tensor,
    pub(super) frame_nce: Tensor,
    pub(super) frame_triplet: Tensor,
}

impl MsSl {
    fn rule(&self) -> DrawnNegatives {
        let Ranking { margin, hard_from, hard_pool } = self.config.ranking;
        DrawnNegatives { compare: RankingLoss::Hinge, margin, hard_from, hard_pool }
    }

    pub(super) fn draw_ranks(&self, own: &[usize], videos: usize, pass: &Pass) -> Ranks {
        let rule = self.rule();
        let queries = own.len();
        let others = |video: usize| own.iter().filter(|own| **own != video).count();
        // Of the sentences of other videos the single hardest one is taken late in training.
        let sentence = |video| if rule.is_hard(pass) { 1 } else { rule.draw_ranks(1, others(video).max(1), pass)[0] };
        let frames = || rule.draw_ranks(queries, queries.saturating_sub(1).max(1), pass);
        Ranks {
            sentences: (0..videos).map(sentence).collect(),
            videos: rule.draw_ranks(queries, videos.saturating_sub(1).max(1), pass),
            frames: [frames(), frames()],
        }
    }

    pub(super) fn losses(&self, queries: &Tensor, context: &Context, own: &[usize], ranks: &Ranks) -> Result<Losses> {
        let (cosines, best, products) = Self::clip_scores(queries, &context.proposals)?;
        let seen = self.attend_own(context, &best, own)?;
        Ok(Losses {
            clip_nce: clip_nce(&products, own)?,
            clip_triplet: clip_triplet(&self.rule(), &cosines, own, ranks)?,
            frame_nce: frame_nce(&queries.times(&seen.t()?)?)?,
            frame_triplet: self.frame_triplet(&cosine(queries, &seen)?, own, ranks)?,
        })
    }

    pub(super) fn frame_triplet(&self, scores: &Tensor, own: &[usize], ranks: &Ranks) -> Result<Tensor> {
        let spared = |query: usize| {
            let same = (0..own.len()).filter(move |other| *other != query && own[*other] == own[query]);
            std::iter::once(query).chain(same.filter(|_| self.config.spare_same_video)).collect()
        };
        let positives: Vec<Vec<usize>> = (0..own.len()).map(spared).collect();
        let (rows, columns) =
            self.rule().both_ways(scores, [&positives, &positives], [&ranks.frames[0], &ranks.frames[1]])?;
        Ok((rows + columns)?)
    }

    pub(super) fn total(&self, losses: &Losses) -> Result<Tensor> {
        let clip = ((&losses.clip_nce * self.config.clip_contrast)? + &losses.clip_triplet)?;
        let frame = ((&losses.frame_nce * self.config.frame_contrast)? + &losses.frame_triplet)?;
        Ok((clip + frame)?)
    }
}

/// 1 where a query belongs to a video, `[queries, videos]`.
fn belongs(own: &[usize], like: &Tensor) -> Result<Tensor> {
    let (queries, videos) = like.dims2()?;
    let mut values = vec![0f32; queries * videos];
    own.iter().enumerate().for_each(|(query, video)| values[query * videos + video] = 1.0);
    Ok(Tensor::from_vec(values, (queries, videos), like.device())?)
}

/// Each query against all videos, and the sentences of each video together against those of all.
fn clip_nce(products: &Tensor, own: &[usize]) -> Result<Tensor> {
    let keep = belongs(own, products)?;
    let queries = (products.log_sum_exp(1)? - (products * &keep)?.sum(1)?)?.mean_all()?;
    let true_ones = mask_out(products, &keep, NOT_THERE)?.log_sum_exp(0)?;
    Ok((queries + (products.log_sum_exp(0)? - true_ones)?.mean_all()?)?)
}

/// Each video's mean score with its sentences against one of other videos, and each query's video against another.
fn clip_triplet(rule: &DrawnNegatives, scores: &Tensor, own: &[usize], ranks: &Ranks) -> Result<Tensor> {
    let queries = rule.loss(scores, &own.iter().map(|video| vec![*video]).collect::<Vec<_>>(), &ranks.videos)?;
    let keep = belongs(own, scores)?;
    let means = ((scores * &keep)?.sum(0)? / keep.sum(0)?.maximum(1.0)?)?;
    let sentences = scores.t()?.contiguous()?;
    let (videos, _) = sentences.dims2()?;
    let of = |video: usize| (0..own.len()).filter(|query| own[*query] == video).collect::<Vec<_>>();
    let positives: Vec<Vec<usize>> = (0..videos).map(of).collect();
    let others = DrawnNegatives::others(&sentences, &positives, &ranks.sentences)?;
    let counts: Vec<f32> = others.iter().map(|other| f32::from(u8::from(other.is_some()))).collect();
    let others: Vec<u32> = others.iter().map(|other| other.unwrap_or(0) as u32).collect();
    let others = sentences.gather(&Tensor::from_vec(others, (videos, 1), scores.device())?, 1)?.squeeze(1)?;
    let counts = Tensor::from_vec(counts, videos, scores.device())?;
    let videos = (rule.compare(&means, &others)? * counts)?.mean_all()?;
    Ok((queries.mean_all()? + videos)?)
}

/// Each query with its own frames against its row and column together; the true entry stands twice below, as published.
fn frame_nce(products: &Tensor) -> Result<Tensor> {
    let all = Tensor::cat(&[products, &products.t()?.contiguous()?], 1)?.log_sum_exp(1)?;
    let own: Vec<usize> = (0..products.dim(0)?).collect();
    Ok((all - (products * belongs(&own, products)?)?.sum(1)?)?.mean_all()?)
}
