//! Keeping an index: what is in it, taking videos out, giving room back.

use cuemark_core::{Progress, VideoId};
use cuemark_search::{Compacted, Manifest, Marking, Settling, Status, Verified, VideoEntry};
use serde::{Deserialize, Serialize};

use super::IndexPlace;
use crate::Result;

/// What is in an index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct DescribeIndex {
    /// Which index.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub place: IndexPlace,
    /// List the videos.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub videos: bool,
}

/// What is in an index.
#[derive(Debug, Clone, Serialize)]
pub struct DescribedIndex {
    /// Its address.
    pub index: String,
    /// What it is about.
    pub manifest: Manifest,
    /// How much there is.
    pub status: Status,
    /// Its videos, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub videos: Option<Vec<VideoEntry>>,
}

impl DescribeIndex {
    /// Opens the index and looks.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn run(&self, progress: &Progress) -> Result<DescribedIndex> {
        progress.phase("opening", 0);
        let index = self.place.open_without_encoder()?;
        Ok(DescribedIndex {
            index: index.engine().url().to_string(),
            manifest: index.manifest().clone(),
            status: index.engine().status()?,
            videos: self.videos.then(|| index.engine().videos()).transpose()?,
        })
    }
}

/// Takes videos out of an index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct RemoveVideos {
    /// Which index.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub place: IndexPlace,
    /// Their names, as `status --videos` lists them.
    #[cfg_attr(feature = "clap", arg(required = true, value_name = "VIDEO"))]
    pub videos: Vec<String>,
}

/// What was taken out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RemovedVideos {
    /// How many.
    pub removed: usize,
    /// Names that were not there.
    pub missing: Vec<String>,
}

impl RemoveVideos {
    /// Opens the index and takes them out.
    ///
    /// # Errors
    /// When the index cannot be written. A name that is not there is no error.
    pub fn run(&self, progress: &Progress) -> Result<RemovedVideos> {
        progress.phase("opening", 0);
        let index = self.place.open_without_encoder()?;
        progress.phase("removing", self.videos.len());
        let mut missing = Vec::new();
        for video in &self.videos {
            if !index.engine().remove(&VideoId::new(video.as_str()))? {
                missing.push(video.clone());
            }
            progress.advance(1)?;
        }
        Ok(RemovedVideos { removed: self.videos.len() - missing.len(), missing })
    }
}

/// Gives back the room of removed and replaced videos.
///
/// Searching goes on meanwhile. A compaction that is killed leaves the index as it was or as it should be, never between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CompactIndex {
    /// Which index.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub place: IndexPlace,
}

/// What a compaction gave back.
#[derive(Debug, Clone, Serialize)]
pub struct CompactedIndex {
    /// What was done.
    #[serde(flatten)]
    pub compacted: Compacted,
    /// The index afterwards.
    pub status: Status,
}

impl CompactIndex {
    /// Opens the index and compacts it.
    ///
    /// # Errors
    /// When the index cannot be written, or its engine leaves this to somebody else.
    pub fn run(&self, progress: &Progress) -> Result<CompactedIndex> {
        progress.phase("opening", 0);
        let index = self.place.open_without_encoder()?;
        progress.phase("compacting", 0);
        Ok(CompactedIndex { compacted: index.compact(progress)?, status: index.engine().status()? })
    }
}

/// Reads everything, compares it with its checksums, looks for the files.
///
/// Nothing is written unless `repair` says so, so this works on a read-only or full disk and beside a writer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct VerifyIndex {
    /// Which index.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub place: IndexPlace,
    /// Derive what makes search fast from scratch, and mark videos whose file has gone (they are not found any more) or
    /// come back.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub repair: bool,
}

/// What a look at everything found.
#[derive(Debug, Clone, Serialize)]
pub struct VerifiedIndex {
    /// Whether nothing is damaged.
    pub sound: bool,
    /// What is damaged, gone, back or changed.
    pub verified: Verified,
    /// The index afterwards.
    pub status: Status,
}

impl VerifyIndex {
    /// Opens the index and looks at all of it.
    ///
    /// # Errors
    /// When the index cannot be read at all, or is to be repaired and cannot be written. Damage is no error but an answer.
    pub fn run(&self, progress: &Progress) -> Result<VerifiedIndex> {
        progress.phase("opening", 0);
        let index = self.place.open_without_encoder()?;
        progress.phase("reading", 0);
        let faults = index.engine().verify(progress)?;
        let verified = index.look_for_files(if self.repair { Marking::Mark } else { Marking::Look })?;
        if self.repair {
            index.settle(Settling::Anew, progress)?;
        }
        let verified = Verified { faults, ..verified };
        Ok(VerifiedIndex { sound: verified.faults.is_empty(), verified, status: index.engine().status()? })
    }
}
