//! Stores and layouts on files of our own making and on files meant to break them.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod convert;
mod hostile;
mod layouts;
mod resample;
mod schema;
mod store;
mod tensor_file;
