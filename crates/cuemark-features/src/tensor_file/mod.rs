//! Named tensors in the files that people publish weights in.
//!
//! Safetensors, PyTorch (a zip archive, and the older kind that is pickles one after the other), the constants of ONNX graphs, NumPy
//! files and pickled trees of NumPy arrays. Pickles are taken apart and never run: one that would call anything but the constructors of tensors and arrays
//! is refused by name. What is read takes a few times the size of the file at the most, and never more than the memory budget,
//! whatever the file claims.

mod numpy_tree;
mod onnx_file;
mod safetensors_file;
mod torch;
mod torch_writer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};

use camino::Utf8Path;
use cuemark_formats::npy::MAGIC as NPY_MAGIC;
use cuemark_formats::{Budget, Meter, Overwrite, ReadError, WholeFile};
use safetensors::tensor::{Dtype, TensorView};

use crate::array::Axes;
use crate::fault::{Fault, shorten};
use crate::layouts::npy;
use crate::number::{ByteOrder, Number};

/// Half-precision numbers double when they are read, tied weights come twice, and one more for good measure.
const COPIES: usize = 5;
/// Tensors of one file; the largest published networks have a few thousand.
const MOST_TENSORS: usize = 1 << 18;
/// Bytes of one tensor beside its name and its numbers.
const TENSOR: usize = size_of::<(String, NamedTensor)>() + 96;

/// Numbers of some shape, the last axis running fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTensor {
    /// The length of every axis; empty for a single number.
    pub shape: Vec<usize>,
    /// As many as the product of the shape, widened or rounded to single precision.
    pub values: Vec<f32>,
}

/// Which tensors of a PyTorch file are wanted; other kinds of file have but one table.
#[derive(Debug, Clone, Copy)]
pub enum Tables<'a> {
    /// All, the levels of dictionaries inside dictionaries joined by `.`.
    All,
    /// Those of the outermost dictionary; where it holds none, those of the first of these entries that holds some.
    OutermostOr(&'a [&'a str]),
}

/// Reads every floating-point tensor of a weight file, whatever its kind, by name.
///
/// The kind is told by content. Names are those of the file; the levels of a tree of arrays are joined by `/`, those of nested
/// PyTorch dictionaries by `.`; the one array of a NumPy file is called `array`. Tensors of whole numbers (positions, counts of batches) are left out.
///
/// # Errors
/// When the file cannot be read, is damaged, of no known kind, holds no tensor, passes the memory budget of the process, or is
/// a pickle that would call anything else than what makes a tensor. Nothing of a pickle is run either way.
pub fn read(path: &Utf8Path) -> Result<BTreeMap<String, NamedTensor>, ReadError> {
    read_tables(path, Tables::All)
}

/// As [`read`], of the tables that are wanted.
///
/// # Errors
/// As [`read`].
pub fn read_tables(path: &Utf8Path, tables: Tables<'_>) -> Result<BTreeMap<String, NamedTensor>, ReadError> {
    let hint = "the file is damaged or not a weight file: get it again from where it came";
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let tensors = parse_stream(BufReader::new(file), length, tables, &Meter::default());
    let tensors = tensors.map_err(|fault| fault.at(path, "its tensors").with_hint(hint))?;
    if tensors.is_empty() {
        return Err(ReadError::file(path, "holds no floating-point tensor").with_hint(hint));
    }
    Ok(tensors)
}

/// Writes named tensors as a file that PyTorch's `torch.load` opens, as `{name: tensor}`.
///
/// # Errors
/// When something is there already and may not be replaced, or the file cannot be written.
pub fn write_torch(
    path: &Utf8Path,
    overwrite: Overwrite,
    tensors: &BTreeMap<String, NamedTensor>,
) -> Result<(), ReadError> {
    let packed = torch_writer::pack(tensors.iter());
    let bytes = packed.map_err(|source| ReadError::Write { path: path.to_owned(), source })?;
    WholeFile::write_all_to(path, overwrite, &bytes)
}

/// Writes named tensors as a safetensors file.
///
/// # Errors
/// As [`write_torch`].
pub fn write_safetensors(
    path: &Utf8Path,
    overwrite: Overwrite,
    tensors: &BTreeMap<String, NamedTensor>,
) -> Result<(), ReadError> {
    let fault = |error: safetensors::SafeTensorError| ReadError::file(path, error);
    let bytes: Vec<Vec<u8>> =
        tensors.values().map(|tensor| tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect()).collect();
    let views = tensors.iter().zip(&bytes).map(|((name, tensor), bytes)| {
        TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).map(|view| (name, view)).map_err(fault)
    });
    let views = views.collect::<Result<Vec<_>, _>>()?;
    let file = safetensors::serialize(views, None).map_err(fault)?;
    WholeFile::write_all_to(path, overwrite, &file)
}

/// As [`read`], from memory. The error says what is wrong.
///
/// # Errors
/// As [`read`].
pub fn parse(bytes: &[u8]) -> Result<BTreeMap<String, NamedTensor>, String> {
    parse_within(bytes, Budget::default())
}

/// As [`parse`], with a memory budget of one's own.
///
/// # Errors
/// As [`read`].
pub fn parse_within(bytes: &[u8], budget: Budget) -> Result<BTreeMap<String, NamedTensor>, String> {
    parse_stream(Cursor::new(bytes), bytes.len() as u64, Tables::All, &Meter::new(budget))
        .map_err(|fault| fault.to_string())
}

/// Only what has to be is held beside the tensors themselves: a pickle, or one storage at a time.
fn parse_stream(
    mut file: impl Read + Seek,
    length: u64,
    tables: Tables<'_>,
    meter: &Meter,
) -> Result<BTreeMap<String, NamedTensor>, Fault> {
    let mut start = Vec::new();
    file.by_ref().take(LOOKED_AT).read_to_end(&mut start).map_err(Fault::Io)?;
    file.seek(SeekFrom::Start(0)).map_err(Fault::Io)?;
    let left = usize::try_from(length).unwrap_or(usize::MAX).saturating_mul(COPIES);
    let mut tensors = Collected { found: BTreeMap::new(), left, meter };
    match start.as_slice() {
        [b'P', b'K', 3, 4, ..] => torch::read_zip(file, length, tables, &mut tensors)?,
        start if start.starts_with(torch::LEGACY_MAGIC) => {
            torch::read_legacy(&meter.read_all(file, length)?, tables, &mut tensors)?;
        }
        [0x80, 2..=5, ..] => numpy_tree::read(&meter.read_all(file, length)?, &mut tensors)?,
        start if start.starts_with(NPY_MAGIC) => read_npy(&mut file, &mut tensors)?,
        [_, _, _, _, _, _, _, _, b'{', ..] => safetensors_file::read(file, length, &mut tensors)?,
        start if onnx_file::begins(start) => onnx_file::read(file, length, &mut tensors)?,
        _ => return Err("is no weight file: neither safetensors, PyTorch, ONNX, NumPy nor a pickle".into()),
    }
    Ok(tensors.found)
}

/// Bytes that tell the kind of a file.
const LOOKED_AT: u64 = 32;

/// A NumPy file: one array without a name.
fn read_npy(file: &mut dyn Read, tensors: &mut Collected<'_>) -> Result<(), Fault> {
    let head = npy::describe(file)?;
    let wanted = head.bytes().ok_or_else(|| format!("shape {:?} is too large", head.shape))?;
    let numbers = tensors.meter.read_all(file.take(wanted as u64), 0)?;
    let layout = match head.axes {
        Axes::LastFastest => Strided::dense(head.number, head.order, head.shape),
        Axes::FirstFastest => Strided::first_fastest(head.number, head.order, head.shape),
    };
    tensors.add("array", &layout, &numbers)
}

/// The tensors found so far, and how much room is left.
struct Collected<'m> {
    found: BTreeMap<String, NamedTensor>,
    /// Bytes that further tensors may take, whatever the budget: no file holds more than a few times itself.
    left: usize,
    meter: &'m Meter,
}

impl Collected<'_> {
    /// Adds the numbers that lie in `bytes` at `layout`.
    fn add(&mut self, name: &str, layout: &Strided, bytes: &[u8]) -> Result<(), Fault> {
        self.add_inner(name, layout, bytes).map_err(|fault| fault.of(&shorten(name)))
    }

    fn add_inner(&mut self, name: &str, layout: &Strided, bytes: &[u8]) -> Result<(), Fault> {
        let wanted = layout.shape.iter().try_fold(size_of::<f32>(), |bytes, axis| bytes.checked_mul(*axis));
        // A view with gaps costs as much as all it spans, so that no file can have itself read over and over.
        let spanned = layout.last().and_then(|last| (last - layout.offset).checked_mul(size_of::<f32>()));
        let cost = wanted.zip(spanned).map(|(wanted, spanned)| wanted.max(spanned));
        let cost = cost.filter(|cost| *cost <= self.left && self.found.len() < MOST_TENSORS);
        let Some((cost, (wanted, spanned))) = cost.zip(wanted.zip(spanned)) else {
            return Err(format!("shape {:?} is more than the file can hold", layout.shape).into());
        };
        self.left -= cost;
        self.meter.charge((TENSOR + name.len() + wanted) as u64)?;
        // What a view spans is widened before its numbers are picked out.
        let beside = if layout.is_dense() { 0 } else { spanned as u64 };
        self.meter.charge(beside)?;
        let values = layout.numbers(bytes)?;
        self.meter.release(beside);
        self.found.insert(name.to_owned(), NamedTensor { shape: layout.shape.clone(), values });
        Ok(())
    }
}

/// How the numbers of a tensor lie in some bytes.
struct Strided {
    number: Number,
    order: ByteOrder,
    /// Numbers before the first.
    offset: usize,
    shape: Vec<usize>,
    /// By axis: numbers from one to the next.
    strides: Vec<usize>,
}

impl Strided {
    /// Numbers one after the other, the last axis running fastest.
    fn dense(number: Number, order: ByteOrder, shape: Vec<usize>) -> Self {
        let mut strides = vec![1usize; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
        }
        Self { number, order, offset: 0, shape, strides }
    }

    /// The same with the first axis running fastest.
    fn first_fastest(number: Number, order: ByteOrder, shape: Vec<usize>) -> Self {
        let mut strides = vec![1usize; shape.len()];
        for axis in 1..shape.len() {
            strides[axis] = strides[axis - 1].saturating_mul(shape[axis - 1]);
        }
        Self { number, order, offset: 0, shape, strides }
    }

    /// The place of the last number; `None` when no file could hold it.
    fn last(&self) -> Option<usize> {
        self.shape.iter().zip(&self.strides).try_fold(self.offset, |last, (axis, stride)| {
            last.checked_add(axis.saturating_sub(1).checked_mul(*stride)?)
        })
    }

    fn numbers(&self, bytes: &[u8]) -> Result<Vec<f32>, String> {
        if self.shape.len() != self.strides.len() {
            return Err(format!("{} axes have {} strides", self.shape.len(), self.strides.len()));
        }
        if self.shape.contains(&0) {
            return Ok(Vec::new());
        }
        let size = self.number.bytes();
        let end = self.last().and_then(|last| last.checked_add(1)?.checked_mul(size));
        let span = end.and_then(|end| bytes.get(self.offset * size..end)).ok_or_else(|| {
            format!("shape {:?} reaches past the end of its numbers ({} bytes)", self.shape, bytes.len())
        })?;
        let near = self.number.decode(span, self.order);
        Ok(if self.is_dense() { near } else { self.gather(&near) })
    }

    fn is_dense(&self) -> bool {
        Self::dense(self.number, self.order, self.shape.clone()).strides == self.strides
    }

    /// Every number in order, from those between the first and the last.
    fn gather(&self, near: &[f32]) -> Vec<f32> {
        let count = self.shape.iter().product();
        let mut values = Vec::with_capacity(count);
        let mut place = vec![0; self.shape.len()];
        let mut at = 0usize;
        for _ in 0..count {
            // The caller has seen to it that the last place lies inside, so all do.
            values.push(near.get(at).copied().unwrap_or_default());
            for axis in (0..place.len()).rev() {
                place[axis] += 1;
                // An axis of length 1 may have any stride; it is taken back at once.
                at = at.wrapping_add(self.strides[axis]);
                if place[axis] < self.shape[axis] {
                    break;
                }
                at = at.wrapping_sub(self.strides[axis].wrapping_mul(self.shape[axis]));
                place[axis] = 0;
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_for_pytorch_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("weights.pt");
        let tensor = |shape: &[usize]| NamedTensor {
            shape: shape.to_vec(),
            values: (0..shape.iter().product()).map(|number: usize| number as f32 / 3.0).collect(),
        };
        let tensors = BTreeMap::from(
            [("a.weight", tensor(&[3, 4])), ("b", tensor(&[])), ("ü", tensor(&[2, 1, 5]))]
                .map(|(name, tensor)| (name.to_owned(), tensor)),
        );
        write_torch(&path, Overwrite::Never, &tensors).unwrap();
        assert_eq!(read(&path).unwrap(), tensors);
        assert!(write_torch(&path, Overwrite::Never, &tensors).is_err());
        write_safetensors(&path, Overwrite::Force, &tensors).unwrap();
        assert_eq!(read(&path).unwrap(), tensors);
    }

    fn bytes(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn transposed_and_offset_views_are_gathered_in_order() {
        let stored = bytes(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        // [[1, 2, 3], [4, 5, 6]] after one foreign number, and its transpose.
        let mut view = Strided::dense(Number::F32, ByteOrder::Little, vec![2, 3]);
        view.offset = 1;
        assert_eq!(view.numbers(&stored).unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let turned = Strided { shape: vec![3, 2], strides: vec![1, 3], ..view };
        assert_eq!(turned.numbers(&stored).unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let fortran = Strided::first_fastest(Number::F32, ByteOrder::Little, vec![2, 3]);
        assert_eq!(fortran.numbers(&stored).unwrap(), [9.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    }

    #[test]
    fn shapes_that_reach_past_the_numbers_are_refused() {
        let stored = bytes(&[1.0, 2.0, 3.0]);
        let of = |offset: usize, shape: &[usize], strides: &[usize]| {
            let (shape, strides) = (shape.to_vec(), strides.to_vec());
            Strided { number: Number::F32, order: ByteOrder::Little, offset, shape, strides }.numbers(&stored)
        };
        assert_eq!(of(2, &[], &[]).unwrap(), [3.0]);
        assert!(of(0, &[0, 7], &[7, 1]).unwrap().is_empty());
        assert_eq!(of(1, &[2, 2], &[0, 1]).unwrap(), [2.0, 3.0, 2.0, 3.0]);
        for (offset, shape, strides) in [
            (0, &[4][..], &[1][..]),
            (3, &[1], &[1]),
            (0, &[2], &[usize::MAX]),
            (usize::MAX, &[1], &[1]),
            (0, &[2], &[]),
        ] {
            assert!(of(offset, shape, strides).is_err(), "{offset} {shape:?} {strides:?}");
        }
    }

    #[test]
    fn a_file_cannot_claim_more_than_it_holds() {
        // One number, said to be a thousand million by a stride of zero.
        let meter = Meter::default();
        let mut tensors = Collected { found: BTreeMap::new(), left: 4 * COPIES, meter: &meter };
        let (shape, strides) = (vec![1_000_000_000], vec![0]);
        let layout = Strided { number: Number::F32, order: ByteOrder::Little, offset: 0, shape, strides };
        let error = tensors.add("bomb", &layout, &bytes(&[1.0])).unwrap_err();
        assert_eq!(error.to_string(), "`bomb`: shape [1000000000] is more than the file can hold");
    }

    #[test]
    fn what_is_no_weight_file_is_said_to_be_none() {
        for bytes in [&b""[..], b"\x00", b"<html>not found</html>", b"\x80\x01.", b"PK"] {
            assert!(parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
