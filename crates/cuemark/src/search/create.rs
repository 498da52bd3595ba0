//! Making an index.

use cuemark_core::Progress;
use cuemark_formats::Overwrite;
use cuemark_search::{Index, Manifest, encoder};
use serde::{Deserialize, Serialize, Serializer};

use super::{AddedVideos, IndexPlace, Videos, words};
use crate::Result;

/// Makes an empty index, and adds what is named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CreateIndex {
    /// Where.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub place: IndexPlace,
    /// What makes the embeddings: `concepts` (works on any video, needs `cuemark weights pull i3d efficientnet-lite0
    /// minilm` once), `clip`, `clip-b16` or `clip:FOLDER` with its weights, or the folder of a trained bi-encoder's run; `auto`
    /// is CLIP where its weights are here, and otherwise `concepts`.
    #[serde(default = "auto")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME|RUN_DIR", default_value = "auto"))]
    pub encoder: String,
    /// What to add at once.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub what: Videos,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

fn auto() -> String {
    "auto".to_owned()
}

/// What was made. As JSON: what was added where something was, else the manifest.
#[derive(Debug, Clone)]
pub struct CreatedIndex {
    /// What the index is about.
    pub manifest: Manifest,
    /// What was added, where something was named.
    pub added: Option<AddedVideos>,
}

impl CreateIndex {
    /// An index at `address` for any video.
    pub fn new(address: impl Into<String>) -> Self {
        Self { place: IndexPlace::new(address), encoder: auto(), what: Videos::default(), force: false }
    }

    /// Makes it.
    ///
    /// # Errors
    /// When there is one already and it may not be replaced, the encoder cannot be opened, or the index cannot be written.
    pub fn run(&self, progress: &Progress) -> Result<CreatedIndex> {
        let url = self.place.url()?;
        if !self.what.videos.is_empty() {
            // Before anything is made: an empty index would stay behind.
            cuemark_media::Ffmpeg::on_path().check()?;
        }
        progress.phase("opening", 0);
        let device = cuemark_tensor::device(&self.place.device)?;
        let name = encoder::chosen(&self.encoder);
        let encoder = encoder::open(name, self.what.features.as_deref(), &device)?;
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        let index = Index::create(&url, encoder, overwrite)?.reading(words::sources(name));
        let added = if self.what.is_empty() { None } else { Some(self.what.add_to(&index, progress)?) };
        Ok(CreatedIndex { manifest: index.manifest().clone(), added })
    }
}

impl Serialize for CreatedIndex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.added {
            Some(added) => added.serialize(serializer),
            None => self.manifest.serialize(serializer),
        }
    }
}
