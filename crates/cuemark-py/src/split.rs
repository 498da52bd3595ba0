//! A named list of queries, as Python sees it.

use std::sync::Arc;

use cuemark_core::{GradedMoment, Progress, QueryId, Relevance, Truth, VideoId};
use cuemark_formats::{Overwrite, WholeFile, write_truth};
use indexmap::IndexMap;
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{TruthArgument, TruthFlags, needed_path};
use crate::failure::{Failure, Result};
use crate::tables;
use crate::watch::{Audience, watched};

/// A named list of queries with what is right about each, in file order.
#[pyclass(frozen, sequence, module = "cuemark")]
pub(crate) struct Split {
    inner: Arc<cuemark_core::Split>,
}

/// One query and everything its dataset says is right about it.
#[pyclass(frozen, module = "cuemark")]
pub(crate) struct Record {
    split: Arc<cuemark_core::Split>,
    place: usize,
}

/// A span in a named video, seconds.
#[pyclass(frozen, get_all, module = "cuemark")]
pub(crate) struct Moment {
    /// The video.
    video: String,
    /// Where it begins, in seconds.
    start: f64,
    /// Where it ends, in seconds.
    end: f64,
    /// Its grade; `None` when the file grades nothing and the moment is simply right.
    relevance: Option<f64>,
}

/// Walks over a split.
#[pyclass(module = "cuemark")]
pub(crate) struct Records {
    split: Arc<cuemark_core::Split>,
    next: usize,
}

/// Reads truth in any form that `evaluate` takes, from a file in any layout that cuemark knows.
#[pyfunction]
#[pyo3(signature = (
    truth: "TruthLike", *, truth_format: "str | None" = None, durations: "DurationsLike | None" = None,
    bad_rows: "BadRows" = "keep", progress: "ProgressLike" = None
) -> "Split")]
pub(crate) fn read_truth<'py>(
    py: Python<'py>,
    truth: &Bound<'py, PyAny>,
    truth_format: Option<&str>,
    durations: Option<&Bound<'py, PyAny>>,
    bad_rows: &str,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Split> {
    let reading = TruthFlags { format: truth_format, durations, bad_rows: Some(bad_rows) }.understand()?;
    let truth = TruthArgument::of(truth, "truth", &reading)?;
    let (inner, _) = crate::evaluation::read_all(py, &Audience::of(py, progress)?, truth, Vec::new())?;
    Ok(Split { inner })
}

impl Split {
    pub(crate) fn new(split: cuemark_core::Split) -> Self {
        Self { inner: Arc::new(split) }
    }

    pub(crate) fn records(&self) -> Records {
        Records { split: self.inner.clone(), next: 0 }
    }

    pub(crate) fn inner(&self) -> Arc<cuemark_core::Split> {
        self.inner.clone()
    }
}

/// `Force` where something may be replaced.
pub(crate) fn overwrite(force: bool) -> Overwrite {
    if force { Overwrite::Force } else { Overwrite::Never }
}

#[pymethods]
impl Split {
    /// Its name: `train`, `val`, `test-iid` …
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// Ids of its videos, in file order.
    #[getter]
    fn videos(&self) -> Vec<&str> {
        self.inner.videos.iter().map(|video| video.id.as_str()).collect()
    }

    /// What was wrong with its rows and what was done about it.
    #[getter]
    fn rows(&self) -> IndexMap<String, usize> {
        let rows = &self.inner.rows;
        let met = rows.iter().map(|(fault, n)| (fault.to_string(), n));
        met.chain([("changed".to_owned(), rows.changed), ("dropped".to_owned(), rows.dropped)]).collect()
    }

    fn __len__(&self) -> usize {
        self.inner.queries.len()
    }

    fn __getitem__(&self, place: isize) -> PyResult<Record> {
        let rows = self.inner.queries.len();
        let wanted = if place < 0 { rows.checked_add_signed(place) } else { Some(place as usize) };
        match wanted.filter(|wanted| *wanted < rows) {
            Some(place) => Ok(Record { split: self.inner.clone(), place }),
            None => Err(PyIndexError::new_err(format!("there are {rows} queries"))),
        }
    }

    fn __iter__(&self) -> Records {
        self.records()
    }

    /// One row per moment: `qid`, `query`, `video`, `duration`, `start`, `end`, `relevance`, `kind`; needs pandas.
    ///
    /// A query without a moment has one row whose `start` and `end` are NaN.
    #[pyo3(signature = () -> "DataFrame")]
    fn to_pandas<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let columns = columns(py, [&*self.inner])?;
        columns.del_item("split")?;
        tables::frame(py, &columns)
    }

    /// Writes it as cuemark's own JSON Lines; nothing is replaced without `force`.
    #[pyo3(signature = (path: "str | os.PathLike[str]", *, force = false) -> "None")]
    fn write(&self, py: Python<'_>, path: &Bound<'_, PyAny>, force: bool) -> Result<()> {
        let path = needed_path(path, "path")?;
        let progress = Progress::new();
        watched(py, &Audience::Nobody, "writing", &progress, || {
            let mut file = WholeFile::create(&path, overwrite(force))?;
            write_truth(&self.inner.queries, &mut file)?;
            Ok(file.finish()?)
        })
    }

    fn __repr__(&self) -> String {
        let split = &self.inner;
        format!("<cuemark.Split `{}`: {} queries, {} videos>", split.name, split.queries.len(), split.videos.len())
    }
}

/// The moments of `splits` by column, the first of which names the split.
pub(crate) fn columns<'py, 's>(
    py: Python<'py>,
    splits: impl IntoIterator<Item = &'s cuemark_core::Split>,
) -> Result<Bound<'py, PyDict>> {
    let (mut names, mut qids, mut texts, mut videos) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut durations, mut starts, mut ends, mut grades) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut kinds: Vec<Option<&str>> = Vec::new();
    for split in splits {
        for truth in &split.queries {
            let own = truth.video.as_ref();
            let mut row = |moment: Option<&'s GradedMoment>| {
                let video = moment.map(|graded| &graded.moment.video).or(own.map(|video| &video.id));
                names.push(split.name.as_str());
                qids.push(truth.query.id.as_str());
                texts.push(truth.query.text.as_str());
                videos.push(video.map(VideoId::as_str));
                durations.push(own.filter(|own| Some(&own.id) == video).and_then(|own| own.duration));
                starts.push(moment.map_or(f64::NAN, |graded| graded.moment.span.start()));
                ends.push(moment.map_or(f64::NAN, |graded| graded.moment.span.end()));
                grades.push(moment.and_then(|graded| graded.relevance).map(Relevance::value));
                kinds.push(truth.kind.as_deref());
            };
            if truth.moments.is_empty() {
                row(None);
            }
            truth.moments.iter().for_each(|moment| row(Some(moment)));
        }
    }
    let numbers = |numbers: Vec<Option<f64>>| {
        PyArray1::from_iter(py, numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)))
    };
    let columns = PyDict::new(py);
    columns.set_item("split", names)?;
    columns.set_item("qid", qids)?;
    columns.set_item("query", texts)?;
    columns.set_item("video", videos)?;
    if durations.iter().any(Option::is_some) {
        columns.set_item("duration", numbers(durations))?;
    }
    columns.set_item("start", PyArray1::from_vec(py, starts))?;
    columns.set_item("end", PyArray1::from_vec(py, ends))?;
    if grades.iter().any(Option::is_some) {
        columns.set_item("relevance", numbers(grades))?;
    }
    if kinds.iter().any(Option::is_some) {
        columns.set_item("kind", kinds)?;
    }
    Ok(columns)
}

#[pymethods]
impl Records {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self) -> Option<Record> {
        let place = self.next;
        (place < self.split.queries.len()).then(|| {
            self.next += 1;
            Record { split: self.split.clone(), place }
        })
    }
}

impl Record {
    fn truth(&self) -> &Truth {
        // Records are only made for places that exist.
        &self.split.queries[self.place]
    }
}

#[pymethods]
impl Record {
    /// The query's id.
    #[getter]
    fn qid(&self) -> &str {
        self.truth().query.id.as_str()
    }

    /// The sentence.
    #[getter]
    fn query(&self) -> &str {
        &self.truth().query.text
    }

    /// The video it was written for, when there is exactly one.
    #[getter]
    fn video(&self) -> Option<&str> {
        self.truth().video.as_ref().map(|video| video.id.as_str())
    }

    /// How long that video lasts, in seconds, where the files say so.
    #[getter]
    fn duration(&self) -> Option<f64> {
        self.truth().duration()
    }

    /// The spans of its moments in seconds, moments × [start, end], in file order.
    #[getter]
    fn spans<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray2<f64>>> {
        let spans = self.truth().moments.iter().map(|graded| graded.moment.span);
        let rows: Vec<Vec<f64>> = spans.map(|span| vec![span.start(), span.end()]).collect();
        if rows.is_empty() {
            return Ok(PyArray2::zeros(py, [0, 2], false));
        }
        PyArray2::from_vec2(py, &rows).map_err(|error| Failure::argument("spans", error))
    }

    /// The moments that answer it, in file order.
    #[getter]
    fn moments(&self) -> Vec<Moment> {
        let moment = |graded: &GradedMoment| Moment {
            video: graded.moment.video.to_string(),
            start: graded.moment.span.start(),
            end: graded.moment.span.end(),
            relevance: graded.relevance.map(Relevance::value),
        };
        self.truth().moments.iter().map(moment).collect()
    }

    /// The videos it is searched in, when the dataset fixes them.
    #[getter]
    fn pool(&self) -> Option<Vec<&str>> {
        Some(self.truth().pool.as_ref()?.iter().map(VideoId::as_str).collect())
    }

    /// What kind of query it is, in the dataset's own words.
    #[getter]
    fn kind(&self) -> Option<&str> {
        self.truth().kind.as_deref()
    }

    fn __repr__(&self) -> String {
        let truth = self.truth();
        let video = truth.video.as_ref().map_or("several videos", |video| video.id.as_str());
        let moments = truth.moments.len();
        let qid: &QueryId = &truth.query.id;
        format!("<cuemark.Record `{qid}`: {:?} in {video}, {moments} moment(s)>", truth.query.text)
    }
}

#[pymethods]
impl Moment {
    fn __repr__(&self) -> String {
        let grade = self.relevance.map_or_else(String::new, |grade| format!(", relevance {grade}"));
        format!("<cuemark.Moment {} [{}, {}] s{grade}>", self.video, self.start, self.end)
    }
}
