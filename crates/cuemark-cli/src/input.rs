//! Flags that several commands share, and the files they name.

use camino::Utf8PathBuf;
use clap::Args;
use cuemark::TruthReading;
use cuemark_core::{Split, Truth};
use cuemark_data::{ReadOptions, TruthFormat};
use cuemark_formats::{Overwrite, Source};

use crate::output;

/// Whether an output may be replaced.
#[derive(Debug, Args)]
pub(crate) struct Force {
    /// Replace what is there already.
    #[arg(long)]
    force: bool,
}

impl Force {
    pub(crate) fn overwrite(&self) -> Overwrite {
        if self.force { Overwrite::Force } else { Overwrite::Never }
    }
}

/// The queries that a command works on.
#[derive(Debug, Args)]
pub(crate) struct QueriesArg {
    /// The queries, in any truth layout.
    #[arg(long = "in", value_name = "FILE")]
    pub(crate) input: Utf8PathBuf,
    /// Their layout, when the content does not tell; `cuemark data list --formats` names them.
    #[arg(long, value_name = "FORMAT")]
    truth_format: Option<String>,
}

impl QueriesArg {
    pub(crate) fn read(&self) -> anyhow::Result<Vec<Truth>> {
        let format = self.truth_format.as_deref().map(str::parse::<TruthFormat>).transpose()?;
        Ok(cuemark_data::read_truth(&Source::new(&self.input), format, &ReadOptions::default())?.queries)
    }
}

/// The queries of a file that goes with them, whose layout its content tells.
pub(crate) fn read_queries(path: &Utf8PathBuf) -> anyhow::Result<Vec<Truth>> {
    Ok(cuemark_data::read_truth(&Source::new(path), None, &ReadOptions::default())?.queries)
}

/// As [`cuemark::TruthFile`], where there may be none.
#[derive(Debug, Args)]
pub(crate) struct OptionalTruthArgs {
    /// What is right: our JSONL, or any dataset's own file; `.gz` and `.zst` are read as they are.
    #[arg(long, value_name = "FILE")]
    truth: Option<Utf8PathBuf>,
    #[command(flatten)]
    reading: TruthReading,
}

impl OptionalTruthArgs {
    pub(crate) fn given(&self) -> Option<GivenTruth<'_>> {
        self.truth.as_ref().map(|path| GivenTruth { path, reading: &self.reading })
    }
}

/// A truth file that was named.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GivenTruth<'a> {
    path: &'a Utf8PathBuf,
    reading: &'a TruthReading,
}

impl<'a> GivenTruth<'a> {
    pub(crate) fn path(&self) -> &'a Utf8PathBuf {
        self.path
    }

    pub(crate) fn read(&self) -> cuemark::Result<Split> {
        self.reading.read(&Source::new(self.path))
    }

    /// Another truth file, such as the training split, whose layout its content tells.
    pub(crate) fn read_another(&self, source: &Source) -> anyhow::Result<Split> {
        Ok(cuemark_data::read_truth(source, None, &self.reading.options()?)?)
    }
}

/// Says on standard error what was wrong with the rows of a file.
pub(crate) fn note_faults(path: &Utf8PathBuf, rows: &cuemark_core::RowCounts) {
    if let Some(faults) = output::faults(rows) {
        output::say(&format!("note: {path}: {faults}"));
    }
}
