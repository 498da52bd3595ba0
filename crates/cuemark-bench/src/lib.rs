//! What benchmarks compare: the figures that papers print, and the ones that cuemark measures.
//!
//! [`published`] is the typed store of the field's result tables. [`report`] stores what a run reached beside its
//! predictions, and writes what a set of such runs shows: tables with intervals, trust cards, figures. [`matrix`] fills
//! whole tables of runs; [`leaderboard`] keeps their results as data, [`merge`] puts shares of one matrix together, [`findings`] looks
//! in them for what papers found.

mod committed;
mod doubles;
pub mod error;
pub mod findings;
pub mod leaderboard;
pub mod matrix;
pub mod merge;
mod on_world;
pub mod published;
pub mod report;

pub use error::{BenchError, Result};
pub use on_world::{OnWorld, on_full_world, on_world};
pub use published::{Figure, Key, Paper, Published, Unit};
