//! `cuemark.split`: splits that expose bias, made and audited.

use camino::Utf8PathBuf;
use cuemark_core::{Progress, Truth};
use cuemark_protocols::splits::{
    self, CdOptions, Centre, CentreOptions, OodCut, StandardOptions, StandardTest, Ties, hash_inputs, write_folder,
};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::arguments::{TruthArgument, TruthReading, needed_path};
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
    dataset: String,
    /// Where the dataset lies and the files that were read, for the manifest.
    files: Option<(Utf8PathBuf, Vec<Utf8PathBuf>)>,
}

/// Runs a protocol on a dataset, or on truth of any other form.
fn make<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
    protocol: impl FnOnce(&[Truth], &Progress) -> cuemark_protocols::Result<splits::MadeSplits> + Send,
) -> Result<MadeSplits> {
    let audience = Audience::of(py, progress)?;
    let truth = TruthArgument::of(data, "data", &TruthReading::default())?;
    let (split, _) = read_all(py, &audience, truth, Vec::new())?;
    let progress = Progress::new();
    let made = watched(py, &audience, "splitting", &progress, || Ok(protocol(&split.queries, &progress)?))?;
    Ok(match data.cast::<Dataset>() {
        Ok(dataset) => MadeSplits::of(made, dataset.get().inner()),
        Err(_) => MadeSplits { made, dataset: split.name.clone(), files: None },
    })
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
    let options = CdOptions {
        ood_share,
        ood_cut: one_of("ood_cut", ood_cut, &[("final", OodCut::Final), ("preliminary", OodCut::Preliminary)])?,
        ties: one_of("ties", ties, &[("ood", Ties::Ood), ("iid", Ties::Iid)])?,
        max_ood_length,
        seed,
    };
    make(py, data, progress, |truths, progress| splits::cd(truths, &options, progress))
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
    let centre = one_of("centre", centre, &[("video", Centre::Video), ("pair", Centre::Pair)])?;
    let options = CentreOptions { centre, seed };
    make(py, data, progress, |truths, _| splits::centre(truths, &options))
}

/// The published parts, with a validation split cut where none is published.
#[pyfunction]
#[pyo3(signature = (data: "Dataset", *, test: "Literal['usual', 'merged']" = "usual", seed = 0) -> "MadeSplits")]
pub(crate) fn standard<'py>(py: Python<'py>, data: &Bound<'py, PyAny>, test: &str, seed: u64) -> Result<MadeSplits> {
    let test = one_of("test", test, &[("usual", StandardTest::Usual), ("merged", StandardTest::Merged)])?;
    let Ok(dataset) = data.cast::<Dataset>() else {
        let problem = format!("a `{}` is not a Dataset", crate::arguments::type_name(data));
        return Err(Failure::wrong_type("data", problem).with_hint("cuemark.load reads one"));
    };
    let dataset = dataset.get().inner();
    let options = StandardOptions { test, seed };
    let made = watched(py, &Audience::Nobody, "splitting", &Progress::new(), || {
        Ok(splits::standard(dataset.card.name, &dataset.splits, &options)?)
    })?;
    Ok(MadeSplits::of(made, dataset))
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
    let read = watched(py, &audience, "reading", &progress, || Ok(splits::read_folder(&folder, &progress)?))?;
    let progress = Progress::new();
    let report = watched(py, &audience, "auditing", &progress, || Ok(splits::audit::audit(&read, seed, &progress)?))?;
    tables::to_python(py, &report)
}

/// The choice called `word`.
fn one_of<T: Copy>(argument: &str, word: &str, choices: &[(&str, T)]) -> Result<T> {
    choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        Failure::argument(argument, format!("`{word}` is not {}", names.join(" or ")))
    })
}

impl MadeSplits {
    fn of(made: splits::MadeSplits, dataset: &cuemark_data::Dataset) -> Self {
        let mut files: Vec<Utf8PathBuf> = dataset.splits.iter().map(|split| split.file.clone().into()).collect();
        files.dedup();
        Self { made, dataset: dataset.card.name.to_owned(), files: Some((dataset.root.clone(), files)) }
    }
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
            let inputs = match &self.files {
                Some((root, files)) => hash_inputs(root, files)?,
                None => Vec::new(),
            };
            Ok(write_folder(&self.made, &self.dataset, inputs, &folder, overwrite(force))?)
        })?;
        tables::to_python(py, &manifest)
    }

    fn __repr__(&self) -> String {
        let parts = self.made.splits.iter().map(|split| format!("{} {}", split.name, split.queries.len()));
        format!("<cuemark.MadeSplits `{}`: {}>", self.made.protocol, parts.collect::<Vec<_>>().join(", "))
    }
}
