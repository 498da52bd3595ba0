//! A prediction file: which, and how it is read.

use camino::Utf8PathBuf;
use cuemark_core::{Predictions, Progress, Truth};
use cuemark_formats::{
    AnswerParser, AnswerReading, FileAnswers, PredictionFormat, PredictionOptions, Source, VideoIndex, answers,
    match_sentences,
};
use serde::{Deserialize, Serialize};

use crate::truth_file::watched_source;
use crate::{Error, Result};

/// A prediction file and how to read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct PredictionFile {
    /// The predictions: our JSONL, QVHighlights, TVR, TVR-Ranking, ActivityNet, TREC run, CSV, Charades-STA lines, or
    /// free-text answers; `-` is standard input.
    #[cfg_attr(feature = "clap", arg(id = "pred", long = "pred", value_name = "FILE"))]
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
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
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct PredictionReading {
    /// Layout of the predictions, when their content does not tell.
    #[cfg_attr(feature = "clap", arg(id = "pred_format", long = "pred-format", value_name = "FORMAT"))]
    pub format: Option<String>,
    /// Names of videos by number, for predictions that give numbers: `{"name": [duration, number], …}`.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub video_index: Option<Utf8PathBuf>,
    /// How spans are found in free-text answers: auto, or seconds, percent, frames, fractions (what bare numbers are),
    /// first-two, or a regular expression with the groups `start` and `end`.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME|REGEX"))]
    pub parser: Option<String>,
    /// Frames per second, for answers that name frames.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FPS"))]
    pub frame_rate: Option<f64>,
    /// The field of an answer that holds its query's id, when it is not a usual one; `doc.qid` leads inside.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FIELD"))]
    pub id_field: Option<String>,
    /// The field that holds its text.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FIELD"))]
    pub text_field: Option<String>,
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
        self.reading.read(&self.source(progress))
    }

    /// The file, its bytes counted by `progress`.
    pub fn source(&self, progress: &Progress) -> Source {
        watched_source(&self.path, progress)
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

    /// Reads `source` to be scored and nothing else, in as little memory as its layout allows.
    ///
    /// # Errors
    /// As [`PredictionFile::read`].
    pub fn read_answers(&self, source: &Source) -> Result<ReadAnswers> {
        let options = self.options()?;
        let (format, answers) = cuemark_formats::read_answers(source, &options)?;
        Ok(ReadAnswers { format, answers, parser: options.answers.parser })
    }

    /// What readers are told: a video index is read here.
    ///
    /// # Errors
    /// When the layout is unknown or the index cannot be read.
    pub fn options(&self) -> Result<PredictionOptions> {
        let format = self.format.as_deref().map(str::parse::<PredictionFormat>).transpose()?;
        let videos = self.video_index.as_ref().map(|path| VideoIndex::read(&Source::new(path))).transpose()?;
        Ok(PredictionOptions { format, videos, answers: self.answers()? })
    }

    /// How free-text answers are read.
    ///
    /// # Errors
    /// When the parser is none, or the frame rate is no rate.
    pub(crate) fn answers(&self) -> Result<AnswerReading> {
        if let Some(rate) = self.frame_rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(Error::setting("frame_rate", format!("{rate} frames per second cannot be")));
        }
        let parser = self.parser.as_deref().map(str::parse::<AnswerParser>).transpose()?.unwrap_or_default();
        let parser = parser.with_frame_rate(self.frame_rate);
        Ok(AnswerReading { parser, id_field: self.id_field.clone(), text_field: self.text_field.clone() })
    }
}

/// Predictions as a file has them: in some layouts their queries must still be found in the truth.
#[derive(Debug, Clone)]
pub struct ReadPredictions {
    format: PredictionFormat,
    predictions: Predictions,
    parser: AnswerParser,
}

impl ReadPredictions {
    /// Reads predictions from a file or from memory.
    ///
    /// # Errors
    /// As the layout's reader says.
    pub fn read(source: &Source, options: &PredictionOptions) -> Result<Self> {
        let (format, predictions) = cuemark_formats::read_predictions(source, options)?;
        Ok(Self { format, predictions, parser: options.answers.parser.clone() })
    }

    /// The predictions with what only the truth knows: a record without an id is joined by its video and its sentence, and
    /// free-text answers count from the end of their video.
    pub fn answering(self, truths: &[Truth]) -> Predictions {
        let Self { format, mut predictions, parser } = self;
        find_queries(&mut predictions, truths, format, &parser);
        predictions
    }
}

/// The same of a file that was read to be scored.
#[derive(Debug)]
pub struct ReadAnswers {
    format: PredictionFormat,
    answers: FileAnswers,
    parser: AnswerParser,
}

impl ReadAnswers {
    /// As [`ReadPredictions::answering`].
    pub fn answering(self, truths: &[Truth]) -> FileAnswers {
        let Self { format, mut answers, parser } = self;
        // Layouts that number their videos name their queries.
        if let FileAnswers::Lists(predictions) = &mut answers {
            find_queries(predictions, truths, format, &parser);
        }
        answers
    }
}

fn find_queries(predictions: &mut Predictions, truths: &[Truth], format: PredictionFormat, parser: &AnswerParser) {
    match_sentences(predictions, truths);
    if format == PredictionFormat::Answers {
        answers::with_durations(predictions, truths, parser);
    }
}
