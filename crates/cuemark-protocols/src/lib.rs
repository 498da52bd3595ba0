//! Protocols: seeded, versioned recipes that turn a dataset into splits, pools and graded sets, and measure how well they did.

pub mod baselines;
mod error;
pub mod human_ceiling;
pub mod kde;
pub mod manifest;
mod pairs;
pub mod pools;
pub mod ranked;
pub mod splits;

#[cfg(test)]
mod testing;

pub use error::{ProtocolError, Result};
