//! One record of a log: a video with its moments, a note about one, or that one is gone.

use std::ops::Range;

use cuemark_core::VideoId;
use half::f16;
use half::slice::HalfFloatSliceExt;
use serde::{Deserialize, Serialize};

use super::{ALIGN, aligned, number, pad};
use crate::engine::limits;
use crate::{Result, VideoEntry, VideoState};

const MAGIC: &[u8; 4] = b"CREC";
const HEADER: usize = Header::BYTES;

/// What one record says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(in crate::engine) enum Meta {
    /// A video with the moments that follow, in place of an earlier one of that name.
    Put(VideoEntry),
    /// Something else is known about a video now.
    Note { id: VideoId, state: VideoState, tags: Vec<String> },
    /// A video is gone.
    Remove { id: VideoId },
}

impl Meta {
    fn kind(&self) -> Kind {
        match self {
            Self::Put(_) => Kind::Put,
            Self::Note { .. } => Kind::Note,
            Self::Remove { .. } => Kind::Remove,
        }
    }

    pub(in crate::engine) fn id(&self) -> &VideoId {
        match self {
            Self::Put(VideoEntry { id, .. }) | Self::Note { id, .. } | Self::Remove { id } => id,
        }
    }
}

/// What sort of record it is, by its header alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Kind {
    Put = 1,
    Note = 2,
    Remove = 3,
}

/// What the header of a record says: enough to find its parts and to check them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Header {
    pub(in crate::engine) kind: Kind,
    pub(in crate::engine) meta: usize,
    pub(in crate::engine) rows: usize,
    /// Bytes of the words; 0 in records from before there were any.
    pub(in crate::engine) words: usize,
    meta_crc: u32,
    body_crc: u32,
}

/// Where the parts of a record lie in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Placed {
    meta: Range<usize>,
    pub(in crate::engine) spans: Range<usize>,
    pub(in crate::engine) vectors: Range<usize>,
    pub(in crate::engine) words: Range<usize>,
    /// Where the next record begins.
    pub(in crate::engine) end: usize,
}

impl Placed {
    /// Whether nothing stands between the description and the moments, where no checksum looks.
    pub(in crate::engine) fn is_padded_with_zeros(&self, bytes: &[u8]) -> bool {
        bytes.get(self.meta.end..self.spans.start).is_some_and(|padding| padding.iter().all(|byte| *byte == 0))
    }
}

impl Header {
    pub(super) const BYTES: usize = 40;

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let (kind, words) = (self.kind as u32, self.words as u32);
        for number in [kind, self.meta as u32, self.rows as u32, self.meta_crc, self.body_crc, words] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.resize(HEADER - 4, 0);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// The header at the beginning of `bytes`; `None` when none begins there, or one of what no writer would write.
    pub(in crate::engine) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER)?;
        if !bytes.starts_with(MAGIC) || number(bytes, HEADER - 4) != Some(crc32fast::hash(&bytes[..HEADER - 4])) {
            return None;
        }
        let kind = match number(bytes, 4)? {
            1 => Kind::Put,
            2 => Kind::Note,
            3 => Kind::Remove,
            _ => return None,
        };
        let (meta, rows) = (number(bytes, 8)? as usize, number(bytes, 12)? as usize);
        let words = number(bytes, 24)? as usize;
        let possible = meta <= limits::DESCRIPTION_BYTES && rows <= limits::MOMENTS && words <= limits::WORDS_BYTES;
        let (meta_crc, body_crc) = (number(bytes, 16)?, number(bytes, 20)?);
        possible.then_some(Self { kind, meta, rows, words, meta_crc, body_crc })
    }

    /// Where the parts of a record at `offset` lie; `None` past the end of memory.
    pub(in crate::engine) fn placed(&self, offset: usize, width: usize) -> Option<Placed> {
        let meta = offset.checked_add(HEADER)?;
        let spans = offset.checked_add(aligned(HEADER + self.meta))?;
        let vectors = spans.checked_add(aligned(16 * self.rows))?;
        let numbers = 2usize.checked_mul(width)?.checked_mul(self.rows)?;
        let words = vectors.checked_add(numbers.checked_next_multiple_of(ALIGN)?)?;
        let end = words.checked_add(aligned(self.words))?;
        let (meta, spans) = (meta..meta + self.meta, spans..spans + 16 * self.rows);
        let (vectors, words) = (vectors..vectors + numbers, words..words + self.words);
        Some(Placed { meta, spans, vectors, words, end })
    }

    /// Bytes of the whole record; `None` when no memory could hold it.
    pub(in crate::engine) fn length(&self, width: usize) -> Option<usize> {
        Some(self.placed(0, width)?.end)
    }

    /// The description; what is wrong with it otherwise.
    pub(in crate::engine) fn read_meta(&self, bytes: &[u8], placed: &Placed) -> Result<Meta, String> {
        let text = bytes.get(placed.meta.clone()).unwrap_or_default();
        if crc32fast::hash(text) != self.meta_crc || text.len() != self.meta {
            return Err("the record's description does not fit its checksum".to_owned());
        }
        serde_json::from_slice(text).map_err(|error| format!("the record's description: {error}"))
    }

    /// Whether the moments and words fit their checksum.
    pub(in crate::engine) fn is_sound(&self, bytes: &[u8], placed: &Placed) -> bool {
        bytes.get(placed.spans.start..placed.end).is_some_and(|body| crc32fast::hash(body) == self.body_crc)
    }
}

/// A record ready to be written.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Encoded {
    pub(in crate::engine) bytes: Vec<u8>,
    pub(in crate::engine) header: Header,
    /// See [`hash_of`].
    pub(in crate::engine) name: u64,
}

impl Encoded {
    /// `vectors` holds `spans.len()` rows, `words` what [`super::words::encode`] made.
    ///
    /// # Errors
    /// When a reader would refuse it.
    pub(in crate::engine) fn new(meta: &Meta, spans: &[[f64; 2]], vectors: &[f16], words: &[u8]) -> Result<Self> {
        let mut body: Vec<u8> = Vec::with_capacity(aligned(16 * spans.len()) + aligned(2 * vectors.len()));
        body.extend(spans.iter().flatten().flat_map(|seconds| seconds.to_le_bytes()));
        pad(&mut body);
        body.extend(vectors.iter().flat_map(|number| number.to_le_bytes()));
        pad(&mut body);
        limits::check_tags(meta)?;
        Self::of_body(meta, spans.len(), body, words)
    }

    /// A record without moments: a note or a removal.
    ///
    /// # Errors
    /// As [`Encoded::new`].
    pub(in crate::engine) fn bare(meta: &Meta) -> Result<Self> {
        Self::new(meta, &[], &[], &[])
    }

    /// A record with the moments of another, as they lie there, padding included. Tags may be as long as they were before there
    /// was a limit.
    ///
    /// # Errors
    /// As [`Encoded::new`].
    pub(in crate::engine) fn of_body(meta: &Meta, rows: usize, mut body: Vec<u8>, words: &[u8]) -> Result<Self> {
        limits::check_words(meta, words.len())?;
        body.extend(words);
        pad(&mut body);
        let text = serde_json::to_vec(meta).unwrap_or_default();
        limits::check_text(meta, &text)?;
        let (meta_crc, body_crc) = (crc32fast::hash(&text), crc32fast::hash(&body));
        let header = Header { kind: meta.kind(), meta: text.len(), rows, words: words.len(), meta_crc, body_crc };
        let mut bytes = header.encode();
        bytes.reserve(aligned(text.len() + HEADER) + body.len());
        bytes.extend(&text);
        pad(&mut bytes);
        bytes.extend(&body);
        Ok(Self { bytes, header, name: hash_of(meta.id()) })
    }
}

/// A hash (FNV-1a) of a video's name, which stays the same for ever.
pub(in crate::engine) fn hash_of(id: &VideoId) -> u64 {
    id.as_str()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Numbers as the log keeps them: half precision, 11 bits of a fraction, enough for a cosine to three decimals.
pub(in crate::engine) fn halves(numbers: &[f32]) -> Vec<f16> {
    let mut halves = vec![f16::ZERO; numbers.len()];
    halves.convert_from_f32_slice(numbers);
    halves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Encoded {
        let entry = VideoEntry { tags: vec!["ä\"".to_owned()], ..VideoEntry::without_file("a", 9.0) };
        let vectors = halves(&[0.25, -0.5, 1.0, 0.125, 0.0, 2.0]);
        Encoded::new(&Meta::Put(entry), &[[0.0, 1.5], [1.0, 9.0]], &vectors, b"words").unwrap()
    }

    #[test]
    fn a_record_is_read_back_as_it_was_written() {
        let Encoded { bytes, header, .. } = record();
        let placed = header.placed(0, 3).unwrap();
        assert_eq!((Header::read(&bytes), placed.end), (Some(header), bytes.len()));
        assert_eq!(header.read_meta(&bytes, &placed).unwrap().id().as_str(), "a");
        assert_eq!(bytes[placed.spans.start + 8..][..8], 1.5f64.to_le_bytes());
        assert_eq!(bytes[placed.vectors.start + 2..][..2], f16::from_f32(-0.5).to_le_bytes());
        assert_eq!((placed.vectors.start % 64, &bytes[placed.words.clone()]), (0, &b"words"[..]));
        assert!(header.is_sound(&bytes, &placed));
    }

    #[test]
    fn a_changed_byte_is_noticed_by_the_checksum_of_its_part() {
        let Encoded { bytes, header, .. } = record();
        let placed = header.placed(0, 3).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            let noticed = [
                Header::read(&changed) != Some(header),
                header.read_meta(&changed, &placed).is_err(),
                !header.is_sound(&changed, &placed),
            ];
            // Between a description and its moments there are zeros that nobody reads.
            let padding = (placed.meta.end..placed.spans.start).contains(&place);
            assert_eq!(noticed.iter().filter(|noticed| **noticed).count(), usize::from(!padding), "{place}");
        }
    }

    #[test]
    fn what_no_writer_would_write_is_no_header() {
        let header = record().header;
        for wrong in [
            Header { meta: limits::DESCRIPTION_BYTES + 1, ..header },
            Header { rows: limits::MOMENTS + 1, ..header },
            Header { words: limits::WORDS_BYTES + 1, ..header },
        ] {
            assert_eq!(Header::read(&wrong.encode()), None);
        }
    }

    #[test]
    fn noise_is_never_a_record_and_never_a_panic() {
        let mut rng = cuemark_core::Rng::new(5);
        for _ in 0..500 {
            let noise: Vec<u8> = (0..rng.below(400)).map(|_| rng.bits() as u8).collect();
            assert!(Header::read(&noise).is_none() && super::super::Head::read(&noise).is_err());
            assert!(super::super::Commit::read(&noise, 0).is_none());
        }
    }
}
