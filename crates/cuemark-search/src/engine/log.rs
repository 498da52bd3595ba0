//! The append-only log of an index: what was put, changed and removed, in order, with checksums.
//!
//! ```text
//! file    = head(64) record*
//! head    = "CUEMARKMOMENTS01" width:u32 crc:u32 generation:u32 crc(generation):u32 zeros
//! record  = header(40) meta pad64 spans pad64 vectors pad64
//! header  = "CREC" kind:u32 meta:u32 rows:u32 crc(meta):u32 crc(spans vectors):u32 zeros(12) crc(header):u32
//! ```
//! All numbers are little endian. `meta` is JSON, `spans` are pairs of f64 seconds, `vectors` rows of f16; each part begins
//! at a multiple of 64 bytes, so that vectors can be read where they lie.
//!
//! A record counts once all of it is on disk (`fsync`) and no sooner. A process that dies while appending leaves the first
//! part of a record at the end of the file: that is no damage, it was never acknowledged, and the next writer cuts it off.
//! Anything else that does not fit its checksum is damage and is said so.
//!
//! A log is replaced whole by one of the next generation when it is compacted; one that never was is of generation 0 and has
//! zeros there.

use std::ops::Range;

use cuemark_core::VideoId;
use half::f16;
use half::slice::HalfFloatSliceExt;
use serde::{Deserialize, Serialize};

use crate::{VideoEntry, VideoState};

const MAGIC: &[u8; 16] = b"CUEMARKMOMENTS01";
const RECORD: &[u8; 4] = b"CREC";
/// Everything begins at a multiple of this.
const ALIGN: usize = 64;
const HEADER: usize = 40;
/// The most bytes of JSON in one record: far more than any video's name, path and tags.
const LONGEST_META: usize = 1 << 20;
/// The most moments of one video.
pub(crate) const MOST_ROWS: usize = 1 << 22;

/// What one record says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Meta {
    /// A video with the moments that follow, in place of an earlier one of that name.
    Put(VideoEntry),
    /// Something else is known about a video now.
    Note { id: VideoId, state: VideoState, tags: Vec<String> },
    /// A video is gone.
    Remove { id: VideoId },
}

/// A record and where its parts lie in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) meta: Meta,
    pub(crate) rows: usize,
    pub(crate) spans: Range<usize>,
    pub(crate) vectors: Range<usize>,
    body_crc: u32,
    /// Where the next record begins.
    pub(crate) end: usize,
}

/// What was found at one place of a log.
#[derive(Debug)]
pub(crate) enum Read {
    /// A whole record.
    Record(Box<Record>),
    /// The end, or the beginning of a record that was never finished.
    End,
    /// Something that was not written so.
    Damage(String),
}

/// What the head of a log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Numbers per embedding.
    pub(crate) width: usize,
    /// How often the log was compacted.
    pub(crate) generation: u32,
}

/// The head of a log.
pub(crate) fn head(Head { width, generation }: Head) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((width as u32).to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    if generation > 0 {
        bytes.extend(generation.to_le_bytes());
        bytes.extend(crc32fast::hash(&generation.to_le_bytes()).to_le_bytes());
    }
    bytes.resize(ALIGN, 0);
    bytes
}

/// The head of a log; what is wrong with it otherwise.
pub(crate) fn read_head(bytes: &[u8]) -> Result<Head, &'static str> {
    let (Some(text), Some(crc)) = (bytes.get(..20), number(bytes, 20)) else { return Err("too short for a log") };
    if !text.starts_with(MAGIC) {
        return Err("not the head of a log of this version");
    }
    if crc32fast::hash(text) != crc {
        return Err("the head does not fit its checksum");
    }
    let (generation, crc) = (number(bytes, 24).unwrap_or(0), number(bytes, 28).unwrap_or(0));
    if (generation, crc) != (0, 0) && crc32fast::hash(&generation.to_le_bytes()) != crc {
        return Err("the generation in the head does not fit its checksum");
    }
    Ok(Head { width: number(bytes, 16).unwrap_or(0) as usize, generation })
}

/// Where the first record begins.
pub(crate) const FIRST: usize = ALIGN;

/// A record as bytes. `vectors` holds `spans.len()` rows.
pub(crate) fn encode(meta: &Meta, spans: &[[f64; 2]], vectors: &[f16]) -> Vec<u8> {
    let mut body: Vec<u8> = spans.iter().flatten().flat_map(|seconds| seconds.to_le_bytes()).collect();
    pad(&mut body);
    body.reserve(2 * vectors.len() + ALIGN);
    body.extend(vectors.iter().flat_map(|number| number.to_le_bytes()));
    pad(&mut body);
    encode_body(meta, spans.len(), &body)
}

/// A record with the moments of another, as they lie there.
pub(crate) fn encode_body(meta: &Meta, rows: usize, body: &[u8]) -> Vec<u8> {
    let text = serde_json::to_vec(meta).unwrap_or_default();
    let kind: u32 = match meta {
        Meta::Put(_) => 1,
        Meta::Note { .. } => 2,
        Meta::Remove { .. } => 3,
    };
    let mut bytes = RECORD.to_vec();
    for number in [kind, text.len() as u32, rows as u32, crc32fast::hash(&text), crc32fast::hash(body)] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.resize(HEADER - 4, 0);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(&text);
    pad(&mut bytes);
    bytes.extend(body);
    bytes
}

/// The record at `offset` of a log with `width` numbers per embedding. The checksum of its moments is not looked at.
pub(crate) fn read(bytes: &[u8], offset: usize, width: usize) -> Read {
    let Some(rest) = bytes.get(offset..) else { return Read::End };
    let Some(header) = rest.get(..HEADER) else { return Read::End };
    if header.iter().all(|byte| *byte == 0) && rest.iter().all(|byte| *byte == 0) {
        // After a power cut a file may have grown without its bytes having arrived.
        return Read::End;
    }
    if !header.starts_with(RECORD) || number(header, HEADER - 4) != Some(crc32fast::hash(&header[..HEADER - 4])) {
        return Read::Damage("no record begins here".to_owned());
    }
    let at = |place: usize| number(header, place).unwrap_or(0) as usize;
    let (meta_len, rows) = (at(8), at(12));
    if meta_len > LONGEST_META || rows > MOST_ROWS {
        return Read::Damage(format!("a record of {meta_len} bytes and {rows} moments cannot be"));
    }
    let spans_at = offset + aligned(HEADER + meta_len);
    let vectors_at = spans_at + aligned(16 * rows);
    let end = vectors_at + aligned(2 * width * rows);
    if end > bytes.len() {
        return Read::End;
    }
    let Some(text) = rest.get(HEADER..HEADER + meta_len) else { return Read::End };
    if crc32fast::hash(text) as usize != at(16) {
        return Read::Damage("the record's description does not fit its checksum".to_owned());
    }
    let meta = match serde_json::from_slice::<Meta>(text) {
        Ok(meta) => meta,
        Err(error) => return Read::Damage(format!("the record's description: {error}")),
    };
    let spans = spans_at..spans_at + 16 * rows;
    let vectors = vectors_at..vectors_at + 2 * width * rows;
    Read::Record(Box::new(Record { meta, rows, spans, vectors, body_crc: at(20) as u32, end }))
}

impl Record {
    /// Whether its moments fit their checksum.
    pub(crate) fn is_sound(&self, bytes: &[u8]) -> bool {
        bytes.get(self.spans.start..self.end).is_some_and(|body| crc32fast::hash(body) == self.body_crc)
    }
}

/// Numbers as the log keeps them: half precision, 11 bits of a fraction, enough for a cosine to three decimals.
pub(crate) fn halves(numbers: &[f32]) -> Vec<f16> {
    let mut halves = vec![f16::ZERO; numbers.len()];
    halves.convert_from_f32_slice(numbers);
    halves
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(ALIGN)
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(aligned(bytes.len()), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (Vec<u8>, Vec<usize>) {
        let entry = |id: &str| VideoEntry {
            id: id.into(),
            path: None,
            duration: 9.0,
            bytes: 0,
            modified: 0,
            tags: vec!["ä\"".to_owned()],
            state: VideoState::Present,
            partial: None,
        };
        let vectors = halves(&[0.25, -0.5, 1.0, 0.125, 0.0, 2.0]);
        let mut bytes = head(Head { width: 3, generation: 0 });
        let mut ends = vec![bytes.len()];
        for record in [
            encode(&Meta::Put(entry("a")), &[[0.0, 1.5], [1.0, 9.0]], &vectors),
            encode(&Meta::Remove { id: "a".into() }, &[], &[]),
            encode(&Meta::Put(entry("b")), &[[0.0, 1.5], [1.0, 9.0]], &vectors),
        ] {
            bytes.extend(record);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn walk(bytes: &[u8]) -> Result<(usize, usize), String> {
        let (mut offset, mut records) = (FIRST, 0);
        loop {
            match read(bytes, offset, 3) {
                Read::Record(record) if !record.is_sound(bytes) => return Err(format!("moments at {offset}")),
                Read::Record(record) => (offset, records) = (record.end, records + 1),
                Read::End => return Ok((offset, records)),
                Read::Damage(problem) => return Err(problem),
            }
        }
    }

    #[test]
    fn records_are_read_back_as_they_were_written() {
        let (bytes, ends) = log();
        assert_eq!(read_head(&bytes), Ok(Head { width: 3, generation: 0 }));
        assert_eq!(walk(&bytes), Ok((bytes.len(), 3)));
        let Read::Record(first) = read(&bytes, FIRST, 3) else { panic!("a record") };
        assert_eq!(first.end, ends[1]);
        assert_eq!(first.rows, 2);
        assert_eq!(bytes[first.spans.start + 8..][..8], 1.5f64.to_le_bytes());
        assert_eq!(bytes[first.vectors.start + 2..][..2], f16::from_f32(-0.5).to_le_bytes());
        assert_eq!(first.vectors.start % 64, 0);
    }

    #[test]
    fn a_log_cut_anywhere_ends_at_the_last_whole_record() {
        let (bytes, ends) = log();
        for cut in FIRST..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!(walk(&bytes[..cut]), Ok((ends[whole], whole)), "{cut}");
        }
    }

    #[test]
    fn a_changed_byte_is_noticed_wherever_it_is_looked_at() {
        let (bytes, ends) = log();
        for place in FIRST..ends[2] {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            let padding = walk(&changed) == Ok((bytes.len(), 3));
            // Between a description and its moments there are zeros that nobody reads.
            let meta_end = |first: usize| first + HEADER + number(&bytes, first + 8).unwrap() as usize;
            let is_padding =
                [FIRST, ends[1]].iter().any(|first| (meta_end(*first)..aligned(meta_end(*first))).contains(&place));
            assert_eq!(padding, is_padding, "{place}");
        }
    }

    #[test]
    fn a_head_says_how_often_the_log_was_compacted_and_notices_a_changed_byte() {
        let said = Head { width: 7, generation: 12 };
        let bytes = head(said);
        assert_eq!((bytes.len(), read_head(&bytes)), (FIRST, Ok(said)));
        for place in 0..32 {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            assert!(read_head(&changed).is_err(), "{place}");
        }
    }

    #[test]
    fn zeros_behind_the_last_record_are_no_damage() {
        let (mut bytes, _) = log();
        let end = bytes.len();
        bytes.resize(end + 4096, 0);
        assert_eq!(walk(&bytes), Ok((end, 3)));
    }

    #[test]
    fn noise_is_never_a_record_and_never_a_panic() {
        let mut rng = cuemark_core::Rng::new(5);
        for _ in 0..500 {
            let noise: Vec<u8> = (0..rng.below(400)).map(|_| rng.bits() as u8).collect();
            assert!(!matches!(read(&noise, 0, 3), Read::Record(_)));
            assert!(read_head(&noise).is_err());
        }
    }
}
