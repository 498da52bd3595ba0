//! Writing a store, one whole shard at a time.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{Overwrite, ReadError, WholeFile};

use crate::shard::{self, Shard};
use crate::store::shard_paths;
use crate::{FeatureError, Recipe, Result, VideoFeatures};

/// Writes numbered shards into a folder. A shard appears whole or not at all, so work that was stopped is resumed by
/// asking [`StoreWriter::has_shard`] before making one. Shards may be written from many threads at once.
#[derive(Debug)]
pub struct StoreWriter {
    folder: Utf8PathBuf,
    recipes: BTreeMap<String, Recipe>,
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
        let writer = Self { folder: folder.to_owned(), recipes };
        for path in shard_paths(folder)? {
            if overwrite == Overwrite::Force {
                std::fs::remove_file(&path).map_err(write)?;
            } else if Shard::open(&path)?.recipes != writer.recipes {
                return Err(FeatureError::MixedRecipes { first: path, second: writer.shard_path(0) });
            }
        }
        Ok(writer)
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
        let mut seen = BTreeSet::new();
        for video in videos {
            for (stream, features) in &video.streams {
                let unfit = |problem: String| FeatureError::Unfit { video: video.video.clone(), problem };
                let recipe =
                    self.recipes.get(stream).ok_or_else(|| unfit(format!("stream `{stream}` has no recipe")))?;
                if features.width() != recipe.width {
                    let problem = format!("`{stream}` is {} wide, its recipe says {}", features.width(), recipe.width);
                    return Err(unfit(problem));
                }
                if let Some(row) = features.first_bad_row() {
                    return Err(unfit(format!("`{stream}` row {row} holds a number that is not finite")));
                }
                if !seen.insert((stream, &video.video)) {
                    return Err(unfit(format!("`{stream}` stands in the shard twice")));
                }
            }
        }
        let path = self.shard_path(shard);
        let bytes = shard::encode(&path, &self.recipes, videos)?;
        Ok(WholeFile::write_all_to(path, Overwrite::Never, &bytes)?)
    }

    fn shard_path(&self, shard: usize) -> Utf8PathBuf {
        self.folder.join(format!("shard-{shard:05}.safetensors"))
    }
}
