//! `cuemark.load`: a public dataset, read from its published files.

use std::sync::Arc;

use cuemark_core::Progress;
use cuemark_data::{DatasetCard, find};
use pyo3::prelude::*;

use crate::arguments::{TruthFlags, needed_path};
use crate::failure::Result;
use crate::split::{Records, Split, columns};
use crate::tables;
use crate::watch::{Audience, watched};

/// The splits of one dataset that were found in a folder.
#[pyclass(frozen, mapping, module = "cuemark")]
pub(crate) struct Dataset {
    inner: Arc<cuemark_data::Dataset>,
}

/// Reads the published files of the dataset called `name` from `root`, its own folder.
///
/// `cuemark data list` names the datasets. What is wrong with rows is counted in each split's `rows`; `bad_rows` says what
/// to do about it. `durations` gives lengths of videos that the files do not state.
#[pyfunction]
#[pyo3(signature = (
    name, root: "str | os.PathLike[str]", *, durations: "str | os.PathLike[str] | Mapping[str, float] | None" = None,
    bad_rows: "BadRows" = "keep", progress: "ProgressLike" = None
) -> "Dataset")]
pub(crate) fn load<'py>(
    py: Python<'py>,
    name: &str,
    root: &Bound<'py, PyAny>,
    durations: Option<&Bound<'py, PyAny>>,
    bad_rows: &str,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Dataset> {
    let card = find(name)?;
    let root = needed_path(root, "root")?;
    let reading = TruthFlags { format: None, durations, bad_rows: Some(bad_rows) }.understand()?;
    let audience = Audience::of(py, progress)?;
    let progress = Progress::new();
    let inner = watched(py, &audience, "reading", &progress, || {
        Ok(cuemark_data::load(card, &root, reading.options(), &progress)?)
    })?;
    Ok(Dataset { inner: Arc::new(inner) })
}

impl Dataset {
    pub(crate) fn shared(&self) -> Arc<cuemark_data::Dataset> {
        Arc::clone(&self.inner)
    }

    /// The queries of every split.
    pub(crate) fn all_queries(&self) -> cuemark_core::Split {
        self.inner.all()
    }
}

#[pymethods]
impl Dataset {
    /// Its name: `charades-sta`.
    #[getter]
    fn name(&self) -> &'static str {
        let card: &'static DatasetCard = self.inner.card;
        card.name
    }

    /// One line about it.
    #[getter]
    fn title(&self) -> &'static str {
        self.inner.card.title
    }

    /// The licence that its origin states.
    #[getter]
    fn licence(&self) -> &'static str {
        self.inner.card.licence
    }

    /// Names of the splits that are there.
    #[getter]
    fn splits(&self) -> Vec<&str> {
        self.inner.splits.iter().map(|split| split.name.as_str()).collect()
    }

    /// Names of the splits that are not.
    #[getter]
    fn absent(&self) -> Vec<&'static str> {
        self.inner.absent.iter().map(|file| file.split).collect()
    }

    /// Every query of every split in one, ids made unique where they were not.
    fn all(&self) -> Split {
        Split::new(self.all_queries())
    }

    /// The split called `name`, or several joined by `+`: `val_1+val_2`.
    fn __getitem__(&self, name: &str) -> Result<Split> {
        Ok(Split::new(self.inner.split(name)?.into_owned()))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.inner.split(name).is_ok()
    }

    /// Queries of all splits together.
    fn __len__(&self) -> usize {
        self.all_queries().queries.len()
    }

    fn __iter__(&self) -> Records {
        self.all().records()
    }

    /// One row per moment of every split, with a column `split`; needs pandas.
    #[pyo3(signature = () -> "DataFrame")]
    fn to_pandas<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        tables::frame(py, &columns(py, &self.inner.splits)?)
    }

    fn __repr__(&self) -> String {
        format!("<cuemark.Dataset `{}`: {}>", self.inner.card.name, self.splits().join(", "))
    }
}
