//! Reading the entries: blocks of them, decoded by all cores.

use std::collections::HashMap;
use std::sync::Arc;

use cuemark_core::{QueryId, RawSpan, RowCounts, UnreadField, UnreadFields, VideoTable, note_unread};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::{Columns, List, NumberedLists, Packed};
use crate::cursor::{Cursor, missing, once};
use crate::fault::{Fault, Walk, shorten};
use crate::feed::{Block, Feed, Piece};
use crate::predicted;
use crate::{ReadError, Result, Source, VideoIndex};

/// Entries that one core decodes before it looks for more.
const CHUNK: usize = 64;
/// One list beside its rows: itself, its id, and its place among those that are looked for twice.
const LIST: usize = 2 * size_of::<List>() + 96;

/// What video numbers mean: places in a table in which every name stands once.
#[derive(Debug)]
pub(crate) struct Codes {
    videos: Arc<VideoTable>,
    by_number: FxHashMap<u32, u32>,
}

impl Codes {
    pub(crate) fn new(index: &VideoIndex) -> Self {
        let mut videos = VideoTable::with_capacity(index.len());
        let by_number = index.iter().map(|(number, video)| (number, videos.insert_full(video.id.clone()).0 as u32));
        let by_number = by_number.collect();
        Self { videos: Arc::new(videos), by_number }
    }
}

/// How the entries of a list are read.
#[derive(Clone, Copy)]
struct Reading<'a> {
    source: &'a Source,
    /// What the layout calls a query's id.
    id_field: &'a str,
    /// The list's own key; none at the root.
    key: Option<&'a str>,
    codes: &'a Codes,
}

/// Some entries that were decoded together.
struct Decoded {
    lists: Vec<List>,
    /// The lines on which they begin.
    lines: Vec<usize>,
    columns: Packed,
    counts: RowCounts,
    unread: UnreadFields,
}

/// Reads the list of entries that begins here, under `key` (none at the root); `id_field` is what the layout calls a query's id.
pub(crate) fn read_list(
    feed: &mut Feed<'_>,
    source: &Source,
    (key, id_field): (Option<&str>, &str),
    codes: &Codes,
    counts: &mut RowCounts,
) -> Result<NumberedLists> {
    let reading = Reading { source, id_field, key, codes };
    let mut read = NumberedLists {
        videos: Arc::clone(&codes.videos),
        lists: Vec::new(),
        chunks: Vec::new(),
        unread: UnreadFields::new(),
    };
    let mut places = HashMap::new();
    feed.list(
        key,
        |block| reading.block(block),
        |block: Vec<Decoded>| {
            for Decoded { lists, lines, columns, counts: odd, unread } in block {
                let chunk = read.chunks.len() as u32;
                for (mut list, line) in lists.into_iter().zip(lines) {
                    list.chunk = chunk;
                    let place = read.lists.len();
                    if let Some(first) = places.insert(list.query.clone(), place) {
                        let problem = format!("`{}` is the id of entry {first} too", shorten(list.query.as_str()));
                        let fault = Fault::new(0, problem).inside_key(id_field).inside_index(place);
                        return Err(reading.error(fault, line, ""));
                    }
                    read.lists.push(list);
                }
                for (name, field) in unread {
                    read.unread.entry(name).or_insert(UnreadField { lists: 0, ..field }).lists += field.lists;
                }
                counts.add(&odd);
                read.chunks.push(columns);
            }
            Ok(())
        },
    )?;
    Ok(read)
}

impl Reading<'_> {
    /// Decodes a block; the first error in its order.
    fn block(&self, block: &Block) -> Result<Vec<Decoded>> {
        let pieces = block.pieces();
        let chunks = pieces.par_chunks(CHUNK).enumerate();
        let decode = |columns: &mut Columns, (chunk, pieces): (usize, &[Piece<'_>])| {
            self.chunk(block.first + chunk * CHUNK, pieces, columns)
        };
        let decoded: Vec<Result<Decoded>> = chunks.map_init(Columns::default, decode).collect();
        decoded.into_iter().collect()
    }

    /// Decodes entries, the first of which is number `first`; `columns` is room to work in.
    fn chunk(&self, first: usize, pieces: &[Piece<'_>], columns: &mut Columns) -> Result<Decoded> {
        let mut decoded = Decoded {
            lists: Vec::with_capacity(pieces.len()),
            lines: Vec::with_capacity(pieces.len()),
            columns: Columns::default().pack(),
            counts: RowCounts::default(),
            unread: UnreadFields::new(),
        };
        columns.clear();
        for (place, piece) in (first..).zip(pieces) {
            let (text, line) = (piece.text(self.source)?, piece.line);
            let entry = self.entry(text, place, columns, &mut decoded);
            let list = entry.map_err(|fault| self.error(fault.inside_index(place), line, text))?;
            decoded.lists.push(list);
            decoded.lines.push(line);
        }
        decoded.columns = columns.pack();
        Ok(decoded)
    }

    fn error(&self, fault: Box<Fault>, line: usize, text: &str) -> ReadError {
        let fault = match self.key {
            Some(key) => fault.inside_key(key),
            None => fault,
        };
        fault.into_error(self.source, line, text)
    }

    fn entry(&self, text: &str, place: usize, columns: &mut Columns, decoded: &mut Decoded) -> Walk<List> {
        let (mut qid, mut listed) = (None, None);
        let mut fields = Map::new();
        let from = columns.len();
        let mut cursor = Cursor::new(text, self.source.meter());
        cursor.charge(LIST)?;
        cursor.object(|cursor, key| match key {
            "predictions" => {
                once(cursor, &mut listed, ())?;
                cursor.array::<[u8; Columns::ROW]>(|cursor, _| self.row(cursor, columns, &mut decoded.counts))
            }
            key if key == self.id_field => {
                let id = QueryId::from(&*cursor.id()?);
                once(cursor, &mut qid, id)
            }
            _ => cursor.keep(key, &mut fields),
        })?;
        cursor.end()?;
        let query = qid.ok_or_else(|| missing(self.id_field))?;
        listed.ok_or_else(|| missing("predictions"))?;
        for name in fields.keys() {
            note_unread(&mut decoded.unread, name, place);
        }
        let fields = (!fields.is_empty()).then(|| Value::Object(fields).to_string().into_boxed_str());
        Ok(List { query, chunk: 0, from: from as u32, to: columns.len() as u32, fields })
    }

    #[inline]
    fn row(&self, cursor: &mut Cursor<'_>, columns: &mut Columns, counts: &mut RowCounts) -> Walk<()> {
        let at = cursor.at();
        let ([number, start, end, score], count) = cursor.numbers::<4>()?;
        if count < 3 {
            return Err(Fault::new(at, "a prediction is a video number, a start, an end and perhaps a score"));
        }
        // The cast saturates; comparing back refuses fractions, negative numbers and those that are too large.
        let whole = number as u32;
        let video = self.codes.by_number.get(&whole).filter(|_| f64::from(whole) == number);
        let Some(video) = video else {
            return Err(Fault::new(at, format!("no video has the number {number}")).inside_index(0));
        };
        let span = predicted::judge(at, RawSpan::new(start, end), counts)?;
        columns.push(*video, span, (count == 4).then_some(score));
        Ok(())
    }
}
