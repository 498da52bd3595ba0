//! DiDeMo: a JSON list of descriptions, each with the five-second chunks that several annotators marked.
//!
//! `times` are **inclusive chunk indices**: `[1, 1]` is 5 to 10 s, `[0, 2]` is 0 to 15 s. One query has one moment per
//! annotator, in file order, agreeing or not. 4,180 queries about 1,094 videos in val, 4,021 about 1,037 in test;
//! train has about 33,000. The query id is `annotation_id`. `num_segments` (5 or 6) times five seconds is taken for
//! the duration: what annotators saw; the last chunk of a video may be cut short.
//!
//! Oddities: usually 4 annotators, but 26 rows have 7 and one has 5.

use cuemark_core::{CHUNK_SECONDS, GradedMoment, Query, RawSpan, Split, Truth};
use cuemark_formats::json::Document;
use cuemark_formats::{Result, Source};
use serde::Deserialize;

use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::decode;
use crate::published_id::PublishedId;
use crate::split_builder::SplitBuilder;
use crate::{Layout, ReadOptions};

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "didemo",
    title: "DiDeMo: personal videos of 25 to 30 s in five-second chunks, several annotators",
    origin: "LisaAnne/LocalizingMoments",
    licence: "BSD 2-Clause",
    ids: QueryIds::Published,
    files: &[
        FileCard::new("train", "train_data.json", &LAYOUT),
        FileCard::new("val", "val_data.json", &LAYOUT)
            .expecting(Expected::queries(4180).videos(1094).moment_seconds(6.84).words(7.48)),
        FileCard::new("test", "test_data.json", &LAYOUT)
            .expecting(Expected::queries(4021).videos(1037).moment_seconds(6.87).words(7.51)),
    ],
    sides: &[],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "didemo",
    about: "[{annotation_id, video, num_segments, description, times}], five-second chunks",
    looks_like: |peek| peek.opens_with("[{") && peek.has_all(2, &["annotation_id", "description", "times"]),
    read,
};

#[derive(Deserialize)]
struct Record {
    annotation_id: PublishedId,
    video: String,
    num_segments: u32,
    description: String,
    times: Vec<[u32; 2]>,
}

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let document = Document::read(source)?;
    let members = document.root().elements()?;
    let records: Vec<Record> = decode::members(&members)?;
    let mut split = SplitBuilder::new(source, options);
    for (index, (member, record)) in members.iter().zip(records).enumerate() {
        let line = member.line();
        let field = |name: &str| format!("[{index}].{name}");
        let id = split.query_id(record.annotation_id.to_query_id(), line, &field("annotation_id"))?;
        let duration = f64::from(record.num_segments) * CHUNK_SECONDS;
        let video = split.video(&record.video, Some(duration), || (line, field("num_segments")))?;
        let mut truth = Truth::bare(Query { id, text: record.description });
        for (annotator, [first, last]) in record.times.iter().map(|chunks| chunks.map(f64::from)).enumerate() {
            let raw = RawSpan::new(first * CHUNK_SECONDS, (last + 1.0) * CHUNK_SECONDS);
            let place = |_: &_| (line, field(&format!("times[{annotator}]")));
            if let Some(span) = split.span(raw, video.duration, place)? {
                truth.moments.push(GradedMoment::right(video.id.clone(), span));
            }
        }
        // A query all of whose rows were left out is left out with them.
        if truth.moments.is_empty() && !record.times.is_empty() {
            continue;
        }
        truth.video = Some(video);
        split.push(truth);
    }
    Ok(vec![split.finish()])
}
