//! TVR-Ranking's predictions: a list of `{"query_id", "desc", "predictions": [[corpus number, start, end, score], …]}`.
//!
//! Best first. Which video a number means stands in another file (a [`VideoIndex`]); the numbers met are remembered, so
//! that a file that was read can be written again. To write predictions from elsewhere, call
//! [`VideoIndex::remember_in`] first.

use cuemark_core::{Advice, Extra, Predictions, RowCounts, Task, TaskPredictions};
use serde_json::Value;

use crate::budget::Meter;
use crate::cursor::Cursor;
use crate::fault::Walk;
use crate::numbered_entries::{self, Entries, NamesPerCore, Numbers};
use crate::video_index::VIDEO2IDX;
use crate::{Result, Source, VideoIndex, WholeFile};

const ID_FIELD: &str = "query_id";

fn index_advice() -> Advice {
    Advice::say("pass the corpus's list of names and numbers with ").set_any("video_index", "FILE")
}

/// Reads a prediction file, with the numbers of its corpus.
///
/// # Errors
/// When the file is no such list, a row has a number that the index does not, a query stands twice, or no index is given.
pub fn read(source: &Source, videos: Option<&VideoIndex>) -> Result<Predictions> {
    let Some(videos) = videos else {
        return Err(source
            .fault("the file names its videos by number, and nothing says what the numbers mean")
            .with_hint(index_advice()));
    };
    let text = source.text()?;
    walk(&text, videos, source.meter()).map_err(|fault| fault.into_error(source, 1, &text))
}

fn walk(text: &str, videos: &VideoIndex, meter: &Meter) -> Walk<Predictions> {
    let mut cursor = Cursor::new(text, meter);
    let pieces = numbered_entries::cut(&mut cursor)?;
    cursor.end()?;
    let mut rows = RowCounts::default();
    let queries = numbered_entries::decode(&pieces, ID_FIELD, &NamesPerCore::new(videos), &mut rows, meter)?;
    let mut extra = Extra::default();
    videos.only_of(&queries).remember_in(&mut extra);
    Ok(Predictions { tasks: vec![TaskPredictions { task: Task::Any, queries }], rows, extra, ..Predictions::default() })
}

/// Writes a prediction file.
///
/// # Errors
/// When the file holds several tasks, a video has no number or a prediction no video, a score is not finite, or the file
/// cannot be written.
pub fn write(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
    let lists = crate::predictions::one_task(predictions, out)?;
    let Some(named) = predictions.extra.get(VIDEO2IDX).and_then(Value::as_object) else {
        return Err(out.fault("the layout names videos by number, and nothing says which").with_hint(index_advice()));
    };
    out.put_json(&Entries { id_field: ID_FIELD, numbers: &Numbers::remembered(named), lists })?;
    out.put(b"\n")
}
