//! Answers over many videos by a model whose moments are read off a similarity curve: what XML and ReLoCLNet share.

use candle_core::Tensor;
use cuemark_tensor::functional::l2_normalise;

use super::{CurveRules, SimilarityCurve, StreamQuery, stream_moments};
use crate::{Answer, BiEncoder, Code, Corpus, Moments, QueryBatch, Result, VideoBatch};

/// A model that compares queries and clips in one or more streams. That is all a search needs to know of it.
pub trait CurveModel {
    /// The filters that find starts and ends.
    fn curve(&self) -> &SimilarityCurve;

    /// How logits become moments.
    fn rules(&self) -> CurveRules;

    /// A vector per stream, `[queries, streams, hidden]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn query_vectors(&self, queries: &QueryBatch) -> Result<Tensor>;

    /// The vector of one stream that the curve is made with, `[queries, hidden]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn curve_query(&self, vectors: &Tensor, stream: usize) -> Result<Tensor>;

    /// Clips as the model sees them.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn stream_clips(&self, videos: &VideoBatch) -> Result<StreamClips>;

    /// What queries ask of every stream.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn stream_queries(&self, vectors: &Tensor) -> Result<Vec<StreamQuery>> {
        let of = |stream: usize| {
            Ok(StreamQuery { whole: of_stream(vectors, stream)?, curve: self.curve_query(vectors, stream)? })
        };
        (0..vectors.dim(1)?).map(of).collect()
    }
}

/// Clips of some videos, per stream `[videos, clips, hidden]`.
#[derive(Debug)]
pub struct StreamClips {
    /// What whole videos are scored by.
    pub whole: Vec<Tensor>,
    /// What lies under the curve.
    pub curve: Vec<Tensor>,
    /// Real clips of each video.
    pub lengths: Vec<usize>,
}

/// `[queries, streams, hidden]` to the vectors of one stream, `[queries, hidden]`.
///
/// # Errors
/// When there is no such stream.
pub fn of_stream(vectors: &Tensor, stream: usize) -> Result<Tensor> {
    Ok(vectors.narrow(1, stream, 1)?.squeeze(1)?.contiguous()?)
}

impl<M: CurveModel> Corpus for M {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let StreamClips { whole, curve, lengths } = self.stream_clips(videos)?;
        Ok(self.curve().encode(&whole, &curve, &lengths)?)
    }

    fn score_videos(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Option<Vec<Vec<f32>>>> {
        let queries = self.stream_queries(&self.query_vectors(queries)?)?;
        Ok(Some(SimilarityCurve::score_videos(&queries, videos)?))
    }

    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<Answer>>> {
        let queries = self.stream_queries(&self.query_vectors(queries)?)?;
        let scores = SimilarityCurve::score_videos(&queries, videos)?;
        Ok(self.curve().search(&queries, videos, &scores, &self.rules())?)
    }

    fn search_after(&self, queries: &QueryBatch, videos: &[&Code], first: &[Vec<f32>]) -> Result<Vec<Vec<Answer>>> {
        let queries = self.stream_queries(&self.query_vectors(queries)?)?;
        Ok(self.curve().search(&queries, videos, first, &self.rules())?)
    }
}

/// Moments are windows of 1, 2, 4, … clips; products of unit vectors are the mean of the streams' cosines.
impl<M: CurveModel> BiEncoder for M {
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let StreamClips { whole, lengths, .. } = self.stream_clips(videos)?;
        Ok(stream_moments(&whole, &lengths)?)
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        Ok(l2_normalise(&l2_normalise(&self.query_vectors(queries)?)?.flatten_from(1)?)?.detach())
    }
}
