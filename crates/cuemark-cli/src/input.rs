//! Flags that several commands share, and the files they name.

use std::sync::Arc;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};
use cuemark_core::{Predictions, RowPolicy, Split, Truth};
use cuemark_data::{Durations, ReadOptions, TruthFormat};
use cuemark_formats::{Overwrite, PredictionFormat, PredictionOptions, Source, VideoIndex, activitynet_json};

use crate::output;

/// What to do with annotated rows that cannot be right; all count what they meet.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum BadRows {
    /// Drop nothing: swap reversed spans, leave ends past the video.
    Keep,
    /// As keep, and clip to the video.
    Clamp,
    /// Leave out reversed, empty and out-of-range rows.
    Skip,
    /// Stop at the first.
    Error,
}

impl From<BadRows> for RowPolicy {
    fn from(bad_rows: BadRows) -> Self {
        match bad_rows {
            BadRows::Keep => Self::Keep,
            BadRows::Clamp => Self::Clamp,
            BadRows::Skip => Self::Skip,
            BadRows::Error => Self::Error,
        }
    }
}

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

/// A truth file and how to read it.
#[derive(Debug, Args)]
pub(crate) struct TruthArgs {
    /// What is right: our JSONL, or any dataset's own file; `.gz` and `.zst` are read as they are.
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Utf8PathBuf,
    #[command(flatten)]
    how: TruthReading,
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

/// As [`TruthArgs`], where there may be none.
#[derive(Debug, Args)]
pub(crate) struct OptionalTruthArgs {
    /// What is right: our JSONL, or any dataset's own file; `.gz` and `.zst` are read as they are.
    #[arg(long, value_name = "FILE")]
    truth: Option<Utf8PathBuf>,
    #[command(flatten)]
    how: TruthReading,
}

impl OptionalTruthArgs {
    pub(crate) fn given(&self) -> Option<GivenTruth<'_>> {
        self.truth.as_ref().map(|path| GivenTruth { path, how: &self.how })
    }
}

/// A truth file that was named.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GivenTruth<'a> {
    path: &'a Utf8PathBuf,
    how: &'a TruthReading,
}

impl<'a> GivenTruth<'a> {
    pub(crate) fn path(&self) -> &'a Utf8PathBuf {
        self.path
    }

    pub(crate) fn read(&self) -> anyhow::Result<Split> {
        self.how.read(&Source::new(self.path))
    }

    /// Another truth file, such as the training split, whose layout its content tells.
    pub(crate) fn read_another(&self, source: &Source) -> anyhow::Result<Split> {
        Ok(cuemark_data::read_truth(source, None, &self.how.options()?)?)
    }
}

/// How to read a truth file.
#[derive(Debug, Args)]
struct TruthReading {
    /// Layout of the truth file, when its content does not tell; `cuemark data list --formats` names them.
    #[arg(long, value_name = "FORMAT")]
    truth_format: Option<String>,
    /// Video durations for layouts that state none: Charades' CSV, or JSON of id to seconds.
    #[arg(long, value_name = "FILE")]
    durations: Option<Utf8PathBuf>,
    /// What to do with rows that cannot be right.
    #[arg(long, value_enum, default_value_t = BadRows::Keep)]
    bad_rows: BadRows,
}

impl TruthArgs {
    pub(crate) fn read(&self) -> anyhow::Result<Split> {
        self.how.read(&Source::new(&self.truth))
    }
}

impl TruthReading {
    fn read(&self, source: &Source) -> anyhow::Result<Split> {
        let format = self.truth_format.as_deref().map(str::parse::<TruthFormat>).transpose()?;
        Ok(cuemark_data::read_truth(source, format, &self.options()?)?)
    }

    fn options(&self) -> anyhow::Result<ReadOptions> {
        let durations = self.durations.as_ref().map(|path| Durations::read(&Source::new(path))).transpose()?;
        Ok(ReadOptions { bad_rows: self.bad_rows.into(), durations: durations.map(Arc::new) })
    }
}

/// How to read prediction files.
#[derive(Debug, Args)]
pub(crate) struct PredictionArgs {
    /// Layout of the predictions, when their content does not tell.
    #[arg(long, value_name = "FORMAT")]
    pred_format: Option<String>,
    /// Names of videos by number, for predictions that give numbers: `{"name": [duration, number], …}`.
    #[arg(long, value_name = "FILE")]
    video_index: Option<Utf8PathBuf>,
}

impl PredictionArgs {
    pub(crate) fn read(&self, path: &Utf8PathBuf) -> anyhow::Result<ReadPredictions> {
        let format = self.pred_format.as_deref().map(str::parse::<PredictionFormat>).transpose()?;
        let videos = self.video_index.as_ref().map(|path| VideoIndex::read(&Source::new(path))).transpose()?;
        let (format, predictions) =
            cuemark_formats::read_predictions(&Source::new(path), &PredictionOptions { format, videos })?;
        Ok(ReadPredictions { format, predictions })
    }
}

/// Predictions whose queries may still have to be found.
pub(crate) struct ReadPredictions {
    format: PredictionFormat,
    predictions: Predictions,
}

impl ReadPredictions {
    /// The predictions, with the truth's ids: ActivityNet's layout names sentences, not queries.
    pub(crate) fn answering(self, truths: &[Truth]) -> Predictions {
        let Self { format, mut predictions } = self;
        if format == PredictionFormat::ActivityNet {
            activitynet_json::match_sentences(&mut predictions, truths);
        }
        predictions
    }
}

/// Says on standard error what was wrong with the rows of a file.
pub(crate) fn note_faults(path: &Utf8PathBuf, rows: &cuemark_core::RowCounts) {
    if let Some(faults) = output::faults(rows) {
        output::say(&format!("note: {path}: {faults}"));
    }
}
