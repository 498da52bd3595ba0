//! JSON Lines: read in blocks of whole lines, decoded by all cores, handed on in file order.
//!
//! The file is never held whole: while one batch of blocks is decoded the next is read.

use std::collections::HashMap;
use std::io::{BufRead, Read as _};

use cuemark_core::{Prediction, QueryId, RowCounts, VideoId};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::cursor::Cursor;
use crate::fault::{Walk, shorten};
use crate::names::Names;
use crate::{ReadError, Result, Source};

/// Bytes that are read at once: large enough to keep a core busy, small enough to share out a 2 MB file.
const BLOCK: usize = 256 << 10;
/// Blocks per core in one batch.
const BLOCKS_PER_CORE: usize = 8;

/// One record beside itself: its id, and its place among those that are looked for twice.
const RECORD: usize = 96;

/// What a worker carries from record to record of one block.
pub(crate) struct Scratch<'k> {
    pub(crate) names: Names<'k>,
    pub(crate) rows: RowCounts,
    /// Room for one ranked list, so that the list that is kept takes no more memory than it needs.
    pub(crate) ranked: Vec<Prediction>,
}

impl<'k> Scratch<'k> {
    pub(crate) fn new(known: &'k FxHashSet<VideoId>) -> Self {
        Self { names: Names::new(known), rows: RowCounts::default(), ranked: Vec::new() }
    }
}

/// Calls `decode` at every line and `take` with its line number (from 1) and what came of it, in file order; blank lines
/// are skipped. Returns what was wrong with the rows.
///
/// # Errors
/// The first in file order: of reading, of `decode`, of `take`, or because a line is too long or not UTF-8.
pub(crate) fn read<T: Send>(
    source: &Source,
    decode: impl Fn(&mut Cursor<'_>, &mut Scratch<'_>) -> Walk<T> + Sync,
    mut take: impl FnMut(usize, T) -> Result<()>,
) -> Result<RowCounts> {
    let mut blocks = Blocks::open(source)?;
    let mut known = FxHashSet::default();
    let mut rows = RowCounts::default();
    let mut batch = blocks.batch();
    while !batch.blocks.is_empty() {
        let decode_block = |block: &Block| block.decode(source, &known, &decode);
        let (decoded, next) =
            rayon::join(|| batch.blocks.par_iter().map(decode_block).collect::<Vec<_>>(), || blocks.batch());
        let mut fresh = Vec::new();
        let read = batch.bytes();
        for block in decoded {
            for (line, record) in block.records {
                take(line, record)?;
            }
            if let Some(error) = block.error {
                return Err(error);
            }
            rows.add(&block.rows);
            fresh.push(block.fresh);
        }
        known.extend(fresh.into_iter().flatten());
        if let Some(error) = batch.error {
            return Err(error);
        }
        drop(batch);
        source.meter().release(read);
        batch = next;
    }
    batch.error.map_or(Ok(rows), Err)
}

/// Which ids a file has named so far, and on which line.
#[derive(Default)]
pub(crate) struct Seen(HashMap<QueryId, usize>);

impl Seen {
    /// Notes `id`.
    ///
    /// # Errors
    /// When an earlier line has it; the error names both.
    pub(crate) fn note(&mut self, source: &Source, line: usize, id: &QueryId) -> Result<()> {
        match self.0.insert(id.clone(), line) {
            None => Ok(()),
            Some(first) => {
                let problem = format!("`{}` stands on line {first} already", shorten(id.as_str()));
                Err(source.record(line, "qid", problem).with_hint("give every query one line"))
            }
        }
    }
}

/// Whole lines, the last one perhaps without its line end.
struct Block {
    first_line: usize,
    bytes: Vec<u8>,
}

/// What came of one block: its records up to the first error.
struct Decoded<T> {
    records: Vec<(usize, T)>,
    error: Option<ReadError>,
    rows: RowCounts,
    fresh: FxHashSet<VideoId>,
}

impl Block {
    fn decode<T>(
        &self,
        source: &Source,
        known: &FxHashSet<VideoId>,
        decode: &impl Fn(&mut Cursor<'_>, &mut Scratch<'_>) -> Walk<T>,
    ) -> Decoded<T> {
        let mut scratch = Scratch::new(known);
        let mut records = Vec::new();
        let mut each = |line: usize, bytes: &[u8]| {
            if bytes.len() as u64 > source.limits().line {
                return Err(too_long(source, line));
            }
            let text = std::str::from_utf8(bytes).map_err(|_| source.not_utf8(line))?;
            if !text.trim_ascii().is_empty() {
                let mut cursor = Cursor::new(text, source.meter());
                let own = cursor.charge(2 * size_of::<T>() + RECORD);
                let record = own
                    .and_then(|()| decode(&mut cursor, &mut scratch))
                    .and_then(|record| cursor.end().map(|()| record));
                records.push((line, record.map_err(|fault| fault.into_error(source, line, text))?));
                scratch.rows.place(line);
            }
            Ok(())
        };
        let ends = memchr::memchr_iter(b'\n', &self.bytes).chain([self.bytes.len()]);
        let mut from = 0;
        let mut lines = ends.enumerate().map(|(index, end)| {
            let line = self.bytes.get(from..end).unwrap_or_default();
            from = end + 1;
            (self.first_line + index, line)
        });
        let error = lines.find_map(|(line, bytes)| each(line, bytes).err());
        Decoded { records, error, rows: scratch.rows, fresh: scratch.names.into_fresh() }
    }
}

fn too_long(source: &Source, line: usize) -> ReadError {
    let limit = source.limits().line;
    ReadError::TooLarge { path: source.path().to_owned(), what: format!("line {line}"), limit }
}

/// Cuts a file into blocks.
struct Blocks<'s> {
    source: &'s Source,
    reader: Box<dyn BufRead + Send>,
    /// The beginning of a line whose end has not been read yet.
    carry: Vec<u8>,
    next_line: usize,
}

/// The next blocks of a file, up to its end or to the error.
#[derive(Default)]
struct Batch {
    blocks: Vec<Block>,
    error: Option<ReadError>,
}

impl Batch {
    fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes.capacity() as u64).sum()
    }
}

impl<'s> Blocks<'s> {
    fn open(source: &'s Source) -> Result<Self> {
        let mut reader = source.open()?;
        let head = reader.fill_buf().map_err(|error| source.io(error))?;
        if head.starts_with(b"\xef\xbb\xbf") {
            reader.consume(3);
        }
        Ok(Self { source, reader, carry: Vec::new(), next_line: 1 })
    }

    fn batch(&mut self) -> Batch {
        let mut batch = Batch::default();
        // Usually so many blocks; a line that is as long as many counts for many.
        let enough = (BLOCK * BLOCKS_PER_CORE * rayon::current_num_threads()) as u64;
        while batch.bytes() < enough {
            match self.next() {
                Ok(Some(block)) => {
                    if let Err(exceeded) = self.source.meter().charge(block.bytes.capacity() as u64) {
                        let place = format!("line {}", block.first_line);
                        batch.error = Some(ReadError::memory(self.source.path(), place, exceeded));
                        break;
                    }
                    batch.blocks.push(block);
                }
                Ok(None) => break,
                Err(error) => {
                    batch.error = Some(error);
                    break;
                }
            }
        }
        batch
    }

    fn next(&mut self) -> Result<Option<Block>> {
        let mut bytes = std::mem::take(&mut self.carry);
        loop {
            let before = bytes.len();
            bytes.reserve(BLOCK);
            let room = self.reader.by_ref().take(BLOCK as u64);
            let read = { room }.read_to_end(&mut bytes).map_err(|error| self.source.io(error))?;
            if read == 0 && bytes.is_empty() {
                return Ok(None);
            }
            let newline = bytes.get(before..).and_then(|new| memchr::memrchr(b'\n', new));
            if let Some(newline) = newline {
                self.carry = bytes.split_off(before + newline + 1);
            } else if read > 0 {
                if bytes.len() as u64 > self.source.limits().line {
                    return Err(too_long(self.source, self.next_line));
                }
                continue;
            }
            let block = Block { first_line: self.next_line, bytes };
            self.next_line += memchr::memchr_iter(b'\n', &block.bytes).count();
            return Ok(Some(block));
        }
    }
}
