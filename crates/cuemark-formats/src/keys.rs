//! Keys of JSON lines that nobody reads: a slip of the pen turns a field into nothing, without a word.

use cuemark_core::nearest::slip;
use rustc_hash::FxHashMap;

use crate::detect::outer_keys;
use crate::{Result, Source};

/// A key that is a slip of the pen for a known one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrangeKey {
    /// As the file has it.
    pub key: String,
    /// What it was meant to be.
    pub meant: &'static str,
    /// On how many lines.
    pub count: usize,
    /// The first of them, from 1.
    pub line: usize,
}

/// Keys of the outermost objects of JSON lines that are slips of the pen for one of `known`, in order of their first line.
/// A file that is no JSON lines has none.
///
/// # Errors
/// When the file cannot be read.
pub fn strange_keys(source: &Source, known: &'static [&'static str]) -> Result<Vec<StrangeKey>> {
    let mut judged: FxHashMap<Vec<u8>, Option<usize>> = FxHashMap::default();
    let mut found: Vec<StrangeKey> = Vec::new();
    let source = source.clone().unwatched();
    // In other JSON the outermost keys are names of videos, and nobody misspells those.
    let head = source.head(64 << 10)?;
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if !outer_keys(first).contains(&&b"qid"[..]) {
        return Ok(found);
    }
    source.for_each_line(|line, text| {
        for key in outer_keys(text.as_bytes()) {
            if !judged.contains_key(key) {
                let name = String::from_utf8_lossy(key).into_owned();
                let meant = slip(&name, known.iter().copied());
                let place = meant.and_then(|meant| known.iter().find(|known| **known == meant)).map(|meant| {
                    found.push(StrangeKey { key: name, meant, count: 0, line });
                    found.len() - 1
                });
                judged.insert(key.to_vec(), place);
            }
            if let Some(strange) = judged.get(key).copied().flatten().and_then(|place| found.get_mut(place)) {
                strange.count += 1;
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// The line, from 1, on which the record of query `id` stands in JSON lines, CSV or a run; `None` in other layouts.
///
/// # Errors
/// When the file cannot be read.
pub fn line_of(source: &Source, id: &str) -> Result<Option<usize>> {
    let mut found = None;
    let mut qid_column = None;
    source.clone().unwatched().for_each_line(|line, text| {
        if found.is_some() {
            return Ok(());
        }
        let is_it = if text.starts_with('{') {
            qid_of(text).is_some_and(|qid| qid == id)
        } else if line == 1 && text.contains(',') {
            qid_column = text.split(',').position(|column| column.trim().trim_matches('"') == "qid");
            false
        } else if let Some(column) = qid_column {
            text.split(',').nth(column).is_some_and(|cell| cell.trim().trim_matches('"') == id)
        } else {
            text.split_whitespace().next() == Some(id)
        };
        if is_it {
            found = Some(line);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The query that stands on `line` of JSON lines.
///
/// # Errors
/// When the file cannot be read.
pub fn query_on(source: &Source, line: usize) -> Result<Option<String>> {
    let mut found = None;
    source.clone().unwatched().for_each_line(|number, text| {
        if number == line && text.starts_with('{') {
            found = qid_of(text).map(str::to_owned);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The value of `qid` as it stands in a line, without quotes. Escapes are left alone: such an id is not found, no more.
fn qid_of(line: &str) -> Option<&str> {
    let rest = line.split_once("\"qid\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    match rest.strip_prefix('"') {
        Some(text) => text.split('"').next(),
        None => rest.split([',', '}']).next().map(str::trim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["qid", "duration", "spans"];

    #[test]
    fn a_misspelt_key_is_counted_with_its_first_line() {
        let text = "{\"qid\": 1, \"duration\": 2}\n{\"qid\": 2, \"duratoin\": 2}\n{\"qid\": 3, \"duratoin\": 2, \"note\": 1}\n";
        let source = Source::in_memory("truth.jsonl", text.as_bytes());
        let expected = StrangeKey { key: "duratoin".to_owned(), meant: "duration", count: 2, line: 2 };
        assert_eq!(strange_keys(&source, KNOWN).unwrap(), [expected]);
    }

    #[test]
    fn a_query_is_found_on_its_line_in_every_layout_with_lines() {
        let jsonl = Source::in_memory("a.jsonl", &b"{\"qid\": 7}\n\n{\"vid\": \"x\", \"qid\": \"q 8\"}\n"[..]);
        assert_eq!(line_of(&jsonl, "q 8").unwrap(), Some(3));
        assert_eq!(query_on(&jsonl, 1).unwrap().as_deref(), Some("7"));
        let csv = Source::in_memory("a.csv", &b"video,qid,start,end\nv,7,0,1\nv,8,0,1\n"[..]);
        assert_eq!(line_of(&csv, "8").unwrap(), Some(3));
        let run = Source::in_memory("a.trec", &b"7 Q0 v:0-1 1 0.5 x\n8 Q0 v:0-1 1 0.5 x\n"[..]);
        assert_eq!(line_of(&run, "8").unwrap(), Some(2));
        assert_eq!(line_of(&run, "9").unwrap(), None);
    }
}
