//! Moments of many videos: encoded once, scored for every query.

use candle_core::Tensor;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::l2_normalise;

use super::{ReLoClNet, of_stream};
use crate::layers::{SimilarityCurve, StreamQuery, stream_moments};
use crate::{Answer, BiEncoder, Code, Corpus, Moments, QueryBatch, Result, VideoBatch};

impl ReLoClNet {
    fn stream_queries(&self, queries: &QueryBatch) -> Result<Vec<StreamQuery>> {
        self.stream_vectors(&self.queries(&queries.words, &queries.mask, &Pass::answering())?)
    }

    pub(super) fn stream_vectors(&self, vectors: &Tensor) -> Result<Vec<StreamQuery>> {
        let of = |number: usize| {
            Ok(StreamQuery { whole: of_stream(vectors, number)?, curve: self.curve_query(vectors, number)? })
        };
        (0..2).map(of).collect()
    }
}

impl Corpus for ReLoClNet {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let context = self.context_of(videos, &Pass::answering())?;
        Ok(self.curve.encode(&context.last, &context.last, &self.lengths(videos))?)
    }

    fn score_videos(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Option<Vec<Vec<f32>>>> {
        Ok(Some(SimilarityCurve::score_videos(&self.stream_queries(queries)?, videos)?))
    }

    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<Answer>>> {
        let queries = self.stream_queries(queries)?;
        let scores = SimilarityCurve::score_videos(&queries, videos)?;
        Ok(self.curve.search(&queries, videos, &scores, &self.rules())?)
    }

    fn search_after(&self, queries: &QueryBatch, videos: &[&Code], first: &[Vec<f32>]) -> Result<Vec<Vec<Answer>>> {
        Ok(self.curve.search(&self.stream_queries(queries)?, videos, first, &self.rules())?)
    }
}

/// Moments are windows of 1, 2, 4, … clips; products of unit vectors are the mean of the streams' cosines.
impl BiEncoder for ReLoClNet {
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let context = self.context_of(videos, &Pass::answering())?;
        Ok(stream_moments(&context.last, &self.lengths(videos))?)
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        let vectors = self.queries(&queries.words, &queries.mask, &Pass::answering())?;
        Ok(l2_normalise(&l2_normalise(&vectors)?.flatten_from(1)?)?.detach())
    }
}
