//! Records in memory as the JSON they would be in a file, so that they go through the same readers.

use std::fmt::Write as _;

use cuemark_formats::Source;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::{Floats, type_name, with_view};
use crate::failure::{Failure, Result};

/// Nothing that people hand over nests deeper; more is a loop.
const DEEPEST: usize = 32;

/// `records` as JSON Lines, one a line, or as one JSON list where the layout is one.
pub(super) fn records(records: &[Bound<'_, PyAny>], argument: &str) -> Result<Source> {
    let mut writer = Writer::new(argument);
    let as_lines = match records.first() {
        Some(first) => {
            let keys = super::keys(first)?.unwrap_or_default();
            keys.iter().any(|key| key == "qid" || key == "desc_id")
        }
        None => true,
    };
    let (open, between, close) = if as_lines { ("", "\n", "") } else { ("[", ",\n", "]") };
    writer.out.extend_from_slice(open.as_bytes());
    for (row, record) in records.iter().enumerate() {
        if row > 0 {
            writer.out.extend_from_slice(between.as_bytes());
        }
        if super::keys(record)?.is_none() {
            let problem = format!("a `{}` is no record", type_name(record));
            return Err(Failure::wrong_type(format!("{argument}[{row}]"), problem)
                .with_hint("a record is a dict, as a line of a file would be"));
        }
        writer.way.push(Step::Place(row));
        writer.value(record)?;
        writer.way.pop();
    }
    writer.out.extend_from_slice(close.as_bytes());
    Ok(Source::in_memory(argument, writer.out))
}

/// A whole document, such as a TVR submission.
pub(super) fn document(object: &Bound<'_, PyAny>, argument: &str) -> Result<Source> {
    let mut writer = Writer::new(argument);
    writer.value(object)?;
    Ok(Source::in_memory(argument, writer.out))
}

enum Step {
    Place(usize),
    Key(String),
}

struct Writer<'a> {
    argument: &'a str,
    out: Vec<u8>,
    way: Vec<Step>,
}

impl<'a> Writer<'a> {
    fn new(argument: &'a str) -> Self {
        Self { argument, out: Vec::new(), way: Vec::new() }
    }

    /// `predictions[3].span[1]`
    fn place(&self) -> String {
        let mut place = self.argument.to_owned();
        for step in &self.way {
            // Writing to a string does not fail.
            let _ = match step {
                Step::Place(at) => write!(place, "[{at}]"),
                Step::Key(key) => write!(place, ".{key}"),
            };
        }
        place
    }

    fn value(&mut self, object: &Bound<'_, PyAny>) -> Result<()> {
        if self.way.len() > DEEPEST {
            return Err(Failure::argument(self.place(), "is nested too deeply"));
        }
        if let Ok(float) = object.cast::<PyFloat>() {
            return self.number(float.value());
        }
        if let Ok(flag) = object.cast::<PyBool>() {
            self.out.extend_from_slice(if flag.is_true() { b"true" } else { b"false" });
        } else if object.is_instance_of::<PyInt>() {
            match object.extract::<i64>() {
                Ok(number) => self.out.extend_from_slice(number.to_string().as_bytes()),
                Err(_) => self.out.extend_from_slice(object.str()?.to_cow()?.as_bytes()),
            }
        } else if let Ok(text) = object.cast::<PyString>() {
            self.text(text)?;
        } else if let Ok(list) = object.cast::<PyList>() {
            self.list(list.iter())?;
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            self.list(tuple.iter())?;
        } else if object.is_none() {
            self.out.extend_from_slice(b"null");
        } else if let Ok(array) = object.cast::<PyUntypedArray>() {
            self.array(array)?;
        } else if let Ok(dict) = object.cast::<PyDict>() {
            self.object(dict.iter())?;
        } else if object.hasattr("item")? && object.hasattr("dtype")? {
            self.value(&object.call_method0("item")?)?; // a NumPy scalar
        } else if object.hasattr("keys")? && object.hasattr("__getitem__")? {
            let keys = object.call_method0("keys")?.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            let pairs = keys.into_iter().map(|key| Ok((key.clone(), object.get_item(key)?)));
            self.object(pairs.collect::<PyResult<Vec<_>>>()?.into_iter())?;
        } else {
            let problem = format!("a `{}` has no place in a record", type_name(object));
            return Err(Failure::wrong_type(self.place(), problem));
        }
        Ok(())
    }

    fn number(&mut self, number: f64) -> Result<()> {
        if !number.is_finite() {
            return Err(Failure::argument(self.place(), format!("{number} is not a finite number")));
        }
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut self.out, &number);
        Ok(())
    }

    fn text(&mut self, text: &Bound<'_, PyString>) -> Result<()> {
        let text = text.to_cow().map_err(|_| Failure::argument(self.place(), "the text holds half a character"))?;
        let _ = serde_json::to_writer(&mut self.out, &*text);
        Ok(())
    }

    fn list<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> Result<()> {
        self.out.push(b'[');
        for (at, item) in items.enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            self.way.push(Step::Place(at));
            self.value(&item)?;
            self.way.pop();
        }
        self.out.push(b']');
        Ok(())
    }

    fn object<'py>(&mut self, items: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>) -> Result<()> {
        self.out.push(b'{');
        for (at, (key, value)) in items.enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            let key = key.str()?;
            self.text(&key)?;
            self.out.push(b':');
            self.way.push(Step::Key(key.to_string()));
            self.value(&value)?;
            self.way.pop();
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Arrays of numbers without a Python object for each of them.
    fn array(&mut self, array: &Bound<'_, PyUntypedArray>) -> Result<()> {
        let is_double = array.dtype().is_equiv_to(&numpy::dtype::<f64>(array.py()));
        if !is_double || array.ndim() == 0 || array.ndim() > 2 {
            return self.value(&array.call_method0("tolist")?);
        }
        let floats = Floats::borrow(array.as_any(), self.argument)?;
        with_view!(&floats, view => {
            let rows = view.shape()[0];
            let width = view.shape().get(1).copied();
            self.out.push(b'[');
            for (at, number) in view.iter().enumerate() {
                let (row, column) = width.map_or((at, 0), |width| (at / width.max(1), at % width.max(1)));
                let before = match (at, column, width) {
                    (0, _, None) => "",
                    (0, _, Some(_)) => "[",
                    (_, 0, Some(_)) => "],[",
                    _ => ",",
                };
                self.out.extend_from_slice(before.as_bytes());
                if !number.is_finite() {
                    self.way.push(Step::Place(row));
                    self.way.extend(width.map(|_| Step::Place(column)));
                }
                self.number(f64::from(*number))?;
            }
            if width.is_some() && rows > 0 {
                self.out.push(b']');
            }
            self.out.push(b']');
        });
        Ok(())
    }
}
