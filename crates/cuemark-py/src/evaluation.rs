//! `cuemark.evaluate`: scores predictions.

use std::sync::Arc;

use cuemark::{CheckedScoring, Note, RowsOf, ScoredLists, row_notes, truth_notes};
use cuemark_core::{Answers, Predictions, Progress, QueryId, RowCounts, Split, Truth};
use cuemark_formats::Source;
use cuemark_metrics::{Bootstrap, Interval, Plan, Report};
use indexmap::IndexMap;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustc_hash::FxHashSet;

use crate::arguments::{
    ColumnAnswers, PredictionArgument, PredictionReading, ReadPredictions, ScoringFlags, Tables, TruthArgument,
    TruthFlags,
};
use crate::failure::{Failure, Result};
use crate::tables;
use crate::watch::{Audience, watched};

/// Resamples of a bootstrap unless told otherwise.
pub(crate) const RESAMPLES: usize = 10_000;

/// What an evaluation found: fractions in 0..1 under the metrics' own names.
#[pyclass(frozen, module = "cuemark")]
pub(crate) struct Evaluation {
    plan: Plan,
    found: cuemark_metrics::Evaluation,
    qids: Vec<QueryId>,
    truth_rows: RowCounts,
    prediction_rows: RowCounts,
    notes: Vec<Note>,
}

/// Scores `predictions` against `truth`.
///
/// `truth` is a path in any layout that cuemark reads, a `Split` or `Dataset`, a list of dicts as the lines of such a
/// file, columns (a dict of arrays or a frame with `qid`, `video`, `start`, `end`), an array of one `[start, end]` a
/// query, or a list of arrays of them. `predictions` is a path, `Predictions`, a list of dicts, columns (`qid`, `start`,
/// `end` and, where known, `video` and `score`), a dict of columns by task (`VCMR`, `SVMR`, `VR`), or, for the truth's
/// queries in order, an array queries × predictions × 2 (or 3, with the score) or a list of arrays. Times are seconds,
/// lists are best first. Numbers and texts that spell the same are the same id.
///
/// `metrics` is a list or comma-separated text; `preset` reproduces a published evaluator to the digit; without either
/// the metrics that suit the data are computed. The other arguments are the flags of `cuemark eval`. With
/// `unknown="error"` a list for a query that the truth does not have is refused instead of counted. Predictions that
/// cannot belong to the truth (other queries, other videos, no span) are refused unless `lenient`; what looks odd about
/// them stands in `notes`.
///
/// The interpreter's lock is released, Ctrl-C stops it, and `progress` shows a bar (by default on a terminal only) or is
/// called with `(what, done, total)`.
#[pyfunction]
#[pyo3(signature = (
    truth: "TruthLike", predictions: "PredictionsLike", *, metrics: "str | Sequence[str] | None" = None,
    preset: "str | None" = None, nms: "float | Literal['none'] | None" = None,
    order: "Literal['file', 'score'] | None" = None, strict = false, clip_truth = false, lenient = false,
    group_by: "str | Sequence[str] | None" = None, truth_format: "str | None" = None,
    pred_format: "str | None" = None, durations: "DurationsLike | None" = None,
    video_index: "VideoIndexLike | None" = None, bad_rows: "BadRows" = "keep",
    unknown: "Literal['count', 'error']" = "count", progress: "ProgressLike" = None
) -> "Evaluation")]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    truth: &Bound<'py, PyAny>,
    predictions: &Bound<'py, PyAny>,
    metrics: Option<&Bound<'py, PyAny>>,
    preset: Option<&str>,
    nms: Option<&Bound<'py, PyAny>>,
    order: Option<&str>,
    strict: bool,
    clip_truth: bool,
    lenient: bool,
    group_by: Option<&Bound<'py, PyAny>>,
    truth_format: Option<&str>,
    pred_format: Option<&str>,
    durations: Option<&Bound<'py, PyAny>>,
    video_index: Option<&Bound<'py, PyAny>>,
    bad_rows: &str,
    unknown: &str,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Evaluation> {
    let scoring = ScoringFlags { metrics, preset, nms, order, strict, clip_truth, lenient, group_by }.understand()?;
    let strangers = Strangers::of(unknown)?;
    let audience = Audience::of(py, progress)?;
    let reading = TruthFlags { format: truth_format, durations, bad_rows: Some(bad_rows) }.understand()?;
    let truth = TruthArgument::of(truth, "truth", &reading)?;
    let how = PredictionReading::of(pred_format, video_index)?;
    let tables = Tables::of(predictions, "predictions")?;
    let unread = match &tables {
        Some(_) => Vec::new(),
        None => vec![PredictionArgument::of(predictions, "predictions", &how)?],
    };
    let (truth_source, answer_source) = (truth.source(), unread.first().and_then(PredictionArgument::source));
    let (split, mut read) = read_all(py, &audience, truth, unread)?;
    let given = match (&tables, read.pop()) {
        (Some(tables), _) => Given::InColumns(tables.lists(py)?),
        (None, Some(read)) => Given::Read(read.answering(&split.queries)?),
        (None, None) => return Err(Failure::argument("predictions", "nothing was read")),
    };
    // Notes name what the numbers come from as the program does: the file, or the argument that stands for one.
    let named = answer_source.as_ref().map_or("predictions", |source| source.path().as_str());
    let ScoredLists { plan, evaluation: found, notes: odd } =
        score(py, &audience, &scoring, &split, given.answers(), strangers, named)?;
    let bad_rows = reading.options().bad_rows;
    let mut notes = match &truth_source {
        Some(source) => truth_notes(source, &split, bad_rows),
        None => row_notes("truth", &split.rows, RowsOf::Truth(bad_rows)),
    };
    let of_predictions = row_notes(named, given.rows(), RowsOf::Predictions).into_iter().chain(odd);
    notes.extend(of_predictions.map(|note| match &answer_source {
        Some(source) => note.located(source),
        None => note,
    }));
    let evaluation = Evaluation {
        plan,
        found,
        notes,
        qids: split.queries.iter().map(|truth| truth.query.id.clone()).collect(),
        truth_rows: split.rows.clone(),
        prediction_rows: given.rows().clone(),
    };
    // Freeing millions of small lists takes as long as scoring them, and nobody waits for it.
    if let Given::Read(predictions) = given {
        rayon::spawn(move || drop((split, predictions)));
    }
    Ok(evaluation)
}

/// Predictions that are ready to be scored.
enum Given<'a> {
    /// Ours.
    Read(Arc<Predictions>),
    /// The caller's, where they lie.
    InColumns(ColumnAnswers<'a>),
}

impl Given<'_> {
    fn answers(&self) -> &dyn Answers {
        match self {
            Self::Read(predictions) => predictions.as_ref(),
            Self::InColumns(columns) => columns,
        }
    }

    fn rows(&self) -> &RowCounts {
        match self {
            Self::Read(predictions) => &predictions.rows,
            Self::InColumns(columns) => columns.rows(),
        }
    }
}

/// What happens to lists for queries that the truth does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strangers {
    /// They are counted; whether there are too many of them is the library's to say.
    Count,
    /// They are refused.
    Refuse,
}

impl Strangers {
    pub(crate) fn of(word: &str) -> Result<Self> {
        match word {
            "count" => Ok(Self::Count),
            "error" => Ok(Self::Refuse),
            other => Err(Failure::argument("unknown", format!("`{other}` is not count or error"))),
        }
    }

    fn check(self, truths: &[Truth], predictions: &dyn Answers, unknown: usize, argument: &str) -> Result<()> {
        if self == Self::Count || unknown == 0 {
            return Ok(());
        }
        let known: FxHashSet<&QueryId> = truths.iter().map(|truth| &truth.query.id).collect();
        for lists in predictions.tasks().into_iter().filter_map(|task| predictions.lists(task)) {
            if let Some(place) = (0..lists.count()).find(|place| !known.contains(lists.query(*place))) {
                let problem = format!("list {place}: query `{}` is not in the truth", lists.query(place));
                let example = truths.first().map_or("", |truth| truth.query.id.as_str());
                let hint = format!("the truth's ids look like `{example}`; arrays answer its queries in order");
                return Err(Failure::argument(argument, problem).with_hint(hint));
            }
        }
        Ok(())
    }
}

/// Reads the truth and the predictions, side by side.
pub(crate) fn read_all(
    py: Python<'_>,
    audience: &Audience,
    mut truth: TruthArgument,
    mut predictions: Vec<PredictionArgument>,
) -> Result<(Arc<Split>, Vec<ReadPredictions>)> {
    let progress = Progress::new();
    let watch = |source: &mut Source| {
        progress.announce(source.size().map_or(0, |bytes| bytes as usize));
        *source = source.clone().watched(&progress);
    };
    if let Some(source) = truth.file() {
        watch(source);
    }
    for source in predictions.iter_mut().filter_map(PredictionArgument::file) {
        watch(source);
    }
    watched(py, audience, "reading", &progress, || {
        let all = || predictions.into_iter().map(PredictionArgument::read).collect::<Result<Vec<_>>>();
        let (truth, predictions) = rayon::join(|| truth.read(), all);
        Ok((truth?, predictions?))
    })
}

/// Scores one method.
pub(crate) fn score(
    py: Python<'_>,
    audience: &Audience,
    scoring: &CheckedScoring,
    split: &Split,
    predictions: &dyn Answers,
    strangers: Strangers,
    argument: &str,
) -> Result<ScoredLists> {
    let progress = Progress::new();
    watched(py, audience, "scoring", &progress, || {
        let scored = scoring.score(&split.queries, predictions, argument, &progress)?;
        strangers.check(&split.queries, predictions, scored.evaluation.unknown, argument)?;
        Ok(scored)
    })
}

/// A confidence level in percent as a fraction.
pub(crate) fn level(percent: f64, argument: &str) -> Result<f64> {
    cuemark::confidence(percent).map_err(|problem| Failure::argument(argument, problem))
}

impl Evaluation {
    fn bounds(&self, py: Python<'_>, audience: &Audience, how: Bootstrap) -> Result<Vec<Interval>> {
        let progress = Progress::new();
        watched(py, audience, "resampling", &progress, || {
            Ok(cuemark_metrics::intervals(&self.found.columns, how, &progress)?)
        })
    }

    /// The report with intervals of `percent`, where some are wanted.
    fn with_report<T>(
        &self,
        py: Python<'_>,
        percent: Option<f64>,
        resamples: usize,
        seed: u64,
        then: impl FnOnce(Report<'_>) -> T,
    ) -> Result<T> {
        let audience = Audience::of(py, None)?;
        let bounds = match percent {
            Some(percent) => {
                let how = Bootstrap { level: level(percent, "interval")?, resamples, seed };
                Some(self.bounds(py, &audience, how)?)
            }
            None => None,
        };
        Ok(then(Report {
            plan: &self.plan,
            evaluation: &self.found,
            intervals: bounds.as_deref(),
            truth_rows: &self.truth_rows,
            prediction_rows: &self.prediction_rows,
        }))
    }
}

#[pymethods]
impl Evaluation {
    /// Each metric's mean over the queries that count, a fraction.
    #[getter]
    fn metrics(&self) -> IndexMap<String, f64> {
        let means = self.found.columns.iter().filter_map(|column| Some((column.name.to_string(), column.mean()?)));
        means.collect()
    }

    /// Queries of the truth.
    #[getter]
    fn queries(&self) -> usize {
        self.found.queries
    }

    /// Queries without a single prediction.
    #[getter]
    fn missing(&self) -> usize {
        self.found.missing
    }

    /// Prediction lists for queries that the truth does not have.
    #[getter]
    fn unknown(&self) -> usize {
        self.found.unknown
    }

    /// How many queries count for each metric.
    #[getter]
    fn counted(&self) -> IndexMap<String, usize> {
        self.found.columns.iter().map(|column| (column.name.to_string(), column.counted())).collect()
    }

    /// The preset, when there is one.
    #[getter]
    fn preset(&self) -> Option<String> {
        self.plan.preset.map(|preset| preset.to_string())
    }

    /// How the numbers were computed, a line per set of steps.
    #[getter]
    fn conventions(&self) -> Vec<String> {
        self.plan.conventions()
    }

    /// What a reader of the numbers should know: what was left out of a preset, rows that cannot be right, what looks odd
    /// about the predictions; how many, where first, what was done.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.found.notes.iter().cloned().chain(self.notes.iter().map(ToString::to_string)).collect()
    }

    /// Ids of the queries, in the truth's order.
    #[getter]
    fn qids(&self) -> Vec<&str> {
        self.qids.iter().map(QueryId::as_str).collect()
    }

    /// Each metric's score of every query, in the order of `qids`; NaN where a query does not count.
    #[getter]
    fn per_query<'py>(&self, py: Python<'py>) -> IndexMap<String, Bound<'py, PyArray1<f64>>> {
        let columns = self.found.columns.iter();
        columns.map(|column| (column.name.to_string(), PyArray1::from_slice(py, column.scores()))).collect()
    }

    /// Where each metric's true mean plausibly lies: a bootstrap over queries.
    #[pyo3(signature = (percent = 95.0, *, resamples = RESAMPLES, seed = 0, progress: "ProgressLike" = None) -> "dict[str, tuple[float, float]]")]
    fn interval(
        &self,
        py: Python<'_>,
        percent: f64,
        resamples: usize,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<IndexMap<String, (f64, f64)>> {
        let how = Bootstrap { level: level(percent, "percent")?, resamples, seed };
        let bounds = self.bounds(py, &Audience::of(py, progress)?, how)?;
        let names = self.found.columns.iter().map(|column| column.name.to_string());
        Ok(names.zip(bounds).map(|(name, bound)| (name, (bound.low, bound.high))).collect())
    }

    /// What `cuemark eval --json` prints; with `interval` (a percentage) also the intervals.
    #[pyo3(signature = (interval = None, *, resamples = RESAMPLES, seed = 0) -> "dict[str, Any]")]
    fn to_dict<'py>(
        &self,
        py: Python<'py>,
        interval: Option<f64>,
        resamples: usize,
        seed: u64,
    ) -> Result<Bound<'py, PyAny>> {
        let mut value = self.with_report(py, interval, resamples, seed, |report| report.to_json())?;
        value["notes"] = self.notes().into();
        tables::to_python(py, &value)
    }

    /// A Markdown table in percent; with `interval` (a percentage) also the intervals.
    #[pyo3(signature = (interval = None, *, resamples = RESAMPLES, seed = 0))]
    fn to_markdown(&self, py: Python<'_>, interval: Option<f64>, resamples: usize, seed: u64) -> Result<String> {
        self.with_report(py, interval, resamples, seed, |report| report.to_markdown())
    }

    /// A LaTeX table in percent, for `\usepackage{booktabs}`; with `interval` (a percentage) also the intervals.
    #[pyo3(signature = (interval = None, *, resamples = RESAMPLES, seed = 0))]
    fn to_latex(&self, py: Python<'_>, interval: Option<f64>, resamples: usize, seed: u64) -> Result<String> {
        self.with_report(py, interval, resamples, seed, |report| report.to_latex())
    }

    /// One row per query with `qid` and every metric; needs pandas.
    #[pyo3(signature = () -> "DataFrame")]
    fn to_pandas<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let columns = PyDict::new(py);
        columns.set_item("qid", self.qids())?;
        for (name, scores) in self.per_query(py) {
            columns.set_item(name, scores)?;
        }
        tables::frame(py, &columns)
    }

    fn __repr__(&self) -> String {
        let shown = self.metrics().into_iter().take(4).map(|(name, mean)| format!("{name}: {:.2} %", 100.0 * mean));
        let shown: Vec<String> = shown.collect();
        let more = self.found.columns.len().saturating_sub(shown.len());
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        format!("<cuemark.Evaluation of {} queries: {}{more}>", self.found.queries, shown.join(", "))
    }

    fn _repr_markdown_(&self, py: Python<'_>) -> Result<String> {
        self.to_markdown(py, None, RESAMPLES, 0)
    }
}
