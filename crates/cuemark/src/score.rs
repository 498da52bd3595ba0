//! Scoring a prediction file.

use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use cuemark_core::{Answers, Progress, QueryId, RowCounts, Truth};
use cuemark_formats::source::STDIN;
use cuemark_formats::{Overwrite, Source, WholeFile};
use cuemark_metrics::{Evaluation, Interval, Plan, Report, intervals};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Error, Note, PredictionFile, Resampling, Result, RowsOf, ScoredLists, Scoring, TruthFile, row_notes};

/// Scores a prediction file.
///
/// ```no_run
/// use cuemark::{PredictionFile, Progress, Score, TruthFile};
/// # fn main() -> cuemark::Result<()> {
/// let scored = Score::new(TruthFile::new("test.jsonl"), PredictionFile::new("answers.jsonl"))
///     .run(&Progress::new())?;
/// for column in &scored.evaluation.columns {
///     println!("{}: {:?}", column.name, column.mean());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Score {
    /// What is right.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub truth: TruthFile,
    /// What a method answered.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub predictions: PredictionFile,
    /// Which metrics, in which conventions.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub scoring: Scoring,
    /// Confidence interval in percent, by bootstrap over queries.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PERCENT"))]
    pub ci: Option<f64>,
    /// How the interval is found.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub resampling: Resampling,
    /// Report every metric for parts of the queries too: length, position, words, verb, type.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BY", value_delimiter = ','))]
    pub group_by: Vec<String>,
    /// Write every query's scores as JSON lines.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub per_query: Option<Utf8PathBuf>,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

/// What a prediction file is worth.
///
/// As JSON it is what `cuemark eval --json` prints: fractions under the metrics' own names.
#[derive(Debug, Clone)]
pub struct Scored {
    /// How the numbers were computed.
    pub plan: Plan,
    /// The numbers.
    pub evaluation: Evaluation,
    /// One interval per column, in the columns' order, where they were asked for.
    pub intervals: Option<Vec<Interval>>,
    /// Ids of the queries, in the truth's order, which is the order of each column's scores.
    pub queries: Vec<QueryId>,
    /// What was wrong with the rows of the truth.
    pub truth_rows: RowCounts,
    /// What was wrong with the rows of the predictions.
    pub prediction_rows: RowCounts,
    /// What a reader of the numbers should know about the files.
    pub notes: Vec<Note>,
    /// How long reading and evaluating took.
    pub took: Took,
}

/// How long the two halves of scoring took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Took {
    /// Both files, side by side.
    pub reading: Duration,
    /// The metrics, without intervals.
    pub evaluating: Duration,
}

impl Score {
    /// `predictions` against `truth`, everything else as usual.
    pub fn new(truth: TruthFile, predictions: PredictionFile) -> Self {
        Self {
            truth,
            predictions,
            scoring: Scoring::default(),
            ci: None,
            resampling: Resampling::default(),
            group_by: Vec::new(),
            per_query: None,
            force: false,
        }
    }

    /// Reads both files and scores them.
    ///
    /// # Errors
    /// When a name does not exist (before any file is opened), a file cannot be read, or a metric does not fit the files.
    pub fn run(&self, progress: &Progress) -> Result<Scored> {
        let scoring = self.scoring.check(&self.group_by)?;
        self.predictions.reading.answers()?;
        let bootstrap = self.ci.map(|percent| self.resampling.bootstrap(percent)).transpose()?;
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        if let Some(path) = &self.per_query {
            overwrite.check(path)?;
        }
        let began = Instant::now();
        progress.phase("reading", 0);
        let (truth, answers) = (self.truth.source(progress), self.predictions.source(progress));
        one_standard_input([&truth, &answers])?;
        let (split, predictions) =
            rayon::join(|| self.truth.reading.read(&truth), || self.predictions.reading.read_answers(&answers));
        let split = split?;
        let predictions = predictions?.answering(&split.queries);
        let reading = began.elapsed();

        let began = Instant::now();
        progress.phase("scoring", 0);
        let file = self.predictions.path.as_str();
        let ScoredLists { plan, evaluation, notes: odd } =
            scoring.score(&split.queries, &predictions, file, progress)?;
        let mut notes = self.truth.notes(&truth, &split);
        notes.extend(
            row_notes(file, predictions.rows(), RowsOf::Predictions).into_iter().map(|note| note.located(&answers)),
        );
        notes.extend(odd.into_iter().map(|note| note.located(&answers)));
        if self.scoring.preset.is_none() && self.scoring.metrics.is_none() {
            notes.extend(looks_like_qvhighlights(&split.queries, &predictions));
        }
        let evaluating = began.elapsed();

        let intervals = match bootstrap {
            Some(how) => {
                progress.phase("resampling", 0);
                Some(intervals(&evaluation.columns, how, progress)?)
            }
            None => None,
        };
        let scored = Scored {
            plan,
            evaluation,
            intervals,
            queries: split.queries.iter().map(|truth| truth.query.id.clone()).collect(),
            truth_rows: split.rows.clone(),
            prediction_rows: predictions.rows().clone(),
            notes,
            took: Took { reading, evaluating },
        };
        // Freeing millions of small lists takes as long as scoring them, and nobody waits for it.
        rayon::spawn(move || drop((split, predictions)));
        if let Some(path) = &self.per_query {
            scored.write_per_query(WholeFile::create(path, overwrite)?)?;
        }
        Ok(scored)
    }
}

impl Scored {
    /// As papers and scripts want it.
    pub fn report(&self) -> Report<'_> {
        Report {
            plan: &self.plan,
            evaluation: &self.evaluation,
            intervals: self.intervals.as_deref(),
            truth_rows: &self.truth_rows,
            prediction_rows: &self.prediction_rows,
        }
    }

    /// One line of JSON per query: its id, and its score in every metric for which it counts.
    fn write_per_query(&self, mut file: WholeFile) -> Result<()> {
        for (position, query) in self.queries.iter().enumerate() {
            let mut line = Map::new();
            line.insert("qid".to_owned(), query.as_str().into());
            let columns = self.evaluation.columns.iter();
            line.extend(columns.filter_map(|column| Some((column.name.to_string(), column.score(position)?.into()))));
            file.put(format!("{}\n", Value::Object(line)).as_bytes())?;
        }
        Ok(file.finish()?)
    }
}

impl Serialize for Scored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = self.report().to_json();
        if let Some(Value::Array(notes)) = value.get_mut("notes") {
            notes.extend(self.notes.iter().map(|note| Value::from(note.to_string())));
        }
        value.serialize(serializer)
    }
}

/// The leaderboard of QVHighlights prints other metrics than the usual ones.
fn looks_like_qvhighlights(truths: &[Truth], predictions: &dyn Answers) -> Option<Note> {
    let rated = truths.iter().any(|truth| truth.highlights.is_some());
    let mut lists = predictions.tasks().into_iter().filter_map(|task| predictions.named(task));
    let salient = lists.any(|lists| (0..lists.count()).any(|place| lists.saliency(place).is_some()));
    let text = "these look like QVHighlights' files: the preset `qvhighlights` gives the leaderboard's numbers";
    (rated && salient).then(|| Note::new("", truths.len(), text))
}

/// Standard input can be one file, not two.
pub(crate) fn one_standard_input<'s>(sources: impl IntoIterator<Item = &'s Source>) -> Result<()> {
    let piped = sources.into_iter().filter(|source| source.path() == STDIN).count();
    if piped > 1 {
        return Err(Error::setting("truth", format!("{piped} files cannot all be standard input")));
    }
    Ok(())
}
