//! What a method answered, as Python sees it.

use std::sync::Arc;

use cuemark_core::{Progress, Task, VideoId};
use cuemark_formats::{PredictionFormat, WholeFile, write_predictions};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{PredictionArgument, PredictionReading, TruthArgument, TruthReading, needed_path};
use crate::evaluation::read_all;
use crate::failure::{Failure, Result};
use crate::split::overwrite;
use crate::tables;
use crate::watch::{Audience, watched};

/// Ranked lists of scored spans, one list per query and task.
#[pyclass(frozen, module = "cuemark")]
pub(crate) struct Predictions {
    inner: Arc<cuemark_core::Predictions>,
}

/// Reads predictions in any form that `evaluate` takes; `truth` is needed where they do not name their queries.
#[pyfunction]
#[pyo3(signature = (
    predictions: "PredictionsLike", *, truth: "TruthLike | None" = None, pred_format: "str | None" = None,
    video_index: "VideoIndexLike | None" = None, progress: "ProgressLike" = None
) -> "Predictions")]
pub(crate) fn read_predictions<'py>(
    py: Python<'py>,
    predictions: &Bound<'py, PyAny>,
    truth: Option<&Bound<'py, PyAny>>,
    pred_format: Option<&str>,
    video_index: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Predictions> {
    let how = PredictionReading::of(pred_format, video_index)?;
    let predictions = PredictionArgument::of(predictions, "predictions", &how)?;
    let truth = match truth {
        Some(truth) => TruthArgument::of(truth, "truth", &TruthReading::default())?,
        None => TruthArgument::Ready(Arc::default()),
    };
    let (split, read) = read_all(py, &Audience::of(py, progress)?, truth, vec![predictions])?;
    let Some(read) = read.into_iter().next() else { return Err(Failure::argument("predictions", "nothing was read")) };
    Ok(Predictions { inner: read.answering(&split.queries)? })
}

impl Predictions {
    pub(crate) fn new(predictions: cuemark_core::Predictions) -> Self {
        Self { inner: Arc::new(predictions) }
    }

    pub(crate) fn inner(&self) -> Arc<cuemark_core::Predictions> {
        self.inner.clone()
    }
}

#[pymethods]
impl Predictions {
    /// The tasks that the lists answer: `any`, or some of `VCMR`, `SVMR`, `VR`.
    #[getter]
    fn tasks(&self) -> Vec<String> {
        self.inner.tasks.iter().map(|list| list.task.to_string()).collect()
    }

    /// Lists, over all tasks.
    fn __len__(&self) -> usize {
        self.inner.tasks.iter().map(|task| task.queries.len()).sum()
    }

    /// One row per prediction, best first within a query: `qid`, `rank` (from 1), `video`, `start`, `end`, `score`, and
    /// `task` where the lists answer several. A score that is not known is NaN; `video` and `score` are left out where
    /// nothing is known of any.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn columns<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let (mut tasks, mut qids, mut videos) = (Vec::new(), Vec::new(), Vec::new());
        let (mut ranks, mut starts, mut ends, mut scores) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for task in &self.inner.tasks {
            for list in &task.queries {
                for (rank, prediction) in list.ranked.iter().enumerate() {
                    tasks.push(task.task.to_string());
                    qids.push(list.query.as_str());
                    ranks.push(rank as i64 + 1);
                    videos.push(prediction.video.as_ref().map(VideoId::as_str));
                    starts.push(prediction.span.start());
                    ends.push(prediction.span.end());
                    scores.push(prediction.score.unwrap_or(f64::NAN));
                }
            }
        }
        let columns = PyDict::new(py);
        if self.inner.tasks.iter().any(|list| list.task != Task::Any) {
            columns.set_item("task", tasks)?;
        }
        columns.set_item("qid", qids)?;
        columns.set_item("rank", PyArray1::from_vec(py, ranks))?;
        if videos.iter().any(Option::is_some) {
            columns.set_item("video", videos)?;
        }
        columns.set_item("start", PyArray1::from_vec(py, starts))?;
        columns.set_item("end", PyArray1::from_vec(py, ends))?;
        if scores.iter().any(|score| !score.is_nan()) {
            columns.set_item("score", PyArray1::from_vec(py, scores))?;
        }
        Ok(columns)
    }

    /// The same as a frame; needs pandas.
    #[pyo3(signature = () -> "DataFrame")]
    fn to_pandas<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        tables::frame(py, &self.columns(py)?)
    }

    /// Writes them in the layout called `format`; nothing is replaced without `force`.
    #[pyo3(signature = (path: "str | os.PathLike[str]", *, format = "cuemark", force = false) -> "None")]
    fn write(&self, py: Python<'_>, path: &Bound<'_, PyAny>, format: &str, force: bool) -> Result<()> {
        let path = needed_path(path, "path")?;
        let format: PredictionFormat = format.parse()?;
        watched(py, &Audience::Nobody, "writing", &Progress::new(), || {
            let mut file = WholeFile::create(&path, overwrite(force))?;
            write_predictions(&self.inner, format, &mut file)?;
            Ok(file.finish()?)
        })
    }

    fn __repr__(&self) -> String {
        let lists = self.inner.tasks.iter().map(|task| format!("{} lists for {}", task.queries.len(), task.task));
        format!("<cuemark.Predictions: {}>", lists.collect::<Vec<_>>().join(", "))
    }
}
