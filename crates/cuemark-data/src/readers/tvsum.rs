//! TVSum: JSON lines, one video each, with twenty people's scores of every two-second clip; highlights only, no moments.
//!
//! `{"qid", "query", "duration", "vid", "label": [[5.0, 3.0, …], …], "domain": "VU"}`; the query is the video's title, `duration` the
//! **number of clips**, a score lies between 1 and 5. Ten domains of five videos (BK BT DS FM GA MS PK PR VT VU), of which UMT's fixed cut
//! gives four to train and one to val: 40 and 10 rows. Scores are kept as grades 0 to 4; the domain is the query's kind.

use cuemark_core::{ClipLen, Highlights, Query, Split, Truth};
use cuemark_formats::{Result, Source};
use serde::Deserialize;

use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::decode;
use crate::published_id::PublishedId;
use crate::split_builder::{SplitBuilder, same_length};
use crate::{Layout, ReadOptions};

/// Seconds per clip.
const CLIP_SECONDS: f64 = 2.0;
/// The scores that people could give.
const SCORES: std::ops::RangeInclusive<f64> = 1.0..=5.0;

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "tvsum",
    title: "TVSum: 50 web videos of ten domains, every clip scored by twenty people",
    origin: "line/lighthouse",
    licence: "Apache-2.0",
    ids: QueryIds::Published,
    files: &[
        FileCard::new("train", "tvsum_train_release.jsonl", &LAYOUT)
            .also(&["tvsum_train.jsonl"])
            .expecting(Expected::queries(40).videos(40).moments(0)),
        FileCard::new("val", "tvsum_val_release.jsonl", &LAYOUT)
            .also(&["tvsum_val.jsonl"])
            .expecting(Expected::queries(10).videos(10).moments(0)),
    ],
    sides: &[],
    overall: Expected::queries(50).videos(50).moments(0),
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "tvsum",
    about: "{qid, query, duration, vid, label, domain} a line; every clip with the scores 1 to 5 of several people",
    looks_like: |peek| {
        peek.opens_with("{") && peek.has_all(1, &["qid", "query", "vid", "label", "domain"]) && !peek.has(1, "match")
    },
    read,
};

#[derive(Deserialize)]
struct Record {
    qid: PublishedId,
    query: String,
    duration: f64,
    vid: String,
    label: Vec<Vec<f64>>,
    domain: String,
}

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let mut split = SplitBuilder::new(source, options);
    for (line, record) in decode::json_lines::<Record>(source)? {
        let ratings = grades(&record).map_err(|problem| source.record(line, "label", problem))?;
        let seconds = record.label.len() as f64 * CLIP_SECONDS;
        let id = split.query_id(record.qid.to_query_id(), line, "qid")?;
        let video = split.video(&record.vid, Some(seconds), || (line, "label".to_owned()))?;
        let query = Query { id, text: record.query };
        let clips = (0..ratings.len()).collect();
        let highlights = ClipLen::new(CLIP_SECONDS).map(|clip_len| Box::new(Highlights { clip_len, clips, ratings }));
        split.push(Truth { video: Some(video), highlights, kind: Some(record.domain), ..Truth::bare(query) });
    }
    Ok(vec![split.finish()])
}

/// Everybody's grade of every clip, 0 to 4.
fn grades(record: &Record) -> Result<Vec<Vec<u8>>, String> {
    let Some(raters) = record.label.first().map(Vec::len).filter(|raters| *raters > 0) else {
        return Err("no clip is scored".to_owned());
    };
    if record.label.len() as f64 != record.duration {
        return Err(format!("{} clips are scored, `duration` says {}", record.label.len(), record.duration));
    }
    let mut ratings = Vec::with_capacity(record.label.len());
    for (clip, scores) in record.label.iter().enumerate() {
        same_length(&format!("label[{clip}]"), scores.len(), "label[0]", raters)?;
        if let Some(score) = scores.iter().find(|score| !SCORES.contains(*score) || score.fract() != 0.0) {
            return Err(format!("score {score} of clip {clip} is not one of 1 to 5"));
        }
        ratings.push(scores.iter().map(|score| (score - SCORES.start()) as u8).collect());
    }
    Ok(ratings)
}
