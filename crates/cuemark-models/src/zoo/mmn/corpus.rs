//! Moments of many videos: encoded once, scored for every query.

use candle_core::Tensor;
use cuemark_core::NormSpan;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::l2_normalise;

use super::{CARD, Mmn};
use crate::layers::TwoSpaces;
use crate::{
    BiEncoder, Code, Corpus, Model as _, ModelError, Moments, QueryBatch, Result, VideoAnswer, VideoBatch, suppress,
};

/// Most moments of one video in an answer over many.
pub(super) const MOMENTS_PER_VIDEO: usize = 100;

impl Corpus for Mmn {
    /// The moments in the matching and in the overlap space, `[cells, joint]` each.
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let moments = self.moments(videos, &Pass::answering())?;
        let code = |video| Ok(Code(vec![moments.matching.get(video)?, moments.overlap.get(video)?]));
        (0..moments.matching.dim(0)?).map(code).collect()
    }

    /// A video fits as well as its best moment.
    fn score_videos(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Option<Vec<Vec<f32>>>> {
        let sentences = self.sentences(queries, &Pass::answering())?;
        let mut scores: Vec<Vec<f32>> = vec![Vec::with_capacity(videos.len()); queries.ids.len()];
        for chunk in videos.chunks(VIDEOS_AT_ONCE) {
            let space = |which: usize| {
                let codes: Vec<&Tensor> = chunk.iter().filter_map(|code| code.0.get(which)).collect();
                Tensor::stack(&codes, 0)
            };
            let moments = TwoSpaces { matching: space(0)?, overlap: space(1)? };
            let best = self.scores(&moments, &sentences)?.max(2)?.to_vec2::<f32>()?;
            scores.iter_mut().zip(best).for_each(|(scores, best)| scores.extend(best));
        }
        Ok(Some(scores))
    }

    /// Overlaps inside each video are suppressed; a video fits as well as its best moment.
    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<VideoAnswer>>> {
        let sentences = self.sentences(queries, &Pass::answering())?;
        let mut answers: Vec<Vec<VideoAnswer>> = vec![Vec::with_capacity(videos.len()); queries.ids.len()];
        for code in videos {
            let [matching, overlap] = code.0.as_slice() else {
                return Err(ModelError::Missing { model: CARD.name, what: "codes of videos that it made itself" });
            };
            let moments = TwoSpaces { matching: matching.unsqueeze(0)?, overlap: overlap.unsqueeze(0)? };
            let scores = self.scores(&moments, &sentences)?.squeeze(1)?;
            for (answers, ranked) in answers.iter_mut().zip(self.encoder.moments.map().rank(&scores)?) {
                let moments = suppress(&ranked, self.config.nms, MOMENTS_PER_VIDEO, self.grid());
                answers.push(VideoAnswer { video_score: moments.first().map_or(0.0, |best| best.score), moments });
            }
        }
        Ok(answers)
    }
}

impl BiEncoder for Mmn {
    /// Both spaces side by side: the product of two such vectors is a mean of the two cosines, which orders moments much as the
    /// final score does without being it; [`Corpus::search`] gives that.
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let both = self.side_by_side(&self.moments(videos, &Pass::answering())?)?;
        let spans: Vec<NormSpan> = self.encoder.moments.map().spans().collect();
        let of_video = |video| Ok(Moments { spans: spans.clone(), embeddings: both.get(video)? });
        (0..both.dim(0)?).map(of_video).collect()
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        self.side_by_side(&self.sentences(queries, &Pass::answering())?)
    }
}

/// Videos that are scored together: enough to keep the processor busy, few enough for memory.
const VIDEOS_AT_ONCE: usize = 128;

impl Mmn {
    /// Unit vectors that hold both spaces, twice as wide.
    fn side_by_side(&self, spaces: &TwoSpaces) -> Result<Tensor> {
        let share = self.config.matching_share.clamp(0.0, 1.0);
        let matching = (l2_normalise(&spaces.matching)? * share.sqrt())?;
        let overlap = (l2_normalise(&spaces.overlap)? * (1.0 - share).sqrt())?;
        Ok(Tensor::cat(&[&matching, &overlap], matching.rank() - 1)?)
    }
}
