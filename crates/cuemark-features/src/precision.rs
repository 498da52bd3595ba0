//! How many digits a store keeps.

use std::fmt;
use std::str::FromStr;

/// The kind of number that a shard holds; all are read as `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Four bytes a number, as computed. Default.
    #[default]
    F32,
    /// Two bytes a number, three decimal digits, nothing beyond 65,504.
    F16,
}

impl Precision {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }

    /// The largest number that it can hold.
    pub(crate) fn largest(self) -> f32 {
        match self {
            Self::F32 => f32::MAX,
            Self::F16 => half::f16::MAX.to_f32(),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
        })
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "f32" => Ok(Self::F32),
            "f16" => Ok(Self::F16),
            _ => Err(format!("`{text}` is not f16 or f32")),
        }
    }
}
