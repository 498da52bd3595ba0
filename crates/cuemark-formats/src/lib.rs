//! Truth and prediction files in every layout that people use, read safely and written whole.
//!
//! [`source`] opens files (compressed or not, within limits), [`json`] takes documents apart without losing track of
//! the line, [`sink`] writes a file whole or not at all. One layout, one file.

pub mod error;
pub mod json;
pub mod sink;
pub mod source;

pub use error::{ReadError, Result};
pub use sink::{Overwrite, WholeFile};
pub use source::{Limits, Source};
