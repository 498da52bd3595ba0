//! Finding the queries of a run.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, Split};
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::Source;
use cuemark_formats::world_folder::{self, WORLD};

use rustc_hash::FxHashMap;

use crate::{DataConfig, Result, TrainError};

/// Gives every query the clip ratings that the file has of it. The world keeps them beside its splits, in QVHighlights' layout.
///
/// # Errors
/// When the file is about other queries: its ratings would then be of another world.
fn add_ratings(split: &mut Split, path: &Utf8Path) -> Result<()> {
    let rated = read_truth(&Source::new(path), None, &ReadOptions::default())?;
    let mut ratings: FxHashMap<_, _> =
        rated.queries.into_iter().map(|truth| (truth.query.id, truth.highlights)).collect();
    for truth in &mut split.queries {
        truth.highlights = ratings.remove(&truth.query.id).ok_or_else(|| TrainError::Folder {
            path: path.to_owned(),
            problem: format!("has no ratings for query `{}` of split `{}`", truth.query.id, split.name),
            hint: "make the world again: its splits and its ratings are not of one world".into(),
        })?;
    }
    Ok(())
}

impl DataConfig {
    /// Whether the dataset is the built-in world, whose folder has features, ratings and parses where we know them to be.
    pub fn is_world(&self) -> bool {
        self.dataset.as_deref() == Some(WORLD)
    }

    /// The queries of a split: a file when there is one of that name, else a split of the dataset.
    ///
    /// # Errors
    /// When there is neither, and those of the readers.
    pub fn split(&self, name: &str) -> Result<Split> {
        let options = ReadOptions::default();
        let root = self.root.as_deref().unwrap_or(Utf8Path::new("."));
        let beside = |path: Utf8PathBuf| path.is_file().then_some(path);
        let file = match self.dataset.as_deref() {
            // Queries that are asked of other videos, or graded, lie beside the splits and go by their files' names.
            Some(WORLD) => beside(world_folder::split(root, name))
                .or_else(|| beside(root.join(format!("{name}.jsonl"))))
                .or_else(|| beside(name.into()))
                .or_else(|| Some(world_folder::split(root, name))),
            Some(_) => beside(name.into()),
            None => Some(name.into()),
        };
        let mut split = match file {
            Some(file) => read_truth(&Source::new(file), None, &options)?,
            None => {
                let dataset = cuemark_data::find(self.dataset.as_deref().unwrap_or_default())?;
                cuemark_data::load(dataset, root, &options, &Progress::new())?.split(name)?.into_owned()
            }
        };
        if self.is_world() {
            let ratings = world_folder::ratings(root, name);
            if ratings.is_file() && world_folder::split(root, name).is_file() {
                add_ratings(&mut split, &ratings)?;
            }
        }
        split.name = Utf8Path::new(name).file_stem().unwrap_or(name).to_owned();
        Ok(split)
    }

    /// Where the clip features lie; the world's strongest when nothing is said.
    pub fn features(&self) -> Utf8PathBuf {
        match (&self.features, &self.root) {
            (Some(features), Some(root)) if self.is_world() && !features.exists() => root.join(features),
            (Some(features), _) => features.clone(),
            (None, root) => world_folder::features(root.as_deref().unwrap_or(Utf8Path::new("")), "motion"),
        }
    }

    /// Where parses of the queries lie, when a file has them.
    pub fn parses(&self) -> Option<Utf8PathBuf> {
        let of_world = || {
            let root = self.root.as_ref().filter(|_| self.is_world())?;
            Some(root.join(world_folder::PARSES)).filter(|path| path.is_file())
        };
        self.parses.clone().or_else(of_world)
    }
}
