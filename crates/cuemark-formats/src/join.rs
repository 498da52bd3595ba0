//! Joining lists to queries by what people have where a dataset has no ids: the video and the sentence.
//!
//! A reader that meets a record without a `qid` but with a video and a sentence calls the list [`made_up`] and keeps the
//! sentence; [`match_sentences`] then finds the query of the truth that asks the same about the same video.

use cuemark_core::{Predictions, QueryId, QueryPredictions, Truth, VideoId};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// The name of a list whose record has no id: no dataset calls its queries so.
pub(crate) fn made_up(video: &str, sentence: &str) -> QueryId {
    QueryId::new(format!("{video}:{sentence}"))
}

/// Gives lists that are known by their sentence alone the id of the query in `truths` that asks it about the same video.
/// Sentences are compared as they are but for the white space around them; where none is the same, without regard to case,
/// inner white space and a full stop. Several queries that ask the same get the same list.
///
/// Returns how many lists no query asks for; they keep their name.
pub fn match_sentences(predictions: &mut Predictions, truths: &[Truth]) -> usize {
    let mut asked: FxHashMap<(&VideoId, String), Vec<&QueryId>> = FxHashMap::default();
    let needed = predictions.tasks.iter().flat_map(|list| &list.queries).any(|query| place(query).is_some());
    for truth in truths.iter().filter(|_| needed) {
        if let Some(video) = &truth.video {
            let (exact, plain) = (truth.query.text.trim().to_owned(), plain(&truth.query.text));
            asked.entry((&video.id, exact.clone())).or_default().push(&truth.query.id);
            // What no sentence can be: a key of its own for the loose comparison.
            asked.entry((&video.id, format!("\n{plain}"))).or_default().push(&truth.query.id);
        }
    }
    let mut unasked = 0;
    for list in &mut predictions.tasks {
        let mut copies = Vec::new();
        for query in &mut list.queries {
            let Some((video, sentence)) = place(query) else { continue };
            let exact = asked.get(&(&video, sentence.trim().to_owned()));
            let found = exact.or_else(|| asked.get(&(&video, format!("\n{}", plain(&sentence)))));
            match found.map(Vec::as_slice) {
                Some([first, others @ ..]) => {
                    query.query = (*first).clone();
                    copies.extend(others.iter().map(|id| QueryPredictions { query: (*id).clone(), ..query.clone() }));
                }
                _ => unasked += 1,
            }
        }
        list.queries.extend(copies);
    }
    unasked
}

/// The video and the sentence of a list that has no id of its own.
fn place(query: &QueryPredictions) -> Option<(VideoId, String)> {
    let text = |field: &str| query.extra.get(field).and_then(Value::as_str);
    let named = || text("vid").or_else(|| text("video")).map(VideoId::from);
    let video = query.ranked.first().and_then(|prediction| prediction.video.clone()).or_else(named)?;
    let rest = query.query.as_str().strip_prefix(video.as_str())?.strip_prefix(':')?;
    let sentence = text("sentence").or_else(|| text("query"))?;
    let is_made_up = rest == sentence || rest.parse::<usize>().is_ok();
    is_made_up.then(|| (video, sentence.to_owned()))
}

/// A sentence without what people change in passing.
fn plain(sentence: &str) -> String {
    let words: Vec<String> = sentence.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Query, Span, Video};

    use super::*;
    use crate::{PredictionOptions, Source, read_predictions};

    fn truth(id: &str, video: &str, text: &str) -> Truth {
        let query = Query { id: QueryId::from(id), text: text.to_owned() };
        Truth::single(query, Video::new(video, 100.0), [Span::new(0.0, 5.0).unwrap()])
    }

    fn joined(content: &str) -> Vec<(String, usize)> {
        let source = Source::in_memory("mine", content.as_bytes());
        let (_, mut predictions) = read_predictions(&source, &PredictionOptions::default()).unwrap();
        let truths = [
            truth("0", "AO8RW", "person turn a light on."),
            truth("1", "AO8RW", "a person opens the door."),
            truth("2", "Y6R7T", "person turn a light on."),
        ];
        assert_eq!(match_sentences(&mut predictions, &truths), 0);
        let lists = predictions.tasks[0].queries.iter();
        lists.map(|list| (list.query.to_string(), list.ranked.len())).collect()
    }

    #[test]
    fn every_layout_joins_by_video_and_sentence_where_it_has_no_id() {
        let expected = [("1".to_owned(), 2), ("2".to_owned(), 1)];
        let jsonl = |video: &str, list: &str| {
            format!(
                "{{\"{video}\": \"AO8RW\", \"query\": \"a person opens the door.\", \"{list}\": [[0, 5, 0.9], [6, 9, 0.1]]}}\n\
                 {{\"{video}\": \"Y6R7T\", \"query\": \"Person turn  a light on\", \"{list}\": [[0, 5, 0.9]]}}\n"
            )
        };
        assert_eq!(joined(&jsonl("vid", "pred_relevant_windows")), expected);
        assert_eq!(joined(&jsonl("video", "predictions")), expected);
        let csv = "video,query,start,end,score\nAO8RW,a person opens the door.,0,5,0.9\n\
                   AO8RW,a person opens the door.,6,9,0.1\nY6R7T,person turn a light on.,0,5,0.9\n";
        assert_eq!(joined(csv), expected);
        let charades = "AO8RW 0 5##a person opens the door.\nAO8RW 6 9##a person opens the door.\n\
                        Y6R7T 0 5##person turn a light on.\n";
        assert_eq!(joined(charades), expected);
    }

    #[test]
    fn a_record_with_neither_id_nor_sentence_is_refused() {
        let source = Source::in_memory("mine", &b"{\"vid\": \"a\", \"pred_relevant_windows\": [[0, 1]]}\n"[..]);
        let error = read_predictions(&source, &PredictionOptions::default()).unwrap_err();
        assert!(error.to_string().contains("`qid`: is missing"), "{error}");
    }
}
