//! A user's own similarities, read from a file tile by tile.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cuemark_formats::{ReadError, Source};

use super::npy::{self, Shape};
use super::{Result, Similarity};

/// Similarities in a file: NumPy's `.npy` in single precision, or CSV without a header, one row per thing on the left.
///
/// A plain `.npy` is read where it lies, so it may be far larger than memory. CSV and compressed files are unpacked
/// once into a temporary file of their own.
pub struct MatrixFile {
    source: Source,
    shape: Shape,
    /// Where the first number stands.
    offset: u64,
    file: Mutex<File>,
}

impl MatrixFile {
    /// Opens a matrix that should compare `left` things with `right` things.
    ///
    /// # Errors
    /// When it cannot be read or has another shape. Values of a plain `.npy` are checked as they are used.
    pub fn open(source: &Source, left: usize, right: usize) -> Result<Self> {
        let expected = Shape { rows: left, columns: right };
        let name = source.path().file_name().unwrap_or_default();
        let (file, offset) = if name.ends_with(".npy") {
            let mut file = File::open(source.path()).map_err(|error| source.io(error))?;
            let (shape, offset) = npy::read_header(source, &mut file)?;
            check_shape(source, expected, shape)?;
            check_length(source, &file, shape, offset)?;
            (file, offset)
        } else {
            let mut spool = tempfile::tempfile().map_err(|error| source.io(error))?;
            if name.contains(".npy.") {
                unpack_npy(source, expected, &mut spool)?;
            } else {
                unpack_csv(source, expected, &mut spool)?;
            }
            (spool, 0)
        };
        Ok(Self { source: source.clone(), shape: expected, offset, file: Mutex::new(file) })
    }

    fn read_row(&self, file: &mut File, row: usize, columns: &Range<usize>, bytes: &mut [u8]) -> Result<(), ReadError> {
        let cell = (row * self.shape.columns + columns.start) as u64;
        file.seek(SeekFrom::Start(self.offset + cell * 4)).map_err(|error| self.source.io(error))?;
        file.read_exact(bytes).map_err(|error| npy::too_short(&self.source, self.shape, error))
    }
}

impl Similarity for MatrixFile {
    fn name(&self) -> &str {
        self.source.path().file_name().unwrap_or_default()
    }

    fn left(&self) -> usize {
        self.shape.rows
    }

    fn right(&self) -> usize {
        self.shape.columns
    }

    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) -> Result<()> {
        let mut bytes = vec![0; columns.len() * 4];
        // A reader that panicked left nothing half done: every read seeks first.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        for (row, out) in rows.zip(out.chunks_exact_mut(columns.len().max(1))) {
            self.read_row(&mut file, row, &columns, &mut bytes)?;
            for ((value, out), column) in npy::numbers(&bytes).zip(out).zip(columns.clone()) {
                check_finite(&self.source, row, column, value)?;
                *out = value;
            }
        }
        Ok(())
    }
}

fn check_shape(source: &Source, expected: Shape, found: Shape) -> Result<(), ReadError> {
    if expected == found {
        return Ok(());
    }
    let problem = format!(
        "has {} rows and {} columns where {} and {} are compared",
        found.rows, found.columns, expected.rows, expected.columns
    );
    Err(source
        .fault(problem)
        .with_hint("rows and columns must be in the order of the queries and videos they stand for"))
}

fn check_length(source: &Source, file: &File, shape: Shape, offset: u64) -> Result<(), ReadError> {
    let length = file.metadata().map_err(|error| source.io(error))?.len();
    let cells = (shape.rows as u64).checked_mul(shape.columns as u64);
    let declared = cells.and_then(|cells| cells.checked_mul(4)).and_then(|bytes| bytes.checked_add(offset));
    if declared != Some(length) {
        let problem = format!("its {length} bytes are not the {} × {} numbers it declares", shape.rows, shape.columns);
        return Err(source.fault(problem));
    }
    Ok(())
}

fn check_finite(source: &Source, row: usize, column: usize, value: f32) -> Result<(), ReadError> {
    if value.is_finite() {
        return Ok(());
    }
    Err(source.record(row + 1, format!("column {}", column + 1), format!("{value} is not a finite number")))
}

fn unpack_npy(source: &Source, expected: Shape, spool: &mut File) -> Result<(), ReadError> {
    let mut reader = source.open()?;
    let (shape, _) = npy::read_header(source, &mut reader)?;
    check_shape(source, expected, shape)?;
    let bytes = (shape.rows as u64).saturating_mul(shape.columns as u64).saturating_mul(4);
    // One byte more than declared, so that a longer file shows.
    let copied = std::io::copy(&mut reader.take(bytes.saturating_add(1)), spool).map_err(|error| source.io(error))?;
    if copied != bytes {
        return Err(source.fault(format!("does not hold the {} × {} numbers it declares", shape.rows, shape.columns)));
    }
    Ok(())
}

fn unpack_csv(source: &Source, expected: Shape, spool: &mut File) -> Result<(), ReadError> {
    let mut spool = std::io::BufWriter::new(spool);
    let mut rows = 0;
    source.for_each_line(|line, text| {
        rows += 1;
        if rows > expected.rows {
            return check_shape(source, expected, Shape { rows, columns: expected.columns });
        }
        let mut columns = 0;
        for field in text.split(',') {
            columns += 1;
            let place = || format!("column {columns}");
            let value: f32 = field.trim().parse().map_err(|_| {
                source.record(line, place(), format!("`{}` is not a number", field.trim())).with_hint("no header line")
            })?;
            check_finite(source, line - 1, columns - 1, value)?;
            spool.write_all(&value.to_le_bytes()).map_err(|error| source.io(error))?;
        }
        if columns != expected.columns {
            let problem = format!("{columns} columns where {} are compared", expected.columns);
            return Err(source.record(line, "row", problem));
        }
        Ok(())
    })?;
    check_shape(source, expected, Shape { rows, columns: expected.columns })?;
    spool.flush().map_err(|error| source.io(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::{of_pair, top_k};
    use camino::Utf8PathBuf;
    use cuemark_formats::{Overwrite, WholeFile};

    fn open(name: &str, bytes: &[u8], left: usize, right: usize) -> Result<MatrixFile> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join(name)).unwrap();
        WholeFile::write_all_to(&path, Overwrite::Never, bytes).unwrap();
        MatrixFile::open(&Source::new(path), left, right)
    }

    fn problem(name: &str, bytes: &[u8], left: usize, right: usize) -> String {
        let message = match open(name, bytes, left, right) {
            Err(error) => error.to_string(),
            Ok(matrix) => top_k(&matrix, 1).unwrap_err().to_string(),
        };
        message.rsplit_once(name).map_or(message.clone(), |(_, problem)| problem.to_owned())
    }

    #[test]
    fn every_layout_gives_the_same_pairs() {
        let npy = npy::encode("<f4", 2, 3, &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
        let csv = b"0.1,0.2,0.3\n0.4, 0.5,0.6\n".as_slice();
        for (name, bytes) in [("m.npy", npy.as_slice()), ("m.npy.gz", &npy), ("m.csv", csv), ("m.csv.zst", csv)] {
            let matrix = open(name, bytes, 2, 3).unwrap();
            assert_eq!(matrix.name(), name);
            assert_eq!(of_pair(&matrix, 0, 2).unwrap(), 0.3, "{name}");
            assert_eq!(of_pair(&matrix, 1, 1).unwrap(), 0.5, "{name}");
        }
    }

    #[test]
    fn another_shape_is_refused() {
        let expected = ": has 2 rows and 2 columns where 3 and 2 are compared";
        assert_eq!(problem("m.npy", &npy::encode("<f4", 2, 2, &[0.0; 4]), 3, 2), expected);
        assert_eq!(problem("m.npy.gz", &npy::encode("<f4", 2, 2, &[0.0; 4]), 3, 2), expected);
        assert_eq!(problem("m.csv", b"0,0\n0,0\n", 3, 2), expected);
        assert_eq!(problem("m.csv", b"0,0\n0,0,0\n", 2, 2), ":2: `row`: 3 columns where 2 are compared");
        assert!(problem("m.csv", b"0,0\n0,0\n0,0\n", 2, 2).contains("has 3 rows"));
    }

    #[test]
    fn values_that_are_not_finite_are_named() {
        let nan = npy::encode("<f4", 2, 2, &[0.0, 0.0, 0.0, f32::NAN]);
        assert_eq!(problem("m.npy", &nan, 2, 2), ":2: `column 2`: NaN is not a finite number");
        assert_eq!(problem("m.csv", b"0,inf\n", 1, 2), ":1: `column 2`: inf is not a finite number");
        assert_eq!(problem("m.csv", b"left,right\n", 1, 2), ":1: `column 1`: `left` is not a number");
    }

    #[test]
    fn a_file_that_is_cut_short_is_refused() {
        let mut bytes = npy::encode("<f4", 2, 2, &[0.0; 4]);
        bytes.truncate(bytes.len() - 3);
        assert!(problem("m.npy", &bytes, 2, 2).contains("are not the 2 × 2 numbers it declares"));
        assert!(problem("m.npy.gz", &bytes, 2, 2).contains("does not hold the 2 × 2 numbers"));
    }
}
