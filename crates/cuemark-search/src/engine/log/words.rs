//! The words of a video as a record keeps them: lines that are said or written, with times.
//!
//! ```text
//! words = lines:u32 line*
//! line  = track:u8 confidence:f32 start:f64 end:f64 bytes:u32 text count:u32 word*
//! word  = start:f64 end:f64 bytes:u32 text
//! ```
//! Lines stand in the order of their tracks, then of their times.

use cuemark_core::{Line, Span, Track, Word};

use super::number;
use crate::engine::limits;

/// Bytes of a line without its text and words, at the least.
const LEAST_LINE: usize = 29;

/// Lines as a record keeps them; nothing for none. Whoever calls has seen to it that a reader takes them.
pub(in crate::engine) fn encode(lines: &[(Track, Line)]) -> Vec<u8> {
    if lines.is_empty() {
        return Vec::new();
    }
    let mut sorted: Vec<&(Track, Line)> = lines.iter().collect();
    sorted.sort_by(|(a, one), (b, other)| {
        let starts = one.span.start().total_cmp(&other.span.start());
        a.cmp(b).then(starts).then(one.span.end().total_cmp(&other.span.end()))
    });
    let mut bytes = (sorted.len() as u32).to_le_bytes().to_vec();
    for (track, line) in sorted {
        bytes.push(code(*track));
        bytes.extend(line.confidence.to_le_bytes());
        extend(&mut bytes, line.span, &line.text);
        bytes.extend((line.words.len() as u32).to_le_bytes());
        line.words.iter().for_each(|word| extend(&mut bytes, word.span, &word.text));
    }
    bytes
}

fn extend(bytes: &mut Vec<u8>, span: Span, text: &str) {
    bytes.extend(span.start().to_le_bytes());
    bytes.extend(span.end().to_le_bytes());
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// How many lines there are, without reading them; never more than there is room for.
pub(in crate::engine) fn count(bytes: &[u8]) -> usize {
    number(bytes, 0).map_or(0, |count| (count as usize).min(bytes.len() / LEAST_LINE))
}

/// The lines that [`encode`] wrote, whoever wrote the bytes.
///
/// # Errors
/// What is wrong, when nobody could have written them.
pub(in crate::engine) fn decode(bytes: &[u8]) -> Result<Vec<(Track, Line)>, String> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let mut left = Left { bytes };
    let said = left.number()?;
    if said > limits::LINES {
        return Err(format!("{said} lines are more than {}", limits::LINES));
    }
    let mut lines = Vec::with_capacity(count(bytes));
    for _ in 0..said {
        let track = match left.take::<1>()?[0] {
            1 => Track::Said,
            2 => Track::Written,
            other => return Err(format!("no track has number {other}")),
        };
        let confidence = f32::from_le_bytes(left.take::<4>()?);
        if !(0.0..=1.0).contains(&confidence) {
            return Err(format!("a confidence of {confidence}"));
        }
        let (span, text) = left.timed()?;
        let count = left.number()?;
        if count > limits::LINE_WORDS {
            return Err(format!("{count} words in a line are more than {}", limits::LINE_WORDS));
        }
        let mut words = Vec::new();
        for _ in 0..count {
            let (span, text) = left.timed()?;
            words.push(Word { span, text });
        }
        lines.push((track, Line { span, text, words, confidence }));
    }
    if left.bytes.is_empty() { Ok(lines) } else { Err("something stands behind the last line".to_owned()) }
}

/// Words of pictures are none: what is seen has vectors.
fn code(track: Track) -> u8 {
    match track {
        Track::Seen | Track::Said => 1,
        Track::Written => 2,
    }
}

struct Left<'a> {
    bytes: &'a [u8],
}

impl<'a> Left<'a> {
    fn slice(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or("the words end in the middle of a line")?;
        self.bytes = rest;
        Ok(taken)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.slice(N)?.try_into().map_err(|_| "the words end in the middle of a line".to_owned())
    }

    fn number(&mut self) -> Result<usize, String> {
        Ok(u32::from_le_bytes(self.take::<4>()?) as usize)
    }

    fn timed(&mut self) -> Result<(Span, String), String> {
        let (start, end) = (f64::from_le_bytes(self.take::<8>()?), f64::from_le_bytes(self.take::<8>()?));
        let span = Span::new(start, end).map_err(|error| error.to_string())?;
        let length = self.number()?;
        if length > limits::LINE_BYTES {
            return Err(format!("{length} bytes in a line are more than {}", limits::LINE_BYTES));
        }
        let text = std::str::from_utf8(self.slice(length)?).map_err(|_| "a line is not UTF-8".to_owned())?;
        Ok((span, text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;

    fn lines() -> Vec<(Track, Line)> {
        let span = |start, end| Span::new(start, end).unwrap();
        let word = |start, text: &str| Word { span: span(start, start + 0.5), text: text.to_owned() };
        let words = vec![word(1.0, "good"), word(1.5, "mörning")];
        let line = |start, text: &str, words| Line {
            span: span(start, start + 2.0),
            text: text.to_owned(),
            words,
            confidence: 0.5,
        };
        vec![
            (Track::Said, line(1.0, "good mörning", words)),
            (Track::Said, line(7.25, "", Vec::new())),
            (Track::Written, line(0.0, "EXIT", Vec::new())),
        ]
    }

    #[test]
    fn lines_are_read_back_in_the_order_of_tracks_and_times() {
        let lines = lines();
        let turned: Vec<_> = lines.iter().rev().cloned().collect();
        let bytes = encode(&turned);
        assert_eq!((decode(&bytes), count(&bytes)), (Ok(lines), 3));
        assert_eq!((encode(&[]).len(), decode(&[])), (0, Ok(Vec::new())));
    }

    #[test]
    fn words_that_end_early_go_on_or_were_never_written_are_refused_and_cost_nothing() {
        let bytes = encode(&lines());
        for length in 1..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length}");
        }
        assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
        let huge = [&u32::MAX.to_le_bytes()[..], &bytes[4..]].concat();
        assert!(decode(&huge).is_err() && count(&huge) < 10);
        let mut rng = Rng::new(7);
        for _ in 0..2000 {
            let mut changed = bytes.clone();
            for _ in 0..3 {
                let place = rng.below(changed.len());
                changed[place] = rng.bits() as u8;
            }
            // Whatever it says: no panic, and nothing that a writer could not have written.
            if let Ok(read) = decode(&changed) {
                assert_eq!(decode(&encode(&read)).map(|read| read.len()), Ok(read.len()));
            }
        }
    }
}
