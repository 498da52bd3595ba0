//! One number per query, small on disk: hits as a string of `0` and `1`, everything else as short decimals.

use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One number per query, in truth order; NaN where there is none.
///
/// In JSON `"0110-1"` when every number is 0, 1 or none, else `[0.53,null,1]`, rounded to four decimals.
#[derive(Debug, Clone, Default)]
pub struct PerQuery(pub Vec<f32>);

impl PerQuery {
    /// Takes `f64`s.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        Self(numbers.into_iter().map(|number| number as f32).collect())
    }

    /// The number of the query at `position`; `None` where there is none.
    pub fn get(&self, position: usize) -> Option<f64> {
        self.0.get(position).copied().filter(|number| !number.is_nan()).map(f64::from)
    }
}

impl PartialEq for PerQuery {
    /// Two without a number are the same.
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&f32, &f32)| a == b || (a.is_nan() && b.is_nan());
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl Serialize for PerQuery {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_hit = |number: &f32| number.is_nan() || *number == 0.0 || *number == 1.0;
        if self.0.iter().all(is_hit) {
            let letter = |number: &f32| match number {
                n if n.is_nan() => '-',
                n if *n == 0.0 => '0',
                _ => '1',
            };
            return serializer.serialize_str(&self.0.iter().map(letter).collect::<String>());
        }
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for number in &self.0 {
            let rounded = (f64::from(*number) * 1e4).round() / 1e4;
            list.serialize_element(&Some(rounded).filter(|rounded| rounded.is_finite()))?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for PerQuery {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersOrHits)
    }
}

struct NumbersOrHits;

impl<'de> Visitor<'de> for NumbersOrHits {
    type Value = PerQuery;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string of 0, 1 and -, or a list of numbers")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PerQuery, E> {
        let number = |byte: u8| match byte {
            b'0' => Ok(0.0),
            b'1' => Ok(1.0),
            b'-' => Ok(f32::NAN),
            _ => Err(E::custom("hits are written as 0, 1 and -")),
        };
        text.bytes().map(number).collect::<Result<_, E>>().map(PerQuery)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PerQuery, A::Error> {
        // A length that a file claims is not believed: memory grows with what it holds.
        let mut numbers = Vec::new();
        while let Some(number) = list.next_element::<Option<f32>>()? {
            numbers.push(number.unwrap_or(f32::NAN));
        }
        Ok(PerQuery(numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_a_string_and_numbers_a_list() {
        let hits = PerQuery(vec![1.0, 0.0, f32::NAN]);
        assert_eq!(serde_json::to_string(&hits).unwrap(), "\"10-\"");
        let numbers = PerQuery(vec![0.5, 1.0, f32::NAN, 1.0 / 3.0]);
        assert_eq!(serde_json::to_string(&numbers).unwrap(), "[0.5,1.0,null,0.3333]");
        let back: PerQuery = serde_json::from_str("[0.5,1.0,null,0.3333]").unwrap();
        assert_eq!(back, PerQuery(vec![0.5, 1.0, f32::NAN, 0.3333]));
        assert_eq!(serde_json::from_str::<PerQuery>("\"10-\"").unwrap(), hits);
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["\"102\"", "[1,\"x\"]", "7", "{}"] {
            assert!(serde_json::from_str::<PerQuery>(text).is_err(), "{text}");
        }
    }
}
