//! Walking over JSON by hand, one value after the other.
//!
//! Prediction files are large and nearly all numbers. Walking over them builds nothing in between, so it is several times
//! faster than a general decoder, and it knows the way to a fault without keeping track of it. Values of unknown fields
//! are handed to `serde_json`.

use std::borrow::Cow;
use std::cell::Cell;

use serde::Deserialize;
use serde::de::DeserializeSeed as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::budget::Meter;
use crate::counted::Counted;
use crate::fault::{Fault, Walk};
use crate::{json, number};

/// A place in a JSON text. Nesting is bounded by the code that walks, and by `serde_json` in [`Cursor::value`].
///
/// What the code that walks makes of the text is counted by the meter: texts and the elements of lists here, whatever else
/// there is through [`Cursor::charge`].
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    meter: &'a Meter,
    /// Bytes that the meter has not been told of yet; cores that count in the same place wait for each other.
    owed: usize,
    /// Bytes that lists take only while they grow.
    growing: usize,
}

/// The meter is told of so many bytes at once.
const TOLD: usize = 64 << 10;
/// A field that is kept: its entry, and its share of the map.
const FIELD: usize = 256;

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, meter: &'a Meter) -> Self {
        Self { text, at: 0, meter, owed: 0, growing: 0 }
    }

    /// Counts `bytes` that are about to be kept.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: usize) -> Walk<()> {
        self.owed += bytes;
        if self.owed < TOLD { Ok(()) } else { self.settle() }
    }

    /// Tells the meter everything that it has not been told yet.
    fn settle(&mut self) -> Walk<()> {
        let owed = std::mem::take(&mut self.owed);
        self.meter.charge(owed as u64).map_err(|exceeded| Fault::memory(self.at, exceeded))
    }

    /// Byte offset of the place.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// A problem with what stands here.
    pub(crate) fn fault(&self, problem: impl ToString) -> Box<Fault> {
        Fault::new(self.at, problem)
    }

    /// The next byte that is not white space, without taking it; 0 at the end.
    #[inline]
    pub(crate) fn peek(&mut self) -> u8 {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                Some(byte) => return *byte,
                None => return 0,
            }
        }
    }

    #[inline]
    fn take(&mut self, wanted: u8) -> bool {
        let there = self.peek() == wanted;
        self.at += usize::from(there);
        there
    }

    /// Refuses anything but white space after the value.
    pub(crate) fn end(&mut self) -> Walk<()> {
        self.peek();
        if self.at < self.text.len() {
            return Err(self.unexpected("the end"));
        }
        // Lists are done growing; what is kept of them takes as much as it needs.
        let (grown, unsaid) = (std::mem::take(&mut self.growing), self.owed);
        self.owed = unsaid.saturating_sub(grown);
        self.meter.release(grown.saturating_sub(unsaid) as u64);
        self.settle()
    }

    /// Calls `each` at every element of the array that begins here, with the element's index. It makes a `T` of each; one
    /// that makes nothing says `()`.
    #[inline]
    pub(crate) fn array<T>(&mut self, mut each: impl FnMut(&mut Self, usize) -> Walk<()>) -> Walk<()> {
        if !self.take(b'[') {
            return Err(self.unexpected("a list"));
        }
        if self.take(b']') {
            return Ok(());
        }
        for index in 0.. {
            // Twice: a list that grows lies in memory twice while it moves.
            self.growing += size_of::<T>();
            self.charge(2 * size_of::<T>()).map_err(|fault| fault.inside_index(index))?;
            each(self, index).map_err(|fault| fault.inside_index(index))?;
            if self.take(b']') {
                break;
            }
            if !self.take(b',') {
                return Err(self.unexpected("`,` or `]`").inside_index(index));
            }
        }
        Ok(())
    }

    /// Calls `each` at every value of the object that begins here, with the value's key.
    #[inline]
    pub(crate) fn object(&mut self, mut each: impl FnMut(&mut Self, &str) -> Walk<()>) -> Walk<()> {
        if !self.take(b'{') {
            return Err(self.unexpected("an object"));
        }
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            if !self.take(b':') {
                return Err(self.unexpected("`:`").inside_key(&key));
            }
            each(self, &key).map_err(|fault| fault.inside_key(&key))?;
            if self.take(b'}') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.unexpected("`,` or `}`").inside_key(&key));
            }
        }
    }

    /// A finite number.
    #[inline]
    pub(crate) fn number(&mut self) -> Walk<f64> {
        self.peek();
        match number::scan(self.rest().as_bytes()) {
            Some((value, length)) if value.is_finite() => {
                self.at += length;
                Ok(value)
            }
            Some(_) => Err(self.fault(format!("{} is not a finite number", self.found()))),
            None => Err(self.unexpected("a number")),
        }
    }

    /// Up to `N` numbers in a list, and how many there were; the others are 0.
    #[inline]
    pub(crate) fn numbers<const N: usize>(&mut self) -> Walk<([f64; N], usize)> {
        if let Some(found) = self.plain_numbers() {
            return Ok(found);
        }
        let (mut values, mut count) = ([0.0; N], 0);
        self.array::<()>(|cursor, index| {
            let Some(slot) = values.get_mut(index) else {
                return Err(cursor.fault(format!("there is a number too many ({N} at most)")));
            };
            *slot = cursor.number()?;
            count = index + 1;
            Ok(())
        })?;
        Ok((values, count))
    }

    /// The same where they stand as programs write them; `None` leaves whatever is odd to the way that can say what.
    #[inline]
    fn plain_numbers<const N: usize>(&mut self) -> Option<([f64; N], usize)> {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        if bytes.get(at) != Some(&b'[') {
            return None;
        }
        at += 1;
        let mut values = [0.0; N];
        for (place, slot) in values.iter_mut().enumerate() {
            let (value, length) = number::scan(bytes.get(at..)?).filter(|(value, _)| value.is_finite())?;
            *slot = value;
            at += length;
            match bytes.get(at)? {
                b']' => {
                    self.at = at + 1;
                    return Some((values, place + 1));
                }
                b',' => at += 1 + usize::from(bytes.get(at + 1) == Some(&b' ')),
                _ => return None,
            }
        }
        None
    }

    /// A whole number that fits 32 bits.
    #[inline]
    pub(crate) fn whole(&mut self) -> Walk<u32> {
        let from = self.at;
        let value = self.number()?;
        if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) {
            return Ok(value as u32);
        }
        Err(Fault::new(from, format!("{value} is not a whole number from 0 to {}", u32::MAX)))
    }

    /// Text; borrowed, unless an escape in it has to be resolved.
    #[inline]
    pub(crate) fn string(&mut self) -> Walk<Cow<'a, str>> {
        if self.peek() != b'"' {
            return Err(self.unexpected("text"));
        }
        let inside = self.text.get(self.at + 1..).unwrap_or_default();
        let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        match inside.bytes().position(|byte| special(&byte)) {
            Some(end) if inside.as_bytes().get(end) == Some(&b'"') => {
                self.charge(end)?;
                self.at += end + 2;
                Ok(Cow::Borrowed(inside.get(..end).unwrap_or_default()))
            }
            _ => {
                let text = self.decode::<String>()?;
                self.charge(text.len())?;
                Ok(Cow::Owned(text))
            }
        }
    }

    /// An id: text as it stands, or a whole number as its digits.
    #[inline]
    pub(crate) fn id(&mut self) -> Walk<Cow<'a, str>> {
        if self.peek() == b'"' {
            return self.string();
        }
        let rest = self.rest();
        match number::scan(rest.as_bytes()).and_then(|(_, length)| rest.get(..length)) {
            Some(digits) if !digits.contains(['.', 'e', 'E']) => {
                self.at += digits.len();
                Ok(Cow::Borrowed(digits))
            }
            _ => Err(self.unexpected("text or a whole number")),
        }
    }

    /// Takes a `null`, if that is what stands here.
    #[inline]
    pub(crate) fn null(&mut self) -> bool {
        let there = self.peek() == b'n' && self.rest().starts_with("null");
        self.at += if there { 4 } else { 0 };
        there
    }

    /// Whatever stands here.
    pub(crate) fn value(&mut self) -> Walk<Value> {
        // Where it ends is known before anything is made of it.
        let raw = self.decode::<&'a RawValue>()?;
        let exceeded = Cell::new(None);
        let mut reader = serde_json::Deserializer::from_str(raw.get());
        Counted::new(self.meter, &exceeded).deserialize(&mut reader).map_err(|error| match exceeded.get() {
            Some(exceeded) => Fault::memory(self.at, exceeded),
            None => self.fault(json::strip_position(&error.to_string())),
        })
    }

    /// Puts whatever stands here into `fields`, under `key`.
    pub(crate) fn keep(&mut self, key: &str, fields: &mut Map<String, Value>) -> Walk<()> {
        self.charge(FIELD + key.len())?;
        let value = self.value()?;
        fields.insert(key.to_owned(), value);
        Ok(())
    }

    fn decode<T: Deserialize<'a>>(&mut self) -> Walk<T> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => Err(self.fault(json::strip_position(&error.to_string()))),
            None => Err(self.unexpected("a value")),
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// "something else stands here than `wanted`".
    pub(crate) fn unexpected(&mut self, wanted: &str) -> Box<Fault> {
        self.peek();
        self.fault(format!("{} is not {wanted}", self.found()))
    }

    /// What stands here, short enough for a message.
    fn found(&self) -> String {
        let token: String = self.rest().chars().take_while(|c| !matches!(c, ',' | ']' | '}' | '\n')).take(24).collect();
        match (token.is_empty(), self.rest().chars().next()) {
            (false, _) => format!("`{}`", token.trim_end()),
            (true, Some(c)) => format!("`{}`", c.escape_default()),
            (true, None) => "the end of the text".to_owned(),
        }
    }
}

/// Where the object that `bytes` begin with ends. Only braces and quotes are looked at, so that it is found fast; whoever decodes
/// the text meets everything else.
pub(crate) fn end_of_object(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0usize);
    loop {
        at += memchr::memchr3(b'"', b'{', b'}', bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => at = end_of_string(bytes, at)?,
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Where the value that `bytes` begin with ends, if it does: a list, object or text with what closes it, anything else before
/// what cannot be part of it.
pub(crate) fn end_of_value(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0usize);
    loop {
        match bytes.get(at)? {
            b'"' => at = end_of_string(bytes, at)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {
                at += 1;
                continue;
            }
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\n' | b'\t' | b'\r');
                return Some(bytes.iter().position(ends).unwrap_or(bytes.len()).max(1));
            }
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Where the string that begins with the quote at `from` has its closing quote.
fn end_of_string(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// A record without a field that it needs.
pub(crate) fn missing(field: &str) -> Box<Fault> {
    Fault::new(0, "is missing").inside_key(field)
}

/// Puts `value` into `slot`, unless the record has it already.
pub(crate) fn once<T>(cursor: &Cursor<'_>, slot: &mut Option<T>, value: T) -> Walk<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(cursor.fault("the field stands in the record twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    fn message(fault: Fault, text: &str) -> String {
        fault.into_error(&Source::new("x.json"), 1, text).to_string()
    }

    #[test]
    fn faults_name_the_way_and_the_line() {
        let text = "{\"a\": [1,\n {\"b\": [2, \"x\"]}]}";
        let meter = Meter::default();
        let mut cursor = Cursor::new(text, &meter);
        let walked = cursor.object(|cursor, _| {
            cursor.array::<f64>(|cursor, index| match index {
                0 => cursor.number().map(drop),
                _ => cursor.object(|cursor, _| cursor.numbers::<2>().map(drop)),
            })
        });
        assert_eq!(message(*walked.unwrap_err(), text), "x.json:2: `a[1].b[1]`: `\"x\"` is not a number");
    }

    #[test]
    fn strings_keep_their_escapes_resolved() {
        assert_eq!(Cursor::new(r#""plain""#, &Meter::default()).string().unwrap(), "plain");
        assert_eq!(Cursor::new(r#""q\"\u00e9""#, &Meter::default()).string().unwrap(), "q\"é");
        for text in ["\"open", "\"tab\there\"", "7", r#""\x""#, ""] {
            assert!(Cursor::new(text, &Meter::default()).string().is_err(), "{text}");
        }
    }

    #[test]
    fn ids_are_text_or_whole_numbers() {
        for (text, id) in [("42", "42"), ("\"42\"", "42"), ("-3", "-3")] {
            assert_eq!(Cursor::new(text, &Meter::default()).id().unwrap(), id);
        }
        for text in ["1.5", "1e3", "null", "[1]", "NaN"] {
            assert!(Cursor::new(text, &Meter::default()).id().is_err(), "{text}");
        }
    }

    #[test]
    fn objects_end_where_they_do_whatever_their_strings_hold() {
        let text = r#"{"a":"}\"{","b":{"c":{}}} , 1"#;
        assert_eq!(end_of_object(text.as_bytes()), Some(r#"{"a":"}\"{","b":{"c":{}}}"#.len()));
        for open in ["{", "{\"a", "{\"a\\", "{\"a\":{}"] {
            assert_eq!(end_of_object(open.as_bytes()), None, "{open}");
        }
    }

    #[test]
    fn values_end_where_they_do() {
        for (text, length) in
            [("12.5, 3", 4), ("null}", 4), ("\"a,]\\\"\" ", 7), ("[1,{\"]\":2}],", 11), ("{}", 2), ("7", 1), (",", 1)]
        {
            assert_eq!(end_of_value(text.as_bytes()), Some(length), "{text}");
        }
        for open in ["", "[1", "{\"a\":[]", "\"a"] {
            assert_eq!(end_of_value(open.as_bytes()), None, "{open}");
        }
    }

    #[test]
    fn what_follows_a_value_is_refused() {
        for text in ["[1 2]", "[1,]", "[,1]", "[1", "[1]]", "[NaN]", "[null]", "[1e999]"] {
            let meter = Meter::default();
            let mut cursor = Cursor::new(text, &meter);
            assert!(
                cursor.array::<f64>(|cursor, _| cursor.number().map(drop)).and_then(|()| cursor.end()).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn lists_count_twice_while_they_grow_and_once_when_they_are_done() {
        let text = format!("[{}0]", "0,".repeat(99_999));
        let walk = |budget| {
            let meter = Meter::new(crate::Budget::new(budget));
            let mut cursor = Cursor::new(&text, &meter);
            let walked = cursor.array::<f64>(|cursor, _| cursor.number().map(drop)).and_then(|()| cursor.end());
            walked.map(|()| meter.kept())
        };
        assert_eq!(walk(1_600_000).unwrap(), 800_000);
        let fault = *walk(1_000_000).unwrap_err();
        let error = fault.into_error(&Source::new("x.json"), 1, &text).to_string();
        assert!(error.starts_with("x.json: line 1, `[") && error.ends_with("the budget is 976.6 KiB"), "{error}");
    }
}
