//! `cuemark.iou` and `cuemark.nms`: spans in NumPy arrays, read where they lie.

use cuemark_core::{Iou, Nms, Progress, Span};
use numpy::ndarray::{Array2, ArrayView2};
use numpy::{Ix1, PyArray1, PyArray2};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::arguments::{Floats, with_view};
use crate::failure::{Failure, Result};
use crate::watch::{Audience, watched};

/// The overlap of every span of `a` with every span of `b`: an array of `len(a)` × `len(b)`.
///
/// `a` and `b` are arrays of `[start, end]` in seconds, `float64` or `float32`, whole or any view; nothing is copied.
/// `form` is how overlap is measured: `true`, `hull`, `hull-single`, `hull-eps`, `min-union` or `signed`.
#[pyfunction]
#[pyo3(signature = (a: "FloatArray", b: "FloatArray", *, form: "IouForm" = "true") -> "NDArray[numpy.float64]")]
pub(crate) fn iou<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    form: &str,
) -> Result<Bound<'py, PyArray2<f64>>> {
    let form = form_called(form)?;
    let (a, b) = (Floats::borrow(a, "a")?, Floats::borrow(b, "b")?);
    let overlaps = with_view!(&a, left => with_view!(&b, right => {
        let (left, right) = (rows(left.into_dimensionality(), "a")?, rows(right.into_dimensionality(), "b")?);
        py.detach(|| overlaps(left, right, form))
    }));
    Ok(PyArray2::from_owned_array(py, overlaps?))
}

/// Greedy non-maximum suppression: the places in `spans` that survive, best first.
///
/// A span is kept when its overlap with every span kept before it is at most `threshold`. Without `scores` the order of
/// `spans` is the ranking; with them the highest comes first, and of equals the earlier one. At most `limit` are kept.
#[pyfunction]
#[pyo3(signature = (
    spans: "FloatArray", scores: "FloatArray | None" = None, *, threshold = 0.5, form: "IouForm" = "true",
    limit: "int | None" = None
) -> "NDArray[numpy.int64]")]
pub(crate) fn nms<'py>(
    py: Python<'py>,
    spans: &Bound<'py, PyAny>,
    scores: Option<&Bound<'py, PyAny>>,
    threshold: f64,
    form: &str,
    limit: Option<usize>,
) -> Result<Bound<'py, PyArray1<i64>>> {
    if !(0.0..=1.0).contains(&threshold) {
        return Err(Failure::argument("threshold", format!("{threshold} is not between 0 and 1")));
    }
    let how = Nms { threshold, iou: form_called(form)?, limit: limit.unwrap_or(usize::MAX) };
    let spans = Floats::borrow(spans, "spans")?;
    let scores = scores.map(|scores| Floats::borrow(scores, "scores")).transpose()?;
    let order = scores.as_ref().map(|scores| ranking(scores, spans.shape())).transpose()?;
    let kept = with_view!(&spans, view => {
        let view = rows(view.into_dimensionality(), "spans")?;
        let progress = Progress::new();
        watched(py, &Audience::Nobody, "suppressing", &progress, || {
            check(view, "spans")?;
            let at = |rank: usize| order.as_ref().map_or(rank, |order| order[rank]);
            let place = |rank: usize| (None, span(view, at(rank)).unwrap_or(Span::whole(0.0)));
            let kept = how.keep_by(view.nrows(), place, &progress)?;
            Ok(kept.into_iter().map(|rank| at(rank) as i64).collect::<Vec<i64>>())
        })?
    });
    Ok(PyArray1::from_vec(py, kept))
}

fn form_called(name: &str) -> Result<Iou> {
    let forms = [
        ("true", Iou::True),
        ("hull", Iou::Hull),
        ("hull-single", Iou::HullSingle),
        ("hull-eps", Iou::HullEps),
        ("min-union", Iou::MinUnion),
        ("signed", Iou::Signed),
    ];
    forms.iter().find(|(known, _)| *known == name).map(|(_, form)| *form).ok_or_else(|| {
        let known: Vec<&str> = forms.iter().map(|(known, _)| *known).collect();
        Failure::argument("form", format!("`{name}` is not one of {}", known.join(", ")))
    })
}

/// A view of rows of `[start, end]`.
fn rows<'a, R>(
    view: std::result::Result<ArrayView2<'a, R>, numpy::ndarray::ShapeError>,
    argument: &str,
) -> Result<ArrayView2<'a, R>> {
    let wrong = || Failure::argument(argument, "rows of [start, end] are wanted");
    view.ok().filter(|view| view.ncols() == 2).ok_or_else(wrong)
}

fn span<R: Copy + Into<f64>>(
    view: ArrayView2<'_, R>,
    row: usize,
) -> std::result::Result<Span, cuemark_core::SpanError> {
    Span::new(view[[row, 0]].into(), view[[row, 1]].into())
}

/// Refuses the first row that is no span.
fn check<R: Copy + Into<f64>>(view: ArrayView2<'_, R>, argument: &str) -> Result<()> {
    for row in 0..view.nrows() {
        span(view, row).map_err(|problem| Failure::argument(format!("{argument}[{row}]"), problem))?;
    }
    Ok(())
}

fn overlaps<A, B>(a: ArrayView2<'_, A>, b: ArrayView2<'_, B>, form: Iou) -> Result<Array2<f64>>
where
    A: Copy + Into<f64> + Sync,
    B: Copy + Into<f64> + Sync,
{
    check(a, "a")?;
    check(b, "b")?;
    let mut overlaps = Array2::zeros((a.nrows(), b.nrows()));
    let width = b.nrows().max(1);
    let cells = overlaps.as_slice_mut().unwrap_or_default();
    cells.par_chunks_mut(width).enumerate().with_min_len(1 + 4_096 / width).for_each(|(row, cells)| {
        let Ok(left) = span(a, row) else { return };
        for (column, cell) in cells.iter_mut().enumerate() {
            *cell = span(b, column).map_or(0.0, |right| form.of(left, right));
        }
    });
    Ok(overlaps)
}

/// Places by score, highest first, of equals the earlier first.
fn ranking(scores: &Floats<'_>, spans: &[usize]) -> Result<Vec<usize>> {
    with_view!(scores, view => {
        let view = view.into_dimensionality::<Ix1>();
        let view = view.map_err(|_| Failure::argument("scores", "one number for each span is wanted"))?;
        if Some(&view.len()) != spans.first() {
            let problem = format!("{} scores for {} spans", view.len(), spans.first().unwrap_or(&0));
            return Err(Failure::argument("scores", problem));
        }
        if let Some(row) = view.iter().position(|score| score.is_nan()) {
            return Err(Failure::argument(format!("scores[{row}]"), "NaN has no rank"));
        }
        let mut order: Vec<usize> = (0..view.len()).collect();
        order.sort_by(|a, b| view[*b].total_cmp(&view[*a]));
        Ok(order)
    })
}
