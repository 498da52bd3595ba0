//! What can go wrong when things are compared.

use cuemark_core::{Advice, Advise};
use cuemark_formats::ReadError;

/// What is wrong with vectors, matrices, or the files that hold them.
#[derive(Debug, thiserror::Error)]
pub enum SimilarityError {
    /// A file from outside.
    #[error(transparent)]
    File(#[from] ReadError),
    /// The values do not fill whole rows.
    #[error("{values} values do not make rows of {width}")]
    Ragged {
        /// How many values there are.
        values: usize,
        /// The width of a row.
        width: usize,
    },
    /// Left and right vectors cannot be multiplied.
    #[error("the left vectors have {left} numbers each, the right ones {right}")]
    Widths {
        /// Width on the left.
        left: usize,
        /// Width on the right.
        right: usize,
    },
    /// A value that cannot be compared.
    #[error("row {row}, column {column}: {value} is not a finite number")]
    NotFinite {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The value.
        value: f32,
    },
    /// A pair was asked for that is not there.
    #[error("pair ({left}, {right}) lies outside {rows} × {columns} similarities")]
    Outside {
        /// Row that was asked for.
        left: usize,
        /// Column that was asked for.
        right: usize,
        /// Rows there are.
        rows: usize,
        /// Columns there are.
        columns: usize,
    },
}

impl Advise for SimilarityError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::File(error) => error.advice(),
            Self::Widths { .. } => Some("both sides must come from the same encoder".into()),
            Self::Ragged { .. } | Self::NotFinite { .. } | Self::Outside { .. } => None,
        }
    }
}
