//! QVHighlights: JSON lines, one query each, with several windows and the saliency of two-second clips.
//!
//! `{"qid", "query", "duration", "vid", "relevant_windows": [[0, 16]], "relevant_clip_ids": [0, …, 7],
//! "saliency_scores": [[4, 1, 1], …]}`, seconds, three raters who grade 0 to 4. 7,218 queries with 12,803 windows about
//! 7,100 videos in train, 1,550 with 2,803 about 1,519 in val, 1,542 with 2,761 about 1,529 in test, of which
//! `highlight_test_release.jsonl` gives only queries, durations and videos. The query id is `qid`.

use cuemark_core::{ClipLen, GradedMoment, Highlights, Query, RawSpan, Split, Truth};
use cuemark_formats::{Result, Source};
use serde::Deserialize;

use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::decode;
use crate::published_id::PublishedId;
use crate::split_builder::{SplitBuilder, same_length};
use crate::{Layout, ReadOptions};

/// Seconds per clip: the annotators rated two seconds at a time.
const CLIP_SECONDS: f64 = 2.0;
/// The best grade a rater can give.
const BEST: u8 = 4;

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "qvhighlights",
    title: "QVHighlights: vlogs and news of 150 s, several windows a query, rated clips",
    origin: "jayleicn/moment_detr",
    licence: "CC BY-NC-SA 4.0",
    ids: QueryIds::Published,
    files: &[
        FileCard::new("train", "highlight_train_release.jsonl", &LAYOUT)
            .expecting(Expected::queries(7218).videos(7100).moments(12_803).moment_seconds(25.08).words(10.46)),
        FileCard::new("val", "highlight_val_release.jsonl", &LAYOUT)
            .expecting(Expected::queries(1550).videos(1519).moments(2803).moment_seconds(23.22).words(10.49)),
        FileCard::new("test", "highlight_test_with_gt.jsonl", &LAYOUT)
            .expecting(Expected::queries(1542).videos(1529).moments(2761).moment_seconds(23.82).words(10.51)),
        FileCard::new("test-release", "highlight_test_release.jsonl", &LAYOUT)
            .repeating("test")
            .expecting(Expected::queries(1542).videos(1529).moments(0).words(10.51)),
    ],
    sides: &[],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "qvhighlights",
    about: "{qid, query, duration, vid, relevant_windows, relevant_clip_ids, saliency_scores} a line, seconds",
    looks_like: |peek| {
        let ours = ["video", "spans", "moments"].iter().any(|key| peek.has(1, key));
        peek.opens_with("{") && peek.has_all(1, &["qid", "query", "vid", "duration"]) && !ours
    },
    read,
};

#[derive(Deserialize)]
struct Record {
    qid: PublishedId,
    query: String,
    duration: f64,
    vid: String,
    #[serde(default)]
    relevant_windows: Vec<[f64; 2]>,
    relevant_clip_ids: Option<Vec<u32>>,
    saliency_scores: Option<Vec<Vec<u8>>>,
}

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let mut split = SplitBuilder::new(source, options);
    for (line, record) in decode::json_lines::<Record>(source)? {
        let highlights = highlights(&record).map_err(|problem| source.record(line, "saliency_scores", problem))?;
        let id = split.query_id(record.qid.to_query_id(), line, "qid")?;
        let video = split.video(&record.vid, Some(record.duration), || (line, "duration".to_owned()))?;
        let mut truth = Truth::bare(Query { id, text: record.query });
        for (index, &[start, end]) in record.relevant_windows.iter().enumerate() {
            let raw = RawSpan::new(start, end);
            split.note(&video.id, raw, &truth.query.text);
            let place = |_: &_| (line, format!("relevant_windows[{index}]"));
            if let Some(span) = split.span(raw, video.duration, place)? {
                truth.moments.push(GradedMoment::right(video.id.clone(), span));
            }
        }
        // A query all of whose windows were left out is left out with them.
        if truth.moments.is_empty() && !record.relevant_windows.is_empty() {
            continue;
        }
        truth.video = Some(video);
        truth.highlights = highlights.map(Box::new);
        split.push(truth);
    }
    Ok(vec![split.finish()])
}

/// The rated clips of one query, when the file has them.
fn highlights(record: &Record) -> Result<Option<Highlights>, String> {
    let (Some(clips), Some(ratings)) = (&record.relevant_clip_ids, &record.saliency_scores) else {
        let alone = record.relevant_clip_ids.is_some() || record.saliency_scores.is_some();
        return if alone { Err("stands without its other half `relevant_clip_ids`".to_owned()) } else { Ok(None) };
    };
    same_length("saliency_scores", ratings.len(), "relevant_clip_ids", clips.len())?;
    if let Some(grade) = ratings.iter().flatten().find(|grade| **grade > BEST) {
        return Err(format!("grade {grade} is not between 0 and {BEST}"));
    }
    let clips = clips.iter().map(|clip| *clip as usize).collect();
    Ok(ClipLen::new(CLIP_SECONDS).map(|clip_len| Highlights { clip_len, clips, ratings: ratings.clone() }))
}
