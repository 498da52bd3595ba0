//! Every public dataset of moment retrieval, read from its published files into our types.
//!
//! [`DATASETS`] lists them, [`find`] looks one up, [`load`] reads a folder, [`read_truth`] reads any single truth
//! file. A reader keeps file order and repairs nothing silently: what is wrong with the rows stands in
//! [`Split::rows`](cuemark_core::Split::rows). One dataset, one file in `readers/`.

pub mod check;
pub mod parquet;
pub mod stats;
pub mod subtitles;

mod card;
mod dataset;
mod decode;
mod durations;
mod error;
mod layout;
mod peek;
mod published_id;
mod readers;
mod registry;
mod split_builder;
mod truth_file;
mod video_json;

pub use card::{DatasetCard, Expected, FileCard, QueryIds, SideCard};
pub use dataset::{Dataset, load};
pub use durations::Durations;
pub use error::{DataError, Result};
pub use layout::{Layout, ReadOptions};
pub use readers::human_reannotations::{Reannotation, read_reannotations};
pub use readers::mvmr::complete_pools;
pub use readers::tvr_ranking::{RankedPair, Rating, read_ranked_pairs, read_ratings};
pub use registry::{DATASETS, find};
pub use truth_file::{TRUTH_FIELDS, TruthFormat, read_truth};
