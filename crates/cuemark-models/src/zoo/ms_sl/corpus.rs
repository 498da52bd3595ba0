//! Moments of many videos: encoded once, scored for every query.

use candle_core::Tensor;
use candle_nn::Module;
use cuemark_core::NormSpan;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{cosine, l2_normalise, softmax};

use super::{Context, MsSl};
use crate::layers::{window_means, window_span};
use crate::{BiEncoder, Code, Corpus, Moments, Proposal, QueryBatch, Result, VideoAnswer, VideoBatch};

/// Coarse moments that are kept of one video.
const KEPT: usize = 50;

impl MsSl {
    /// Scores of one video for every query: cosines of its proposals `[query][proposal]`, and of its attended frames.
    pub(super) fn score_video(
        &self,
        queries: &Tensor,
        means: &Tensor,
        code: &Code,
    ) -> Result<(Vec<Vec<f32>>, Vec<f32>)> {
        let [clips, keys, values] = code.0.as_slice() else { return Ok((Vec::new(), Vec::new())) };
        let proposals = means.times(clips)?;
        let cosines = cosine(queries, &proposals)?;
        let chosen = proposals.index_select(&cosines.argmax(1)?, 0)?;
        let seen = softmax(&chosen.times(&keys.t()?)?, 1)?.times(values)?;
        let frame = (l2_normalise(queries)? * l2_normalise(&seen)?)?.sum(1)?;
        Ok((cosines.to_vec2()?, frame.to_vec1()?))
    }

    pub(super) fn answers(&self, queries: &Tensor, videos: &[&Code]) -> Result<Vec<Vec<VideoAnswer>>> {
        let share = self.config.clip_share as f32;
        let spans: Vec<NormSpan> = self.windows.iter().filter_map(|w| window_span(*w, self.config.pieces)).collect();
        let means = window_means(&self.windows, self.config.pieces, queries.device())?;
        let mut answers = vec![Vec::with_capacity(videos.len()); queries.dim(0)?];
        for code in videos {
            let (clips, frames) = self.score_video(queries, &means, code)?;
            for ((answers, clips), frame) in answers.iter_mut().zip(clips).zip(frames) {
                let scored = |(span, clip): (&NormSpan, f32)| Proposal {
                    span: *span,
                    score: share * clip + (1.0 - share) * frame,
                };
                let mut moments: Vec<Proposal> = spans.iter().zip(clips).map(scored).collect();
                moments.sort_by(|a, b| b.score.total_cmp(&a.score));
                moments.truncate(KEPT);
                answers.push(VideoAnswer { video_score: moments.first().map_or(0.0, |best| best.score), moments });
            }
        }
        Ok(answers)
    }

    /// Clips before pooling, and keys and values of the real frames.
    pub(super) fn codes(&self, context: &Context, lengths: &[usize]) -> Result<Vec<Code>> {
        let of = |(video, length): (usize, &usize)| {
            let frames = context.frames.get(video)?.narrow(0, 0, (*length).min(context.frames.dim(1)?))?;
            let parts = [context.clips.get(video)?, self.key.forward(&frames)?, self.value.forward(&frames)?];
            Ok(Code(parts.map(|part| part.detach()).to_vec()))
        };
        lengths.iter().enumerate().map(of).collect()
    }
}

impl Corpus for MsSl {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        self.codes(&self.context_of(videos, &Pass::answering())?, &videos.lengths)
    }

    fn score_videos(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Option<Vec<Vec<f32>>>> {
        let answers = self.search(queries, videos)?;
        Ok(Some(answers.into_iter().map(|row| row.iter().map(|answer| answer.video_score).collect()).collect()))
    }

    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<VideoAnswer>>> {
        let queries = self.queries(&queries.words, &queries.mask, &Pass::answering())?;
        self.answers(&queries, videos)
    }
}

/// Moments are the pooled clips; their products with queries are the clip scores.
impl BiEncoder for MsSl {
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let context = self.context_of(videos, &Pass::answering())?;
        let spans: Vec<NormSpan> = self.windows.iter().filter_map(|w| window_span(*w, self.config.pieces)).collect();
        let of = |video: usize| {
            let embeddings = l2_normalise(&context.proposals.get(video)?)?.detach();
            Ok(Moments { spans: spans.clone(), embeddings })
        };
        (0..videos.ids.len()).map(of).collect()
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        Ok(l2_normalise(&self.queries(&queries.words, &queries.mask, &Pass::answering())?)?.detach())
    }
}
