//! QVHighlights' submission, one query a line.
//!
//! ```json
//! {"qid": 2579, "query": "…", "vid": "NUsG9BgSes0_210.0_360.0",
//!  "pred_relevant_windows": [[start, end, score], …], "pred_saliency_scores": [0.1, …]}
//! ```
//! Windows stand in the order of the file, which is the order that the published evaluator takes the first one from; lists
//! that are not sorted by score are common. A line without `qid` is joined by its `vid` and `query`. `vid` and both lists may be left out. Written lines name the video once, so
//! all predictions of a query must lie in one.

use cuemark_core::{Prediction, Predictions, QueryId, QueryPredictions, RowCounts, Task, TaskPredictions, VideoId};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::cursor::{Cursor, missing, once};
use crate::fault::{Walk, shorten};
use crate::join::made_up;
use crate::predicted::{self, Finite, FiniteList, ForeignId};
use crate::records::{self, Scratch, Seen};
use crate::{Result, Source, WholeFile};

/// Reads a submission, a block of lines at a time, on all cores.
///
/// # Errors
/// The first line that is none, or that repeats the query of an earlier one.
pub(crate) fn read(source: &Source) -> Result<Predictions> {
    let (mut seen, mut queries) = (Seen::default(), Vec::new());
    let rows: RowCounts = records::read(source, decode, |line, query: QueryPredictions| {
        seen.note(source, line, &query.query)?;
        queries.push(query);
        Ok(())
    })?;
    Ok(Predictions { tasks: vec![TaskPredictions { task: Task::Any, queries }], rows, ..Predictions::default() })
}

fn decode(cursor: &mut Cursor<'_>, scratch: &mut Scratch<'_>) -> Walk<QueryPredictions> {
    let (mut qid, mut video, mut listed, mut saliency) = (None, None, None, None);
    let mut fields = Map::new();
    cursor.object(|cursor, key| match key {
        "qid" => {
            let id = QueryId::from(&*cursor.id()?);
            once(cursor, &mut qid, id)
        }
        "vid" => {
            let name = scratch.names.video(&cursor.string()?);
            once(cursor, &mut video, name)
        }
        "pred_relevant_windows" => {
            once(cursor, &mut listed, ())?;
            cursor.array::<Prediction>(|cursor, _| {
                let (span, score) = predicted::window(cursor, &mut scratch.rows)?;
                scratch.ranked.push(Prediction { video: None, span, score });
                Ok(())
            })
        }
        "pred_saliency_scores" => {
            let scores = predicted::saliency(cursor)?;
            once(cursor, &mut saliency, scores)
        }
        _ => cursor.keep(key, &mut fields),
    })?;
    let query = match qid {
        Some(id) => id,
        None => named_by_sentence(video.as_ref(), &fields)?,
    };
    for prediction in &mut scratch.ranked {
        prediction.video.clone_from(&video);
    }
    if let Some(video) = video.filter(|_| scratch.ranked.is_empty()) {
        fields.insert("vid".to_owned(), Value::String(video.as_str().to_owned()));
    }
    Ok(predicted::list(query, scratch, saliency.flatten(), fields))
}

/// The name of a line without a `qid`: it must have a video and a sentence instead.
pub(crate) fn named_by_sentence(video: Option<&VideoId>, fields: &Map<String, Value>) -> Walk<QueryId> {
    match (video, fields.get("query").and_then(Value::as_str)) {
        (Some(video), Some(sentence)) => Ok(made_up(video.as_str(), sentence)),
        _ => Err(missing("qid").with_hint("give every line the `qid` of its query, or its video and `query`")),
    }
}

/// Writes a submission.
///
/// # Errors
/// When the file holds several tasks, the predictions of one query lie in several videos, a score is not finite, or the
/// file cannot be written.
pub(crate) fn write(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
    for query in crate::predictions::one_task(predictions, out)? {
        out.put_json(&Line(query))?;
        out.put(b"\n")?;
    }
    Ok(())
}

const LINE_FIELDS: [&str; 3] = ["qid", "pred_relevant_windows", "pred_saliency_scores"];

struct Line<'a>(&'a QueryPredictions);

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let query = self.0;
        let video = one_video(query).map_err(S::Error::custom)?;
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("qid", &ForeignId(&query.query))?;
        let unknown = |field: &str| !LINE_FIELDS.contains(&field) && (field != "vid" || query.ranked.is_empty());
        for (field, value) in query.extra.iter().filter(|(field, _)| unknown(field)) {
            line.serialize_entry(field, value)?;
        }
        if let Some(video) = video {
            line.serialize_entry("vid", video)?;
        }
        let windows: Vec<_> = query.ranked.iter().map(Window).collect();
        line.serialize_entry("pred_relevant_windows", &windows)?;
        if let Some(saliency) = &query.saliency {
            line.serialize_entry("pred_saliency_scores", &FiniteList(saliency))?;
        }
        line.end()
    }
}

/// The video that all predictions of a query lie in; `None` when none of them names one.
pub(crate) fn one_video(query: &QueryPredictions) -> Result<Option<&VideoId>, String> {
    let mut videos = query.ranked.iter().map(|prediction| prediction.video.as_ref());
    let first = videos.next().flatten();
    if videos.any(|video| video != first) {
        let query = shorten(query.query.as_str());
        return Err(format!("predictions of query `{query}` lie in several videos; this layout has room for one"));
    }
    Ok(first)
}

struct Window<'a>(&'a Prediction);

impl Serialize for Window<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Prediction { span, score, .. } = self.0;
        match score {
            Some(score) => (span.start(), span.end(), Finite(*score)).serialize(serializer),
            None => (span.start(), span.end()).serialize(serializer),
        }
    }
}
