//! Arrays as they lie in other people's files, on their way to rows.

use crate::Features;
use crate::number::{ByteOrder, Number};

/// How an array's numbers follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axes {
    /// The last axis runs fastest, as in C.
    LastFastest,
    /// The first axis runs fastest, as in Fortran.
    FirstFastest,
}

/// What a file says about an array before its numbers come.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArrayHead {
    pub(crate) number: Number,
    pub(crate) order: ByteOrder,
    pub(crate) axes: Axes,
    pub(crate) shape: Vec<usize>,
}

impl ArrayHead {
    /// Bytes of all its numbers; `None` when no file could hold them.
    pub(crate) fn bytes(&self) -> Option<usize> {
        self.shape.iter().try_fold(self.number.bytes(), |bytes, axis| bytes.checked_mul(*axis))
    }

    /// The array whose numbers begin `bytes`; what follows them is not looked at. The error says what is wrong.
    pub(crate) fn features(&self, bytes: &[u8]) -> Result<Features, String> {
        let (rows, width) = rows_and_width(&self.shape)?;
        let wanted = self.bytes().ok_or_else(|| format!("shape {:?} is too large", self.shape))?;
        let numbers = bytes
            .get(..wanted)
            .ok_or_else(|| format!("shape {:?} needs {wanted} bytes, the file has {}", self.shape, bytes.len()))?;
        let data = self.number.decode(numbers, self.order);
        let data = match self.axes {
            Axes::LastFastest => data,
            Axes::FirstFastest => transposed(&data, rows),
        };
        Ok(Features::from_parts(rows, width, data))
    }
}

/// Rows and width of a shape. Axes of length 1 that extractors leave behind are dropped: `(n, 1, 1, D)` and `(1, n, D)` are
/// `n` rows, so is `(n, D, 1, 1)`, and `(D)` is one row.
pub(crate) fn rows_and_width(shape: &[usize]) -> Result<(usize, usize), String> {
    let unfit = || format!("shape {shape:?} is not rows × width");
    let mut axes = shape;
    while let [shorter @ .., 1] = axes
        && shorter.len() >= 2
    {
        axes = shorter;
    }
    let (&width, others) = axes.split_last().ok_or_else(unfit)?;
    let long: Vec<usize> =
        if others.len() > 1 { others.iter().copied().filter(|axis| *axis != 1).collect() } else { others.to_vec() };
    match long.as_slice() {
        _ if width == 0 => Err(unfit()),
        [] => Ok((1, width)),
        [rows] => Ok((*rows, width)),
        _ => Err(unfit()),
    }
}

fn transposed(data: &[f32], rows: usize) -> Vec<f32> {
    (0..rows).flat_map(|row| data.iter().skip(row).step_by(rows)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_length_one_are_dropped_and_others_are_not() {
        for (shape, expected) in [
            (&[7, 5][..], (7, 5)),
            (&[1, 5], (1, 5)),
            (&[7, 1], (7, 1)),
            (&[0, 5], (0, 5)),
            (&[5], (1, 5)),
            (&[7, 1, 1, 5], (7, 5)),
            (&[1, 7, 5], (7, 5)),
            (&[7, 5, 1, 1], (7, 5)),
            (&[1, 1, 1, 5], (1, 5)),
        ] {
            assert_eq!(rows_and_width(shape), Ok(expected), "{shape:?}");
        }
        for shape in [&[][..], &[0], &[7, 0], &[2, 3, 4], &[7, 2, 2, 5]] {
            assert!(rows_and_width(shape).is_err(), "{shape:?}");
        }
    }

    #[test]
    fn arrays_in_fortran_order_are_turned() {
        let head =
            ArrayHead { number: Number::F32, order: ByteOrder::Little, axes: Axes::FirstFastest, shape: vec![2, 3] };
        // [[1, 2, 3], [4, 5, 6]] column after column.
        let bytes: Vec<u8> = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(head.features(&bytes).unwrap().data(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
}
