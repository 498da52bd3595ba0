//! YouTube Highlights: JSON lines, one video each, with a label for every window of a hundred frames; highlights only, no moments.
//!
//! `{"qid", "query", "duration", "vid", "domain", "clip": [[0, 100], [50, 150], …], "match": [-1, 0, 1, …]}`; the query is the domain
//! (dog, gymnastics, parkour, skating, skiing, surfing), `duration` is in seconds, `clip` in frames, half overlapping. A window is a
//! highlight when its `match` is 1. 233 videos in train, 152 in val. Windows step evenly, so that one stands for `duration / windows`
//! seconds; the domain is the query's kind.

use cuemark_core::{ClipLen, Highlights, Query, Split, Truth};
use cuemark_formats::{Result, Source};
use serde::Deserialize;

use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::decode;
use crate::published_id::PublishedId;
use crate::split_builder::{SplitBuilder, same_length};
use crate::{Layout, ReadOptions};

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "youtube-highlights",
    title: "YouTube Highlights: sports and dogs of six domains, windows of 100 frames that are a highlight or not",
    origin: "line/lighthouse",
    licence: "Apache-2.0",
    ids: QueryIds::Published,
    files: &[
        FileCard::new("train", "youtube_highlight_train_release.jsonl", &LAYOUT)
            .also(&["youtube_train.jsonl"])
            .expecting(Expected::queries(233).videos(233).moments(0)),
        FileCard::new("val", "youtube_highlight_val_release.jsonl", &LAYOUT)
            .also(&["youtube_valid.jsonl"])
            .expecting(Expected::queries(152).videos(152).moments(0)),
    ],
    sides: &[],
    overall: Expected::queries(385).videos(385).moments(0),
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "youtube-highlights",
    about: "{qid, query, duration, vid, domain, clip, match} a line; every window of frames with a match of 1, 0 or -1",
    looks_like: |peek| peek.opens_with("{") && peek.has_all(1, &["qid", "query", "vid", "duration", "domain", "match"]),
    read,
};

#[derive(Deserialize)]
struct Record {
    qid: PublishedId,
    query: String,
    duration: f64,
    vid: String,
    domain: String,
    clip: Vec<[f64; 2]>,
    #[serde(rename = "match")]
    matches: Vec<i8>,
}

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let mut split = SplitBuilder::new(source, options);
    for (line, record) in decode::json_lines::<Record>(source)? {
        let ratings = grades(&record).map_err(|problem| source.record(line, "match", problem))?;
        let id = split.query_id(record.qid.to_query_id(), line, "qid")?;
        let video = split.video(&record.vid, Some(record.duration), || (line, "duration".to_owned()))?;
        let clip_len = ClipLen::new(record.duration / ratings.len() as f64)
            .ok_or_else(|| source.record(line, "duration", format!("{} s cannot be shared", record.duration)))?;
        let query = Query { id, text: record.query };
        let highlights = Some(Box::new(Highlights { clip_len, clips: (0..ratings.len()).collect(), ratings }));
        split.push(Truth { video: Some(video), highlights, kind: Some(record.domain), ..Truth::bare(query) });
    }
    Ok(vec![split.finish()])
}

/// One grade for every window: 1 for a highlight, 0 for everything else.
fn grades(record: &Record) -> Result<Vec<Vec<u8>>, String> {
    same_length("match", record.matches.len(), "clip", record.clip.len())?;
    if record.matches.is_empty() {
        return Err("no window is labelled".to_owned());
    }
    if let Some(label) = record.matches.iter().find(|label| !(-1..=1).contains(*label)) {
        return Err(format!("{label} is not one of 1, 0 and -1"));
    }
    Ok(record.matches.iter().map(|label| vec![u8::from(*label > 0)]).collect())
}
