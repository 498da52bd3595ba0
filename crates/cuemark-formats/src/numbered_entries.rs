//! The entries that TVR and TVR-Ranking submissions are made of, in which a video is a number.
//!
//! ```json
//! {"desc_id": 90200, "desc": "…", "predictions": [[video number, start, end, score], …]}
//! ```
//! The score may be left out. A submission can hold three million rows on one line, so a list is first cut into entries,
//! which is fast, and these are then decoded by all cores.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cuemark_core::{Prediction, QueryId, QueryPredictions, RawSpan, RowCounts, VideoId};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, SerializeTuple, Serializer};
use serde_json::{Map, Value};

use crate::VideoIndex;
use crate::budget::Meter;
use crate::cursor::{Cursor, missing, once};
use crate::fault::{Fault, Walk, shorten};
use crate::predicted::{self, Finite, ForeignId};
use crate::records::Scratch;

/// Entries that one core decodes before it looks for more.
const CHUNK: usize = 64;
/// One list beside its rows: itself, its id, and its place among those that are looked for twice.
const LIST: usize = 2 * size_of::<QueryPredictions>() + 64;

/// One entry's text and where it begins in the document.
pub(crate) struct Piece<'t> {
    offset: usize,
    text: &'t str,
}

/// Cuts the list that begins here into its entries.
pub(crate) fn cut<'t>(cursor: &mut Cursor<'t>) -> Walk<Vec<Piece<'t>>> {
    let mut pieces = Vec::new();
    cursor.array::<Piece<'_>>(|cursor, _| {
        cursor.peek();
        pieces.push(Piece { offset: cursor.at(), text: cursor.skip_object()? });
        Ok(())
    })?;
    Ok(pieces)
}

/// Names of videos by number, one copy per core: millions of predictions count their references to a name, and cores that
/// count in the same place wait for each other.
pub(crate) struct NamesPerCore<'v> {
    videos: &'v VideoIndex,
    idle: Mutex<Vec<FxHashMap<u32, VideoId>>>,
}

impl<'v> NamesPerCore<'v> {
    pub(crate) fn new(videos: &'v VideoIndex) -> Self {
        Self { videos, idle: Mutex::default() }
    }

    /// Calls `work` with a copy that nobody else is using.
    fn with<T>(&self, work: impl FnOnce(&FxHashMap<u32, VideoId>) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let left_behind = idle().pop();
        let names = left_behind.unwrap_or_else(|| self.videos.copy_of_names());
        let done = work(&names);
        idle().push(names);
        done
    }
}

/// Decodes the entries of one list, in order; `id_field` is what the layout calls a query's id.
pub(crate) fn decode(
    pieces: &[Piece<'_>],
    id_field: &str,
    names: &NamesPerCore<'_>,
    rows: &mut RowCounts,
    meter: &Meter,
) -> Walk<Vec<QueryPredictions>> {
    let decode_chunk = |(chunk, pieces): (usize, &[Piece<'_>])| {
        let known = FxHashSet::default();
        let mut scratch = Scratch::new(&known);
        let mut lists = Vec::with_capacity(pieces.len());
        names.with(|names| {
            for (place, piece) in pieces.iter().enumerate() {
                let list = entry(piece.text, id_field, names, &mut scratch, meter);
                lists.push(list.map_err(|fault| fault.further_by(piece.offset).inside_index(chunk * CHUNK + place))?);
            }
            Walk::Ok(())
        })?;
        Ok((lists, scratch.rows))
    };
    let chunks: Vec<Walk<_>> = pieces.par_chunks(CHUNK).enumerate().map(decode_chunk).collect();
    let mut lists = Vec::with_capacity(pieces.len());
    for chunk in chunks {
        let (decoded, counts) = chunk?;
        lists.extend(decoded);
        rows.add(&counts);
    }
    refuse_repeated(&lists, pieces, id_field)?;
    Ok(lists)
}

fn refuse_repeated(lists: &[QueryPredictions], pieces: &[Piece<'_>], id_field: &str) -> Walk<()> {
    let mut places = HashMap::with_capacity(lists.len());
    for (place, (list, piece)) in lists.iter().zip(pieces).enumerate() {
        if let Some(first) = places.insert(&list.query, place) {
            let problem = format!("`{}` is the id of entry {first} too", shorten(list.query.as_str()));
            return Err(Fault::new(piece.offset, problem).inside_key(id_field).inside_index(place));
        }
    }
    Ok(())
}

fn entry(
    text: &str,
    id_field: &str,
    names: &FxHashMap<u32, VideoId>,
    scratch: &mut Scratch<'_>,
    meter: &Meter,
) -> Walk<QueryPredictions> {
    let (mut qid, mut listed) = (None, None);
    let mut fields = Map::new();
    let mut cursor = Cursor::new(text, meter);
    cursor.charge(LIST)?;
    cursor.object(|cursor, key| match key {
        "predictions" => {
            once(cursor, &mut listed, ())?;
            cursor.array::<Prediction>(|cursor, _| row(cursor, names, scratch))
        }
        key if key == id_field => {
            let id = QueryId::from(&*cursor.id()?);
            once(cursor, &mut qid, id)
        }
        _ => cursor.keep(key, &mut fields),
    })?;
    cursor.end()?;
    let query = qid.ok_or_else(|| missing(id_field))?;
    listed.ok_or_else(|| missing("predictions"))?;
    Ok(predicted::list(query, scratch, None, fields))
}

#[inline]
fn row(cursor: &mut Cursor<'_>, names: &FxHashMap<u32, VideoId>, scratch: &mut Scratch<'_>) -> Walk<()> {
    let at = cursor.at();
    let ([number, start, end, score], count) = cursor.numbers::<4>()?;
    if count < 3 {
        return Err(Fault::new(at, "a prediction is a video number, a start, an end and perhaps a score"));
    }
    // The cast saturates; comparing back refuses fractions, negative numbers and those that are too large.
    let whole = number as u32;
    let video = names.get(&whole).filter(|_| f64::from(whole) == number);
    let Some(video) = video.cloned() else {
        return Err(Fault::new(at, format!("no video has the number {number}")).inside_index(0));
    };
    let span = predicted::judge(at, RawSpan::new(start, end), &mut scratch.rows)?;
    scratch.ranked.push(Prediction { video: Some(video), span, score: (count == 4).then_some(score) });
    Ok(())
}

/// The numbers that videos are written with.
#[derive(Default)]
pub(crate) struct Numbers(FxHashMap<VideoId, u64>);

impl Numbers {
    /// Those that a file was read with.
    pub(crate) fn remembered(fields: &Map<String, Value>) -> Self {
        Self(
            fields.iter().filter_map(|(name, number)| Some((VideoId::from(name.as_str()), number.as_u64()?))).collect(),
        )
    }

    /// Gives every video of `lists` that has no number the next free one; returns those videos in order of appearance.
    pub(crate) fn complete<'p>(
        &mut self,
        lists: impl Iterator<Item = &'p QueryPredictions>,
    ) -> Vec<(&'p VideoId, u64)> {
        let mut next = self.0.values().max().map_or(0, |largest| largest + 1);
        let mut added = Vec::new();
        for video in lists.flat_map(|list| &list.ranked).filter_map(|prediction| prediction.video.as_ref()) {
            if !self.0.contains_key(video) {
                self.0.insert(video.clone(), next);
                added.push((video, next));
                next += 1;
            }
        }
        added
    }
}

/// One list of entries, as JSON.
pub(crate) struct Entries<'a> {
    pub(crate) id_field: &'static str,
    pub(crate) numbers: &'a Numbers,
    pub(crate) lists: &'a [QueryPredictions],
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.lists.iter().map(|list| Entry { entries: self, list }))
    }
}

struct Entry<'a> {
    entries: &'a Entries<'a>,
    list: &'a QueryPredictions,
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Entries { id_field, numbers, .. } = self.entries;
        let mut entry = serializer.serialize_map(None)?;
        entry.serialize_entry(id_field, &ForeignId(&self.list.query))?;
        for (field, value) in self.list.extra.iter().filter(|(field, _)| field != id_field && *field != "predictions") {
            entry.serialize_entry(field, value)?;
        }
        entry.serialize_entry("predictions", &Rows { numbers, list: self.list })?;
        entry.end()
    }
}

struct Rows<'a> {
    numbers: &'a Numbers,
    list: &'a QueryPredictions,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.list.ranked.len()))?;
        for prediction in &self.list.ranked {
            let query = shorten(self.list.query.as_str());
            let video = prediction.video.as_ref();
            let video =
                video.ok_or_else(|| S::Error::custom(format!("a prediction of query `{query}` names no video")))?;
            let number = self.numbers.0.get(video);
            let number = number.ok_or_else(|| S::Error::custom(format!("video `{video}` has no number")))?;
            rows.serialize_element(&Row { number: *number, prediction })?;
        }
        rows.end()
    }
}

struct Row<'a> {
    number: u64,
    prediction: &'a Prediction,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Prediction { span, score, .. } = self.prediction;
        let mut row = serializer.serialize_tuple(3 + usize::from(score.is_some()))?;
        row.serialize_element(&self.number)?;
        row.serialize_element(&span.start())?;
        row.serialize_element(&span.end())?;
        if let Some(score) = score {
            row.serialize_element(&Finite(*score))?;
        }
        row.end()
    }
}
