//! `cuemark.kde`: where moments lie.

use cuemark_core::{NormSpan, Progress, Rng};
use cuemark_protocols::kde::Kde as Density;
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::arguments::{Floats, with_view};
use crate::failure::{Failure, Result};
use crate::watch::{Audience, watched};

/// Places whose density is asked for at once: enough for all cores, few enough to stop soon.
const BLOCK: usize = 4_096;

/// A Gaussian kernel density over the normalised starts and ends of moments; the values are those of SciPy's
/// `gaussian_kde`.
#[pyclass(frozen, module = "cuemark")]
pub(crate) struct Kde {
    inner: Density,
}

/// Fits a density to `points`, an array of `[start, end]` as fractions of a video's duration.
#[pyfunction]
#[pyo3(signature = (points: "FloatArray") -> "Kde")]
pub(crate) fn kde<'py>(py: Python<'py>, points: &Bound<'py, PyAny>) -> Result<Kde> {
    let points = norm_spans(points, "points")?;
    let inner = watched(py, &Audience::Nobody, "fitting", &Progress::new(), || Ok(Density::fit(&points)?))?;
    Ok(Kde { inner })
}

fn norm_spans(object: &Bound<'_, PyAny>, argument: &str) -> Result<Vec<NormSpan>> {
    let floats = Floats::convert(object, argument)?;
    let &[rows, 2] = floats.shape() else {
        return Err(Failure::argument(argument, "rows of [start, end] are wanted, as fractions of the video"));
    };
    let mut spans = Vec::with_capacity(rows);
    with_view!(&floats, view => for row in 0..rows {
        let (start, end) = (f64::from(view[[row, 0]]), f64::from(view[[row, 1]]));
        let place = || format!("{argument}[{row}]");
        if end < start {
            return Err(Failure::argument(place(), format!("{end} is before {start}")));
        }
        spans.push(NormSpan::new(start, end).ok_or_else(|| Failure::argument(place(), "is not finite"))?);
    });
    Ok(spans)
}

#[pymethods]
impl Kde {
    /// The density at each of `points` (rows of `[start, end]`).
    #[pyo3(signature = (points: "FloatArray", *, progress: "ProgressLike" = None) -> "NDArray[numpy.float64]")]
    fn density<'py>(
        &self,
        py: Python<'py>,
        points: &Bound<'py, PyAny>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyArray1<f64>>> {
        let places = norm_spans(points, "points")?;
        let audience = Audience::of(py, progress)?;
        let progress = Progress::new();
        progress.announce(places.len());
        let densities = watched(py, &audience, "density", &progress, || {
            let mut densities = Vec::with_capacity(places.len());
            for block in places.chunks(BLOCK) {
                densities.extend(self.inner.density(block, &Progress::new())?);
                progress.advance(block.len())?;
            }
            Ok(densities)
        })?;
        Ok(PyArray1::from_vec(py, densities))
    }

    /// The densest `(start, end)` on a grid of fiftieths.
    #[getter]
    fn mode(&self, py: Python<'_>) -> (f64, f64) {
        let mode = py.detach(|| self.inner.mode());
        (mode.start(), mode.end())
    }

    /// `n` draws, rows of `[start, end]`, clipped to the video.
    #[pyo3(signature = (n, *, seed = 0) -> "NDArray[numpy.float64]")]
    fn sample<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> Bound<'py, PyArray2<f64>> {
        let drawn = py.detach(|| {
            let mut rng = Rng::new(seed);
            let drawn = (0..n).map(|_| self.inner.sample(&mut rng));
            drawn.flat_map(|span| [span.start(), span.end()]).collect::<Vec<f64>>()
        });
        let array = numpy::ndarray::Array2::from_shape_vec((n, 2), drawn).unwrap_or_default();
        PyArray2::from_owned_array(py, array)
    }

    fn __len__(&self) -> usize {
        self.inner.points().len()
    }

    fn __repr__(&self) -> String {
        format!("<cuemark.Kde of {} moments>", self.inner.points().len())
    }
}
