//! `cuemark.rank`: what several people's ratings come to.

use cuemark_core::Progress;
use cuemark_protocols::ranked::agreement::agreement as measure;
use cuemark_protocols::ranked::consensus::{Grades, grade};
use indexmap::IndexMap;
use pyo3::prelude::*;

use crate::arguments::{needed_path, ratings as read};
use crate::failure::Result;
use crate::split::overwrite;
use crate::tables;
use crate::watch::{Audience, watched};

/// The grades that ratings agree on.
#[pyclass(frozen, module = "cuemark")]
pub(crate) struct Consensus {
    inner: Grades,
}

/// One grade for every pair that two or four people rated, or none where they disagree.
///
/// `ratings` is a `pair_id,worker,relevance` file, or the same as columns.
#[pyfunction]
#[pyo3(signature = (ratings: "RatingsLike") -> "Consensus")]
pub(crate) fn consensus<'py>(py: Python<'py>, ratings: &Bound<'py, PyAny>) -> Result<Consensus> {
    let ratings = read(ratings)?;
    let inner = watched(py, &Audience::Nobody, "grading", &Progress::new(), || Ok(grade(&ratings)?))?;
    Ok(Consensus { inner })
}

/// How far people agree: kappas and the spread of ratings, as `cuemark rank agreement --json` has them.
#[pyfunction]
#[pyo3(signature = (ratings: "RatingsLike", *, least_shared = 30) -> "dict[str, Any]")]
pub(crate) fn agreement<'py>(
    py: Python<'py>,
    ratings: &Bound<'py, PyAny>,
    least_shared: usize,
) -> Result<Bound<'py, PyAny>> {
    let ratings = read(ratings)?;
    let report =
        watched(py, &Audience::Nobody, "comparing", &Progress::new(), || Ok(measure(&ratings, least_shared)?))?;
    tables::to_python(py, &report)
}

#[pymethods]
impl Consensus {
    /// The grade of each pair that has one, by pair.
    #[getter]
    fn grades(&self) -> IndexMap<u64, u8> {
        self.inner.grades.iter().map(|(pair, grade)| (*pair, *grade)).collect()
    }

    /// The pairs whose ratings do not agree.
    #[getter]
    fn discarded(&self) -> Vec<u64> {
        self.inner.discarded.clone()
    }

    /// What `cuemark rank consensus --json` prints: `ratings`, `pairs`, `kept`, `discarded`, `scores`.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn to_dict<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        tables::to_python(py, &self.inner.report())
    }

    /// Writes `pair_id,relevance`; nothing is replaced without `force`.
    #[pyo3(signature = (path: "str | os.PathLike[str]", *, force = false) -> "None")]
    fn write(&self, path: &Bound<'_, PyAny>, force: bool) -> Result<()> {
        Ok(self.inner.write(&needed_path(path, "path")?, overwrite(force))?)
    }

    fn __repr__(&self) -> String {
        let report = self.inner.report();
        format!("<cuemark.Consensus of {} pairs: {} kept, {} discarded>", report.pairs, report.kept, report.discarded)
    }
}
