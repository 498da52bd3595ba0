//! TVR's submission: `{"video2idx": {name: number}, "VCMR": […], "SVMR": […], "VR": […]}`.
//!
//! Each list holds `{"desc_id", "desc", "predictions": [[video number, start, end, score], …]}`, best first; VR entries
//! have start and end 0. `video2idx` may stand before or after the lists. It and other fields are kept, and so are the
//! numbers in it: writing gives videos that are not in it the next free ones. Lists that name no task are written as VCMR.

use std::ops::ControlFlow;

use cuemark_core::{Extra, Predictions, RowCounts, Task, TaskPredictions};
use serde_json::{Map, Value};

use crate::cursor::{Cursor, missing};
use crate::feed::Feed;
use crate::numbered::{Codes, Entries, NumberedAnswers, Numbers, read_list};
use crate::video_index::VIDEO2IDX;
use crate::{Result, Source, VideoIndex, WholeFile};

const ID_FIELD: &str = "desc_id";

/// Reads a submission.
///
/// # Errors
/// When the file is none, a row names a number that `video2idx` does not, or a list repeats a query.
pub(crate) fn read(source: &Source) -> Result<Predictions> {
    let Submission { videos, answers, fields } = Submission::read(source)?;
    let rows = answers.rows.clone();
    let tasks = answers.into_tasks(source)?;
    let mut extra = Extra::new(fields);
    videos.remember_in(&mut extra);
    Ok(Predictions { tasks, rows, extra, ..Predictions::default() })
}

/// Reads what a submission answers, in less memory than [`read`] and for nothing but scoring.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_answers(source: &Source) -> Result<NumberedAnswers> {
    Submission::read(source).map(|submission| submission.answers)
}

struct Submission {
    videos: VideoIndex,
    answers: NumberedAnswers,
    fields: Map<String, Value>,
}

impl Submission {
    fn read(source: &Source) -> Result<Self> {
        let videos = find_videos(source)?;
        let codes = Codes::new(&videos);
        let mut feed = Feed::open(source)?;
        videos.charge(source)?;
        let mut fields = Map::new();
        let mut numbers_seen = false;
        let mut answers = NumberedAnswers { tasks: Vec::new(), rows: RowCounts::default() };
        feed.object(|feed, key| {
            let Some(task) = task_called(key) else {
                let value = feed.whole(key)?;
                let twice = key == VIDEO2IDX && std::mem::replace(&mut numbers_seen, true);
                let mut cursor = Cursor::new(&value.text, source.meter());
                let walked = match key {
                    VIDEO2IDX if twice => Err(cursor.fault("the field stands in the record twice")),
                    VIDEO2IDX => Ok(()),
                    _ => cursor.keep(key, &mut fields).and_then(|()| cursor.end()),
                };
                return walked.map(ControlFlow::Continue).map_err(|fault| value.fault(*fault.inside_key(key), source));
            };
            if answers.tasks.iter().any(|(seen, _)| *seen == task) {
                return Err(feed.fault("the list stands in the file twice", key));
            }
            let lists = read_list(feed, source, (Some(key), ID_FIELD), &codes, &mut answers.rows)?;
            answers.tasks.push((task, lists));
            Ok(ControlFlow::Continue(()))
        })?;
        feed.end()?;
        Ok(Self { videos, answers, fields })
    }
}

/// What the numbers mean. Published files say so first; where the lists come first they are jumped over, and read afterwards.
fn find_videos(source: &Source) -> Result<VideoIndex> {
    let source = &source.clone().unwatched();
    let mut feed = Feed::open(source)?;
    let mut videos = None;
    feed.object(|feed, key| {
        if key == VIDEO2IDX {
            let value = feed.whole(key)?;
            let mut cursor = Cursor::new(&value.text, source.meter());
            let index = VideoIndex::decode(&mut cursor).and_then(|index| cursor.end().map(|()| index));
            videos = Some(index.map_err(|fault| value.fault(*fault.inside_key(key), source))?);
            return Ok(ControlFlow::Break(()));
        }
        if task_called(key).is_some() {
            feed.list(Some(key), |_| Ok(()), |()| Ok(()))?;
        } else {
            feed.whole(key)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    videos.ok_or_else(|| missing(VIDEO2IDX).into_error(source, 1, ""))
}

fn task_called(key: &str) -> Option<Task> {
    match key {
        "VCMR" => Some(Task::Vcmr),
        "SVMR" => Some(Task::Svmr),
        "VR" => Some(Task::Vr),
        _ => None,
    }
}

/// Writes a submission.
///
/// # Errors
/// When a prediction names no video, a score is not finite, or the file cannot be written.
pub(crate) fn write(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
    let mut named = predictions.extra.get(VIDEO2IDX).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut numbers = Numbers::remembered(&named);
    for (video, number) in numbers.complete(predictions.tasks.iter().flat_map(|list| &list.queries)) {
        named.insert(video.as_str().to_owned(), Value::from(number));
    }
    out.put(b"{\"video2idx\":")?;
    out.put_json(&named)?;
    for TaskPredictions { task, queries } in &predictions.tasks {
        let name = if *task == Task::Any { Task::Vcmr } else { *task };
        out.put(format!(",\n\"{name}\":").as_bytes())?;
        out.put_json(&Entries { id_field: ID_FIELD, numbers: &numbers, lists: queries })?;
    }
    for (field, value) in predictions.extra.iter() {
        if field != VIDEO2IDX && task_called(field).is_none() {
            out.put(b",\n")?;
            out.put_json(field)?;
            out.put(b":")?;
            out.put_json(value)?;
        }
    }
    out.put(b"}\n")
}
