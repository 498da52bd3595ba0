//! A prediction file: which, and how it is read.

use camino::Utf8PathBuf;
use cuemark_core::{Predictions, Progress, Truth};
use cuemark_formats::{PredictionFormat, PredictionOptions, Source, VideoIndex, activitynet_json};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::truth_file::watched_source;

/// A prediction file and how to read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct PredictionFile {
    /// The predictions: our JSONL, QVHighlights, TVR, TVR-Ranking, ActivityNet, TREC run or CSV.
    #[cfg_attr(feature = "clap", arg(id = "pred", long = "pred", value_name = "FILE"))]
    pub path: Utf8PathBuf,
    /// How to read it.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub reading: PredictionReading,
}

/// How to read prediction files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct PredictionReading {
    /// Layout of the predictions, when their content does not tell.
    #[cfg_attr(feature = "clap", arg(id = "pred_format", long = "pred-format", value_name = "FORMAT"))]
    pub format: Option<String>,
    /// Names of videos by number, for predictions that give numbers: `{"name": [duration, number], …}`.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub video_index: Option<Utf8PathBuf>,
}

impl PredictionFile {
    /// The file at `path`, whose layout its content tells.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { path: path.into(), reading: PredictionReading::default() }
    }

    /// Reads it; `progress` counts bytes.
    ///
    /// # Errors
    /// When the layout is unknown, or as its reader says.
    pub fn read(&self, progress: &Progress) -> Result<ReadPredictions> {
        self.reading.read(&watched_source(&self.path, progress))
    }
}

impl PredictionReading {
    /// Reads `source`.
    ///
    /// # Errors
    /// As [`PredictionFile::read`].
    pub fn read(&self, source: &Source) -> Result<ReadPredictions> {
        ReadPredictions::read(source, &self.options()?)
    }

    /// What readers are told: a video index is read here.
    ///
    /// # Errors
    /// When the layout is unknown or the index cannot be read.
    pub fn options(&self) -> Result<PredictionOptions> {
        let format = self.format.as_deref().map(str::parse::<PredictionFormat>).transpose()?;
        let videos = self.video_index.as_ref().map(|path| VideoIndex::read(&Source::new(path))).transpose()?;
        Ok(PredictionOptions { format, videos })
    }
}

/// Predictions as a file has them: in some layouts their queries must still be found in the truth.
#[derive(Debug, Clone)]
pub struct ReadPredictions {
    format: PredictionFormat,
    predictions: Predictions,
}

impl ReadPredictions {
    /// Reads predictions from a file or from memory.
    ///
    /// # Errors
    /// As the layout's reader says.
    pub fn read(source: &Source, options: &PredictionOptions) -> Result<Self> {
        let (format, predictions) = cuemark_formats::read_predictions(source, options)?;
        Ok(Self { format, predictions })
    }

    /// The predictions with the truth's ids: ActivityNet's layout names sentences, not queries.
    pub fn answering(self, truths: &[Truth]) -> Predictions {
        let Self { format, mut predictions } = self;
        if format == PredictionFormat::ActivityNet {
            activitynet_json::match_sentences(&mut predictions, truths);
        }
        predictions
    }
}
