//! ActivityNet-style results: `{"version", "results": {video: [entry, …]}, "external_data"}`.
//!
//! ```json
//! {"qid": 12, "sentence": "he opens the door", "timestamp": [2.4, 9.1], "score": 0.8}
//! ```
//! `segment` is read as `timestamp`, `score` may be left out. Which query an entry answers:
//! - `qid`, or `sentence_id`, when it has one; entries with the same id are one query's, best first in file order;
//! - else its `sentence`: entries of one video with the same sentence are one query's. Such a query is called
//!   `VIDEO:n`, where n counts the sentences of that video from 0. Since no dataset calls its queries so, [`match_sentences`](crate::match_sentences)
//!   then finds the query of the truth that asks the same about the same video;
//! - an entry with neither is an error.
//!
//! Other fields of an entry and of the file are kept. Written files group entries by video, so all predictions of a query
//! must lie in one, and a query without predictions has no place in them.

use std::collections::HashMap;

use cuemark_core::{Extra, Prediction, Predictions, QueryId, QueryPredictions, RowCounts, VideoId};
use rustc_hash::FxHashMap;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::budget::Meter;
use crate::cursor::{Cursor, missing, once};
use crate::fault::Walk;
use crate::predicted::{self, Finite, ForeignId};
use crate::qvh_jsonl::one_video;
use crate::row_extras::{self, RowExtras};
use crate::{Result, Source, WholeFile};

/// One query beside its entries: what is gathered, its id twice, its place, and its sentence among those of the video.
const QUERY: usize = 2 * size_of::<Gathered>() + 256;

/// Reads a results file.
///
/// # Errors
/// When the file is none, or an entry has no times or nothing that names its query.
pub(crate) fn read(source: &Source) -> Result<Predictions> {
    let text = source.text()?;
    walk(&text, source.meter()).map_err(|fault| fault.into_error(source, 1, &text))
}

fn walk(text: &str, meter: &Meter) -> Walk<Predictions> {
    let mut fields = Map::new();
    let mut found = Found::default();
    let mut results = None;
    let mut cursor = Cursor::new(text, meter);
    cursor.object(|cursor, key| match key {
        "results" => {
            once(cursor, &mut results, ())?;
            cursor.object(|cursor, video| {
                let video = VideoId::from(video);
                found.sentences.clear();
                cursor.array::<Prediction>(|cursor, _| found.entry(cursor, &video))
            })
        }
        _ => cursor.keep(key, &mut fields),
    })?;
    cursor.end()?;
    results.ok_or_else(|| missing("results"))?;
    let queries = found.queries.into_iter().map(Gathered::finish).collect();
    Ok(Predictions { rows: found.rows, extra: Extra::new(fields), ..Predictions::any(queries) })
}

/// The queries met so far.
#[derive(Default)]
struct Found {
    queries: Vec<Gathered>,
    places: HashMap<QueryId, usize>,
    /// The sentences of the current video that have no id.
    sentences: HashMap<String, QueryId>,
    rows: RowCounts,
}

/// One query's entries.
struct Gathered {
    id: QueryId,
    sentence: Option<String>,
    ranked: Vec<Prediction>,
    row_extras: RowExtras,
}

impl Found {
    fn entry(&mut self, cursor: &mut Cursor<'_>, video: &VideoId) -> Walk<()> {
        let (mut qid, mut sentence_id, mut sentence, mut span, mut score) = (None, None, None, None, None);
        let mut fields = Map::new();
        cursor.object(|cursor, key| match key {
            "qid" => {
                let id = cursor.id()?;
                once(cursor, &mut qid, id)
            }
            "sentence_id" => {
                let id = cursor.id()?;
                once(cursor, &mut sentence_id, id)
            }
            "sentence" => {
                let text = cursor.string()?;
                once(cursor, &mut sentence, text)
            }
            "timestamp" | "segment" => {
                let read = predicted::span(cursor, &mut self.rows)?;
                once(cursor, &mut span, read)
            }
            "score" => {
                let value = cursor.number()?;
                once(cursor, &mut score, value)
            }
            _ => cursor.keep(key, &mut fields),
        })?;
        if let (Some(_), Some(id)) = (&qid, &sentence_id) {
            fields.insert("sentence_id".to_owned(), Value::String(id.to_string()));
        }
        let id = match (qid.or(sentence_id), &sentence) {
            (Some(id), _) => QueryId::from(&*id),
            (None, Some(sentence)) => self.named_by(video, sentence),
            (None, None) => {
                let hint = "give every entry the `qid` of the query it answers, or its `sentence`";
                return Err(cursor.fault("nothing says which query the entry answers").with_hint(hint));
            }
        };
        let span = span.ok_or_else(|| missing("timestamp"))?;
        if !self.places.contains_key(&id) {
            cursor.charge(QUERY)?;
        }
        let query = self.query(id, sentence.as_deref());
        if let Some(sentence) = sentence.filter(|sentence| query.sentence.as_deref() != Some(sentence)) {
            fields.insert("sentence".to_owned(), Value::String(sentence.into_owned()));
        }
        query.row_extras.set(query.ranked.len(), fields);
        query.ranked.push(Prediction { video: Some(video.clone()), span, score });
        Ok(())
    }

    fn named_by(&mut self, video: &VideoId, sentence: &str) -> QueryId {
        if let Some(id) = self.sentences.get(sentence) {
            return id.clone();
        }
        let id = QueryId::new(format!("{video}:{}", self.sentences.len()));
        self.sentences.insert(sentence.to_owned(), id.clone());
        id
    }

    fn query(&mut self, id: QueryId, sentence: Option<&str>) -> &mut Gathered {
        let place = *self.places.entry(id).or_insert_with_key(|id| {
            let sentence = sentence.map(str::to_owned);
            self.queries.push(Gathered {
                id: id.clone(),
                sentence,
                ranked: Vec::new(),
                row_extras: RowExtras::default(),
            });
            self.queries.len() - 1
        });
        &mut self.queries[place]
    }
}

impl Gathered {
    fn finish(self) -> QueryPredictions {
        let mut fields = Map::new();
        if let Some(sentence) = self.sentence {
            fields.insert("sentence".to_owned(), Value::String(sentence));
        }
        self.row_extras.move_into(&mut fields, "predictions", self.ranked.len());
        QueryPredictions { query: self.id, ranked: self.ranked, saliency: None, extra: Extra::new(fields) }
    }
}

/// Writes a results file; queries follow the order in which their videos first appear.
///
/// # Errors
/// When the file holds several tasks, a prediction names no video, those of one query lie in several, a score is not finite,
/// or the file cannot be written.
pub(crate) fn write(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
    let mut places: FxHashMap<&VideoId, usize> = FxHashMap::default();
    let mut videos: Vec<(&VideoId, Vec<Entry<'_>>)> = Vec::new();
    for query in crate::predictions::one_task(predictions, out)? {
        let Some(video) = one_video(query).map_err(|problem| out.fault(problem))? else {
            if query.ranked.is_empty() {
                continue;
            }
            return Err(out.fault(format!("a prediction of query `{}` names no video", query.query)));
        };
        let place = *places.entry(video).or_insert_with(|| {
            videos.push((video, Vec::new()));
            videos.len() - 1
        });
        let fields = row_extras::of_rows(&query.extra, "predictions", query.ranked.len());
        let entries = query.ranked.iter().zip(fields).map(|(prediction, fields)| Entry { query, prediction, fields });
        videos[place].1.extend(entries);
    }
    out.put_json(&Results { extra: &predictions.extra, videos: &videos })?;
    out.put(b"\n")
}

struct Results<'a> {
    extra: &'a Extra,
    videos: &'a [(&'a VideoId, Vec<Entry<'a>>)],
}

impl Serialize for Results<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut file = serializer.serialize_map(None)?;
        // The published evaluators refuse a file without these two.
        for (field, default) in [("version", Value::from("VERSION 1.0")), ("external_data", Value::Object(Map::new()))]
        {
            file.serialize_entry(field, self.extra.get(field).unwrap_or(&default))?;
        }
        for (field, value) in self.extra.iter() {
            if !["version", "external_data", "results"].contains(&field.as_str()) {
                file.serialize_entry(field, value)?;
            }
        }
        file.serialize_entry("results", &Videos(self.videos))?;
        file.end()
    }
}

struct Videos<'a>(&'a [(&'a VideoId, Vec<Entry<'a>>)]);

impl Serialize for Videos<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(video, entries)| (video, entries)))
    }
}

const ENTRY_FIELDS: [&str; 4] = ["qid", "timestamp", "segment", "score"];

struct Entry<'a> {
    query: &'a QueryPredictions,
    prediction: &'a Prediction,
    fields: &'a Map<String, Value>,
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Prediction { span, score, .. } = self.prediction;
        let mut entry = serializer.serialize_map(None)?;
        entry.serialize_entry("qid", &ForeignId(&self.query.query))?;
        let sentence = self.query.extra.get("sentence").filter(|_| !self.fields.contains_key("sentence"));
        if let Some(sentence) = sentence.filter(|sentence| sentence.is_string()) {
            entry.serialize_entry("sentence", sentence)?;
        }
        entry.serialize_entry("timestamp", &[span.start(), span.end()])?;
        if let Some(score) = score {
            entry.serialize_entry("score", &Finite(*score))?;
        }
        for (field, value) in self.fields.iter().filter(|(field, _)| !ENTRY_FIELDS.contains(&field.as_str())) {
            entry.serialize_entry(field, value)?;
        }
        entry.end()
    }
}
