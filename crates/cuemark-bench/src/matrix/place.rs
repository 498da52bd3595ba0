//! A dataset of a matrix on this machine: where it lies, and the run files that models learn from it by.

use camino::Utf8PathBuf;
use cuemark_train::{DataConfig, Override, RunFile};
use toml::{Table, Value};

use super::file::{DatasetEntry, ModelEntry, Protocol};
use super::ready;
use crate::Result;

/// A dataset, and where its data lies or will lie.
pub(super) struct Place<'a> {
    pub(super) entry: &'a DatasetEntry,
    pub(super) label: String,
    pub(super) root: Utf8PathBuf,
    pub(super) splits: Option<Utf8PathBuf>,
}

/// A run file as it was written, before a matrix says anything about it.
pub(super) struct Written {
    path: String,
    table: Table,
}

impl Place<'_> {
    /// What results call the dataset: published figures go by its own name, worlds of several biases by their labels.
    pub(super) fn name(&self) -> String {
        let label = self.entry.label.as_ref().filter(|_| self.entry.is_world());
        label.unwrap_or(&self.entry.name).clone()
    }

    /// `[data]` with what the matrix sets about it, for whoever looks at no features.
    pub(super) fn data(&self) -> Result<DataConfig> {
        let mut data = Table::from_iter([
            ("dataset".to_owned(), Value::String(self.entry.name.clone())),
            ("root".to_owned(), Value::String(self.root.to_string())),
        ]);
        for (key, value) in &self.entry.set {
            if let Some(key) = key.strip_prefix("data.") {
                data.insert(key.to_owned(), value.clone());
            }
        }
        Ok(DataConfig::from_table("matrix", data)?)
    }

    /// The split whose sentences describe moments, where it is not the training split.
    pub(super) fn captions(&self) -> Option<Utf8PathBuf> {
        let splits = self.splits.as_ref().filter(|_| self.entry.protocol == Protocol::Ranked)?;
        Some(splits.join("captions.jsonl"))
    }

    /// Run files that a model may be described by, the best first.
    pub(super) fn run_files(&self, model: &ModelEntry) -> Vec<String> {
        match &model.run {
            Some(run) => vec![run.replace("{dataset}", &self.entry.name)],
            None if self.entry.runs.is_empty() => vec![format!("{}/{}", model.name, self.entry.name)],
            None => self.entry.runs.iter().map(|dataset| format!("{}/{dataset}", model.name)).collect(),
        }
    }

    /// A run file with what the matrix sets about it.
    pub(super) fn run(
        &self,
        written: &Written,
        model: &ModelEntry,
        store: Option<&Utf8PathBuf>,
        seed: u64,
    ) -> Result<RunFile> {
        let text = |key: &str, value: String| over(key, &Value::String(value));
        let mut overrides =
            vec![text("data.dataset", self.entry.name.clone()), text("data.root", self.root.to_string())];
        for split in ["train", "val"] {
            let file = self.splits.as_ref().map(|splits| splits.join(format!("{split}.jsonl")));
            overrides.extend(file.map(|file| text(&format!("data.{split}"), file.into_string())));
        }
        overrides.extend(store.map(|store| text("data.features", store.to_string())));
        overrides.extend(self.entry.set.iter().chain(&model.set).map(|(key, value)| over(key, value)));
        overrides.push(over("train.seed", &Value::Integer(i64::try_from(seed).unwrap_or(i64::MAX))));
        Ok(RunFile::from_table(&written.path, written.table.clone(), &overrides)?)
    }

    /// What a run on a real dataset needs and this machine does not have.
    pub(super) fn lacks(&self, run: &RunFile) -> Option<String> {
        if self.entry.is_world() && !self.root.is_dir() {
            return None; // it will be made
        }
        let missing = std::iter::once(run.data.features()).chain(run.data.words.clone()).find(|path| !path.exists())?;
        Some(format!("`{missing}` is not there"))
    }
}

/// The first run file of those names that there is.
pub(super) fn first_run_file(names: &[String]) -> Result<Option<Written>> {
    for name in names {
        let Some((path, text)) = ready::run_text(name)? else { continue };
        let table: Table = text.parse().map_err(|error: toml::de::Error| crate::BenchError::Matrix {
            place: path.clone(),
            problem: error.message().to_owned(),
            hint: None,
        })?;
        return Ok(Some(Written { path, table }));
    }
    Ok(None)
}

fn over(key: &str, value: &Value) -> Override {
    Override { key: key.to_owned(), value: value.to_string(), origin: "the matrix".to_owned() }
}

/// A word for the store that a run file names: `features-motion` is `motion`.
pub(super) fn usual_features(run: &RunFile) -> String {
    let features = run.data.features();
    let stem = features.file_stem().unwrap_or("features");
    stem.strip_prefix("features-").unwrap_or(stem).to_owned()
}
