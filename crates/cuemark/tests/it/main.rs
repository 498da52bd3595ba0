//! Requests as people meet them: written down, typed on a command line, run on small files.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod answers;
mod examples;
mod laboratory;
mod neutral_texts;
mod published;
mod reproduce;
mod requests;
mod scoring;
mod your_predictions;
