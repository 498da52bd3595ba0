//! The state of a log at one moment: which videos there are and where their moments lie.

use std::fs::File;
use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::{Span, VideoId};
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use rustc_hash::FxHashMap;

use super::log::{self, Head, Meta, Read, Record};
use super::mapped::Mapped;
use crate::{Result, SearchError, VideoEntry, VideoState};

/// The state of a log at one moment. Moments are numbered over the whole log, dead ones too.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    map: Arc<Mapped>,
    head: Head,
    /// Everything that was ever put, in order.
    pub(crate) puts: Vec<Put>,
    by_id: FxHashMap<VideoId, usize>,
    /// The put that each moment belongs to.
    put_of_row: Vec<u32>,
    /// Where the next record begins.
    pub(crate) end: usize,
}

/// A video as it was put.
#[derive(Debug, Clone)]
pub(crate) struct Put {
    pub(crate) entry: VideoEntry,
    /// Whether it is still what the index has under that name.
    pub(crate) live: bool,
    pub(crate) first_row: usize,
    pub(crate) rows: usize,
    spans: usize,
    vectors: usize,
    /// Where its record begins and ends.
    record: std::ops::Range<usize>,
}

impl Put {
    /// Whether its moments can be found at all.
    pub(crate) fn is_found(&self) -> bool {
        self.live && self.entry.state == VideoState::Present
    }
}

impl Snapshot {
    /// Reads a log from its beginning.
    pub(crate) fn read(file: &File, path: &Utf8Path) -> Result<Self> {
        let map = Mapped::new(file).map_err(SearchError::io("map", path))?;
        let empty = Self {
            head: read_head(&map, path)?,
            map: Arc::new(map),
            puts: Vec::new(),
            by_id: FxHashMap::default(),
            put_of_row: Vec::new(),
            end: log::FIRST,
        };
        empty.go_on(path)
    }

    /// The same with what was added to the log since; everything anew when the log was compacted.
    pub(crate) fn refreshed(&self, file: &File, path: &Utf8Path) -> Result<Self> {
        let map = Mapped::new(file).map_err(SearchError::io("map", path))?;
        if read_head(&map, path)? != self.head {
            return Self::read(file, path);
        }
        Self { map: Arc::new(map), ..self.clone() }.go_on(path)
    }

    fn go_on(mut self, path: &Utf8Path) -> Result<Self> {
        let map = Arc::clone(&self.map);
        loop {
            match log::read(map.bytes(), self.end, self.head.width) {
                Read::End => return Ok(self),
                Read::Damage(problem) => {
                    return Err(SearchError::Damaged { path: path.to_owned(), offset: self.end as u64, problem });
                }
                Read::Record(record) => {
                    // The last record may have been cut short by a power cut after the file had grown.
                    let last = matches!(log::read(map.bytes(), record.end, self.head.width), Read::End);
                    if last && !record.is_sound(map.bytes()) {
                        return Ok(self);
                    }
                    self.take(*record);
                }
            }
        }
    }

    fn take(&mut self, record: Record) {
        let place_in_file = self.end..record.end;
        self.end = record.end;
        match record.meta {
            Meta::Put(entry) => {
                let place = self.puts.len();
                if let Some(earlier) = self.by_id.insert(entry.id.clone(), place) {
                    self.puts[earlier].live = false;
                }
                let first_row = self.put_of_row.len();
                self.put_of_row.resize(first_row + record.rows, place as u32);
                let (spans, vectors) = (record.spans.start, record.vectors.start);
                let (rows, record) = (record.rows, place_in_file);
                self.puts.push(Put { entry, live: true, first_row, rows, spans, vectors, record });
            }
            Meta::Note { id, state, tags } => {
                if let Some(put) = self.by_id.get(&id).and_then(|place| self.puts.get_mut(*place)) {
                    (put.entry.state, put.entry.tags) = (state, tags);
                }
            }
            Meta::Remove { id } => {
                if let Some(place) = self.by_id.remove(&id) {
                    self.puts[place].live = false;
                }
            }
        }
    }

    /// Numbers per embedding.
    pub(crate) fn width(&self) -> usize {
        self.head.width
    }

    /// How often the log was compacted.
    pub(crate) fn generation(&self) -> u32 {
        self.head.generation
    }

    /// Bytes of the log that nothing needs any more: removed and replaced videos, and what was noted about others.
    pub(crate) fn waste(&self) -> usize {
        let live: usize = self.puts.iter().filter(|put| put.live).map(|put| put.record.len()).sum();
        self.end - log::FIRST - live
    }

    /// The live video as one record, with what was noted about it since.
    ///
    /// # Errors
    /// What is wrong, when its moments do not fit their checksum.
    pub(crate) fn record(&self, put: &Put) -> Result<Vec<u8>, String> {
        match log::read(self.map.bytes(), put.record.start, self.width()) {
            Read::Record(record) if record.is_sound(self.map.bytes()) => {
                let body = self.map.bytes().get(put.spans..put.record.end).unwrap_or_default();
                Ok(log::encode_body(&Meta::Put(put.entry.clone()), put.rows, body))
            }
            Read::Damage(problem) => Err(problem),
            Read::Record(_) | Read::End => Err("the record's moments do not fit their checksum".to_owned()),
        }
    }

    /// Where a video's record begins in the file.
    pub(crate) fn offset(&self, put: &Put) -> u64 {
        put.record.start as u64
    }

    /// Moments over the whole log, dead ones too.
    pub(crate) fn rows(&self) -> usize {
        self.put_of_row.len()
    }

    /// The live video of that name.
    pub(crate) fn live(&self, id: &VideoId) -> Option<&Put> {
        self.by_id.get(id).and_then(|place| self.puts.get(*place))
    }

    /// The video that a moment belongs to.
    pub(crate) fn put_of(&self, row: usize) -> Option<(usize, &Put)> {
        let place = *self.put_of_row.get(row)? as usize;
        Some((place, self.puts.get(place)?))
    }

    /// Where a moment lies; empty at 0 when its bytes are no span.
    pub(crate) fn span(&self, put: &Put, row: usize) -> Span {
        let at = put.spans + 16 * (row - put.first_row);
        let seconds =
            |at: usize| -> Option<f64> { Some(f64::from_le_bytes(self.map.bytes().get(at..at + 8)?.try_into().ok()?)) };
        let span = seconds(at).zip(seconds(at + 8)).and_then(|(start, end)| Span::new(start, end).ok());
        span.unwrap_or_else(|| Span::whole(0.0))
    }

    /// The numbers of one moment.
    pub(crate) fn vector(&self, row: usize) -> &[f16] {
        let Some((_, put)) = self.put_of(row) else { return &[] };
        let at = put.vectors + 2 * self.width() * (row - put.first_row);
        self.halves(at, 1)
    }

    /// The numbers of all moments of a video.
    pub(crate) fn vectors(&self, put: &Put) -> &[f16] {
        self.halves(put.vectors, put.rows)
    }

    fn halves(&self, at: usize, rows: usize) -> &[f16] {
        let bytes = self.map.bytes().get(at..at + 2 * self.width() * rows).unwrap_or_default();
        // Parts of a record begin at multiples of 64 bytes of a page-aligned map.
        bytemuck::try_cast_slice::<u8, u16>(bytes).unwrap_or_default().reinterpret_cast()
    }

    /// Walks the log again, checksums of moments included; `fault` is told of each that does not fit.
    pub(crate) fn check(&self, progress: &mut dyn FnMut(usize, usize), fault: &mut dyn FnMut(u64, String)) {
        let bytes = self.map.bytes();
        let mut offset = log::FIRST;
        loop {
            match log::read(bytes, offset, self.width()) {
                Read::End => break,
                Read::Damage(problem) => {
                    fault(offset as u64, problem);
                    break;
                }
                Read::Record(record) => {
                    let last = matches!(log::read(bytes, record.end, self.width()), Read::End);
                    let unacknowledged = last && record.end > self.end;
                    if !record.is_sound(bytes) && !unacknowledged {
                        fault(offset as u64, "the record's moments do not fit their checksum".to_owned());
                    }
                    offset = record.end;
                    progress(offset, bytes.len());
                }
            }
        }
    }
}

fn read_head(map: &Mapped, path: &Utf8Path) -> Result<Head> {
    log::read_head(map.bytes()).map_err(|problem| SearchError::Damaged {
        path: path.to_owned(),
        offset: 0,
        problem: problem.to_owned(),
    })
}

/// Halves as full numbers, into a buffer of the same length.
pub(crate) fn widen(halves: &[f16], buffer: &mut [f32]) {
    if halves.len() == buffer.len() {
        halves.convert_to_f32_slice(buffer);
    }
}
