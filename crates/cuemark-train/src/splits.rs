//! Finding the queries of a run.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, Split};
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::Source;

use crate::{DataConfig, Result};

/// The dataset that `cuemark world make` writes.
const WORLD: &str = "world";

impl DataConfig {
    /// The queries of a split: a file when there is one of that name, else a split of the dataset.
    ///
    /// # Errors
    /// When there is neither, and those of the readers.
    pub fn split(&self, name: &str) -> Result<Split> {
        let options = ReadOptions::default();
        let root = self.root.as_deref().unwrap_or(Utf8Path::new("."));
        let beside = |path: Utf8PathBuf| path.is_file().then_some(path);
        let file = match self.dataset.as_deref() {
            Some(WORLD) => beside(root.join("splits").join(format!("{name}.jsonl")))
                .or_else(|| beside(root.join(format!("{name}.jsonl"))))
                .or_else(|| beside(name.into()))
                .or_else(|| Some(root.join("splits").join(format!("{name}.jsonl")))),
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
        split.name = Utf8Path::new(name).file_stem().unwrap_or(name).to_owned();
        Ok(split)
    }

    /// Where the clip features lie; the world's strongest when nothing is said.
    pub fn features(&self) -> Utf8PathBuf {
        match (&self.features, &self.root) {
            (Some(features), Some(root)) if self.dataset.as_deref() == Some(WORLD) && !features.exists() => {
                root.join(features)
            }
            (Some(features), _) => features.clone(),
            (None, root) => root.clone().unwrap_or_default().join("features-motion"),
        }
    }

    /// Where parses of the queries lie, when a file has them.
    pub fn parses(&self) -> Option<Utf8PathBuf> {
        let of_world = || {
            let root = self.root.as_ref().filter(|_| self.dataset.as_deref() == Some(WORLD))?;
            Some(root.join("parses.jsonl")).filter(|path| path.is_file())
        };
        self.parses.clone().or_else(of_world)
    }
}
