//! Clip features on disk.
//!
//! A store of ours is a folder of safetensors shards. Each shard's header carries the [`Recipe`] of every stream in it
//! (extractor, frame rate, clip length …), so that no reader ever has to assume one. Streams have names (`visual`,
//! `subtitle`); a video has at most one tensor per stream, `[clips, width]`. [`FeatureStore`] reads it, [`StoreWriter`] writes.
//!
//! Published features come in other layouts. [`open`] takes any of them ([`Layout`]) and hands out one [`FeatureSource`];
//! [`convert`](convert()) makes a store of it, [`survey`](survey()) counts what is there, [`compare`](compare()) holds two
//! against each other. [`resample`] and [`Normalise`] are the field's ways to bring rows to a number and a length, [`Pca`] to
//! a width, [`ARCHIVES`] lists what is published, [`Prefetch`] has the next videos ready. [`sight`] makes rows of the pixels of simple pictures, without weights.
//!
//! [`tensor_file`] reads weights: named tensors of any shape in safetensors, PyTorch and pickled NumPy files.

mod archives;
mod array;
mod compare;
mod convert;
mod error;
mod fault;
mod features;
mod foreign;
mod joined;
mod layouts;
mod missing;
mod normalise;
mod number;
mod pca;
mod pickle;
mod positioned;
mod precision;
mod prefetch;
mod recipe;
pub mod resample;
mod safetensors_head;
mod shard;
pub mod sight;
mod source;
mod spool;
mod store;
mod survey;
pub mod tensor_file;
mod variant;
mod writer;

pub use archives::{ARCHIVES, Archive, ArchiveCheck, Row, find_archive};
pub use compare::{Comparison, VideoComparison, compare};
pub use convert::{ConvertOptions, ConvertReport, convert, sample_rows};
pub use error::{FeatureError, Result};
pub use features::{Features, VideoFeatures};
pub use foreign::{Durations, OpenOptions, open};
pub use joined::Joined;
pub use layouts::{Layout, detect as layout_of};
pub use normalise::Normalise;
pub use pca::Pca;
pub use precision::Precision;
pub use prefetch::Prefetch;
pub use recipe::{Recipe, RowTime};
pub use resample::Resample;
pub use shard::Covers;
pub use source::{FeatureSource, Origin, VISUAL};
pub use spool::RowSpool;
pub use store::{FeatureStore, StoreCheck};
pub use survey::{BadVideo, StreamSurvey, Unreadable, Width, survey};
pub use variant::FeatureVariant;
pub use writer::StoreWriter;
