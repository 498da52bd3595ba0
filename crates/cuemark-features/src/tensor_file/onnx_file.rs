//! ONNX: the constant tensors of a graph. What the graph does with them is left where it is.
//!
//! The file is a protocol buffer: fields, each with a number and a kind; a field may hold a message, which is fields again. Of the
//! model (`ModelProto`) field 7 is the graph, of the graph (`GraphProto`) each field 5 is a tensor.

use std::io::Read;

use super::{Collected, Strided};
use crate::fault::Fault;
use crate::number::{ByteOrder, Number};

const MODEL_GRAPH: u64 = 7;
const GRAPH_TENSOR: u64 = 5;
/// Axes of a tensor; a byte of a file may claim one.
const MOST_AXES: usize = 32;

/// The fields of a tensor (`TensorProto`) that are read.
mod tensor {
    pub(super) const SHAPE: u64 = 1;
    pub(super) const KIND: u64 = 2;
    pub(super) const FLOATS: u64 = 4;
    pub(super) const NAME: u64 = 8;
    pub(super) const BYTES: u64 = 9;
    pub(super) const PLACE: u64 = 14;
}

/// Whether a file may be one: its first field is the version of the format, and a second one follows.
pub(super) fn begins(start: &[u8]) -> bool {
    matches!(start, [0x08, 1..=127, next, ..] if matches!(next >> 3, 2..=8) && matches!(next & 7, 0 | 2))
}

pub(super) fn read(file: impl Read, length: u64, tensors: &mut Collected<'_>) -> Result<(), Fault> {
    let bytes = tensors.meter.read_all(file, length)?;
    let mut has_graph = false;
    for field in Fields(&bytes) {
        let (MODEL_GRAPH, Value::Bytes(graph)) = field? else { continue };
        has_graph = true;
        for field in Fields(graph) {
            if let (GRAPH_TENSOR, Value::Bytes(tensor)) = field? {
                add(tensor, tensors)?;
            }
        }
    }
    tensors.meter.release(bytes.len() as u64);
    if has_graph { Ok(()) } else { Err("is an ONNX model without a graph".into()) }
}

fn add(message: &[u8], tensors: &mut Collected<'_>) -> Result<(), Fault> {
    let (mut shape, mut name, mut kind, mut numbers) = (Vec::new(), "", 0, None);
    for field in Fields(message) {
        match field? {
            (tensor::SHAPE, Value::Number(length)) => add_axis(&mut shape, length)?,
            (tensor::SHAPE, Value::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    add_axis(&mut shape, varint(&mut packed)?)?;
                }
            }
            (tensor::KIND, Value::Number(number)) => kind = number,
            (tensor::NAME, Value::Bytes(text)) => name = str::from_utf8(text).map_err(|_| "a name is no text")?,
            (tensor::BYTES | tensor::FLOATS, Value::Bytes(bytes)) => numbers = Some(bytes),
            (tensor::PLACE, Value::Number(1)) => {
                return Err(format!("the numbers of `{name}` lie in another file").into());
            }
            _ => {}
        }
    }
    let number = match kind {
        1 => Number::F32,
        10 => Number::F16,
        11 => Number::F64,
        16 => Number::Bf16,
        // Whole numbers: shapes, places.
        _ => return Ok(()),
    };
    tensors.add(name, &Strided::dense(number, ByteOrder::Little, shape), numbers.unwrap_or_default())
}

fn add_axis(shape: &mut Vec<usize>, length: u64) -> Result<(), Fault> {
    let length = usize::try_from(length).map_err(|_| format!("an axis of {length} numbers"))?;
    if shape.len() == MOST_AXES {
        return Err(format!("more than {MOST_AXES} axes").into());
    }
    shape.push(length);
    Ok(())
}

/// What a field holds; fixed numbers are passed over.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// The fields of a message, in its order, each with its number.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            // Nothing after it can be told apart.
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u64, Value<'a>), Fault> {
        let head = varint(&mut self.0)?;
        let value = match head & 7 {
            0 => Value::Number(varint(&mut self.0)?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = varint(&mut self.0)?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            other => return Err(format!("a field of kind {other}").into()),
        };
        Ok((head >> 3, value))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Fault> {
        let split = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let Some((taken, rest)) = split else { return Err("it ends within a field".into()) };
        self.0 = rest;
        Ok(taken)
    }
}

/// A whole number of seven bits a byte, the lowest first.
fn varint(bytes: &mut &[u8]) -> Result<u64, Fault> {
    let mut number = 0;
    for place in 0..10 {
        let Some((byte, rest)) = bytes.split_first() else { return Err("it ends within a number".into()) };
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number has too many bytes".into())
}

#[cfg(test)]
mod tests {
    use super::super::{NamedTensor, parse};

    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let mut all = vec![number << 3 | 2, content.len() as u8];
        all.extend(content);
        all
    }

    /// A model of the eighth version whose graph has these tensors, with what real ones have around them.
    fn model(tensors: &[Vec<u8>]) -> Vec<u8> {
        let graph: Vec<u8> = tensors.iter().flat_map(|tensor| bytes(5, tensor)).chain(bytes(2, b"main")).collect();
        [vec![0x08, 8], bytes(2, b"somebody"), bytes(7, &graph), bytes(8, &[0x10, 11])].concat()
    }

    fn floats(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn tensors_are_found_by_name_however_they_are_written() {
        let raw = [vec![0x08, 2, 0x08, 1, 0x10, 1], bytes(8, b"a/kernel:0"), bytes(9, &floats(&[1.0, -2.0]))].concat();
        let packed = [bytes(1, &[3]), vec![0x10, 1], bytes(4, &floats(&[4.0, 5.0, 6.0])), bytes(8, b"b")].concat();
        let half = [vec![0x08, 1, 0x10, 10], bytes(9, &[0x00, 0x3c]), bytes(8, b"half")].concat();
        let whole = [vec![0x08, 1, 0x10, 7], bytes(8, b"shape"), bytes(9, &[0; 8])].concat();
        let found = parse(&model(&[raw, packed, half, whole])).unwrap();
        let tensor = |shape: &[usize], values: &[f32]| NamedTensor { shape: shape.to_vec(), values: values.to_vec() };
        assert_eq!(found.len(), 3, "whole numbers are no weights");
        assert_eq!(found["a/kernel:0"], tensor(&[2, 1], &[1.0, -2.0]));
        assert_eq!(found["b"], tensor(&[3], &[4.0, 5.0, 6.0]));
        assert_eq!(found["half"], tensor(&[1], &[1.0]));
    }

    #[test]
    fn what_is_cut_short_or_claims_too_much_is_refused() {
        let good = [vec![0x08, 2, 0x10, 1], bytes(8, b"a"), bytes(9, &floats(&[1.0, 2.0]))].concat();
        let whole = model(std::slice::from_ref(&good));
        assert_eq!(parse(&whole).unwrap().len(), 1);
        for end in 3..whole.len() - 4 {
            assert!(parse(&whole[..end]).is_err(), "{end}");
        }
        let more = [vec![0x08, 3, 0x10, 1], bytes(8, b"a"), bytes(9, &floats(&[1.0, 2.0]))].concat();
        assert!(parse(&model(&[more])).unwrap_err().contains("`a`"));
        let elsewhere = [vec![0x08, 1, 0x10, 1, 0x70, 1], bytes(8, b"a")].concat();
        assert!(parse(&model(&[elsewhere])).unwrap_err().contains("another file"));
        let deep = [bytes(1, &[1; 40]), vec![0x10, 1], bytes(8, b"a")].concat();
        assert!(parse(&model(&[deep])).unwrap_err().contains("32 axes"));
        let endless = [vec![0x08], vec![0xff; 10]].concat();
        assert!(parse(&model(&[endless])).unwrap_err().contains("too many bytes"));
    }
}
