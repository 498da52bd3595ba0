//! TVR: JSON lines, one moment of a TV clip each, with `desc_id`, `desc`, `vid_name`, `duration`, `ts` and `type`.
//!
//! Seconds. `type` says what the query needs: `v` (video), `t` (subtitles) or `vt`. 10,895 queries about 2,179 clips in
//! val; 5,445 in test_public, which has only `desc` and `desc_id`; 87,175 in train. The query id is `desc_id`.
//! `tvr_video2dur_idx.json` gives `{SPLIT: {VIDEO: [duration, corpus index]}}`: 17,435 train, 2,179 val, 1,089
//! test_public and 1,090 test_challenge clips.
//!
//! Oddities: 16 val rows repeat another's clip, times and words under an id of their own.

use cuemark_core::{Query, RawSpan, Split, Truth};
use cuemark_formats::json::Document;
use cuemark_formats::{Result, Source};
use serde::Deserialize;

use crate::card::{Counts, DatasetCard, Expected, FileCard, QueryIds, SideCard};
use crate::decode;
use crate::published_id::PublishedId;
use crate::split_builder::SplitBuilder;
use crate::{Layout, ReadOptions};

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "tvr",
    title: "TVR: clips of six TV series with subtitles, 76 s",
    origin: "jayleicn/TVRetrieval",
    licence: "MIT",
    ids: QueryIds::Published,
    files: &[
        FileCard::new("train", "tvr_train_release.jsonl", &LAYOUT).expecting(Expected::pairs(17_435, 87_175)),
        FileCard::new("val", "tvr_val_release.jsonl", &LAYOUT)
            .expecting(Expected::pairs(2179, 10_895).video_seconds(75.70).moment_seconds(9.19).words(12.17)),
        FileCard::new("test-public", "tvr_test_public_release.jsonl", &LAYOUT).expecting(Expected::queries(5445)),
    ],
    sides: &[SideCard {
        paths: &["tvr_video2dur_idx.json"],
        about: "duration and corpus index of every clip",
        expected: &[("train", 17_435), ("val", 2179), ("test_public", 1089), ("test_challenge", 1090)],
        count: count_index,
    }],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "tvr",
    about: "{desc_id, desc, vid_name, duration, ts, type} a line, seconds",
    looks_like: |peek| peek.opens_with("{") && peek.has_all(1, &["desc_id", "desc"]),
    read,
};

#[derive(Deserialize)]
struct Record {
    desc_id: PublishedId,
    desc: String,
    vid_name: Option<String>,
    duration: Option<f64>,
    ts: Option<[f64; 2]>,
    r#type: Option<String>,
}

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let mut split = SplitBuilder::new(source, options);
    for (line, record) in decode::json_lines::<Record>(source)? {
        let id = split.query_id(record.desc_id.to_query_id(), line, "desc_id")?;
        let mut truth = Truth::bare(Query { id, text: record.desc });
        truth.kind = record.r#type;
        if let Some(name) = record.vid_name {
            let duration = record.duration.or_else(|| options.duration(&name));
            let video = split.video(&name, duration, || (line, "duration".to_owned()))?;
            if let Some([start, end]) = record.ts {
                let raw = RawSpan::new(start, end);
                split.note(&video.id, raw, &truth.query.text);
                let Some(span) = split.span(raw, video.duration, |_| (line, "ts".to_owned()))? else { continue };
                truth = Truth { kind: truth.kind, ..Truth::single(truth.query, video, [span]) };
            } else {
                truth.video = Some(video);
            }
        } else if record.ts.is_some() {
            return Err(source.record(line, "vid_name", "is missing beside `ts`"));
        }
        split.push(truth);
    }
    Ok(vec![split.finish()])
}

fn count_index(sources: &[Source]) -> Result<Counts> {
    let mut counts = Vec::new();
    for source in sources {
        for split in Document::read(source)?.root().entries()? {
            counts.push((split.key().to_owned(), split.entries()?.len()));
        }
    }
    Ok(counts)
}
