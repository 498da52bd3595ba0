//! What benchmarks compare: the figures that papers print, to stand beside the ones that cuemark measures.
//!
//! [`published`] is the typed store of the field's result tables.

pub mod error;
pub mod published;

pub use error::{BenchError, Result};
pub use published::{Figure, Key, Paper, Published, Unit};
