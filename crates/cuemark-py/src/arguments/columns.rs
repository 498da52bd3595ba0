//! Tables by column: a dict of arrays, or a frame. One prediction or one moment a row.

use std::ops::Range;
use std::sync::Arc;

use numpy::ndarray::ArrayView1;
use numpy::{
    PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyString;
use rayon::prelude::*;
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
    pub(super) fn ids(&mut self, name: &str) -> Result<Option<Ids<'py>>> {
        let Some(array) = self.get(name)? else { return Ok(None) };
        let column = format!("{}[\"{name}\"]", self.argument);
        let row = |row: usize| format!("{}[{row}]", self.argument);
        match array.dtype().kind() {
            b'i' | b'u' => {
                let whole = as_array(array.as_any(), Some("int64"))?.cast_into::<PyArray1<i64>>();
                let whole = whole.map_err(|_| Failure::wrong_type(column.clone(), "no whole numbers"))?;
                let busy = |_| Failure::argument(column, "the array is being written to elsewhere");
                Ok(Some(Ids::of_numbers(whole.try_readonly().map_err(busy)?)))
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
    pub(super) fn needed_ids(&mut self, name: &str) -> Result<Ids<'py>> {
        self.ids(name)?.ok_or_else(|| self.missing(name))
    }
}

/// A name for each row, each distinct name once in memory.
pub(super) struct Ids<'py> {
    rows: Rows<'py>,
    names: Vec<Arc<str>>,
}

/// Which of the names each row has.
enum Rows<'py> {
    /// Numbers that lie together, as running numbers do, read where they are: the code is the distance from the lowest.
    Numbers { numbers: PyReadonlyArray1<'py, i64>, low: i64 },
    /// A code for each row.
    Listed(Vec<u32>),
}

/// The codes of a column, without the interpreter.
#[derive(Clone, Copy)]
pub(super) enum Codes<'a> {
    /// See [`Rows::Numbers`].
    Numbers { numbers: ArrayView1<'a, i64>, low: i64 },
    /// See [`Rows::Listed`].
    Listed(&'a [u32]),
}

impl Codes<'_> {
    /// Which of the distinct names row `row` has.
    pub(super) fn of(&self, row: usize) -> usize {
        match self {
            Self::Numbers { numbers, low } => numbers.get(row).map_or(0, |number| (number - low) as usize),
            Self::Listed(codes) => codes.get(row).map_or(0, |code| *code as usize),
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Numbers { numbers, .. } => numbers.len(),
            Self::Listed(codes) => codes.len(),
        }
    }

    /// The rows of each of `names` names, in order of first appearance; a name's rows are runs in order.
    pub(super) fn groups(&self, names: usize) -> Vec<(usize, Vec<Range<usize>>)> {
        let mut places = vec![usize::MAX; names];
        let mut groups: Vec<(usize, Vec<Range<usize>>)> = Vec::new();
        let (rows, mut begin) = (self.rows(), 0);
        while begin < rows {
            let code = self.of(begin);
            let end = (begin + 1..rows).find(|row| self.of(*row) != code).unwrap_or(rows);
            if places[code] == usize::MAX {
                places[code] = groups.len();
                groups.push((code, Vec::new()));
            }
            groups[places[code]].1.push(begin..end);
            begin = end;
        }
        groups
    }
}

impl<'py> Ids<'py> {
    /// Which of the distinct names each row has.
    pub(super) fn codes(&self) -> Codes<'_> {
        match &self.rows {
            Rows::Numbers { numbers, low } => Codes::Numbers { numbers: numbers.as_array(), low: *low },
            Rows::Listed(codes) => Codes::Listed(codes),
        }
    }

    /// The distinct names, by code.
    pub(super) fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The name in row `row`.
    pub(super) fn name(&self, row: usize) -> &str {
        self.names.get(self.codes().of(row)).map_or("", |name| name)
    }

    fn of_numbers(numbers: PyReadonlyArray1<'py, i64>) -> Self {
        let view = numbers.as_array();
        let (low, high) = extremes(&numbers);
        let range = high.checked_sub(low).and_then(|range| usize::try_from(range).ok());
        if let Some(range) = range.filter(|range| *range <= (4 * view.len() + 1_024).min(u32::MAX as usize)) {
            // Where there may be many more numbers than rows, only those that a row has get a name.
            let is_sparse = range > view.len() / 16;
            let mut used = vec![!is_sparse; range + 1];
            for number in view.iter().filter(|_| is_sparse) {
                used[(number - low) as usize] = true;
            }
            let nobody: Arc<str> = Arc::from("");
            let name = |(step, used): (usize, bool)| match used {
                true => Arc::from((low + step as i64).to_string()),
                false => nobody.clone(),
            };
            let names = used.into_iter().enumerate().map(name).collect();
            return Self { rows: Rows::Numbers { numbers, low }, names };
        }
        let mut known: FxHashMap<i64, u32> = FxHashMap::default();
        let mut names = Vec::new();
        let codes = view.iter().map(|number| {
            *known.entry(*number).or_insert_with(|| {
                names.push(Arc::from(number.to_string()));
                names.len() as u32 - 1
            })
        });
        let codes = codes.collect();
        Self { rows: Rows::Listed(codes), names }
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
        Self { rows: Rows::Listed(codes), names }
    }
}

/// The lowest and the highest number; the other way round when there is none.
fn extremes(numbers: &PyReadonlyArray1<'_, i64>) -> (i64, i64) {
    let none = (i64::MAX, i64::MIN);
    let wider = |a: (i64, i64), b: (i64, i64)| (a.0.min(b.0), a.1.max(b.1));
    match numbers.as_slice() {
        Ok(slice) => {
            let parts = slice.par_chunks(1 << 16);
            parts.map(|part| part.iter().fold(none, |seen, n| wider(seen, (*n, *n)))).reduce(|| none, wider)
        }
        Err(_) => numbers.as_array().iter().fold(none, |seen, n| wider(seen, (*n, *n))),
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

    fn done<'py>(self) -> Ids<'py> {
        let mut names: Vec<(u32, Arc<str>)> = self.known.into_iter().map(|(name, code)| (code, name)).collect();
        names.sort_unstable_by_key(|(code, _)| *code);
        Ids { rows: Rows::Listed(self.codes), names: names.into_iter().map(|(_, name)| name).collect() }
    }
}
