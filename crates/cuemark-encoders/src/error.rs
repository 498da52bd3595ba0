//! What can go wrong between a file and its vectors.

use cuemark_features::FeatureError;
use cuemark_formats::ReadError;

/// The result of encoding.
pub type Result<T, E = EncodeError> = std::result::Result<T, E>;

/// What is wrong, and (through [`EncodeError::hint`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] ReadError),
    /// Features cannot be read or written.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// A tensor operation failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}
