//! NumPy's `.npy`: a short header in Python's notation, then the numbers.

use std::io::Read;

use cuemark_formats::npy::{Head, HeadError};
use cuemark_formats::{ReadError, Result, Source};

/// Rows and columns of a matrix in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// Reads a whole two-dimensional file of single-precision numbers, within the source's limit for documents.
pub(super) fn read(source: &Source) -> Result<(Shape, Vec<f32>)> {
    let mut reader = source.open()?;
    let (shape, _) = read_header(source, &mut reader)?;
    let bytes = (shape.rows as u64).checked_mul(shape.columns as u64).and_then(|cells| cells.checked_mul(4));
    let limit = source.limits().document;
    if bytes.is_none_or(|bytes| bytes > limit) {
        let what = format!("a matrix of {} × {}", shape.rows, shape.columns);
        return Err(ReadError::TooLarge { path: source.path().to_owned(), what, limit });
    }
    let cells = shape.rows * shape.columns;
    // Grown as bytes arrive, so that a header alone cannot claim memory.
    let mut values = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while values.len() < cells {
        let wanted = buffer.len().min((cells - values.len()) * 4);
        reader.read_exact(&mut buffer[..wanted]).map_err(|error| too_short(source, shape, error))?;
        source.charge(1, 2 * wanted)?;
        values.extend(numbers(&buffer[..wanted]));
    }
    if reader.read(&mut buffer).map_err(|error| source.io(error))? > 0 {
        return Err(source.fault(format!("holds more than the {} × {} it declares", shape.rows, shape.columns)));
    }
    Ok((shape, values))
}

/// Little-endian single-precision numbers.
pub(super) fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

/// The shape that the header states and how many bytes it took.
pub(super) fn read_header(source: &Source, reader: &mut dyn Read) -> Result<(Shape, u64)> {
    let head = Head::read(reader).map_err(|error| match error {
        HeadError::Io(error) => source.io(error),
        HeadError::Wrong(problem) => source.fault(problem).with_hint("save the matrix with `numpy.save`"),
    })?;
    let hint = "save it with `numpy.save(path, numpy.ascontiguousarray(matrix, dtype='float32'))`";
    if head.descr != "<f4" {
        let problem = format!("`descr`: `{}` is not single precision (`<f4`)", head.descr);
        return Err(source.fault(problem).with_hint(hint));
    }
    if head.fortran_order {
        return Err(source.fault("`fortran_order`: the matrix lies column after column").with_hint(hint));
    }
    match head.shape[..] {
        [rows, columns] => Ok((Shape { rows, columns }, head.length)),
        _ => Err(source.fault(format!("`shape`: {:?} is not a matrix of rows and columns", head.shape))),
    }
}

/// What to say when the numbers end too early.
pub(super) fn too_short(source: &Source, shape: Shape, error: std::io::Error) -> ReadError {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            source.fault(format!("ends before the {} × {} numbers it declares", shape.rows, shape.columns))
        }
        _ => source.io(error),
    }
}

/// A file for tests, as NumPy would write it.
#[cfg(test)]
pub(super) fn encode(kind: &str, rows: usize, columns: usize, values: &[f32]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    header.push_str(&" ".repeat(63 - (header.len() + 10) % 64));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use camino::Utf8PathBuf;
    use cuemark_formats::Limits;

    fn read_bytes(bytes: &[u8]) -> Result<(Shape, Vec<f32>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("m.npy")).unwrap();
        std::fs::write(&path, bytes).unwrap();
        read(&Source::new(path).with_limits(Limits { document: 1 << 20, ..Limits::default() }))
    }

    #[test]
    fn a_matrix_is_read_row_after_row() {
        let (shape, values) = read_bytes(&encode("<f4", 2, 3, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])).unwrap();
        assert_eq!(shape, Shape { rows: 2, columns: 3 });
        assert_eq!(values, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn other_kinds_of_number_and_lying_headers_are_refused() {
        let say = |bytes: &[u8]| {
            let message = read_bytes(bytes).unwrap_err().to_string();
            message.rsplit_once("m.npy: ").map_or(message.clone(), |(_, problem)| problem.to_owned())
        };
        assert_eq!(say(b"qid,similarity\n"), "is no `.npy` file, or its header is cut short");
        assert_eq!(say(&encode("<f8", 1, 1, &[])), "`descr`: `<f8` is not single precision (`<f4`)");
        assert_eq!(say(&encode("<f4", 2, 2, &[0.0; 3])), "ends before the 2 × 2 numbers it declares");
        assert_eq!(say(&encode("<f4", 1, 2, &[0.0; 3])), "holds more than the 1 × 2 it declares");
        assert!(say(&encode("<f4", usize::MAX, 9, &[])).contains("is larger than 1 MiB"));
    }

    #[test]
    fn a_damaged_file_is_an_error_and_never_a_panic() {
        let good = encode("<f4", 3, 4, &[0.5; 12]);
        for cut in 0..good.len() {
            assert!(read_bytes(&good[..cut]).is_err(), "cut at {cut}");
        }
        let mut rng = cuemark_core::Rng::new(5);
        for _ in 0..200 {
            let mut bytes = good.clone();
            let place = rng.below(140);
            bytes[place] = rng.bits32() as u8;
            let _ = read_bytes(&bytes);
        }
    }
}
