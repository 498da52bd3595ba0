//! JSON values that nobody knows the shape of, counted as they are made.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::budget::{Exceeded, Meter};

/// What the allocator adds to a block of its own, at the least.
const BLOCK: usize = 16;
/// The index of a map, and the room that it takes for entries that it does not have.
const MAP: usize = 2 * size_of::<Map<String, Value>>();
/// One entry of a map: key, value, hash and place in the index.
const ENTRY: usize = size_of::<String>() + size_of::<Value>() + 4 * size_of::<u64>();

/// Builds a [`Value`] and stops as soon as it passes the budget. `serde_json` bounds the nesting.
pub(crate) struct Counted<'m> {
    meter: &'m Meter,
    /// Why it stopped, which serde's own error cannot carry.
    exceeded: &'m Cell<Option<Exceeded>>,
}

impl<'m> Counted<'m> {
    pub(crate) fn new(meter: &'m Meter, exceeded: &'m Cell<Option<Exceeded>>) -> Self {
        Self { meter, exceeded }
    }

    fn again(&self) -> Self {
        Self { meter: self.meter, exceeded: self.exceeded }
    }

    fn charge<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        self.meter.charge(bytes as u64).map_err(|exceeded| {
            self.exceeded.set(Some(exceeded));
            E::custom(exceeded)
        })
    }
}

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.charge(text.len() + BLOCK)?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        self.charge(BLOCK)?;
        let mut list = Vec::new();
        // A list that grows lies in memory twice while it moves, so each element counts twice until the list is done.
        while let Some(element) = elements.next_element_seed(self.again())? {
            self.charge(2 * size_of::<Value>())?;
            list.push(element);
        }
        list.shrink_to_fit();
        self.meter.release((list.len() * size_of::<Value>()) as u64);
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let own = if map.is_empty() { MAP } else { 0 };
            self.charge(own + 2 * ENTRY + key.len() + BLOCK)?;
            let value = entries.next_value_seed(self.again())?;
            if map.contains_key(&key) {
                // As `serde_json` has it: the last one counts, and it keeps the first one's place.
                self.meter.release((2 * ENTRY) as u64);
            }
            map.insert(key, value);
        }
        self.meter.release((map.len() * ENTRY) as u64);
        Ok(Value::Object(map))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, _: D) -> Result<Value, D::Error> {
        Err(D::Error::custom("not JSON"))
    }
}

/// An upper estimate of what a general decoder makes of JSON `text`, in bytes: one value per comma, bracket and brace.
/// Commas inside texts are counted too.
pub fn weight(text: &str) -> u64 {
    /// The size of most values that records consist of, and of the block they lie in.
    const VALUE: u64 = 48;
    let opening = memchr::memchr3_iter(b',', b'[', b'{', text.as_bytes()).count() as u64;
    text.len() as u64 + opening * VALUE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Budget;

    fn read(text: &str, budget: u64) -> (Result<Value, String>, u64) {
        let (meter, exceeded) = (Meter::new(Budget::new(budget)), Cell::new(None));
        let mut reader = serde_json::Deserializer::from_str(text);
        let value = Counted::new(&meter, &exceeded).deserialize(&mut reader).map_err(|error| error.to_string());
        assert_eq!(value.as_ref().is_err_and(|problem| problem.contains("budget")), exceeded.get().is_some());
        (value, meter.kept())
    }

    #[test]
    fn values_come_out_as_serde_json_makes_them() {
        for text in [
            r#"{"b":[1,-2,3.5,1e300,18446744073709551615,null,true],"a":{"x":"é\n","x":2},"":[]}"#,
            "[[],[[]],{}]",
            "0.1",
            "\"text\"",
        ] {
            let (value, _) = read(text, 1 << 20);
            assert_eq!(value.unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        assert!(read(&"[".repeat(1_000), 1 << 20).0.is_err());
        assert!(read("[1,", 1 << 20).0.is_err());
    }

    #[test]
    fn a_long_list_is_counted_and_one_too_long_is_not_made() {
        let text = format!("[{}0]", "0,".repeat(9_999));
        let (value, kept) = read(&text, 1 << 22);
        assert_eq!(value.unwrap().as_array().unwrap().len(), 10_000);
        assert!(kept as usize >= 10_000 * size_of::<Value>(), "{kept}");
        assert!(read(&text, 100_000).0.unwrap_err().contains("the budget is 97.7 KiB"));
    }
}
