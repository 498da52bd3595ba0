//! Taking JSON apart without losing track of where things stand.
//!
//! Published annotation files are one huge JSON value, often on one line. [`Document`] splits such a value into its
//! members, each of which knows its line, so that a fault in the 9 000th video is reported as
//! ``file.json:1: `v_abc.timestamps[2][1]`: …`` and members can be decoded in parallel.

use std::borrow::Cow;
use std::cell::Cell;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::counted;
pub use crate::counted::weight;
use crate::fault::shorten;
use crate::{Exceeded, Meter, ReadError, Result, Source};

/// A whole JSON file in memory.
pub struct Document {
    source: Source,
    text: String,
}

/// One member of a JSON object or array, not decoded yet.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    source: &'a Source,
    key: Cow<'a, str>,
    line: usize,
    value: &'a str,
}

impl Document {
    /// Reads the whole of `source`.
    ///
    /// # Errors
    /// When it cannot be read or is too large; whether it is JSON shows when it is taken apart.
    pub fn read(source: &Source) -> Result<Self> {
        Ok(Self { text: source.text()?, source: source.clone() })
    }

    /// The file it came from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The document as one member without a name.
    pub fn root(&self) -> Member<'_> {
        Member { source: &self.source, key: Cow::Borrowed(""), line: 1, value: &self.text }
    }
}

impl<'a> Member<'a> {
    /// Its key in the object that holds it; empty for the whole document and for array elements.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The line it begins on, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Its text, undecoded.
    pub fn text(&self) -> &'a str {
        self.value
    }

    /// A fault in this member; `field` is the way from here (`timestamps[2]`).
    pub fn record(&self, field: &str, problem: impl ToString) -> ReadError {
        let path = match (self.key(), field) {
            ("", field) => field.to_owned(),
            (key, "" | ".") => key.to_owned(),
            (key, field) if field.starts_with('[') => format!("{key}{field}"),
            (key, field) => format!("{key}.{field}"),
        };
        self.source.record(self.line, if path.is_empty() { ".".to_owned() } else { path }, problem)
    }

    /// Counts what [`Member::decode`] would make of it, at the most; for whoever decodes [`Member::text`] themselves.
    ///
    /// # Errors
    /// When that would pass the memory budget.
    pub fn charge<T>(&self) -> Result<()> {
        let bytes = counted::weight(self.value) + size_of::<T>() as u64;
        self.source.meter().charge(bytes).map_err(|exceeded| self.memory(exceeded))
    }

    fn memory(&self, exceeded: Exceeded) -> ReadError {
        let key = if self.key.is_empty() { String::new() } else { format!(", `{}`", shorten(&self.key)) };
        ReadError::memory(self.source.path(), format!("line {}{key}", self.line), exceeded)
    }

    /// Decodes it into a type of the caller's.
    ///
    /// # Errors
    /// When it is not JSON or not of that type, or when it would pass the memory budget; the error names the line and the way
    /// to the field.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T> {
        self.charge::<T>()?;
        let mut reader = serde_json::Deserializer::from_str(self.value);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| self.explain(&error))?;
        reader.end().map_err(|error| self.syntax(&error))?;
        Ok(value)
    }

    /// Its members, when it is an object: in file order, repeated keys included.
    ///
    /// # Errors
    /// When it is not a JSON object.
    pub fn entries(&self) -> Result<Vec<Member<'a>>> {
        self.take_apart(|reader, room| reader.deserialize_map(EntriesVisitor(room)))
    }

    /// Its elements, when it is an array.
    ///
    /// # Errors
    /// When it is not a JSON array.
    pub fn elements(&self) -> Result<Vec<Member<'a>>> {
        self.take_apart(|reader, room| reader.deserialize_seq(ElementsVisitor(room)))
    }

    fn take_apart(
        &self,
        visit: impl FnOnce(
            &mut serde_json::Deserializer<serde_json::de::StrRead<'a>>,
            &Room<'_>,
        ) -> serde_json::Result<Vec<Part<'a>>>,
    ) -> Result<Vec<Member<'a>>> {
        let mut reader = serde_json::Deserializer::from_str(self.value);
        let room = Room { meter: self.source.meter(), exceeded: Cell::new(None) };
        let parts = visit(&mut reader, &room).map_err(|error| match room.exceeded.get() {
            Some(exceeded) => self.at_inner_line(error.line()).memory(exceeded),
            None => self.syntax(&error),
        })?;
        reader.end().map_err(|error| self.syntax(&error))?;
        // Members come in file order, so their lines are counted in one pass.
        let (mut seen, mut line) = (0, self.line);
        let located = parts.into_iter().map(|(key, raw)| {
            let offset = raw.get().as_ptr() as usize - self.value.as_ptr() as usize;
            line += memchr::memchr_iter(b'\n', &self.value.as_bytes()[seen..offset]).count();
            seen = offset;
            Member { source: self.source, key, line, value: raw.get() }
        });
        Ok(located.collect())
    }

    /// This member as seen from one of its own lines, counted from 1.
    fn at_inner_line(&self, line: usize) -> Self {
        Self { line: self.line + line.saturating_sub(1), ..self.clone() }
    }

    fn syntax(&self, error: &serde_json::Error) -> ReadError {
        self.at_inner_line(error.line()).record("", strip_position(&error.to_string()))
    }

    fn explain(&self, error: &serde_path_to_error::Error<serde_json::Error>) -> ReadError {
        let field = error.path().to_string();
        self.at_inner_line(error.inner().line()).record(&field, strip_position(&error.inner().to_string()))
    }
}

/// Decodes one line of JSON Lines.
///
/// # Errors
/// When the line is not JSON or not of that type; the error names the line and the field.
pub fn decode_line<T: DeserializeOwned>(source: &Source, line: usize, text: &str) -> Result<T> {
    line_of(source, line, text).decode()
}

/// One line of JSON Lines as a member without a name.
pub fn line_of<'a>(source: &'a Source, line: usize, text: &'a str) -> Member<'a> {
    Member { source, key: Cow::Borrowed(""), line, value: text }
}

/// serde_json ends its messages with the position inside the member, which would contradict the line we name.
pub(crate) fn strip_position(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).to_owned()
}

type Part<'a> = (Cow<'a, str>, &'a RawValue);

/// How much room there is for members, and whether it was too little.
struct Room<'m> {
    meter: &'m Meter,
    /// Why it stopped, which serde's own error cannot carry.
    exceeded: Cell<Option<Exceeded>>,
}

impl Room<'_> {
    /// Counts one more member: as the decoder hands it out, in a list that lies in memory twice while it grows, and as a
    /// [`Member`].
    fn one_more<E: serde::de::Error>(&self, key: usize) -> Result<(), E> {
        let bytes = 2 * size_of::<Part<'_>>() + size_of::<Member<'_>>() + key;
        self.meter.charge(bytes as u64).map_err(|exceeded| {
            self.exceeded.set(Some(exceeded));
            E::custom(exceeded)
        })
    }
}

/// Borrowed from the document, unless an escape in it has to be resolved.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

struct EntriesVisitor<'r>(&'r Room<'r>);

impl<'de> Visitor<'de> for EntriesVisitor<'_> {
    type Value = Vec<Part<'de>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            self.0.one_more(key.len())?;
            entries.push((key, map.next_value()?));
        }
        Ok(entries)
    }
}

struct ElementsVisitor<'r>(&'r Room<'r>);

impl<'de> Visitor<'de> for ElementsVisitor<'_> {
    type Value = Vec<Part<'de>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            self.0.one_more(0)?;
            elements.push((Cow::Borrowed(""), element));
        }
        Ok(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document { source: Source::new("videos.json"), text: text.to_owned() }
    }

    #[derive(Debug, serde::Deserialize)]
    struct Entry {
        timestamps: Vec<[f64; 2]>,
    }

    #[test]
    fn members_know_their_line_and_keep_their_order() {
        let text = "{\n \"b\": {\"timestamps\": []},\n\n \"a\": {\"timestamps\": [[1, 2]]}\n}";
        let document = document(text);
        let entries = document.root().entries().unwrap();
        let places: Vec<_> = entries.iter().map(|entry| (entry.key(), entry.line())).collect();
        assert_eq!(places, [("b", 2), ("a", 4)]);
        assert_eq!(entries[1].decode::<Entry>().unwrap().timestamps, [[1.0, 2.0]]);
    }

    #[test]
    fn a_fault_is_reported_with_its_line_and_the_way_to_it() {
        let document = document("{\"a\": {\n\"timestamps\": [[1, 2],\n[3, \"x\"]]}}");
        let entries = document.root().entries().unwrap();
        let message = entries[0].decode::<Entry>().unwrap_err().to_string();
        assert_eq!(message, "videos.json:3: `a.timestamps[1][1]`: invalid type: string \"x\", expected f64");
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "[1, 2", "{\"a\" 1}", "nonsense", "{} {}"] {
            assert!(document(text).root().entries().is_err(), "{text}");
        }
    }
}
