//! Moments of many videos: encoded once, scored for every query.

use candle_core::Tensor;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::l2_normalise;

use super::Xml;
use crate::layers::{SimilarityCurve, StreamQuery, stream_moments};
use crate::{Answer, BiEncoder, Code, Corpus, Moments, QueryBatch, Result, VideoBatch};

impl Xml {
    fn stream_queries(&self, queries: &QueryBatch) -> Result<Vec<StreamQuery>> {
        self.stream_vectors(&self.queries(&queries.words, &queries.mask, &Pass::answering())?.1)
    }

    pub(super) fn stream_vectors(&self, vectors: &Tensor) -> Result<Vec<StreamQuery>> {
        let of = |number: usize| {
            let whole = vectors.narrow(1, number, 1)?.squeeze(1)?.contiguous()?;
            Ok(StreamQuery { whole, curve: self.curve_query(vectors, number)? })
        };
        (0..self.streams.len()).map(of).collect()
    }
}

impl Corpus for Xml {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let context = self.context_of(videos, &Pass::answering())?;
        Ok(self.curve.encode(&context.first, &context.second, &self.lengths(videos))?)
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
impl BiEncoder for Xml {
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let context = self.context_of(videos, &Pass::answering())?;
        Ok(stream_moments(&context.first, &self.lengths(videos))?)
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        let (_, vectors, _) = self.queries(&queries.words, &queries.mask, &Pass::answering())?;
        Ok(l2_normalise(&l2_normalise(&vectors)?.flatten_from(1)?)?.detach())
    }
}
