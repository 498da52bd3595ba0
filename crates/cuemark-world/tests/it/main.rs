//! Worlds from outside: what is filmed, and whether it can be seen.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod sight;
mod world;
