//! Flags that several commands share, and the files they name.

use camino::Utf8PathBuf;
use clap::Args;
use cuemark::{RowsOf, TruthFile, TruthReading, row_notes};
use cuemark_core::RowCounts;
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

impl GivenTruth<'_> {
    /// The same as a request has it.
    pub(crate) fn file(&self) -> TruthFile {
        TruthFile { path: self.path.clone(), reading: self.reading.clone() }
    }
}

/// Says on standard error what was wrong with the rows of a file.
pub(crate) fn note_rows(path: &Utf8PathBuf, rows: &RowCounts, of: RowsOf) {
    let source = Source::new(path);
    output::say_notes(row_notes(path.as_str(), rows, of).into_iter().map(|note| note.located(&source)));
}
