//! TVR's submission: `{"video2idx": {name: number}, "VCMR": […], "SVMR": […], "VR": […]}`.
//!
//! Each list holds `{"desc_id", "desc", "predictions": [[video number, start, end, score], …]}`, best first; VR entries
//! have start and end 0. `video2idx` may stand before or after the lists. It and other fields are kept, and so are the
//! numbers in it: writing gives videos that are not in it the next free ones. Lists that name no task are written as VCMR.

use cuemark_core::{Extra, Predictions, RowCounts, Task, TaskPredictions};
use serde_json::{Map, Value};

use crate::budget::Meter;
use crate::cursor::{Cursor, missing, once};
use crate::fault::Walk;
use crate::numbered_entries::{self, Entries, NamesPerCore, Numbers};
use crate::video_index::VIDEO2IDX;
use crate::{Result, Source, VideoIndex, WholeFile};

const ID_FIELD: &str = "desc_id";

/// Reads a submission.
///
/// # Errors
/// When the file is none, a row names a number that `video2idx` does not, or a list repeats a query.
pub fn read(source: &Source) -> Result<Predictions> {
    let text = source.text()?;
    walk(&text, source.meter()).map_err(|fault| fault.into_error(source, 1, &text))
}

fn walk(text: &str, meter: &Meter) -> Walk<Predictions> {
    let mut videos = None;
    let mut lists = Vec::new();
    let mut fields = Map::new();
    let mut cursor = Cursor::new(text, meter);
    cursor.object(|cursor, key| {
        if key == VIDEO2IDX {
            let index = VideoIndex::decode(cursor)?;
            return once(cursor, &mut videos, index);
        }
        let Some(task) = task_called(key) else { return cursor.keep(key, &mut fields) };
        if lists.iter().any(|(seen, _)| *seen == task) {
            return Err(cursor.fault("the list stands in the file twice"));
        }
        lists.push((task, numbered_entries::cut(cursor)?));
        Ok(())
    })?;
    cursor.end()?;
    let videos = videos.ok_or_else(|| missing(VIDEO2IDX))?;
    let names = NamesPerCore::new(&videos);
    let mut rows = RowCounts::default();
    let mut tasks = Vec::with_capacity(lists.len());
    for (task, pieces) in lists {
        let queries = numbered_entries::decode(&pieces, ID_FIELD, &names, &mut rows, meter);
        tasks.push(TaskPredictions { task, queries: queries.map_err(|fault| fault.inside_key(&task.to_string()))? });
    }
    let mut extra = Extra::new(fields);
    videos.remember_in(&mut extra);
    Ok(Predictions { tasks, rows, extra, ..Predictions::default() })
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
pub fn write(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
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
