//! `.npy` per video: NumPy's own format, `<folder>/<video>.npy`, `(n, D)` or with axes of length 1 beside.

use std::fs::File;
use std::io::{BufReader, Read};

use camino::Utf8Path;
use cuemark_formats::ReadError;
use cuemark_formats::npy::Head;

use super::files::{self, Files};
use crate::array::{ArrayHead, Axes, Room};
use crate::fault::Fault;
use crate::foreign::OpenOptions;
use crate::number::Number;
use crate::{Features, Result};

pub(super) fn open(folder: &Utf8Path, options: &OpenOptions) -> Result<Files> {
    Files::open(folder, &["npy"], options, read)
}

pub(super) fn read(path: &Utf8Path, options: &OpenOptions) -> Result<Features> {
    let file = File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let meter = options.meter();
    let features = parse(&mut BufReader::new(file), &files::room(&meter, options));
    features.map_err(|fault| fault.at(path, "the array").into())
}

/// The array that comes from `stream`.
pub(super) fn parse(stream: &mut dyn Read, room: &Room<'_>) -> Result<Features, Fault> {
    describe(stream)?.read(stream, room)
}

/// What `stream` says about its array, which it is left at the first number of.
pub(crate) fn describe(stream: &mut dyn Read) -> Result<ArrayHead, Fault> {
    let Head { descr, fortran_order, shape, .. } = Head::read(stream)?;
    let unfit = || format!("holds `{descr}`, not f2, f4 or f8 numbers");
    let (number, order) = Number::from_numpy(&descr).ok_or_else(unfit)?;
    Ok(ArrayHead { number, order, axes: if fortran_order { Axes::FirstFastest } else { Axes::LastFastest }, shape })
}
