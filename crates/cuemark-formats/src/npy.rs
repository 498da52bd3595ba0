//! The head of NumPy's `.npy`: `\x93NUMPY`, a version, the length of the header, the header as a Python dictionary. The
//! numbers follow it.

use std::io::{self, Read};

use crate::python_literal::{self, Literal};

/// What every `.npy` begins with.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// The most that a header may take, in bytes; NumPy's own are below 200.
const LONGEST: usize = 64 << 10;

/// What a file says about its array before the numbers come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// NumPy's name of the type: `<f4`.
    pub descr: String,
    /// Whether the first axis runs fastest.
    pub fortran_order: bool,
    /// The length of every axis, as claimed.
    pub shape: Vec<usize>,
    /// Bytes that the head takes, so the place of the first number.
    pub length: u64,
}

/// Why there is no head.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// The system refused.
    #[error(transparent)]
    Io(io::Error),
    /// The bytes are none; the text says why.
    #[error("{0}")]
    Wrong(String),
}

impl Head {
    /// Reads the head and leaves `reader` at the first number.
    ///
    /// # Errors
    /// When there is none, or it does not say what it must.
    pub fn read(reader: &mut dyn Read) -> Result<Self, HeadError> {
        let mut start = [0; 8];
        fill(reader, &mut start)?;
        if !start.starts_with(MAGIC) || !(1..=3).contains(&start[6]) {
            return Err(not_npy());
        }
        // Version 1 gives the header's length in two bytes, later ones in four.
        let digits = if start[6] == 1 { 2 } else { 4 };
        let mut length = [0; 4];
        fill(reader, &mut length[..digits])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(HeadError::Wrong(format!("its header claims {length} bytes")));
        }
        let mut header = vec![0; length];
        fill(reader, &mut header)?;
        // Versions 1 and 2 are Latin-1, but nothing outside ASCII can stand in a header that anybody accepts.
        let header = std::str::from_utf8(&header).map_err(|_| HeadError::Wrong("its header is not text".to_owned()))?;
        Self::parse(header, (start.len() + digits + length) as u64).map_err(HeadError::Wrong)
    }

    /// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`
    fn parse(header: &str, length: u64) -> Result<Self, String> {
        let header = python_literal::parse(header).map_err(|problem| format!("header: {problem}"))?;
        let missing = |key: &str| format!("header: no `{key}`");
        let Some(Literal::Text(descr)) = header.entry("descr") else { return Err(missing("descr")) };
        let Some(Literal::Truth(fortran)) = header.entry("fortran_order") else { return Err(missing("fortran_order")) };
        let Some(Literal::Items(shape)) = header.entry("shape") else { return Err(missing("shape")) };
        let axis = |axis: &Literal| match axis {
            Literal::Whole(axis) => Ok(*axis),
            _ => Err(missing("shape")),
        };
        let shape = shape.iter().map(axis).collect::<Result<_, String>>()?;
        Ok(Self { descr: descr.clone(), fortran_order: *fortran, shape, length })
    }
}

fn fill(reader: &mut dyn Read, bytes: &mut [u8]) -> Result<(), HeadError> {
    reader.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => not_npy(),
        _ => HeadError::Io(error),
    })
}

fn not_npy() -> HeadError {
    HeadError::Wrong("is no `.npy` file, or its header is cut short".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, header: &str) -> Vec<u8> {
        let length = (header.len() as u32).to_le_bytes();
        [MAGIC, &[version, 0], &length[..if version == 1 { 2 } else { 4 }], header.as_bytes(), &[7]].concat()
    }

    #[test]
    fn heads_of_every_version_are_read_up_to_the_first_number() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n";
        for version in 1..=3 {
            let bytes = file(version, header);
            let mut rest = bytes.as_slice();
            let head = Head::read(&mut rest).unwrap();
            assert_eq!((head.descr.as_str(), head.fortran_order, head.shape.as_slice()), ("<f4", false, &[3, 4][..]));
            assert_eq!((rest, head.length as usize), (&[7][..], bytes.len() - 1));
        }
    }

    #[test]
    fn what_is_no_head_is_refused() {
        let good = file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}");
        for length in 0..good.len() - 1 {
            assert!(Head::read(&mut &good[..length]).is_err(), "{length}");
        }
        let huge = [MAGIC, &[2, 0], &u32::MAX.to_le_bytes()].concat();
        for bytes in [file(4, "{}"), file(1, "{}"), file(1, "{'descr': 1}"), huge] {
            assert!(Head::read(&mut bytes.as_slice()).is_err());
        }
    }
}
