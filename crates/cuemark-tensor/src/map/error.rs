//! What can be wrong with a map.

/// Sizes that no map can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// No clip, or more than memory allows.
    #[error("a map of {clips} clips: expected 1 to {most}")]
    Clips {
        /// What was asked for.
        clips: usize,
        /// The most that is allowed.
        most: usize,
    },
    /// Counts that ask for spans longer than the map.
    #[error("pooling counts {counts:?} reach spans of {} clips, but the map has {clips}", offset + 1)]
    TooLong {
        /// The first `end - start` that does not fit.
        offset: usize,
        /// Clips of the map.
        clips: usize,
        /// What was asked for.
        counts: Vec<usize>,
    },
    /// A count of 0.
    #[error("pooling count {scale} is 0")]
    EmptyScale {
        /// Place among the counts, from 0.
        scale: usize,
    },
    /// A kernel that has no middle, or a stack without layers or too large.
    #[error("a stack of {layers} layers of kernel {kernel}: expected an odd kernel up to 31 and 1 to 32 layers")]
    Stack {
        /// Cells along each side of the kernel.
        kernel: usize,
        /// What was asked for.
        layers: usize,
    },
    /// More pairs of cells than can be listed.
    #[error("a layer of {cells} cells and kernel {kernel} is too large")]
    TooLarge {
        /// Cells that the layer computes.
        cells: usize,
        /// Cells along each side of the kernel.
        kernel: usize,
    },
}

impl From<MapError> for candle_core::Error {
    fn from(error: MapError) -> Self {
        Self::wrap(error)
    }
}
