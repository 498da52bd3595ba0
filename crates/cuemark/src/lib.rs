//! The verbs of cuemark: what you want done is a plain struct, what came of it another.
//!
//! | you want to | request | answer |
//! | --- | --- | --- |
//! | score a prediction file | [`Score`] | [`Scored`] |
//! | know whether one file is better than another | [`Compare`] | [`Compared`] |
//! | make a collection of videos searchable | [`CreateIndex`], [`AddVideos`], [`RemoveVideos`] | [`CreatedIndex`], [`AddedVideos`], [`RemovedVideos`] |
//! | find the moments that a sentence describes | [`Ask`] | [`Found`] |
//! | keep an index sound and small | [`DescribeIndex`], [`VerifyIndex`], [`CompactIndex`], [`SalvageIndex`] | [`DescribedIndex`], [`VerifiedIndex`], [`CompactedIndex`], [`Salvaged`] |
//!
//! Every request has defaults, can be written as JSON or TOML (`serde`) and, with the feature `clap`, filled from a
//! command line. `run` takes a [`Progress`], through which long work can be watched and stopped. Errors carry
//! [`Advice`](cuemark_core::Advice) that each front end says in its own words.
//!
//! The program, the Python package and the server are skins over this crate: they fill a request and print an answer.
//! The libraries below it are there for whoever needs more than the verbs: `cuemark_metrics` to score lists in memory,
//! `cuemark_data` for the readers, `cuemark_models` for the networks.

mod compare;
mod error;
mod prediction_file;
mod resampling;
mod score;
mod scoring;
mod search;
mod truth_file;

pub use compare::{Compare, Compared, ComparedMetric};
pub use cuemark_core::Progress;
pub use cuemark_search::Salvaged;
pub use error::{Error, Result};
pub use prediction_file::{PredictionFile, PredictionReading, ReadPredictions};
pub use resampling::Resampling;
pub use score::{Score, Scored, Took};
pub use scoring::{CheckedScoring, Scoring};
pub use search::{
    AddVideos, AddedVideos, Ask, Asking, CompactIndex, CompactedIndex, CreateIndex, CreatedIndex, DescribeIndex,
    DescribedIndex, Found, FoundConcept, FoundMoment, FoundWord, IndexPlace, RemoveVideos, RemovedVideos, SalvageIndex,
    Shown, VerifiedIndex, VerifyIndex, Videos, parse_moment, parse_span,
};
pub use truth_file::{TruthFile, TruthReading};
