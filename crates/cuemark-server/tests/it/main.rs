//! The server over real sockets, for clients that mean well; `hostile.rs` has the others.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod http;
mod judging;
#[path = "../kit/mod.rs"]
mod kit;
