//! NumPy arrays of numbers, read where they lie.

use numpy::{
    PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::type_name;
use crate::failure::{Failure, Result};

/// An array of either precision, borrowed and not copied; views with gaps and steps are read as they are.
pub(crate) enum Floats<'py> {
    /// `float64`
    Double(PyReadonlyArrayDyn<'py, f64>),
    /// `float32`
    Single(PyReadonlyArrayDyn<'py, f32>),
}

impl<'py> Floats<'py> {
    /// Borrows `object`; anything but a `float64` or `float32` array is refused, since it would have to be copied.
    pub(crate) fn borrow(object: &Bound<'py, PyAny>, place: &str) -> Result<Self> {
        let busy = |_| Failure::argument(place, "the array is being written to elsewhere");
        if let Ok(array) = object.cast::<PyArrayDyn<f64>>() {
            return Ok(Self::Double(array.try_readonly().map_err(busy)?));
        }
        if let Ok(array) = object.cast::<PyArrayDyn<f32>>() {
            return Ok(Self::Single(array.try_readonly().map_err(busy)?));
        }
        let what = match object.cast::<PyUntypedArray>() {
            Ok(array) => format!("an array of {}", array.dtype()),
            Err(_) => format!("a `{}`", type_name(object)),
        };
        let hint = "np.asarray(x, dtype=np.float64) makes one; rows of different lengths are a list of arrays";
        Err(Failure::wrong_type(place, format!("{what} is not an array of float64 or float32")).with_hint(hint))
    }

    /// As [`Floats::borrow`], copying where the array holds whole numbers.
    pub(crate) fn convert(object: &Bound<'py, PyAny>, place: &str) -> Result<Self> {
        match object.cast::<PyUntypedArray>() {
            Ok(array) if matches!(array.dtype().kind(), b'i' | b'u') => {
                let double = object.call_method1("astype", ("float64",))?;
                Self::borrow(&double, place)
            }
            _ => Self::borrow(object, place),
        }
    }

    /// Its dimensions.
    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Self::Double(array) => array.shape(),
            Self::Single(array) => array.shape(),
        }
    }
}

/// Runs a body with a view of the array, whatever its precision.
macro_rules! with_view {
    ($floats:expr, $view:ident => $body:expr) => {
        match $floats {
            $crate::arguments::Floats::Double(array) => {
                let $view = array.as_array();
                $body
            }
            $crate::arguments::Floats::Single(array) => {
                let $view = array.as_array();
                $body
            }
        }
    };
}
pub(crate) use with_view;

/// `numpy.asarray(object, dtype)`.
pub(super) fn as_array<'py>(object: &Bound<'py, PyAny>, dtype: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let options = PyDict::new(py);
    if let Some(dtype) = dtype {
        options.set_item("dtype", dtype)?;
    }
    py.import("numpy")?.getattr("asarray")?.call((object,), Some(&options))
}

/// `3 × 100 × 2`
pub(super) fn shown(shape: &[usize]) -> String {
    let sides: Vec<String> = shape.iter().map(ToString::to_string).collect();
    if sides.is_empty() { "no dimension".to_owned() } else { sides.join(" × ") }
}
