//! A dataset on disk: which, and how it is read.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, RowCounts, RowPolicy};
use cuemark_data::{Dataset, Durations, ReadOptions};
use cuemark_formats::Source;
use serde::{Deserialize, Serialize};

use crate::Result;

/// A dataset in a folder, its name given as a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct NamedDataset {
    /// The dataset, as `cuemark data list` names it.
    #[cfg_attr(feature = "clap", arg(id = "dataset", long = "dataset", value_name = "NAME"))]
    pub name: String,
    /// Where it lies.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub folder: DatasetFolder,
}

/// Where a dataset lies and how it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct DatasetFolder {
    /// The dataset's own folder (for TACoS the variant's).
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    pub root: Utf8PathBuf,
    /// Video durations for layouts that state none, beside what the folder holds.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub durations: Option<Utf8PathBuf>,
    /// What to do with rows that cannot be right.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub bad_rows: RowPolicy,
}

impl NamedDataset {
    /// The dataset called `name` in `root`.
    pub fn new(name: impl Into<String>, root: impl Into<Utf8PathBuf>) -> Self {
        Self { name: name.into(), folder: DatasetFolder::new(root) }
    }

    /// Reads what is there of it.
    ///
    /// # Errors
    /// As [`DatasetFolder::load`].
    pub fn load(&self, progress: &Progress) -> Result<Dataset> {
        self.folder.load(&self.name, progress)
    }
}

impl DatasetFolder {
    /// The folder `root`, read as usual.
    pub fn new(root: impl Into<Utf8PathBuf>) -> Self {
        Self { root: root.into(), durations: None, bad_rows: RowPolicy::default() }
    }

    /// Reads what is there of the dataset called `name`.
    ///
    /// # Errors
    /// When there is no such dataset, nothing of it is in the folder, or as its readers say.
    pub fn load(&self, name: &str, progress: &Progress) -> Result<Dataset> {
        let card = cuemark_data::find(name)?;
        let durations = self.durations.as_ref().map(|path| Durations::read(&Source::new(path))).transpose()?;
        let options = ReadOptions { bad_rows: self.bad_rows, durations: durations.map(Arc::new) };
        progress.phase("reading", 0);
        Ok(cuemark_data::load(card, &self.root, &options, progress)?)
    }
}

/// What a person should know about a dataset before they trust what was made of it, a line each: files that are not there, rows
/// that cannot be right.
pub fn dataset_notes(dataset: &Dataset) -> Vec<String> {
    let absent = dataset.absent.iter().map(|file| format!("note: `{}` ({}) is not there", file.path, file.split));
    let mut rows = RowCounts::default();
    dataset.splits.iter().for_each(|split| rows.add(&split.rows));
    absent.chain(rows_note(&dataset.root, &rows)).collect()
}

/// What was wrong with the rows of the file at `path`, in a line; `None` when nothing was.
pub(crate) fn rows_note(path: &Utf8Path, rows: &RowCounts) -> Option<String> {
    rows.summary().map(|faults| format!("note: {path}: {faults}"))
}
