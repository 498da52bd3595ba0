//! Clip features on disk.
//!
//! A store is a folder of safetensors shards. Each shard's header carries the [`Recipe`] of every stream in it
//! (extractor, frame rate, clip length …), so that no reader ever has to assume one. Streams have names (`visual`,
//! `subtitle`); a video has at most one tensor per stream, `[clips, width]`.
//!
//! [`FeatureStore`] reads, [`StoreWriter`] writes.

mod error;
mod features;
mod mapped;
mod recipe;
mod shard;
mod store;
mod variant;
mod writer;

pub use error::{FeatureError, Result};
pub use features::{Features, VideoFeatures};
pub use recipe::Recipe;
pub use store::{FeatureStore, StoreCheck};
pub use variant::FeatureVariant;
pub use writer::StoreWriter;
