//! Splits that expose bias: where they come from, how they are written, and what an audit finds in them.
//!
//! One protocol, one file: [`cd`](fn@cd), [`centre`](fn@centre) and [`composition`](fn@composition) part a whole dataset anew, [`standard`](fn@standard)
//! keeps the published parts. All give [`MadeSplits`], which [`write_folder`] puts on disk with a manifest.

pub mod audit;
mod by_video;
mod centre;
mod composition;
mod folder;
mod ood;
mod recipe;
mod standard;

pub use centre::{Centre, CentreFound, CentreOptions, centre};
pub use composition::{CompositionFound, CompositionOptions, composition};
pub use folder::{
    Input, SPLIT_NAMES, SplitManifest, SplitOutcome, SplitSettings, hash_inputs, read_folder, write_folder,
};
pub use ood::{CdFound, CdOptions, OodCut, Ties, cd};
pub use recipe::{SplitProtocol, SplitRecipe, dataset_inputs};
pub use standard::{StandardFound, StandardOptions, StandardTest, standard};

use std::collections::HashSet;

use cuemark_core::{RowCounts, Split, Truth, Video, VideoId};
use serde::Serialize;

/// What a protocol made of a dataset.
#[derive(Debug)]
pub struct MadeSplits {
    /// The protocol's name.
    pub protocol: &'static str,
    /// The version of its rules.
    pub version: u32,
    /// The seed of its random choices.
    pub seed: u64,
    /// What it was told.
    pub options: Options,
    /// What it found on the way.
    pub found: SplitFindings,
    /// The splits, in the order `train`, `val`, `test…`; queries in the order they came.
    pub splits: Vec<Split>,
}

/// What a protocol was told.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Options {
    /// Of `cd`.
    Cd(CdOptions),
    /// Of `centre`.
    Centre(CentreOptions),
    /// Of `composition`.
    Composition(CompositionOptions),
    /// Of `standard`.
    Standard(StandardOptions),
}

/// What a protocol found on the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SplitFindings {
    /// By `cd`.
    Cd(CdFound),
    /// By `centre`.
    Centre(CentreFound),
    /// By `composition`.
    Composition(CompositionFound),
    /// By `standard`.
    Standard(StandardFound),
}

/// How much a split holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SplitCounts {
    /// Its name.
    pub name: String,
    /// Videos that its queries are about.
    pub videos: usize,
    /// Queries.
    pub queries: usize,
    /// Query-moment pairs.
    pub pairs: usize,
}

/// How many videos two splits have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedVideos {
    /// One split.
    pub left: String,
    /// The other.
    pub right: String,
    /// Videos that both are about.
    pub videos: usize,
}

/// Counts of every split, in order.
pub fn counts(splits: &[Split]) -> Vec<SplitCounts> {
    let count = |split: &Split| SplitCounts {
        name: split.name.clone(),
        videos: video_ids(split).len(),
        queries: split.queries.len(),
        pairs: split.pairs(),
    };
    splits.iter().map(count).collect()
}

/// The videos that every two splits share; an honest set of splits has only zeros here.
pub fn shared_videos(splits: &[Split]) -> Vec<SharedVideos> {
    let sets: Vec<HashSet<&VideoId>> = splits.iter().map(video_ids).collect();
    let mut shared = Vec::new();
    for (i, left) in splits.iter().enumerate() {
        for (j, right) in splits.iter().enumerate().skip(i + 1) {
            let videos = sets[i].intersection(&sets[j]).count();
            shared.push(SharedVideos { left: left.name.clone(), right: right.name.clone(), videos });
        }
    }
    shared
}

fn video_ids(split: &Split) -> HashSet<&VideoId> {
    split.queries.iter().filter_map(|truth| truth.video.as_ref()).map(|video| &video.id).collect()
}

/// A split of our own making, with the videos its queries are about in the order they come.
fn new_split(name: &str, queries: Vec<Truth>) -> Split {
    let mut seen = HashSet::new();
    let videos = queries.iter().filter_map(|truth| truth.video.clone());
    let videos: Vec<Video> = videos.filter(|video| seen.insert(video.id.clone())).collect();
    Split { name: name.to_owned(), file: format!("{name}.jsonl"), videos, queries, rows: RowCounts::default() }
}
