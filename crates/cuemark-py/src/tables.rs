//! Results as Python's own types: JSON values and frames.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::Serialize;
use serde_json::Value;

use crate::failure::{Failure, Result};

/// Whatever serialises, as dicts, lists and numbers: what `--json` prints, read back.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> Result<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value).map_err(|error| Failure::argument("result", error))?;
    Ok(from_value(py, &value)?)
}

fn from_value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(whole), _) => whole.into_pyobject(py)?.into_any(),
            (None, Some(whole)) => whole.into_pyobject(py)?.into_any(),
            (None, None) => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let items = items.iter().map(|item| from_value(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (key, value) in fields {
                dict.set_item(key, from_value(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

/// `pandas.DataFrame(columns)`; pandas is imported only here.
pub(crate) fn frame<'py>(py: Python<'py>, columns: &Bound<'py, PyDict>) -> Result<Bound<'py, PyAny>> {
    let pandas = py.import("pandas").map_err(|_| {
        Failure::argument("to_pandas", "pandas is not installed").with_hint("pip install pandas, or use the arrays")
    })?;
    Ok(pandas.getattr("DataFrame")?.call1((columns,))?)
}
