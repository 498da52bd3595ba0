//! Whatever Python hands over, as our types: paths, records, columns, arrays, frames.
//!
//! Everything says which argument and which row is wrong: `predictions[17]: …`.

mod arrays;
mod columns;
mod json;
mod predictions;
mod ratings;
mod reading;
mod scoring;
mod tables;
mod truth;

pub(crate) use arrays::{Floats, with_view};
pub(crate) use predictions::{PredictionArgument, PredictionReading, ReadPredictions};
pub(crate) use ratings::ratings;
pub(crate) use reading::{TruthFlags, TruthReading};
pub(crate) use scoring::{ScoringFlags, words};
pub(crate) use tables::{ColumnAnswers, Tables};
pub(crate) use truth::TruthArgument;

use camino::Utf8PathBuf;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use serde::de::{DeserializeOwned, IntoDeserializer as _};

use crate::failure::{Failure, Result};

/// The path that `object` is, when it is a `str` or has `__fspath__`.
pub(crate) fn path(object: &Bound<'_, PyAny>, place: &str) -> Result<Option<Utf8PathBuf>> {
    let text = match object.cast::<PyString>() {
        Ok(text) => text.clone().into_any(),
        Err(_) if object.hasattr("__fspath__")? => object.call_method0("__fspath__")?,
        Err(_) => return Ok(None),
    };
    let text: String = text.extract().map_err(|_| Failure::wrong_type(place, "the path is not text"))?;
    Ok(Some(Utf8PathBuf::from(text)))
}

/// The path that `object` has to be.
pub(crate) fn needed_path(object: &Bound<'_, PyAny>, place: &str) -> Result<Utf8PathBuf> {
    let kind = type_name(object);
    path(object, place)?.ok_or_else(|| Failure::wrong_type(place, format!("a `{kind}` is not a path")))
}

/// The choice of the library's that is called `word` in its files.
pub(crate) fn choice<T: DeserializeOwned>(argument: &str, word: &str) -> Result<T> {
    T::deserialize(word.into_deserializer()).map_err(|error: serde::de::value::Error| {
        // serde names the choices: ``unknown variant `x`, expected one of `a`, `b`, `c` ``.
        let said = error.to_string();
        let names: Vec<&str> = said.split('`').skip(3).step_by(2).collect();
        let names = match names.as_slice() {
            [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => names.concat(),
        };
        Failure::argument(argument, format!("`{word}` is not {names}"))
    })
}

/// The name of an object's type, for messages.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

/// Whether it is a list or a tuple.
fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

/// Names of the columns of a frame, or keys of a mapping; `None` when it is neither.
fn keys(object: &Bound<'_, PyAny>) -> Result<Option<Vec<String>>> {
    let names = if object.is_instance_of::<PyDict>() {
        object.call_method0("keys")?
    } else if object.hasattr("columns")? {
        object.getattr("columns")?
    } else if object.hasattr("keys")? && object.hasattr("__getitem__")? {
        object.call_method0("keys")?
    } else {
        return Ok(None);
    };
    let names = names.try_iter()?.map(|name| Ok(name?.str()?.to_string()));
    Ok(Some(names.collect::<PyResult<_>>()?))
}
