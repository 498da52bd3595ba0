//! What a model of pairs reads in one pass.

use candle_core::Tensor;

use crate::Batch;

/// The inputs of one pass: videos and their queries, row by row.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// `[batch, clips, d_visual]`, zero padded.
    pub visual: &'a Tensor,
    /// `[batch, clips]`, 1 at real clips.
    pub clip_mask: &'a Tensor,
    /// `[batch, words, d_word]`.
    pub words: &'a Tensor,
    /// `[batch, words]`, 1 at real words.
    pub word_mask: &'a Tensor,
    /// Number of real words of each.
    pub lengths: &'a [usize],
}

impl<'a> Pair<'a> {
    /// Those of a batch, with the vectors `words` for its words.
    pub fn of(batch: &'a Batch, words: &'a Tensor) -> Self {
        Self {
            visual: &batch.videos.visual,
            clip_mask: &batch.videos.mask,
            words,
            word_mask: &batch.queries.mask,
            lengths: &batch.queries.lengths,
        }
    }
}
