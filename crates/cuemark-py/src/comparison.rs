//! `cuemark.compare`: is one method better than another on the same queries?

use cuemark_core::Progress;
use cuemark_core::text::{counted, p_value};
use cuemark_metrics::{Bootstrap, PairedComparison, Sheet, SheetCell, SheetRow};
use indexmap::IndexMap;
use pyo3::prelude::*;

use crate::arguments::{PredictionArgument, PredictionReading, ScoringFlags, TruthArgument, TruthFlags};
use crate::evaluation::{RESAMPLES, Strangers, level, read_all, score};
use crate::failure::{Failure, Result};
use crate::watch::{Audience, watched};

/// Two methods on the same queries, B against A; fractions.
#[pyclass(frozen, module = "cuemark")]
pub(crate) struct Comparison {
    metric: String,
    found: PairedComparison,
}

/// Compares predictions `b` with predictions `a`, query by query; one result per metric.
///
/// `truth`, `a` and `b` are what `evaluate` takes. The difference comes with a paired bootstrap interval of `percent`, the
/// p-value of a paired randomisation test, the effect size and the queries won and lost.
#[pyfunction]
#[pyo3(signature = (
    truth: "TruthLike", a: "PredictionsLike", b: "PredictionsLike", *,
    metrics: "str | Sequence[str] | None" = None, preset: "str | None" = None,
    nms: "float | Literal['none'] | None" = None, order: "Literal['file', 'score'] | None" = None, strict = false,
    clip_truth = false, lenient = false, percent = 95.0, resamples = RESAMPLES, seed = 0, truth_format: "str | None" = None,
    pred_format: "str | None" = None, durations: "DurationsLike | None" = None,
    video_index: "VideoIndexLike | None" = None, bad_rows: "BadRows" = "keep",
    unknown: "Literal['count', 'error']" = "count", progress: "ProgressLike" = None
) -> "dict[str, Comparison]")]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    truth: &Bound<'py, PyAny>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    metrics: Option<&Bound<'py, PyAny>>,
    preset: Option<&str>,
    nms: Option<&Bound<'py, PyAny>>,
    order: Option<&str>,
    strict: bool,
    clip_truth: bool,
    lenient: bool,
    percent: f64,
    resamples: usize,
    seed: u64,
    truth_format: Option<&str>,
    pred_format: Option<&str>,
    durations: Option<&Bound<'py, PyAny>>,
    video_index: Option<&Bound<'py, PyAny>>,
    bad_rows: &str,
    unknown: &str,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<IndexMap<String, Comparison>> {
    let usual = pyo3::types::PyString::new(py, "R@1,IoU=0.5").into_any();
    let metrics = Some(metrics.unwrap_or(&usual));
    let flags = ScoringFlags { metrics, preset, nms, order, strict, clip_truth, lenient, group_by: None };
    let (scoring, strangers) = (flags.understand()?, Strangers::of(unknown)?);
    let how = Bootstrap { level: level(percent, "percent")?, resamples, seed };
    let audience = Audience::of(py, progress)?;
    let reading = TruthFlags { format: truth_format, durations, bad_rows: Some(bad_rows) }.understand()?;
    let truth = TruthArgument::of(truth, "truth", &reading)?;
    let layout = PredictionReading::of(pred_format, video_index)?;
    let both = vec![PredictionArgument::of(a, "a", &layout)?, PredictionArgument::of(b, "b", &layout)?];
    let (split, read) = read_all(py, &audience, truth, both)?;
    let mut columns = Vec::new();
    for (read, argument) in read.into_iter().zip(["a", "b"]) {
        let predictions = read.answering(&split.queries)?;
        columns.push(
            score(py, &audience, &scoring, &split, predictions.as_ref(), strangers, argument)?.evaluation.columns,
        );
    }
    let [a, b] = columns.as_slice() else { return Err(Failure::argument("b", "nothing was read")) };
    let progress = Progress::new();
    let results = watched(py, &audience, "resampling", &progress, || {
        let mut results = IndexMap::new();
        for a in a {
            let Some(b) = b.iter().find(|b| b.name == a.name) else { continue };
            if let Some(found) = cuemark_metrics::compare(a, b, how, &progress)? {
                let metric = a.name.to_string();
                results.insert(metric.clone(), Comparison { metric, found });
            }
        }
        Ok(results)
    })?;
    if results.is_empty() {
        return Err(Failure::argument("truth", "no query counts for both"));
    }
    Ok(results)
}

impl Comparison {
    /// The comparison as a table of one row.
    fn sheet(&self) -> Sheet {
        let r = &self.found;
        let percent = |fraction: f64| format!("{:.2}", 100.0 * fraction);
        let difference = SheetCell {
            text: format!("{:+.2}", 100.0 * r.difference),
            below: format!("{:+.2} – {:+.2}", 100.0 * r.interval.low, 100.0 * r.interval.high),
            ..SheetCell::default()
        };
        let plain = |text: String| Some(SheetCell { text, ..SheetCell::default() });
        let cells = vec![
            plain(percent(r.a)),
            plain(percent(r.b)),
            Some(difference),
            plain(p_value(r.p_value)),
            plain(format!("{}/{}/{}", r.wins, r.ties, r.losses)),
        ];
        Sheet {
            title: format!("Percent of {}.", counted(r.queries, "query", "queries")),
            corner: "metric".to_owned(),
            columns: ["A", "B", "B - A", "p", "won, tied, lost"].map(str::to_owned).to_vec(),
            rows: vec![SheetRow { name: self.metric.clone(), cells, rule: false }],
            notes: Vec::new(),
        }
    }
}

#[pymethods]
impl Comparison {
    /// The metric.
    #[getter]
    fn metric(&self) -> &str {
        &self.metric
    }

    /// Mean of A.
    #[getter]
    fn a(&self) -> f64 {
        self.found.a
    }

    /// Mean of B.
    #[getter]
    fn b(&self) -> f64 {
        self.found.b
    }

    /// Mean of B - A.
    #[getter]
    fn difference(&self) -> f64 {
        self.found.difference
    }

    /// Paired bootstrap interval of the difference.
    #[getter]
    fn interval(&self) -> (f64, f64) {
        (self.found.interval.low, self.found.interval.high)
    }

    /// Two-sided p-value of the paired randomisation test; never 0.
    #[getter]
    fn p_value(&self) -> f64 {
        self.found.p_value
    }

    /// Mean difference over its standard deviation.
    #[getter]
    fn effect_size(&self) -> f64 {
        self.found.effect_size
    }

    /// Queries on which B scores higher.
    #[getter]
    fn wins(&self) -> usize {
        self.found.wins
    }

    /// Queries on which both score the same.
    #[getter]
    fn ties(&self) -> usize {
        self.found.ties
    }

    /// Queries on which B scores lower.
    #[getter]
    fn losses(&self) -> usize {
        self.found.losses
    }

    /// Queries that count for both.
    #[getter]
    fn queries(&self) -> usize {
        self.found.queries
    }

    /// A Markdown table of one line: both scores and their difference in percent, its interval, the p-value, wins and losses.
    fn to_markdown(&self) -> String {
        self.sheet().to_markdown()
    }

    /// The same as a LaTeX table, for `\usepackage{booktabs}`, no wider than a column.
    fn to_latex(&self) -> String {
        self.sheet().to_latex()
    }

    /// What `cuemark compare --json` prints about one metric.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn to_dict<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let r = &self.found;
        let value = serde_json::json!({
            "metric": self.metric, "a": r.a, "b": r.b, "difference": r.difference,
            "interval": [r.interval.low, r.interval.high], "p_value": r.p_value, "effect_size": r.effect_size,
            "wins": r.wins, "ties": r.ties, "losses": r.losses, "queries": r.queries,
        });
        crate::tables::to_python(py, &value)
    }

    fn __repr__(&self) -> String {
        let r = &self.found;
        format!(
            "<cuemark.Comparison {}: B - A = {:+.2} %, interval {:+.2} to {:+.2}, p {}, {} won, {} tied, {} lost>",
            self.metric,
            100.0 * r.difference,
            100.0 * r.interval.low,
            100.0 * r.interval.high,
            if r.p_value < 0.0001 { p_value(r.p_value) } else { format!("= {}", p_value(r.p_value)) },
            r.wins,
            r.ties,
            r.losses
        )
    }
}
