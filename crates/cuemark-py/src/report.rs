//! `cuemark.report`: tables, trust cards and figures about prediction files.

use cuemark::{PredictionReading, ReportFiles, TruthFile, TruthReading};
use cuemark_core::Progress;
use cuemark_formats::Overwrite;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::arguments::{ScoringFlags, needed_path, words};
use crate::failure::Result;
use crate::tables;
use crate::watch::{Audience, watched};

/// Reports on prediction files: writes `report.html` (one file, opens anywhere), `.md`, `.tex`, `.csv` and `.json` into the
/// folder `out`, and returns what scripts want of it, with `files` and `notes`.
///
/// `truth` is a path, `predictions` a path or several; `names` is what they are called, `train` the training split, which
/// adds blind baselines that learned from it. `metrics` and `preset` are those of `evaluate`. With `intervals=False` the tables for papers
/// and wikis show none. Nothing is replaced unless `force`.
#[pyfunction]
#[pyo3(signature = (
    truth: "PathLike", predictions: "PathLike | Sequence[PathLike]", out: "PathLike", *,
    metrics: "str | Sequence[str] | None" = None, preset: "str | None" = None,
    names: "str | Sequence[str] | None" = None, train: "PathLike | None" = None, dataset: "str | None" = None,
    title = "", intervals = true, lenient = false, truth_format: "str | None" = None,
    pred_format: "str | None" = None, force = false, progress: "ProgressLike" = None
) -> "dict[str, Any]")]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn report<'py>(
    py: Python<'py>,
    truth: &Bound<'py, PyAny>,
    predictions: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    metrics: Option<&Bound<'py, PyAny>>,
    preset: Option<&str>,
    names: Option<&Bound<'py, PyAny>>,
    train: Option<&Bound<'py, PyAny>>,
    dataset: Option<&str>,
    title: &str,
    intervals: bool,
    lenient: bool,
    truth_format: Option<&str>,
    pred_format: Option<&str>,
    force: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let is_several = predictions.is_instance_of::<PyList>() || predictions.is_instance_of::<PyTuple>();
    let files = if is_several {
        let mut files = Vec::new();
        for (at, file) in predictions.try_iter()?.enumerate() {
            files.push(needed_path(&file?, &format!("predictions[{at}]"))?);
        }
        files
    } else {
        vec![needed_path(predictions, "predictions")?]
    };
    let flags = ScoringFlags {
        metrics,
        preset,
        nms: None,
        order: None,
        strict: false,
        clip_truth: false,
        lenient,
        group_by: None,
    };
    let truth = TruthFile {
        path: needed_path(truth, "truth")?,
        reading: TruthReading { format: truth_format.map(str::to_owned), ..TruthReading::default() },
    };
    let request = ReportFiles {
        reading: PredictionReading { format: pred_format.map(str::to_owned), ..PredictionReading::default() },
        models: names.map(|names| words(names, "names")).transpose()?.unwrap_or_default(),
        scoring: flags.scoring()?,
        train: train.map(|train| needed_path(train, "train")).transpose()?,
        dataset: dataset.map(str::to_owned),
        title: title.to_owned(),
        no_intervals: !intervals,
        ..ReportFiles::new(truth, files)
    };
    let out = needed_path(out, "out")?;
    let overwrite = if force { Overwrite::Force } else { Overwrite::Never };
    let audience = Audience::of(py, progress)?;
    let progress = Progress::new();
    let made = watched(py, &audience, "scoring", &progress, || Ok(request.run(&out, overwrite, &progress)?))?;
    let mut summary = made.report.summary();
    summary["files"] = made.files.iter().map(|path| path.as_str()).collect::<Vec<_>>().into();
    summary["notes"] = made.notes.iter().map(ToString::to_string).collect::<Vec<_>>().into();
    tables::to_python(py, &summary)
}

/// Names of the metrics, with `n`, `k` and `m` for numbers; `cuemark.METRICS`.
#[pyfunction]
pub(crate) fn metric_names() -> Vec<&'static str> {
    cuemark_metrics::METRICS.iter().map(|card| card.name).collect()
}

/// Names of the presets; `cuemark.PRESETS`.
#[pyfunction]
pub(crate) fn preset_names() -> Vec<&'static str> {
    cuemark_metrics::Preset::ALL.into_iter().map(cuemark_metrics::Preset::name).collect()
}

/// Names of the datasets that can be loaded; `cuemark.DATASETS`.
#[pyfunction]
pub(crate) fn dataset_names() -> Vec<&'static str> {
    cuemark_data::DATASETS.iter().map(|card| card.name).collect()
}
