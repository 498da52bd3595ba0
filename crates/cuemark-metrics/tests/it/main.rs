//! The evaluator against golden files, against stored references, and against rules that hold for every list.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod golden;
mod highlight_only;
mod parity;
mod properties;
