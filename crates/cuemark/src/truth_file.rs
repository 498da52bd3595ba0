//! A truth file: which, and how it is read.

use std::sync::Arc;

use camino::Utf8PathBuf;
use cuemark_core::text::counted;
use cuemark_core::{Progress, RowPolicy, Split};
use cuemark_data::{Durations, ReadOptions, TRUTH_FIELDS, TruthFormat};
use cuemark_formats::{Source, StrangeKey, strange_keys};
use serde::{Deserialize, Serialize};

use crate::{Note, Result, RowsOf, row_notes};

/// A truth file and how to read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct TruthFile {
    /// What is right: our JSONL, or any dataset's own file; `.gz` and `.zst` are read as they are.
    #[cfg_attr(feature = "clap", arg(id = "truth", long = "truth", value_name = "FILE"))]
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub path: Utf8PathBuf,
    /// How to read it.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub reading: TruthReading,
}

/// How to read a truth file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct TruthReading {
    /// Layout of the truth file, when its content does not tell; `cuemark data list --formats` names them.
    #[cfg_attr(feature = "clap", arg(id = "truth_format", long = "truth-format", value_name = "FORMAT"))]
    pub format: Option<String>,
    /// Video durations for layouts that state none: Charades' CSV, or JSON of id to seconds.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub durations: Option<Utf8PathBuf>,
    /// What to do with rows that cannot be right.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub bad_rows: RowPolicy,
}

impl TruthFile {
    /// The file at `path`, whose layout its content tells.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { path: path.into(), reading: TruthReading::default() }
    }

    /// Reads it; `progress` counts bytes.
    ///
    /// # Errors
    /// When the layout is unknown, or as its reader says.
    pub fn read(&self, progress: &Progress) -> Result<Split> {
        self.reading.read(&self.source(progress))
    }

    /// The file, its bytes counted by `progress`.
    pub fn source(&self, progress: &Progress) -> Source {
        watched_source(&self.path, progress)
    }

    /// What a reader of the numbers should know about what was read from `source`.
    pub fn notes(&self, source: &Source, split: &Split) -> Vec<Note> {
        truth_notes(source, split, self.reading.bad_rows)
    }
}

/// What a reader of the numbers should know about the truth that was read from `source`: rows that cannot be right, and
/// fields that are slips of the pen.
pub fn truth_notes(source: &Source, split: &Split, bad_rows: RowPolicy) -> Vec<Note> {
    let file = source.path().as_str();
    let rows = row_notes(file, &split.rows, RowsOf::Truth(bad_rows)).into_iter();
    let slips = strange_keys(source, TRUTH_FIELDS).unwrap_or_default().into_iter().map(|strange| {
        let StrangeKey { key, meant, count, line } = strange;
        let lines = counted(count, "line has", "lines have");
        let text = format!("{lines} an unknown field `{key}`, which was ignored; did you mean `{meant}`?");
        Note { line: Some(line), ..Note::new(file, count, text) }
    });
    rows.chain(slips).map(|note| note.located(source)).collect()
}

impl TruthReading {
    /// The layout's name, understood.
    ///
    /// # Errors
    /// When there is no such layout.
    pub fn layout(&self) -> Result<Option<TruthFormat>> {
        Ok(self.format.as_deref().map(str::parse).transpose()?)
    }

    /// Reads `source`.
    ///
    /// # Errors
    /// As [`TruthFile::read`].
    pub fn read(&self, source: &Source) -> Result<Split> {
        Ok(cuemark_data::read_truth(source, self.layout()?, &self.options()?)?)
    }

    /// What readers are told: durations are read here.
    ///
    /// # Errors
    /// When the file of durations cannot be read.
    pub fn options(&self) -> Result<ReadOptions> {
        let durations = self.durations.as_ref().map(|path| Durations::read(&Source::new(path))).transpose()?;
        Ok(ReadOptions { bad_rows: self.bad_rows, durations: durations.map(Arc::new) })
    }
}

/// A file whose bytes `progress` counts as they are read.
pub(crate) fn watched_source(path: &Utf8PathBuf, progress: &Progress) -> Source {
    let source = Source::new(path);
    progress.announce(source.size().map_or(0, |bytes| bytes as usize));
    source.watched(progress)
}
