//! Indexes from outside: engines, answers, films, and what is said and written in them.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod answer;
mod engine;
#[cfg(feature = "models")]
mod films;
#[cfg(feature = "models")]
mod joint;
mod log;
#[cfg(feature = "milvus")]
mod milvus;
mod toy;
mod tracks;
mod words;
