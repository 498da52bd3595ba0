//! How alike sentences (or sentences and videos) are.
//!
//! A [`Similarity`] compares everything on its left with everything on its right and is asked for one tile at a time,
//! so that 70,000 × 70,000 never sits in memory. [`Tfidf`] and [`Bm25`] need nothing but the words, [`Embeddings`]
//! take vectors that a sentence encoder made, [`MatrixFile`] a user's own figures; encoders elsewhere hand us
//! embeddings or implement the trait. [`sweep`] visits every tile in parallel; [`top_k`] and [`histogram`] are sweeps.
//!
//! Similarities of different providers are not on one scale: a threshold belongs to the provider it was found for.

mod bm25;
mod embeddings;
mod error;
mod histogram;
mod matrix;
mod matrix_file;
mod npy;
mod postings;
mod product;
mod sweep;
mod terms;
mod tfidf;
mod top_k;

use std::ops::Range;

pub use bm25::Bm25;
pub use embeddings::{Embeddings, Vectors};
pub use error::SimilarityError;
pub use histogram::{Histogram, Pairs, Scale, histogram};
pub use matrix::Matrix;
pub use matrix_file::MatrixFile;
use product::product;
pub use sweep::{Tile, sweep};
pub use tfidf::Tfidf;
pub use top_k::{Neighbour, top_k};

/// The result of comparing.
pub type Result<T, E = SimilarityError> = std::result::Result<T, E>;

/// Compares `left` things with `right` things; larger means more alike, and every value is finite.
pub trait Similarity: Sync {
    /// What it is called in manifests: `tfidf`, `bm25`, `embeddings`, the name of a file.
    fn name(&self) -> &str;

    /// How many things stand on the left: the rows.
    fn left(&self) -> usize;

    /// How many things stand on the right: the columns.
    fn right(&self) -> usize;

    /// Fills `out`, row after row, with the similarities of `rows` × `columns`.
    ///
    /// Both ranges lie inside the matrix and `out` holds exactly one value for each pair; [`sweep`] and [`of_pair`]
    /// see to that.
    ///
    /// # Errors
    /// When a file behind it cannot be read or holds a value that is not finite.
    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) -> Result<()>;
}

/// The similarity of one pair.
///
/// # Errors
/// When the pair lies outside the matrix, or the provider says so.
pub fn of_pair(provider: &dyn Similarity, left: usize, right: usize) -> Result<f32> {
    if left >= provider.left() || right >= provider.right() {
        return Err(SimilarityError::Outside { left, right, rows: provider.left(), columns: provider.right() });
    }
    let mut value = [0.0];
    provider.tile(left..left + 1, right..right + 1, &mut value)?;
    Ok(value[0])
}
