//! Every model of the zoo against its reference, its card and its own training loop.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod defaults;
mod parity;
mod registry;
mod training_path;
