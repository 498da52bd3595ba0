//! Prediction files of any layout.

use cuemark_core::{Answers, Lists, Predictions, QueryPredictions, RowCounts, Task};

use crate::{
    AnswerReading, NumberedAnswers, PredictionFormat, Result, Source, VideoIndex, WholeFile, activitynet_json, answers,
    charades_txt, csv, cuemark_jsonl, detect, qvh_jsonl, trec, tvr_json, tvr_ranking_json,
};

/// What the reader of a prediction file is told from outside.
#[derive(Debug, Clone, Default)]
pub struct PredictionOptions {
    /// The layout. Default: judged by the content
    pub format: Option<PredictionFormat>,
    /// What video numbers mean in a layout that does not say so itself.
    pub videos: Option<VideoIndex>,
    /// How free-text answers are read.
    pub answers: AnswerReading,
}

/// Reads a prediction file; also says which layout it has.
///
/// # Errors
/// When the layout is not recognised, or as its reader says.
pub fn read_predictions(source: &Source, options: &PredictionOptions) -> Result<(PredictionFormat, Predictions)> {
    let format = options.format.map_or_else(|| detect::detect(source), Ok)?;
    let predictions = match format {
        PredictionFormat::Cuemark => cuemark_jsonl::read_predictions(source),
        PredictionFormat::QvHighlights => qvh_jsonl::read(source),
        PredictionFormat::Tvr => tvr_json::read(source),
        PredictionFormat::TvrRanking => tvr_ranking_json::read(source, options.videos.as_ref()),
        PredictionFormat::ActivityNet => activitynet_json::read(source),
        PredictionFormat::Trec => trec::read_run(source),
        PredictionFormat::Csv => csv::read_predictions(source),
        PredictionFormat::Answers => answers::read(source, &options.answers),
        PredictionFormat::Charades => charades_txt::read(source),
    };
    Ok((format, predictions?))
}

/// Reads a prediction file to be scored and nothing else; large ones whose videos are numbers come back in columns.
///
/// # Errors
/// As [`read_predictions`].
pub fn read_answers(source: &Source, options: &PredictionOptions) -> Result<(PredictionFormat, FileAnswers)> {
    let format = options.format.map_or_else(|| detect::detect(source), Ok)?;
    let answers = match format {
        PredictionFormat::Tvr => FileAnswers::Numbered(tvr_json::read_answers(source)?),
        PredictionFormat::TvrRanking => {
            FileAnswers::Numbered(tvr_ranking_json::read_answers(source, options.videos.as_ref())?)
        }
        _ => {
            let options = PredictionOptions { format: Some(format), ..options.clone() };
            FileAnswers::Lists(read_predictions(source, &options)?.1)
        }
    };
    Ok((format, answers))
}

/// What a prediction file answers.
#[derive(Debug)]
pub enum FileAnswers {
    /// Lists of predictions.
    Lists(Predictions),
    /// Columns of numbers.
    Numbered(NumberedAnswers),
}

impl FileAnswers {
    /// Predicted spans that had to be read differently from what the file says.
    pub fn rows(&self) -> &RowCounts {
        match self {
            Self::Lists(predictions) => &predictions.rows,
            Self::Numbered(answers) => &answers.rows,
        }
    }

    fn inner(&self) -> &dyn Answers {
        match self {
            Self::Lists(predictions) => predictions,
            Self::Numbered(answers) => answers,
        }
    }
}

impl Answers for FileAnswers {
    fn tasks(&self) -> Vec<Task> {
        self.inner().tasks()
    }

    fn named(&self, task: Task) -> Option<&dyn Lists> {
        self.inner().named(task)
    }

    fn notes(&self) -> Vec<String> {
        self.inner().notes()
    }
}

/// Writes a prediction file. What a layout has no place for is named in its module; our own keeps everything but the
/// unknown fields of the file as a whole.
///
/// # Errors
/// As the layout's writer says.
pub fn write_predictions(predictions: &Predictions, format: PredictionFormat, out: &mut WholeFile) -> Result<()> {
    match format {
        PredictionFormat::Cuemark => cuemark_jsonl::write_predictions(predictions, out),
        PredictionFormat::QvHighlights => qvh_jsonl::write(predictions, out),
        PredictionFormat::Tvr => tvr_json::write(predictions, out),
        PredictionFormat::TvrRanking => tvr_ranking_json::write(predictions, out),
        PredictionFormat::ActivityNet => activitynet_json::write(predictions, out),
        PredictionFormat::Trec => trec::write_run(predictions, out),
        PredictionFormat::Csv => csv::write_predictions(predictions, out),
        PredictionFormat::Answers => answers::write(predictions, out),
        PredictionFormat::Charades => charades_txt::write(predictions, out),
    }
}

/// The lists of a file that answers one task, whichever it is.
pub(crate) fn one_task<'p>(predictions: &'p Predictions, out: &WholeFile) -> Result<&'p [QueryPredictions]> {
    match predictions.tasks.as_slice() {
        [] => Ok(&[]),
        [only] => Ok(&only.queries),
        several => {
            let names: Vec<_> = several.iter().map(|list| list.task.to_string()).collect();
            let problem = format!("the layout has room for one task, not for {}", names.join(", "));
            Err(out.fault(problem).with_hint("the layouts `cuemark` and `tvr` hold several"))
        }
    }
}
