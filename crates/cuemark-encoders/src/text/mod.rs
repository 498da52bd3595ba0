//! Sentences as vectors.

use crate::Result;

/// Turns sentences into vectors of one width.
pub trait TextEncoder: Send + Sync {
    /// What it is called in manifests, recipes and `--encoder`.
    fn name(&self) -> &str;

    /// The length of every vector.
    fn width(&self) -> usize;

    /// One vector per sentence, in the given order, of length 1 wherever the encoder's own recipe normalises.
    ///
    /// A sentence's vector does not depend on what else is in the call.
    fn encode(&self, sentences: &[&str]) -> Result<Vec<Vec<f32>>>;
}
