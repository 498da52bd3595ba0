//! Encoders and their weights, against other implementations where those left numbers.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod https;
mod minilm;
mod text_parity;
mod visual;
