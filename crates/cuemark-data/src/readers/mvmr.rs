//! MVMR: test queries of Charades-STA, ActivityNet Captions and TACoS, each with a pool of videos and the moments in them that answer it too.
//!
//! A member per video with `timestamps`, `sentences` and, for every sentence, `pos_moments`
//! (`[video, caption, [start, end]]`, 0 to 4, the own moment not among them) and `retrieval_pool` (video ids, the own
//! video first). 1,334 videos and 3,720 queries of Charades with `duration` in seconds and pools of 38 to 50; 25
//! videos and 4,001 queries of TACoS with `fps`, `num_frames`, times in **frames** and pools of 1 to 5; 16,941 queries of
//! ActivityNet, laid out as those of Charades (the file was not at hand here: only its number of queries is checked).
//!
//! A query's moments here are its own one, first, and the others. The pools that could be filled count as complete
//! ([`complete_pools`]): 3,716 of Charades, 2,055 of TACoS; the paper evaluates those. With the own moment, the mean
//! number of right moments is 3.07 over all Charades queries and 2.24 over the complete TACoS ones.
//!
//! Oddities: TACoS ids lack the `.avi` of the TACoS files; 567 TACoS rows repeat an earlier one; 5 own moments and 11 of
//! the others end after their video.

use cuemark_core::{GradedMoment, Split, Truth, VideoId};
use cuemark_formats::json::Document;
use cuemark_formats::{Result, Source};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::decode;
use crate::split_builder::{SplitBuilder, same_length};
use crate::video_json::Timing;
use crate::{Layout, ReadOptions};

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "mvmr",
    title: "MVMR: Charades-STA, ActivityNet and TACoS test queries searched in pools of videos",
    origin: "yny0506/Massive-Videos-Moment-Retrieval",
    licence: "MIT",
    ids: QueryIds::Running,
    files: &[
        FileCard::new("charades-test", "charades_test_mvmr.json", &LAYOUT)
            .expecting(Expected::queries(3720).videos(1334)),
        FileCard::new("activitynet-test", "activitynet_test_mvmr.json", &LAYOUT)
            .also(&["anet_test_mvmr.json"])
            .expecting(Expected::queries(16_941)),
        FileCard::new("tacos-test", "tacos_test_mvmr.json", &LAYOUT).expecting(Expected::queries(4001).videos(25)),
    ],
    sides: &[],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "mvmr",
    about: "{VIDEO: {timestamps, sentences, pos_moments, retrieval_pool, …}}, seconds, or frames where `fps` is given",
    looks_like: |peek| peek.opens_with("{") && peek.has_all(2, &["timestamps", "pos_moments", "retrieval_pool"]),
    read,
};

/// The queries of a split whose pool is complete: as large as the largest of the split.
pub fn complete_pools(split: &Split) -> impl Iterator<Item = &Truth> {
    let size = |truth: &Truth| truth.pool.as_ref().map_or(0, Vec::len);
    let full = split.queries.iter().map(size).max().unwrap_or(0);
    split.queries.iter().filter(move |truth| full > 0 && size(truth) == full)
}

#[derive(Deserialize)]
struct Entry {
    duration: Option<f64>,
    fps: Option<f64>,
    num_frames: Option<f64>,
    timestamps: Vec<[f64; 2]>,
    sentences: Vec<String>,
    pos_moments: Vec<Vec<Positive>>,
    retrieval_pool: Vec<Vec<String>>,
}

/// Video, caption and times of another moment that answers the query.
#[derive(Deserialize)]
struct Positive(String, IgnoredAny, [f64; 2]);

impl Entry {
    fn timing(&self) -> Result<Timing, (&'static str, String)> {
        if self.fps.is_some() || self.num_frames.is_some() {
            Timing::frames(self.fps, self.num_frames)
        } else {
            Ok(Timing::seconds(self.duration))
        }
    }
}

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let document = Document::read(source)?;
    let members = document.root().entries()?;
    let entries: Vec<Entry> = decode::members(&members)?;
    let mut split = SplitBuilder::new(source, options);
    // Positives and pools name videos further down, so all videos come before all queries.
    let mut known: FxHashMap<String, (VideoId, Option<Timing>)> = FxHashMap::default();
    let mut videos = Vec::with_capacity(entries.len());
    for (member, entry) in members.iter().zip(&entries) {
        let id = member.key();
        let timing = entry.timing().map_err(|(field, problem)| member.record(field, problem))?;
        let duration = timing.duration().or_else(|| options.duration(id));
        let video = split.new_video(id, duration, || (member.line(), format!("{id}.duration")))?;
        known.insert(id.to_owned(), (video.id.clone(), Some(timing)));
        videos.push((video, timing));
    }
    let mut number = 0;
    for ((member, entry), (video, timing)) in members.iter().zip(entries).zip(videos) {
        let (id, line, rows) = (member.key(), member.line(), entry.timestamps.len());
        let lengths = [
            ("sentences", entry.sentences.len()),
            ("pos_moments", entry.pos_moments.len()),
            ("retrieval_pool", entry.retrieval_pool.len()),
        ];
        for (field, has) in lengths {
            same_length(field, has, "timestamps", rows).map_err(|problem| member.record(field, problem))?;
        }
        let lists = entry.sentences.into_iter().zip(entry.pos_moments).zip(entry.retrieval_pool);
        for (index, (times, ((text, positives), pool))) in entry.timestamps.into_iter().zip(lists).enumerate() {
            let mut others = Vec::with_capacity(positives.len());
            for (order, Positive(name, _, times)) in positives.into_iter().enumerate() {
                let (other, other_timing) = known_or_new(&mut known, &name);
                // A video of which the file says nothing else is timed as the query's own.
                let timing = other_timing.unwrap_or(timing);
                let duration = other_timing.and_then(Timing::duration);
                let place = |_: &_| (line, format!("{id}.pos_moments[{index}][{order}]"));
                if let Some(span) = split.span(timing.span(times), duration, place)? {
                    others.push(GradedMoment::right(other, span));
                }
            }
            let pool = pool.iter().map(|name| known_or_new(&mut known, name).0).collect();
            let place = |_: &_| (line, format!("{id}.timestamps[{index}]"));
            if let Some(truth) = split.pair(number, &video, timing.span(times), text, place)? {
                truth.moments.extend(others);
                truth.pool = Some(pool);
            }
            number += 1;
        }
    }
    Ok(vec![split.finish()])
}

/// One shared id per video, however often it is named.
fn known_or_new(known: &mut FxHashMap<String, (VideoId, Option<Timing>)>, name: &str) -> (VideoId, Option<Timing>) {
    if let Some(video) = known.get(name) {
        return video.clone();
    }
    let video = (VideoId::from(name), None);
    known.insert(name.to_owned(), video.clone());
    video
}
