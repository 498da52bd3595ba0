//! Moments of many videos: encoded once, scored for every query.

use candle_core::{Device, Tensor};
use cuemark_tensor::Pass;

use super::{Conquer, Forward, Measure, Videos};
use crate::layers::{EndClip, as_proposals, best_pairs, probabilities};
use crate::{Code, Corpus, QueryBatch, Result, VideoAnswer, VideoBatch};

/// Pairs of a query and a video that are read at once.
pub(super) const CHUNK: usize = 32;

/// The same on a GPU, which has more to do than to start.
const CHUNK_ON_GPU: usize = 512;

/// Moments that are kept of one video.
const KEPT: usize = 200;

impl Conquer {
    /// One query's moments in each of its videos; `scores` are those of a first stage.
    pub(super) fn answers(&self, pairs: &Logits, scores: Option<&[f32]>, measure: Measure) -> Vec<VideoAnswer> {
        let own = if measure == Measure::Exclusive { Some(probabilities(&pairs.video)) } else { None };
        let factors = own.as_deref().or(scores);
        let mut answers = Vec::new();
        for (place, length) in pairs.lengths.iter().enumerate() {
            let (begin, end) = (&pairs.begin[place][..*length], &pairs.end[place][..*length]);
            let factor = factors.and_then(|factors| factors.get(place)).copied();
            let best = if measure == Measure::Disjoint {
                best_pairs(self.config.pairs, *length, KEPT, |i, j| begin[i] + end[j])
            } else {
                let (begin, end) = (probabilities(begin), probabilities(end));
                best_pairs(self.config.pairs, *length, KEPT, |i, j| factor.unwrap_or(1.0) * begin[i] * end[j])
            };
            let moments = as_proposals(&best, EndClip::Last, *length);
            let best = moments.first().map_or(f32::MIN, |best| best.score);
            let video_score = if measure == Measure::Disjoint { best } else { factor.unwrap_or(best) };
            answers.push(VideoAnswer { video_score, moments });
        }
        answers
    }

    /// Reads every query with every video, a few pairs at a time.
    fn read(
        &self,
        queries: &QueryBatch,
        videos: &[&Code],
        first: Option<&[Vec<f32>]>,
    ) -> Result<Vec<Vec<VideoAnswer>>> {
        let pass = Pass::answering();
        let (words, mask) = self.queries(&queries.words, &queries.mask, &pass)?;
        // Once for all queries: a search of many videos would spend its time putting the same codes together.
        let stacks = videos.chunks(chunk_for(words.device())).map(stacked).collect::<Result<Vec<_>>>()?;
        let mut answers = Vec::with_capacity(queries.ids.len());
        for query in 0..queries.ids.len() {
            let (words, mask) = (words.narrow(0, query, 1)?, mask.narrow(0, query, 1)?);
            let mut logits = Logits::default();
            for codes in &stacks {
                let count = codes.mask.dim(0)?;
                let pairs = self.forward(&words.repeat((count, 1, 1))?, &mask.repeat((count, 1))?, codes, &pass)?;
                logits.extend(&pairs, &codes.mask)?;
            }
            let scores = first.and_then(|first| first.get(query)).map(Vec::as_slice);
            answers.push(self.answers(&logits, scores, self.config.measure));
        }
        Ok(answers)
    }
}

fn chunk_for(device: &Device) -> usize {
    if device.is_cpu() { CHUNK } else { CHUNK_ON_GPU }
}

/// What one query's pairs gave, video by video.
#[derive(Default)]
pub(super) struct Logits {
    pub(super) begin: Vec<Vec<f32>>,
    pub(super) end: Vec<Vec<f32>>,
    pub(super) video: Vec<f32>,
    pub(super) lengths: Vec<usize>,
}

impl Logits {
    /// Those of some pairs only.
    pub(super) fn rows(&self, pairs: std::ops::Range<usize>) -> Self {
        Self {
            begin: self.begin[pairs.clone()].to_vec(),
            end: self.end[pairs.clone()].to_vec(),
            video: self.video.get(pairs.clone()).unwrap_or_default().to_vec(),
            lengths: self.lengths[pairs].to_vec(),
        }
    }

    pub(super) fn extend(&mut self, pairs: &Forward, mask: &Tensor) -> Result<()> {
        self.begin.extend(pairs.begin.to_vec2::<f32>()?);
        self.end.extend(pairs.end.to_vec2::<f32>()?);
        if let Some(video) = &pairs.video {
            self.video.extend(video.to_vec1::<f32>()?);
        }
        self.lengths.extend(mask.sum(1)?.to_vec1::<f32>()?.into_iter().map(|length| length as usize));
        Ok(())
    }
}

/// Codes as videos again: visual, mask, subtitle where there is one.
fn stacked(codes: &[&Code]) -> Result<Videos> {
    let part = |place: usize| Tensor::stack(&codes.iter().map(|code| &code.0[place]).collect::<Vec<_>>(), 0);
    let subtitle = codes.first().filter(|code| code.0.len() > 2).map(|_| part(2)).transpose()?;
    Ok(Videos { visual: part(0)?, mask: part(1)?, subtitle })
}

/// Meant to come after a first stage: without one it reads every video with every query, and the general measure takes all
/// videos for equally likely.
impl Corpus for Conquer {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let videos = self.videos_of(videos, &Pass::answering())?;
        let of = |video: usize| {
            let parts = [Some(&videos.visual), Some(&videos.mask), videos.subtitle.as_ref()];
            let kept = parts.into_iter().flatten().map(|part| Ok(part.get(video)?.detach()));
            Ok(Code(kept.collect::<Result<_>>()?))
        };
        (0..videos.mask.dim(0)?).map(of).collect()
    }

    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<VideoAnswer>>> {
        self.read(queries, videos, None)
    }

    fn search_after(
        &self,
        queries: &QueryBatch,
        videos: &[&Code],
        first: &[Vec<f32>],
    ) -> Result<Vec<Vec<VideoAnswer>>> {
        self.read(queries, videos, Some(first))
    }
}
