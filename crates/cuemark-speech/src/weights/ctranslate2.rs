//! CTranslate2's `model.bin`: named tensors one after the other, little-endian.
//!
//! `u32` version; `u16`-counted name of the specification (with a zero byte), `u32` revision; `u32` count of tensors, each a name,
//! `u8` axes, their `u32` lengths, `u8` kind of number, `u32` bytes, the numbers; then `u32` count of pairs of names that mean the
//! same. Versions 4 to 6 are read; older ones count numbers instead of bytes.
//!
//! Whole numbers that stand for weights have a `…_scale` beside them, one for each row (`int8`) or one for all (`int16`): the weight
//! is the number divided by it. The file may claim anything: nothing is set aside before its bytes are there.

use std::collections::BTreeMap;
use std::io::Read;

use cuemark_features::tensor_file::NamedTensor;
use cuemark_formats::Meter;
use half::{bf16, f16};

/// Tensors of one file; the largest Whisper has some two thousand.
const MOST_TENSORS: u32 = 1 << 16;
/// Axes of one tensor.
const MOST_AXES: u8 = 8;
/// Bytes of one tensor beside its name and its numbers.
const TENSOR: u64 = 256;
/// Bytes that are read at once.
const STEP: u64 = 1 << 20;

/// What one number is, by CTranslate2's numbering.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    F32,
    I8,
    I16,
    I32,
    F16,
    Bf16,
}

impl Kind {
    fn of(code: u8) -> Option<Self> {
        [Self::F32, Self::I8, Self::I16, Self::I32, Self::F16, Self::Bf16].get(usize::from(code)).copied()
    }

    fn bytes(self) -> u64 {
        match self {
            Self::I8 => 1,
            Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
        }
    }

    fn widen(self, bytes: &[u8], into: &mut Vec<f32>) {
        let pairs = || bytes.as_chunks::<2>().0.iter().copied();
        let fours = || bytes.as_chunks::<4>().0.iter().copied();
        match self {
            Self::F32 => into.extend(fours().map(f32::from_le_bytes)),
            Self::I8 => into.extend(bytes.iter().map(|byte| f32::from(byte.cast_signed()))),
            Self::I16 => into.extend(pairs().map(|pair| f32::from(i16::from_le_bytes(pair)))),
            Self::I32 => into.extend(fours().map(|four| i32::from_le_bytes(four) as f32)),
            Self::F16 => into.extend(pairs().map(|pair| f16::from_le_bytes(pair).to_f32())),
            Self::Bf16 => into.extend(pairs().map(|pair| bf16::from_le_bytes(pair).to_f32())),
        }
    }
}

/// Every tensor by name, scaled, and under each of its other names too. The error says what is wrong.
pub(crate) fn parse(from: impl Read, length: u64, meter: &Meter) -> Result<BTreeMap<String, NamedTensor>, String> {
    let mut bytes = Bytes { from, left: length };
    let version = bytes.u32()?;
    if !(4..=6).contains(&version) {
        return Err(format!("version {version} of CTranslate2's files is not known, 4 to 6 are"));
    }
    let specification = bytes.text(meter)?;
    if specification != "WhisperSpec" {
        return Err(format!("holds a `{}`, not a Whisper", specification.escape_debug()));
    }
    bytes.u32()?;
    let count = bytes.u32()?;
    if count > MOST_TENSORS {
        return Err(format!("says that it holds {count} tensors"));
    }
    let mut whole = BTreeMap::new();
    for _ in 0..count {
        let name = bytes.text(meter)?;
        let (kind, tensor) = bytes.tensor(&name, meter)?;
        if whole.insert(name.clone(), (kind, tensor)).is_some() {
            return Err(format!("`{name}` stands there twice"));
        }
    }
    let mut tensors = scaled(whole)?;
    for _ in 0..bytes.u32()?.min(MOST_TENSORS) {
        let (alias, name) = (bytes.text(meter)?, bytes.text(meter)?);
        // The one that is used, the projection, is the embedding: the network looks there itself.
        if !tensors.contains_key(&name) {
            return Err(format!("`{alias}` is to be `{name}`, which is not there"));
        }
    }
    tensors.retain(|name, _| !name.ends_with("_scale"));
    Ok(tensors)
}

fn scaled(whole: BTreeMap<String, (Kind, NamedTensor)>) -> Result<BTreeMap<String, NamedTensor>, String> {
    let scales: BTreeMap<String, Vec<f32>> = whole
        .iter()
        .filter_map(|(name, (_, tensor))| Some((name.strip_suffix("_scale")?.to_owned(), tensor.values.clone())))
        .collect();
    let mut tensors = BTreeMap::new();
    for (name, (kind, mut tensor)) in whole {
        if let (Some(scales), Kind::I8 | Kind::I16) = (scales.get(&name), kind) {
            let rows = scales.len();
            if rows == 0 || !tensor.values.len().is_multiple_of(rows) {
                return Err(format!("`{name}` has {} numbers and {rows} scales", tensor.values.len()));
            }
            let width = (tensor.values.len() / rows).max(1);
            for (row, scale) in tensor.values.chunks_mut(width).zip(scales) {
                row.iter_mut().for_each(|value| *value /= scale);
            }
        }
        if tensor.values.iter().any(|value| !value.is_finite()) {
            return Err(format!("`{name}` holds what is no number"));
        }
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}

/// A file, and how much of it is left.
struct Bytes<R> {
    from: R,
    left: u64,
}

impl<R: Read> Bytes<R> {
    fn some<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.left = self.left.checked_sub(N as u64).ok_or("ends before it is whole")?;
        self.from.read_exact(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.some().map(u32::from_le_bytes)
    }

    /// A counted text that ends with a zero byte.
    fn text(&mut self, meter: &Meter) -> Result<String, String> {
        let length = u16::from_le_bytes(self.some()?);
        meter.charge(u64::from(length) + TENSOR).map_err(|exceeded| exceeded.to_string())?;
        let mut text = self.bytes(u64::from(length))?;
        if text.pop() != Some(0) {
            return Err("a name does not end with a zero byte".to_owned());
        }
        String::from_utf8(text).map_err(|_| "a name is not UTF-8".to_owned())
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, String> {
        self.left = self.left.checked_sub(length).ok_or("ends before it is whole")?;
        let mut bytes = Vec::new();
        let read = self.from.by_ref().take(length).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if read as u64 == length { Ok(bytes) } else { Err("ends before it is whole".to_owned()) }
    }

    fn tensor(&mut self, name: &str, meter: &Meter) -> Result<(Kind, NamedTensor), String> {
        let [axes] = self.some()?;
        if axes > MOST_AXES {
            return Err(format!("`{name}` has {axes} axes"));
        }
        let shape = (0..axes).map(|_| self.u32()).collect::<Result<Vec<_>, _>>()?;
        let [code] = self.some()?;
        let kind = Kind::of(code).ok_or_else(|| format!("`{name}` is of kind {code}, which is not known"))?;
        let length = u64::from(self.u32()?);
        let numbers = shape.iter().try_fold(1u64, |product, axis| product.checked_mul(u64::from(*axis)));
        let numbers = numbers.filter(|numbers| numbers.checked_mul(kind.bytes()) == Some(length));
        let numbers = numbers.ok_or_else(|| format!("`{name}` of shape {shape:?} says it takes {length} bytes"))?;
        if length > self.left {
            return Err(format!("`{name}` takes {length} bytes, and {} are left", self.left));
        }
        meter.charge(4 * numbers + TENSOR).map_err(|exceeded| format!("`{name}`: {exceeded}"))?;
        let mut values = Vec::with_capacity(usize::try_from(numbers).map_err(|error| error.to_string())?);
        let mut left = length;
        while left > 0 {
            let piece = self.bytes(left.min(STEP))?;
            kind.widen(&piece, &mut values);
            left -= piece.len() as u64;
        }
        Ok((kind, NamedTensor { shape: shape.into_iter().map(|axis| axis as usize).collect(), values }))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use cuemark_formats::Budget;

    use super::*;

    /// A file with these tensors: name, shape, kind, bytes.
    pub(crate) fn file(tensors: &[(&str, &[u32], u8, Vec<u8>)]) -> Vec<u8> {
        let text = |text: &str| [&(text.len() as u16 + 1).to_le_bytes(), text.as_bytes(), &[0]].concat();
        let mut bytes = [&6u32.to_le_bytes(), text("WhisperSpec").as_slice(), &3u32.to_le_bytes()].concat();
        bytes.extend((tensors.len() as u32).to_le_bytes());
        for (name, shape, kind, numbers) in tensors {
            bytes.extend(text(name));
            bytes.push(shape.len() as u8);
            shape.iter().for_each(|axis| bytes.extend(axis.to_le_bytes()));
            bytes.push(*kind);
            bytes.extend((numbers.len() as u32).to_le_bytes());
            bytes.extend(numbers);
        }
        bytes.extend(0u32.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Result<BTreeMap<String, NamedTensor>, String> {
        parse(bytes, bytes.len() as u64, &Meter::new(Budget::new(1 << 20)))
    }

    fn sample() -> Vec<u8> {
        let halves = [f16::from_f32(1.5), f16::from_f32(-2.0)].iter().flat_map(|half| half.to_le_bytes()).collect();
        let scales = [2f32, 4.0].iter().flat_map(|scale| scale.to_le_bytes()).collect();
        file(&[
            ("a/weight", &[2, 2], 1, vec![2, 4, 252, 8]),
            ("a/weight_scale", &[2], 0, scales),
            ("b", &[2], 4, halves),
            ("heads", &[], 2, vec![6, 0]),
        ])
    }

    #[test]
    fn whole_numbers_are_divided_by_the_scale_of_their_row() {
        let tensors = read(&sample()).unwrap();
        assert_eq!(tensors["a/weight"], NamedTensor { shape: vec![2, 2], values: vec![1.0, 2.0, -1.0, 2.0] });
        assert_eq!(tensors["b"].values, [1.5, -2.0]);
        assert_eq!(tensors["heads"], NamedTensor { shape: vec![], values: vec![6.0] });
        assert!(!tensors.contains_key("a/weight_scale"));
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_refused() {
        let whole = sample();
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_changed_byte_is_refused_or_read_and_never_a_panic() {
        let whole = sample();
        for at in 0..whole.len() {
            for change in [0u8, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] = change;
                let _ = read(&changed);
            }
        }
    }

    #[test]
    fn a_tensor_that_claims_gigabytes_is_refused_before_they_are_set_aside() {
        let mut bytes = file(&[("a", &[1 << 15, 1 << 14], 0, Vec::new())]);
        let problem = read(&bytes).unwrap_err();
        assert!(problem.contains("says it takes 0 bytes"), "{problem}");
        let at = bytes.len() - 8;
        bytes[at..at + 4].copy_from_slice(&(1u32 << 31).to_le_bytes());
        let problem = read(&bytes).unwrap_err();
        assert!(problem.contains("4 are left"), "{problem}");
        // A file that is as long as it says, on a machine that has less.
        let length = bytes.len() as u64 + (1 << 31);
        let endless = std::io::Read::chain(bytes.as_slice(), std::io::repeat(0));
        let problem = parse(endless, length, &Meter::new(Budget::new(1 << 20))).unwrap_err();
        assert!(problem.contains("budget"), "{problem}");
    }
}
