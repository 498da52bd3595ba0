//! The command as a person meets it: what it prints, where, and with which exit code.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

#[cfg(unix)]
mod bench;
mod browser;
mod cli;
#[cfg(unix)] // Commands are for a shell.
mod docs;
mod evaluator;
mod features;
mod joint;
mod kept;
#[cfg(unix)]
mod mcp;
mod odd_films;
mod published;
mod report;
#[cfg(feature = "milvus")]
mod scale;
#[cfg(unix)]
mod text_side;
mod transcribe;
mod weights;
mod world;
