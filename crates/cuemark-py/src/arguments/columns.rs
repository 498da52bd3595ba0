//! Tables by column: a dict of arrays, or a frame. One prediction or one moment a row.

use std::ops::Range;
use std::sync::Arc;

use numpy::{
    PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyString;
use rustc_hash::FxHashMap;

use super::arrays::as_array;
use super::type_name;
use crate::failure::{Failure, Result};

/// The columns of one argument, all of the same length.
pub(super) struct Columns<'a, 'py> {
    argument: &'a str,
    table: &'a Bound<'py, PyAny>,
    names: Vec<String>,
    rows: Option<usize>,
}

impl<'a, 'py> Columns<'a, 'py> {
    /// The columns that `table` says it has.
    pub(super) fn of(table: &'a Bound<'py, PyAny>, names: Vec<String>, argument: &'a str) -> Self {
        Self { argument, table, names, rows: None }
    }

    /// The column `name` as an array, when there is one.
    fn get(&mut self, name: &str) -> Result<Option<Bound<'py, PyUntypedArray>>> {
        if !self.names.iter().any(|known| known == name) {
            return Ok(None);
        }
        let place = || format!("{}[\"{name}\"]", self.argument);
        let column = self.table.get_item(name)?;
        let array = as_array(&column, None).map_err(|_| {
            Failure::wrong_type(place(), "the rows are ragged").with_hint("a column has one value for each row")
        })?;
        let array = array.cast_into::<PyUntypedArray>().map_err(|_| Failure::wrong_type(place(), "is no column"))?;
        let &[rows] = array.shape() else {
            let problem = format!("{} dimensions where a column has one", array.ndim());
            return Err(Failure::argument(place(), problem));
        };
        match self.rows {
            Some(others) if others != rows => {
                Err(Failure::argument(place(), format!("{rows} rows where the columns before it have {others}")))
            }
            _ => {
                self.rows = Some(rows);
                Ok(Some(array))
            }
        }
    }

    fn missing(&self, name: &str) -> Failure {
        let has = self.names.join(", ");
        Failure::argument(self.argument, format!("there is no column `{name}`")).with_hint(format!("there are: {has}"))
    }

    /// A column of numbers, in double precision.
    pub(super) fn numbers(&mut self, name: &str) -> Result<Option<PyReadonlyArray1<'py, f64>>> {
        let Some(array) = self.get(name)? else { return Ok(None) };
        let place = format!("{}[\"{name}\"]", self.argument);
        if !matches!(array.dtype().kind(), b'f' | b'i' | b'u' | b'O') {
            return Err(Failure::wrong_type(place, format!("{} are no numbers", array.dtype())));
        }
        let double = as_array(array.as_any(), Some("float64"))
            .map_err(|error| Failure::wrong_type(place.clone(), format!("no numbers: {error}")))?;
        let double =
            double.cast_into::<PyArray1<f64>>().map_err(|_| Failure::wrong_type(place.clone(), "no numbers"))?;
        let busy = |_| Failure::argument(place, "the array is being written to elsewhere");
        Ok(Some(double.try_readonly().map_err(busy)?))
    }

    /// As [`Columns::numbers`], for a column that has to be there.
    pub(super) fn needed_numbers(&mut self, name: &str) -> Result<PyReadonlyArray1<'py, f64>> {
        self.numbers(name)?.ok_or_else(|| self.missing(name))
    }

    /// A column of names: numbers become their decimal text, as in files.
    pub(super) fn ids(&mut self, name: &str) -> Result<Option<Ids>> {
        let Some(array) = self.get(name)? else { return Ok(None) };
        let column = format!("{}[\"{name}\"]", self.argument);
        let row = |row: usize| format!("{}[{row}]", self.argument);
        match array.dtype().kind() {
            b'i' | b'u' => {
                let whole = array.call_method1("astype", ("int64",))?.cast_into::<PyArray1<i64>>();
                let whole = whole.map_err(|_| Failure::wrong_type(column.clone(), "no whole numbers"))?;
                let busy = |_| Failure::argument(column, "the array is being written to elsewhere");
                Ok(Some(Ids::of_numbers(whole.try_readonly().map_err(busy)?.as_array().iter().copied())))
            }
            b'U' if array.dtype().is_native_byteorder() != Some(false) && array.dtype().itemsize() > 0 => {
                let width = array.dtype().itemsize() / 4;
                let contiguous = array.py().import("numpy")?.call_method1("ascontiguousarray", (&array,))?;
                let letters = contiguous.call_method1("view", ("uint32",))?.cast_into::<PyArrayDyn<u32>>();
                let letters = letters.map_err(|_| Failure::wrong_type(column.clone(), "no text"))?;
                let busy = |_| Failure::argument(column.clone(), "the array is being written to elsewhere");
                let letters = letters.try_readonly().map_err(busy)?;
                let letters = letters.as_slice().map_err(|_| Failure::wrong_type(column.clone(), "no text"))?;
                Ok(Some(Ids::of_letters(letters, width)))
            }
            b'U' | b'O' => {
                let objects = array.call_method0("tolist")?;
                let mut ids = IdBuilder::default();
                for (at, object) in objects.try_iter()?.enumerate() {
                    let object = object?;
                    match object.cast::<PyString>() {
                        Ok(text) => ids.push(&text.to_cow()?),
                        Err(_) => match object.extract::<i64>() {
                            Ok(number) => ids.push(&number.to_string()),
                            Err(_) => {
                                let kind = type_name(&object);
                                return Err(Failure::wrong_type(row(at), format!("`{name}`: a `{kind}` is no name")));
                            }
                        },
                    }
                }
                Ok(Some(ids.done()))
            }
            _ => Err(Failure::wrong_type(column, format!("{} are no names", array.dtype()))
                .with_hint("names are text or whole numbers")),
        }
    }

    /// As [`Columns::ids`], for a column that has to be there.
    pub(super) fn needed_ids(&mut self, name: &str) -> Result<Ids> {
        self.ids(name)?.ok_or_else(|| self.missing(name))
    }
}

/// A name for each row, each distinct name once in memory.
pub(super) struct Ids {
    codes: Vec<u32>,
    names: Vec<Arc<str>>,
}

impl Ids {
    /// Which of the distinct names row `row` has.
    pub(super) fn code(&self, row: usize) -> usize {
        self.codes.get(row).map_or(0, |code| *code as usize)
    }

    /// The distinct names, by code.
    pub(super) fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The name in row `row`.
    pub(super) fn name(&self, row: usize) -> &str {
        self.names.get(self.code(row)).map_or("", |name| name)
    }

    /// The rows of each name, names in order of first appearance; a name's rows are runs in order.
    pub(super) fn groups(&self) -> Vec<(usize, Vec<Range<usize>>)> {
        let mut places = vec![usize::MAX; self.names.len()];
        let mut groups: Vec<(usize, Vec<Range<usize>>)> = Vec::new();
        let mut begin = 0;
        while let Some(&code) = self.codes.get(begin) {
            let run = self.codes.iter().skip(begin).take_while(|other| **other == code).count();
            let code = code as usize;
            if places[code] == usize::MAX {
                places[code] = groups.len();
                groups.push((code, Vec::new()));
            }
            groups[places[code]].1.push(begin..begin + run);
            begin += run;
        }
        groups
    }

    fn of_numbers(numbers: impl Iterator<Item = i64> + Clone) -> Self {
        let (mut low, mut high, mut rows) = (i64::MAX, i64::MIN, 0usize);
        for number in numbers.clone() {
            (low, high, rows) = (low.min(number), high.max(number), rows + 1);
        }
        let range = high.checked_sub(low).and_then(|range| usize::try_from(range).ok());
        if let Some(range) = range.filter(|range| *range <= (4 * rows + 1_024).min(u32::MAX as usize)) {
            // Numbers that lie together, as running numbers do, are their own codes; names that no row has cost little.
            let codes = numbers.map(|number| (number - low) as u32).collect();
            let names = (0..=range as i64).map(|step| Arc::from((low + step).to_string())).collect();
            return Self { codes, names };
        }
        let mut known: FxHashMap<i64, u32> = FxHashMap::default();
        let mut names = Vec::new();
        let codes = numbers.map(|number| {
            *known.entry(number).or_insert_with(|| {
                names.push(Arc::from(number.to_string()));
                names.len() as u32 - 1
            })
        });
        let codes = codes.collect();
        Self { codes, names }
    }

    /// Fixed-width text as NumPy holds it: `width` code points a row, zeros behind.
    fn of_letters(letters: &[u32], width: usize) -> Self {
        let mut known: FxHashMap<&[u32], u32> = FxHashMap::default();
        let mut names: Vec<Arc<str>> = Vec::new();
        let codes = letters.chunks_exact(width.max(1)).map(|row| {
            *known.entry(row).or_insert_with(|| {
                let used = row.iter().rposition(|letter| *letter != 0).map_or(0, |last| last + 1);
                let text: String = row
                    .iter()
                    .take(used)
                    .map(|letter| char::from_u32(*letter).unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect();
                names.push(Arc::from(text));
                names.len() as u32 - 1
            })
        });
        let codes = codes.collect();
        Self { codes, names }
    }
}

#[derive(Default)]
struct IdBuilder {
    known: FxHashMap<Arc<str>, u32>,
    codes: Vec<u32>,
}

impl IdBuilder {
    fn push(&mut self, name: &str) {
        let code = match self.known.get(name) {
            Some(code) => *code,
            None => {
                let code = self.known.len() as u32;
                self.known.insert(Arc::from(name), code);
                code
            }
        };
        self.codes.push(code);
    }

    fn done(self) -> Ids {
        let mut names: Vec<(u32, Arc<str>)> = self.known.into_iter().map(|(name, code)| (code, name)).collect();
        names.sort_unstable_by_key(|(code, _)| *code);
        Ids { codes: self.codes, names: names.into_iter().map(|(_, name)| name).collect() }
    }
}
