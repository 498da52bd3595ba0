//! Arrays as they lie in other people's files, on their way to rows.

use std::io::{self, Read};

use cuemark_formats::Meter;

use crate::Features;
use crate::fault::Fault;
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

    /// The array whose numbers come from `stream`; what follows them is not looked at.
    ///
    /// Numbers are widened and put in order as they come, so that nothing but the rows themselves is ever held; those are
    /// counted before the first is read.
    pub(crate) fn read(&self, stream: &mut dyn Read, room: &Room<'_>) -> Result<Features, Fault> {
        let (rows, width) = rows_and_width(&self.shape)?;
        let too_large = || format!("shape {:?} is too large", self.shape);
        let wanted = self.bytes().ok_or_else(too_large)?;
        let count = wanted / self.number.bytes();
        let bytes = (count as u64).checked_mul(size_of::<f32>() as u64).ok_or_else(too_large)?;
        room.meter.charge(bytes)?;
        if bytes > room.largest {
            return Err(Fault::TooLarge(room.largest));
        }
        let mut data = Vec::new();
        if self.axes == Axes::FirstFastest {
            data.try_reserve_exact(count).map_err(|_| too_large())?;
            data.resize(count, 0.0f32);
        }
        let mut piece = vec![0; PIECE.min(wanted)];
        let mut done = 0;
        while done < count {
            let length = piece.len().min((count - done) * self.number.bytes());
            let bytes = piece.get_mut(..length).unwrap_or_default();
            stream.read_exact(bytes).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    Fault::Wrong(format!("shape {:?} needs {wanted} bytes, the file has fewer", self.shape))
                }
                _ => Fault::Io(error),
            })?;
            let numbers = self.number.decode(bytes, self.order);
            done = match self.axes {
                Axes::LastFastest => {
                    // Room as numbers come, so that a shape alone takes none; all of it was counted.
                    if data.capacity() == data.len() {
                        let more = data.len().max(PIECE).min(count - data.len());
                        data.try_reserve_exact(more).map_err(|_| too_large())?;
                    }
                    data.extend(numbers);
                    data.len()
                }
                Axes::FirstFastest => {
                    for (place, number) in (done..).zip(&numbers) {
                        // Column after column: number `place` is row `place % rows` of column `place / rows`.
                        if let Some(slot) = data.get_mut((place % rows) * width + place / rows) {
                            *slot = *number;
                        }
                    }
                    done + numbers.len()
                }
            };
        }
        Ok(Features::from_parts(rows, width, data))
    }
}

/// Bytes that are read at once; whole numbers of every kind.
const PIECE: usize = 64 << 10;

/// How much memory one array may take.
pub(crate) struct Room<'m> {
    /// What the reading keeps.
    pub(crate) meter: &'m Meter,
    /// The most that the rows of one video may take, in bytes.
    pub(crate) largest: u64,
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
        let meter = Meter::default();
        let room = |largest| Room { meter: &meter, largest };
        let read = |largest| head.read(&mut bytes.as_slice(), &room(largest));
        assert_eq!(read(24).unwrap().data(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(meter.kept(), 24);
        assert!(matches!(read(23), Err(Fault::TooLarge(23))));
    }

    #[test]
    fn numbers_that_widen_are_counted_as_wide_as_they_become() {
        let head =
            ArrayHead { number: Number::F16, order: ByteOrder::Little, axes: Axes::LastFastest, shape: vec![4, 3] };
        let bytes = vec![0; 24];
        let read = |budget, bytes: &[u8]| {
            let meter = Meter::new(cuemark_formats::Budget::new(budget));
            head.read(&mut { bytes }, &Room { meter: &meter, largest: u64::MAX })
        };
        assert_eq!(read(48, &bytes).unwrap().rows(), 4);
        assert!(matches!(read(47, &bytes), Err(Fault::Memory(_))));
        assert!(matches!(read(48, &bytes[1..]), Err(Fault::Wrong(_))));
    }
}
