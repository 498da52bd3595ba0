//! `cuemark.split`: splits that expose bias, made and audited.

use std::sync::Arc;

use cuemark::{AuditSplits, SplitProtocol, SplitRecipe};
use cuemark_core::Progress;
use cuemark_protocols::splits::{self, dataset_inputs, write_folder};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyIterator};

use crate::arguments::{TruthArgument, TruthReading, choice, needed_path};
use crate::dataset::Dataset;
use crate::evaluation::read_all;
use crate::failure::{Failure, Result};
use crate::split::{Split, overwrite};
use crate::tables;
use crate::watch::{Audience, watched};

/// The splits that a protocol made, by name, with what it found on the way.
#[pyclass(frozen, mapping, module = "cuemark")]
pub(crate) struct MadeSplits {
    made: splits::MadeSplits,
    name: String,
    /// Whose files stand in the manifest, where they were made of a dataset.
    dataset: Option<Arc<cuemark_data::Dataset>>,
}

/// Parts a dataset, or truth of any other form.
fn make<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
    recipe: &SplitRecipe,
) -> Result<MadeSplits> {
    let audience = Audience::of(py, progress)?;
    let progress = Progress::new();
    if let Ok(dataset) = data.cast::<Dataset>() {
        let dataset = dataset.get().shared();
        let made = watched(py, &audience, "splitting", &progress, || Ok(recipe.part(&dataset, &progress)?))?;
        return Ok(MadeSplits { made, name: dataset.card.name.to_owned(), dataset: Some(dataset) });
    }
    let truth = TruthArgument::of(data, "data", &TruthReading::default())?;
    let (split, _) = read_all(py, &audience, truth, Vec::new())?;
    let made = watched(py, &audience, "splitting", &progress, || Ok(recipe.part_queries(&split.queries, &progress)?))?;
    Ok(MadeSplits { made, name: split.name.clone(), dataset: None })
}

/// Changing distribution: the moments in the rarest places are held out as test-ood.
///
/// `data` is a `Dataset`, or truth in any form that `evaluate` takes, with durations. `ood_share` of the pairs go to test-ood:
/// in the end (`ood_cut="final"`) or before whole videos move (`"preliminary"`). A video whose pairs are evenly rare and
/// common goes where `ties` says; one with a moment longer than `max_ood_length` of it is never test-ood.
#[pyfunction]
#[pyo3(signature = (
    data: "TruthLike", *, ood_share = 0.2, ood_cut: "Literal['final', 'preliminary']" = "final",
    ties: "Literal['ood', 'iid']" = "ood", max_ood_length = None, seed = 0, progress: "ProgressLike" = None
) -> "MadeSplits")]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn cd<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    ood_share: f64,
    ood_cut: &str,
    ties: &str,
    max_ood_length: Option<f64>,
    seed: u64,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<MadeSplits> {
    let recipe = SplitRecipe {
        ood_share,
        ood_cut: choice("ood_cut", ood_cut)?,
        ties: choice("ties", ties)?,
        max_ood_length,
        seed,
        ..SplitRecipe::new(SplitProtocol::Cd)
    };
    make(py, data, progress, &recipe)
}

/// The last tenth by moment centre is test-ood, of each video (`centre="video"`) or of each query (`"pair"`).
#[pyfunction]
#[pyo3(signature = (
    data: "TruthLike", *, centre: "Literal['video', 'pair']" = "video", seed = 0, progress: "ProgressLike" = None
) -> "MadeSplits")]
pub(crate) fn centre<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    centre: &str,
    seed: u64,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<MadeSplits> {
    let centre = choice("centre", centre)?;
    make(py, data, progress, &SplitRecipe { centre, seed, ..SplitRecipe::new(SplitProtocol::Centre) })
}

/// The published parts, with a validation split cut where none is published.
#[pyfunction]
#[pyo3(signature = (data: "Dataset", *, test: "Literal['usual', 'merged']" = "usual", seed = 0) -> "MadeSplits")]
pub(crate) fn standard<'py>(py: Python<'py>, data: &Bound<'py, PyAny>, test: &str, seed: u64) -> Result<MadeSplits> {
    let test = choice("test", test)?;
    if data.cast::<Dataset>().is_err() {
        let problem = format!("a `{}` is not a Dataset", crate::arguments::type_name(data));
        return Err(Failure::wrong_type("data", problem).with_hint("cuemark.load reads one"));
    }
    let silent = PyBool::new(py, false);
    make(py, data, Some(&silent), &SplitRecipe { test, seed, ..SplitRecipe::new(SplitProtocol::Standard) })
}

/// What a folder of splits shares, how far apart its parts lie, and what guesses reach on each: `cuemark split audit --json`.
#[pyfunction]
#[pyo3(signature = (folder: "str | os.PathLike[str]", *, seed = 0, progress: "ProgressLike" = None) -> "dict[str, Any]")]
pub(crate) fn audit<'py>(
    py: Python<'py>,
    folder: &Bound<'py, PyAny>,
    seed: u64,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let folder = needed_path(folder, "folder")?;
    let audience = Audience::of(py, progress)?;
    let progress = Progress::new();
    let request = AuditSplits { seed, ..AuditSplits::new(folder) };
    let report = watched(py, &audience, "reading", &progress, || Ok(request.run(&progress)?))?;
    tables::to_python(py, &report)
}

#[pymethods]
impl MadeSplits {
    /// The protocol's name.
    #[getter]
    fn protocol(&self) -> &'static str {
        self.made.protocol
    }

    /// What the protocol found on the way.
    #[getter]
    fn found<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        tables::to_python(py, &self.made.found)
    }

    /// Names of the splits: train, val, then test.
    fn keys(&self) -> Vec<&str> {
        self.made.splits.iter().map(|split| split.name.as_str()).collect()
    }

    /// The split called `name`.
    fn __getitem__(&self, name: &str) -> PyResult<Split> {
        let split = self.made.splits.iter().find(|split| split.name == name);
        split.map(|split| Split::new(split.clone())).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.made.splits.iter().any(|split| split.name == name)
    }

    fn __len__(&self) -> usize {
        self.made.splits.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys().into_pyobject(py)?.try_iter()
    }

    /// Writes `NAME.jsonl` for each split and `manifest.json`, the folder whole or not at all; returns the manifest.
    #[pyo3(signature = (folder: "str | os.PathLike[str]", *, force = false) -> "dict[str, Any]")]
    fn write<'py>(&self, py: Python<'py>, folder: &Bound<'py, PyAny>, force: bool) -> Result<Bound<'py, PyAny>> {
        let folder = needed_path(folder, "folder")?;
        let manifest = watched(py, &Audience::Nobody, "writing", &Progress::new(), || {
            let inputs = self.dataset.as_ref().map(|dataset| dataset_inputs(dataset)).transpose()?;
            Ok(write_folder(&self.made, &self.name, inputs.unwrap_or_default(), &folder, overwrite(force))?)
        })?;
        tables::to_python(py, &manifest)
    }

    fn __repr__(&self) -> String {
        let parts = self.made.splits.iter().map(|split| format!("{} {}", split.name, split.queries.len()));
        format!("<cuemark.MadeSplits `{}`: {}>", self.made.protocol, parts.collect::<Vec<_>>().join(", "))
    }
}
