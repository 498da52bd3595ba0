//! `.npy` per video: NumPy's own format, `<folder>/<video>.npy`, `(n, D)` or with axes of length 1 beside.
//!
//! `\x93NUMPY`, a version, the length of the header, the header as a Python dictionary, the numbers.

use camino::Utf8Path;
use cuemark_formats::ReadError;

use super::files::{self, Files};
use crate::array::{ArrayHead, Axes};
use crate::foreign::OpenOptions;
use crate::number::Number;
use crate::python_literal::{self, Literal};
use crate::{Features, Result};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

pub(super) fn open(folder: &Utf8Path, options: &OpenOptions) -> Result<Files> {
    Files::open(folder, &["npy"], options, read)
}

pub(super) fn read(path: &Utf8Path, options: &OpenOptions) -> Result<Features> {
    parse(&files::bytes(path, options)?).map_err(|problem| ReadError::file(path, problem).into())
}

/// The array that `bytes` hold. The error says what is wrong.
pub(super) fn parse(bytes: &[u8]) -> Result<Features, String> {
    let (head, numbers) = describe(bytes)?;
    head.features(numbers)
}

/// What `bytes` say about their array, and the bytes of its numbers. The error says what is wrong.
pub(crate) fn describe(bytes: &[u8]) -> Result<(ArrayHead, &[u8]), String> {
    let (header, numbers) = header(bytes).ok_or("is no `.npy` file, or its header is cut short")?;
    // Versions 1 and 2 are Latin-1, but nothing outside ASCII can stand in a header that we accept.
    let header = std::str::from_utf8(header).map_err(|_| "its header is not text")?;
    let header = python_literal::parse(header).map_err(|problem| format!("header: {problem}"))?;
    Ok((head(&header)?, numbers))
}

/// The header's bytes and what follows them.
fn header(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (version, rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(2)?;
    let (length, rest) = match version.first()? {
        1 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk::<4>()?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

fn head(header: &Literal) -> Result<ArrayHead, String> {
    let missing = |key: &str| format!("header: no `{key}`");
    let Some(Literal::Text(descr)) = header.entry("descr") else { return Err(missing("descr")) };
    let Some(Literal::Truth(fortran)) = header.entry("fortran_order") else { return Err(missing("fortran_order")) };
    let Some(Literal::Items(shape)) = header.entry("shape") else { return Err(missing("shape")) };
    let (number, order) =
        Number::from_numpy(descr).ok_or_else(|| format!("holds `{descr}`, not f2, f4 or f8 numbers"))?;
    let axis = |axis: &Literal| match axis {
        Literal::Whole(axis) => Ok(*axis),
        _ => Err(missing("shape")),
    };
    let shape = shape.iter().map(axis).collect::<Result<_, String>>()?;
    Ok(ArrayHead { number, order, axes: if *fortran { Axes::FirstFastest } else { Axes::LastFastest }, shape })
}
