//! The prediction half of our JSON Lines.
//!
//! | field | means |
//! |---|---|
//! | `qid` | the query; required, unless `video` and `query` (its sentence) are there to join it by |
//! | `predictions` | required, best first: `{"video","span":[start,end],"score"}`, or `[start,end,score]`, or `[start,end]` |
//! | `video` | of all predictions of the line that name none themselves |
//! | `task` | `VCMR`, `SVMR` or `VR`, when one file answers several tasks; a query may then stand once per task |
//! | `saliency` | one number per clip, for highlight metrics |
//!
//! Scores may be left out, but those that are there are finite. Written lines name the video in every prediction; a `video`
//! over an empty list stays where it is. Unknown fields of the line are kept, and those of single predictions with them.

use cuemark_core::{Prediction, Predictions, QueryId, QueryPredictions, Task, TaskPredictions, VideoId};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use crate::cursor::{Cursor, missing, once};
use crate::fault::Walk;
use crate::names::Names;
use crate::predicted::{self, Finite};
use crate::records::{self, Scratch, Seen};
use crate::row_extras::{self, RowExtras};
use crate::{Result, Source, WholeFile};

/// Reads a prediction file, a block of lines at a time, on all cores.
///
/// # Errors
/// The first line that is no prediction, or that repeats the query (and task) of an earlier one.
pub(crate) fn read_predictions(source: &Source) -> Result<Predictions> {
    let mut lists: Vec<(Seen, TaskPredictions)> = Vec::new();
    let rows = records::read(source, decode, |line, (task, query)| {
        let (seen, list) = list_of(&mut lists, task);
        seen.note(source, line, &query.query)?;
        list.queries.push(query);
        Ok(())
    })?;
    if lists.is_empty() {
        list_of(&mut lists, Task::Any);
    }
    Ok(Predictions { tasks: lists.into_iter().map(|(_, list)| list).collect(), rows, ..Predictions::default() })
}

/// Writes one line per query and task, in order; unknown fields of the file as a whole have no place here.
///
/// # Errors
/// When a score is not finite or the file cannot be written.
pub(crate) fn write_predictions(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
    for list in &predictions.tasks {
        for query in &list.queries {
            out.put_json(&Line { task: list.task, query })?;
            out.put(b"\n")?;
        }
    }
    Ok(())
}

fn list_of(lists: &mut Vec<(Seen, TaskPredictions)>, task: Task) -> &mut (Seen, TaskPredictions) {
    let place = lists.iter().position(|(_, list)| list.task == task).unwrap_or_else(|| {
        lists.push((Seen::default(), TaskPredictions { task, queries: Vec::new() }));
        lists.len() - 1
    });
    &mut lists[place]
}

fn decode(cursor: &mut Cursor<'_>, scratch: &mut Scratch<'_>) -> Walk<(Task, QueryPredictions)> {
    let (mut qid, mut task, mut video, mut saliency, mut listed) = (None, None, None, None, None);
    let mut fields = Map::new();
    let mut row_extras = RowExtras::default();
    cursor.object(|cursor, key| match key {
        "qid" => {
            let id = QueryId::from(&*cursor.id()?);
            once(cursor, &mut qid, id)
        }
        "predictions" => {
            once(cursor, &mut listed, ())?;
            cursor.array::<Prediction>(|cursor, index| prediction(cursor, index, scratch, &mut row_extras))
        }
        "video" | "vid" => {
            let name = video_name(cursor, &mut scratch.names)?;
            once(cursor, &mut video, name)
        }
        "task" => {
            let name = task_name(cursor)?;
            once(cursor, &mut task, name)
        }
        "saliency" => {
            let scores = predicted::saliency(cursor)?;
            once(cursor, &mut saliency, scores)
        }
        _ => cursor.keep(key, &mut fields),
    })?;
    let query = match qid {
        Some(id) => id,
        None => crate::qvh_jsonl::named_by_sentence(video.as_ref().and_then(Option::as_ref), &fields)?,
    };
    listed.ok_or_else(|| missing("predictions"))?;
    if let Some(video) = video.flatten() {
        scratch.ranked.iter_mut().for_each(|prediction| {
            prediction.video.get_or_insert_with(|| video.clone());
        });
        if scratch.ranked.is_empty() {
            fields.insert("video".to_owned(), Value::String(video.as_str().to_owned()));
        }
    }
    row_extras.move_into(&mut fields, "predictions", scratch.ranked.len());
    Ok((task.unwrap_or(Task::Any), predicted::list(query, scratch, saliency.flatten(), fields)))
}

fn prediction(
    cursor: &mut Cursor<'_>,
    index: usize,
    scratch: &mut Scratch<'_>,
    row_extras: &mut RowExtras,
) -> Walk<()> {
    if cursor.peek() == b'[' {
        let (span, score) = predicted::window(cursor, &mut scratch.rows)?;
        scratch.ranked.push(Prediction { video: None, span, score });
        return Ok(());
    }
    let (mut video, mut span, mut score) = (None, None, None);
    let mut fields = Map::new();
    cursor.object(|cursor, key| match key {
        "video" | "vid" => {
            let name = video_name(cursor, &mut scratch.names)?;
            once(cursor, &mut video, name)
        }
        "span" => {
            let read = predicted::span(cursor, &mut scratch.rows)?;
            once(cursor, &mut span, read)
        }
        "score" => {
            let value = cursor.number()?;
            once(cursor, &mut score, value)
        }
        _ => cursor.keep(key, &mut fields),
    })?;
    row_extras.set(index, fields);
    let span = span.ok_or_else(|| missing("span"))?;
    scratch.ranked.push(Prediction { video: video.flatten(), span, score });
    Ok(())
}

fn video_name(cursor: &mut Cursor<'_>, names: &mut Names<'_>) -> Walk<Option<VideoId>> {
    if cursor.null() { Ok(None) } else { Ok(Some(names.video(&cursor.string()?))) }
}

fn task_name(cursor: &mut Cursor<'_>) -> Walk<Task> {
    let name = cursor.string()?;
    let known = [Task::Vcmr, Task::Svmr, Task::Vr];
    let found = known.into_iter().find(|task| task.to_string() == *name);
    found.ok_or_else(|| cursor.fault(format!("`{}` is not VCMR, SVMR or VR", crate::fault::shorten(&name))))
}

struct Line<'a> {
    task: Task,
    query: &'a QueryPredictions,
}

const LINE_FIELDS: [&str; 5] = ["qid", "task", "saliency", "predictions", "vid"];
const ROW_FIELDS: [&str; 4] = ["video", "vid", "span", "score"];

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let query = self.query;
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("qid", query.query.as_str())?;
        if self.task != Task::Any {
            line.serialize_entry("task", &self.task.to_string())?;
        }
        if let Some(saliency) = &query.saliency {
            line.serialize_entry("saliency", &predicted::FiniteList(saliency))?;
        }
        line.serialize_entry("predictions", &Ranked(query))?;
        // `video` over a list that has predictions would be read as theirs.
        let unknown = |field: &str| !LINE_FIELDS.contains(&field) && (field != "video" || query.ranked.is_empty());
        for (field, value) in query.extra.iter().filter(|(field, _)| unknown(field)) {
            line.serialize_entry(field, value)?;
        }
        line.end()
    }
}

struct Ranked<'a>(&'a QueryPredictions);

impl Serialize for Ranked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ranked = &self.0.ranked;
        let mut rows = serializer.serialize_seq(Some(ranked.len()))?;
        for (prediction, fields) in ranked.iter().zip(row_extras::of_rows(&self.0.extra, "predictions", ranked.len())) {
            rows.serialize_element(&Row { prediction, fields })?;
        }
        rows.end()
    }
}

struct Row<'a> {
    prediction: &'a Prediction,
    fields: &'a Map<String, Value>,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Prediction { video, span, score } = self.prediction;
        let mut row = serializer.serialize_map(None)?;
        if let Some(video) = video {
            row.serialize_entry("video", video)?;
        }
        row.serialize_entry("span", &[span.start(), span.end()])?;
        if let Some(score) = score {
            row.serialize_entry("score", &Finite(*score))?;
        }
        for (field, value) in self.fields.iter().filter(|(field, _)| !ROW_FIELDS.contains(&field.as_str())) {
            row.serialize_entry(field, value)?;
        }
        row.end()
    }
}
