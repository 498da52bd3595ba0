//! Video files, through the real programs.

#![allow(clippy::unwrap_used)] // a test may panic

mod decoding;
mod finding;
mod hostile;
mod made;
mod sound;
