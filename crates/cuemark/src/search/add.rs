//! Adding videos to an index.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Progress, VideoId};
use cuemark_search::{AddOptions, Added, Index, Settling, Status};
use serde::{Deserialize, Serialize};

use super::IndexPlace;
use crate::{Error, Result};

/// Adds videos; those that are there already are embedded again only when their file has changed.
///
/// Every video is safe once it is counted: stopping, or worse, loses only the one being embedded, and the same request goes
/// on where it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AddVideos {
    /// Which index.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub place: IndexPlace,
    /// What to add.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub what: Videos,
}

/// What to add to an index.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Videos {
    /// Video files, and folders of them.
    #[cfg_attr(feature = "clap", arg(value_name = "VIDEO"))]
    pub videos: Vec<Utf8PathBuf>,
    /// Add videos by their features in this store instead: they can be found but not played.
    #[cfg_attr(feature = "clap", arg(long, value_name = "STORE"))]
    pub features: Option<Utf8PathBuf>,
    /// Which videos of the store; all when left out.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", requires = "features"))]
    pub only: Vec<String>,
    /// Give every added video a tag; may be repeated.
    #[cfg_attr(feature = "clap", arg(long = "tag", value_name = "TAG"))]
    pub tags: Vec<String>,
}

/// What was added, and what the index holds now.
#[derive(Debug, Clone, Serialize)]
pub struct AddedVideos {
    /// What became of each video.
    pub added: Added,
    /// The index afterwards.
    pub status: Status,
    /// Whether somebody stopped the work; the same request goes on.
    pub stopped: bool,
}

impl AddVideos {
    /// Opens the index and adds.
    ///
    /// # Errors
    /// When nothing is named, and when the index cannot be opened or written. A video that cannot be read is left out and
    /// said in the answer.
    pub fn run(&self, progress: &Progress) -> Result<AddedVideos> {
        if self.what.is_empty() {
            let advice = Advice::say("name videos, folders of videos, or a store of features: ");
            return Err(Error::setting("videos", "there is nothing to add").advise(advice.set_any("features", "STORE")));
        }
        progress.phase("opening", 0);
        let index = self.place.open(self.what.features.as_deref())?;
        self.what.add_to(&index, progress)
    }
}

impl Videos {
    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.videos.is_empty() && self.features.is_none()
    }

    /// Adds them to an index that is open already, and makes the index fast again.
    ///
    /// # Errors
    /// As [`AddVideos::run`].
    pub fn add_to(&self, index: &Index, progress: &Progress) -> Result<AddedVideos> {
        let options = AddOptions { tags: self.tags.clone() };
        let added = match self.features.as_ref().filter(|_| self.videos.is_empty()) {
            Some(store) => index.add_stored(&self.stored(store)?, &options, progress)?,
            None => index.add_files(&self.videos, &options, progress)?,
        };
        let stopped = progress.is_stopped();
        // What was added is found without this, only slower: work that was stopped leaves it to the next.
        if !stopped {
            index.settle(Settling::WhenWorthIt, progress)?;
        }
        Ok(AddedVideos { added, status: index.engine().status()?, stopped })
    }

    /// The videos of a store, or those of them that were named.
    fn stored(&self, store: &Utf8PathBuf) -> Result<Vec<VideoId>> {
        if !self.only.is_empty() {
            return Ok(self.only.iter().map(|name| VideoId::new(name.as_str())).collect());
        }
        let source = cuemark_features::open(store, &cuemark_features::OpenOptions::default())?;
        let streams = source.streams();
        let visual = streams.iter().find(|stream| **stream == cuemark_features::VISUAL).or(streams.first());
        let stream = visual.map(|stream| (*stream).to_owned()).unwrap_or_default();
        Ok(source.videos(&stream).into_iter().cloned().collect())
    }
}
