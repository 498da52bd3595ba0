//! What is written in pictures and films.
//!
//! One picture goes through three networks of PP-OCRv4 (`detection`, `direction`, `recognition`): a map of where text is becomes boxes
//! (`boxes`), each box is cut out upright, turned when it stands on its head, and read character by character. The steps between
//! them are those of RapidOCR (Apache-2.0), so that its settings and its lines carry over.
//!
//! A film (`film`) is looked at four times a second and read when its picture has changed. What stands there for a second is seen;
//! what stands there for an hour is read once.

mod boxes;
mod crop;
mod detector;
mod direction;
mod error;
mod film;
mod network;
mod picture;
mod reader;
mod recogniser;

pub use error::{OcrError, Result};
pub use film::Read;
pub use reader::{FoundText, Reader};
