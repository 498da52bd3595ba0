//! Requests as people meet them: written down, typed on a command line, run on small files.

#![allow(clippy::unwrap_used)] // a test may panic

mod requests;
mod scoring;
