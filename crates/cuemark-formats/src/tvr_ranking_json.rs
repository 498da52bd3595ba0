//! TVR-Ranking's predictions: a list of `{"query_id", "desc", "predictions": [[corpus number, start, end, score], …]}`.
//!
//! Best first. Which video a number means stands in another file (a [`VideoIndex`]); the numbers met are remembered, so
//! that a file that was read can be written again. To write predictions from elsewhere, call
//! [`VideoIndex::remember_in`] first.

use cuemark_core::{Advice, Extra, Predictions, RowCounts, Task};
use serde_json::Value;

use crate::feed::Feed;
use crate::numbered::{Codes, Entries, NumberedAnswers, Numbers, read_list};
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
pub(crate) fn read(source: &Source, videos: Option<&VideoIndex>) -> Result<Predictions> {
    let answers = read_answers(source, videos)?;
    let rows = answers.rows.clone();
    let tasks = answers.into_tasks(source)?;
    let mut extra = Extra::default();
    if let (Some(videos), Some(list)) = (videos, tasks.first()) {
        videos.only_of(&list.queries).remember_in(&mut extra);
    }
    Ok(Predictions { tasks, rows, extra, ..Predictions::default() })
}

/// Reads what a prediction file answers, in less memory than [`read`] and for nothing but scoring.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_answers(source: &Source, videos: Option<&VideoIndex>) -> Result<NumberedAnswers> {
    let Some(videos) = videos else {
        return Err(source
            .fault("the file names its videos by number, and nothing says what the numbers mean")
            .with_hint(index_advice()));
    };
    let codes = Codes::new(videos);
    let mut rows = RowCounts::default();
    let mut feed = Feed::open(source)?;
    let lists = read_list(&mut feed, source, (None, ID_FIELD), &codes, &mut rows)?;
    feed.end()?;
    Ok(NumberedAnswers { tasks: vec![(Task::Any, lists)], rows })
}

/// Writes a prediction file.
///
/// # Errors
/// When the file holds several tasks, a video has no number or a prediction no video, a score is not finite, or the file
/// cannot be written.
pub(crate) fn write(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
    let lists = crate::predictions::one_task(predictions, out)?;
    let Some(named) = predictions.extra.get(VIDEO2IDX).and_then(Value::as_object) else {
        return Err(out.fault("the layout names videos by number, and nothing says which").with_hint(index_advice()));
    };
    out.put_json(&Entries { id_field: ID_FIELD, numbers: &Numbers::remembered(named), lists })?;
    out.put(b"\n")
}
