//! Floating-point numbers as they lie in files.

/// A kind of floating-point number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    F16,
    Bf16,
    F32,
    F64,
}

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl Number {
    /// Bytes of one number.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// All whole numbers of `bytes`, widened or rounded to `f32`.
    pub(crate) fn decode(self, bytes: &[u8], order: ByteOrder) -> Vec<f32> {
        match self {
            Self::F16 => decode(bytes, order, |number| half::f16::from_le_bytes(number).to_f32()),
            Self::Bf16 => decode(bytes, order, |number| half::bf16::from_le_bytes(number).to_f32()),
            Self::F32 => decode(bytes, order, f32::from_le_bytes),
            Self::F64 => decode(bytes, order, |number| f64::from_le_bytes(number) as f32),
        }
    }

    /// The kind that a PyTorch storage class holds; `None` for what is not a floating-point number.
    pub(crate) fn from_torch(class: &str) -> Option<Self> {
        Some(match class {
            "HalfStorage" => Self::F16,
            "BFloat16Storage" => Self::Bf16,
            "FloatStorage" => Self::F32,
            "DoubleStorage" => Self::F64,
            _ => return None,
        })
    }

    /// NumPy's name for it, such as `<f4`; `None` for what is not a floating-point number.
    pub(crate) fn from_numpy(descr: &str) -> Option<(Self, ByteOrder)> {
        let (order, kind) = match descr.split_at_checked(1)? {
            ("<" | "=" | "|", kind) => (ByteOrder::Little, kind),
            (">", kind) => (ByteOrder::Big, kind),
            _ => return None,
        };
        let number = match kind {
            "f2" => Self::F16,
            "f4" => Self::F32,
            "f8" => Self::F64,
            _ => return None,
        };
        Some((number, order))
    }
}

fn decode<const N: usize>(bytes: &[u8], order: ByteOrder, number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<N>();
    let swapped = |mut bytes: [u8; N]| {
        bytes.reverse();
        bytes
    };
    match order {
        ByteOrder::Little => numbers.iter().map(|bytes| number(*bytes)).collect(),
        ByteOrder::Big => numbers.iter().map(|bytes| number(swapped(*bytes))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_in_both_orders() {
        assert_eq!(Number::F16.decode(&[0x00, 0x3e], ByteOrder::Little), [1.5]);
        assert_eq!(Number::F16.decode(&[0x3e, 0x00], ByteOrder::Big), [1.5]);
        assert_eq!(Number::Bf16.decode(&[0xc0, 0x3f], ByteOrder::Little), [1.5]);
        assert_eq!(Number::F32.decode(&1.5f32.to_be_bytes(), ByteOrder::Big), [1.5]);
        assert_eq!(Number::F64.decode(&1.5f64.to_le_bytes(), ByteOrder::Little), [1.5]);
    }

    #[test]
    fn whole_numbers_are_not_features() {
        for descr in ["<i8", "|u1", "<c8", "f4", "", "<f16", "é4"] {
            assert_eq!(Number::from_numpy(descr), None, "{descr}");
        }
    }
}
