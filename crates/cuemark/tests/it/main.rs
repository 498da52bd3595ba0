//! Requests as people meet them: written down, typed on a command line, run on small files.

#![allow(clippy::unwrap_used)] // a test may panic

mod answers;
mod examples;
mod laboratory;
mod published;
mod reproduce;
mod requests;
mod scoring;
mod your_predictions;
