//! Writing a store, one whole shard at a time.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{Overwrite, ReadError, WholeFile};

use cuemark_core::VideoId;

use crate::shard::{self, Covers, Shard};
use crate::store::shard_paths;
use crate::{FeatureError, Features, Precision, Recipe, Result, RowTime, VideoFeatures};

/// Writes numbered shards into a folder. A shard appears whole or not at all, so work that was stopped is resumed by
/// asking [`StoreWriter::has_shard`] before making one. Shards may be written from many threads at once.
#[derive(Debug)]
pub struct StoreWriter {
    folder: Utf8PathBuf,
    recipes: BTreeMap<String, Recipe>,
    precision: Precision,
}

impl StoreWriter {
    /// Prepares `folder`. Shards that are there already are kept ([`Overwrite::Never`]; they must have been made by
    /// the same recipes) or removed ([`Overwrite::Force`]).
    ///
    /// # Errors
    /// When the folder cannot be written, or a shard in it is damaged or was made by other recipes.
    pub fn create(folder: &Utf8Path, recipes: BTreeMap<String, Recipe>, overwrite: Overwrite) -> Result<Self> {
        let write = |source| ReadError::Write { path: folder.to_owned(), source };
        if let Some(name) = recipes.keys().find(|name| name.is_empty() || name.contains('/')) {
            return Err(ReadError::file(folder, format!("`{name}` cannot be the name of a stream")).into());
        }
        std::fs::create_dir_all(folder).map_err(write)?;
        let writer = Self { folder: folder.to_owned(), recipes, precision: Precision::F32 };
        for path in shard_paths(folder)? {
            if overwrite == Overwrite::Force {
                std::fs::remove_file(&path).map_err(write)?;
            } else if Shard::open(&path)?.recipes != writer.recipes {
                return Err(FeatureError::OtherRecipe { path });
            }
        }
        Ok(writer)
    }

    /// The same writer, keeping numbers at another precision. Default: `f32`
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// The videos of shard number `shard`, sorted, when it is finished.
    ///
    /// # Errors
    /// When the shard is damaged.
    pub fn shard_videos(&self, shard: usize) -> Result<Option<Vec<VideoId>>> {
        if !self.has_shard(shard) {
            return Ok(None);
        }
        let entries = Shard::open(&self.shard_path(shard))?.entries;
        let videos: BTreeSet<VideoId> = entries.into_iter().map(|entry| entry.video).collect();
        Ok(Some(videos.into_iter().collect()))
    }

    /// Whether shard number `shard` is finished.
    pub fn has_shard(&self, shard: usize) -> bool {
        self.shard_path(shard).is_file()
    }

    /// Writes shard number `shard`; its order of videos does not matter.
    ///
    /// # Errors
    /// When a video repeats, a stream has no recipe or another width, a number is not finite, the shard is there
    /// already, or the disk refuses.
    pub fn write_shard(&self, shard: usize, videos: &[VideoFeatures]) -> Result<()> {
        self.write_shard_covering(shard, videos, &Covers::default())
    }

    /// As [`StoreWriter::write_shard`], saying how many seconds the rows of each video cover, which streams whose rows
    /// span a duration need.
    ///
    /// # Errors
    /// As [`StoreWriter::write_shard`], and when such a video has no seconds.
    pub fn write_shard_covering(&self, shard: usize, videos: &[VideoFeatures], covers: &Covers) -> Result<()> {
        let mut seen = BTreeSet::new();
        for video in videos {
            for (stream, features) in &video.streams {
                let unfit = |problem| FeatureError::Unfit { video: video.video.clone(), problem };
                self.check(stream, features, covers.get(stream, &video.video)).map_err(unfit)?;
                if !seen.insert((stream, &video.video)) {
                    return Err(unfit(format!("`{stream}` stands in the shard twice")));
                }
            }
        }
        let path = self.shard_path(shard);
        let bytes = shard::encode(&path, &self.recipes, videos, covers, self.precision)?;
        Ok(WholeFile::write_all_to(path, Overwrite::Never, &bytes)?)
    }

    /// What keeps features out of the store, if anything.
    fn check(&self, stream: &str, features: &Features, covers: Option<f64>) -> Result<(), String> {
        let recipe = self.recipes.get(stream).ok_or_else(|| format!("stream `{stream}` has no recipe"))?;
        if features.width() != recipe.width {
            return Err(format!("`{stream}` is {} wide, its recipe says {}", features.width(), recipe.width));
        }
        if let Some(row) = features.first_bad_row() {
            return Err(format!("`{stream}` row {row} holds a number that is not finite"));
        }
        if let Some(number) = features.data().iter().find(|number| number.abs() > self.precision.largest()) {
            return Err(format!("`{stream}` holds {number}, more than `f16` can"));
        }
        let spans = recipe.row_time == RowTime::SpanDuration;
        if spans && !covers.is_some_and(|seconds| seconds > 0.0 && seconds.is_finite()) {
            return Err(format!("no duration for its `{stream}` rows to span"));
        }
        Ok(())
    }

    pub(crate) fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    pub(crate) fn recipes(&self) -> &BTreeMap<String, Recipe> {
        &self.recipes
    }

    pub(crate) fn shard_path(&self, shard: usize) -> Utf8PathBuf {
        self.folder.join(format!("shard-{shard:05}.safetensors"))
    }

    /// The numbers of all shards that are there, in the order of their names.
    pub(crate) fn shard_numbers(&self) -> Result<Vec<usize>> {
        let number = |path: &Utf8PathBuf| path.file_stem()?.strip_prefix("shard-")?.parse().ok();
        Ok(shard_paths(&self.folder)?.iter().filter_map(number).collect())
    }
}
