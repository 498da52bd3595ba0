//! Prediction and truth files from one layout to another.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Predictions, Progress, Truth};
use cuemark_data::{ReadOptions, TruthFormat};
use cuemark_formats::export::{Clip, ExportFormat, FrameRate, export, predicted_clips, true_clips};
use cuemark_formats::{Overwrite, PredictionFormat, PredictionOptions, Source, WholeFile};
use serde::{Deserialize, Serialize};

use crate::{Error, ReadPredictions, Result, TruthReading};

/// Writes a prediction or truth file in another layout, or its moments for another program.
///
/// The layout to write follows from the ending (`.jsonl`, `.csv`, `.trec`, `.txt`, `.vtt`, `.edl`, `.fiftyone.json`,
/// `.labelstudio.json`) unless `to` names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Convert {
    /// The file: predictions or truth in any layout; `-` is standard input.
    #[cfg_attr(feature = "clap", arg(value_name = "IN"))]
    pub input: Utf8PathBuf,
    /// Where to write it.
    #[cfg_attr(feature = "clap", arg(value_name = "OUT"))]
    pub output: Utf8PathBuf,
    /// Layout to write: cuemark, qvhighlights, tvr, tvr-ranking, activitynet, trec, csv, charades, webvtt, edl, fiftyone,
    /// labelstudio. Default: by the ending of OUT
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FORMAT"))]
    pub to: Option<String>,
    /// Layout of IN, when its content does not tell.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FORMAT"))]
    pub from: Option<String>,
    /// The truth that predictions answer: joins them by video and sentence, and knows videos and sentences.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub truth: Option<Utf8PathBuf>,
    /// Only moments in this video.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub video: Option<String>,
    /// Only so many answers to each query.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub top: Option<usize>,
    /// Frames a second, for layouts that count frames.
    #[serde(default = "Convert::frame_rate")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = Self::frame_rate()))]
    pub fps: f64,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

/// What was converted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Converted {
    /// `predictions` or `truth`.
    pub kind: &'static str,
    /// The layout that was written.
    pub format: String,
    /// Queries.
    pub queries: usize,
    /// Moments.
    pub moments: usize,
    /// Where they are now.
    pub out: Utf8PathBuf,
}

/// What a file is to be written as.
#[derive(Debug, Clone, Copy)]
enum Target {
    Layout(PredictionFormat),
    Program(ExportFormat),
}

/// What a file holds.
enum Content {
    Predictions(Predictions),
    Truth(Vec<Truth>),
}

impl Convert {
    /// Frames a second unless somebody says otherwise.
    pub const fn frame_rate() -> f64 {
        25.0
    }

    /// `input` as `output`, the layouts by content and ending.
    pub fn new(input: impl Into<Utf8PathBuf>, output: impl Into<Utf8PathBuf>) -> Self {
        Self {
            input: input.into(),
            output: output.into(),
            to: None,
            from: None,
            truth: None,
            video: None,
            top: None,
            fps: Self::frame_rate(),
            force: false,
        }
    }

    /// Reads the file and writes it.
    ///
    /// # Errors
    /// When a layout does not exist (before any file is opened), a file cannot be read or written, or the layout to write has
    /// no place for what was read.
    pub fn run(&self, progress: &Progress) -> Result<Converted> {
        let target = self.target()?;
        let rate = FrameRate::new(self.fps).map_err(|problem| Error::setting("fps", problem))?;
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        overwrite.check(&self.output)?;
        progress.phase("reading", 0);
        let truths = match &self.truth {
            Some(path) => TruthReading::default().read(&Source::new(path).watched(progress))?.queries,
            None => Vec::new(),
        };
        let source = Source::new(&self.input).watched(progress);
        let content = self.read(&source, &truths)?;
        progress.phase("writing", 0);
        let mut out = WholeFile::create(&self.output, overwrite)?;
        let converted = self.write(content, &truths, target, rate, &mut out)?;
        out.finish()?;
        Ok(converted)
    }

    fn target(&self) -> Result<Target> {
        if let Some(name) = &self.to {
            let program = name.parse::<ExportFormat>().map(Target::Program);
            return Ok(program.or_else(|_| name.parse::<PredictionFormat>().map(Target::Layout))?);
        }
        let program = ExportFormat::of_name(&self.output).map(Target::Program);
        program.or_else(|| PredictionFormat::of_name(&self.output).map(Target::Layout)).ok_or_else(|| {
            let problem = format!("the ending of `{}` does not say which layout to write", self.output);
            Error::setting("to", problem).advise(Advice::say("pass ").set_any("to", "FORMAT"))
        })
    }

    fn read(&self, source: &Source, truths: &[Truth]) -> Result<Content> {
        let as_truth = match &self.from {
            Some(name) => match (name.parse::<PredictionFormat>(), name.parse::<TruthFormat>()) {
                (Ok(_), Ok(format)) => looks_like_truth(source)?.then_some(Some(format)),
                (Ok(_), Err(_)) => None,
                (Err(_), Ok(format)) => Some(Some(format)),
                (Err(unknown), Err(_)) => return Err(unknown.into()),
            },
            None => looks_like_truth(source)?.then_some(None),
        };
        if let Some(format) = as_truth {
            let split = cuemark_data::read_truth(source, format, &ReadOptions::default())?;
            return Ok(Content::Truth(split.queries));
        }
        let format = self.from.as_deref().map(str::parse::<PredictionFormat>).transpose()?;
        let read = ReadPredictions::read(source, &PredictionOptions { format, ..PredictionOptions::default() })?;
        Ok(Content::Predictions(read.answering(truths)))
    }

    fn write(
        &self,
        content: Content,
        truths: &[Truth],
        target: Target,
        rate: FrameRate,
        out: &mut WholeFile,
    ) -> Result<Converted> {
        let converted = |kind, queries, moments, format: &str| Converted {
            kind,
            format: format.to_owned(),
            queries,
            moments,
            out: self.output.clone(),
        };
        match (content, target) {
            (Content::Predictions(mut predictions), target) => {
                self.keep(&mut predictions);
                let lists = || predictions.tasks.iter().flat_map(|task| &task.queries);
                let (queries, moments) = (lists().count(), lists().map(|list| list.ranked.len()).sum());
                match target {
                    Target::Layout(format) => {
                        cuemark_formats::write_predictions(&predictions, format, out)?;
                        Ok(converted("predictions", queries, moments, format.name()))
                    }
                    Target::Program(format) => {
                        let clips = predicted_clips(&predictions, truths);
                        self.export(&clips, moments, format, rate, out)?;
                        Ok(converted("predictions", queries, clips.len(), format.name()))
                    }
                }
            }
            (Content::Truth(mut truths), target) => {
                if let Some(video) = &self.video {
                    for truth in &mut truths {
                        truth.moments.retain(|graded| graded.moment.video.as_str() == video);
                    }
                    truths.retain(|truth| !truth.moments.is_empty());
                }
                let moments = truths.iter().map(|truth| truth.moments.len()).sum();
                let name = match target {
                    Target::Layout(PredictionFormat::Cuemark) => {
                        cuemark_formats::write_truth(&truths, out)?;
                        "cuemark"
                    }
                    Target::Layout(PredictionFormat::Csv) => {
                        cuemark_formats::write_truth_csv(&truths, out)?;
                        "csv"
                    }
                    Target::Layout(PredictionFormat::Trec) => {
                        cuemark_formats::write_qrels(&truths, out)?;
                        "trec"
                    }
                    Target::Layout(other) => {
                        let problem =
                            format!("truth is written as cuemark, csv, trec or for another program, not as {other}");
                        return Err(Error::setting("to", problem));
                    }
                    Target::Program(format) => {
                        self.export(&true_clips(&truths), moments, format, rate, out)?;
                        format.name()
                    }
                };
                Ok(converted("truth", truths.len(), moments, name))
            }
        }
    }

    /// Leaves out what was not asked for.
    fn keep(&self, predictions: &mut Predictions) {
        for list in predictions.tasks.iter_mut().flat_map(|task| &mut task.queries) {
            if let Some(video) = &self.video {
                list.ranked.retain(|prediction| prediction.video.as_ref().is_none_or(|named| named.as_str() == video));
            }
            if let Some(top) = self.top {
                list.ranked.truncate(top);
            }
        }
    }

    fn export(
        &self,
        clips: &[Clip],
        moments: usize,
        format: ExportFormat,
        rate: FrameRate,
        out: &mut WholeFile,
    ) -> Result<()> {
        if clips.is_empty() && moments > 0 {
            return Err(Error::Nothing {
                problem: "no prediction names its video".to_owned(),
                advice: Some(Advice::say("pass ").set_any("truth", "FILE").and(", which knows each query's")),
            });
        }
        let only = |clip: &&Clip| self.video.as_ref().is_none_or(|video| clip.video.as_str() == video);
        let clips: Vec<Clip> = clips.iter().filter(only).cloned().collect();
        Ok(export(&clips, format, rate, out)?)
    }
}

/// Whether a file holds what is right, not what was answered: fields that only predictions have decide.
fn looks_like_truth(source: &Source) -> Result<bool> {
    let head = source.head(64 << 10)?;
    let head = String::from_utf8_lossy(&head);
    let first = head.trim_start_matches('\u{feff}').lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !first.trim_start().starts_with(['{', '[']) && first.contains(',') {
        let has = |name: &str| first.split(',').any(|column| column.trim().trim_matches('"') == name);
        return Ok(has("qid") && has("video") && !has("score"));
    }
    let telling = ["\"predictions\":", "\"pred_", "\"VCMR\"", "\"SVMR\"", "\"results\""];
    let has_answers = telling.iter().any(|key| first.contains(key) || head.get(..2_000).unwrap_or(&head).contains(key));
    // Label Studio's own export can hold predictions beside annotations.
    if has_answers && !first.contains("\"annotations\"") {
        return Ok(false);
    }
    Ok(TruthFormat::of(source).is_ok())
}
