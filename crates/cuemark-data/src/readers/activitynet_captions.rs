//! ActivityNet Captions: one JSON object per file, a member per video with `duration`, `timestamps` and `sentences`.
//!
//! Times in seconds, integers and floats mixed. 10,009 videos and 37,421 pairs in train, 4,917 and 17,505 in val_1,
//! 4,885 and 17,031 in val_2. val_1 and val_2 annotate the same videos independently (all of val_2 are in val_1,
//! with equal durations), so they are kept apart; the split `val_1+val_2` holds both lists. Elsewhere val_1 is called
//! val and val_2 test.
//!
//! Oddities: most sentences begin with a space; 506 rows end after the video, by at most 0.01 s; 2 train rows are
//! reversed and 2 empty; 56 sentences are not ASCII.

use crate::Layout;
use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::video_json::{self, Timing};

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "activitynet-captions",
    title: "ActivityNet Captions: open-domain web videos, 2 min",
    origin: "JaywongWang/TGN, microsoft/VideoX",
    licence: "none stated",
    ids: QueryIds::Running,
    files: &[
        FileCard::new("train", "train.json", &LAYOUT)
            .expecting(Expected::pairs(10_009, 37_421).video_seconds(117.30).moment_seconds(35.45).words(13.48)),
        FileCard::new("val_1", "val_1.json", &LAYOUT)
            .expecting(Expected::pairs(4917, 17_505).video_seconds(118.23).moment_seconds(37.73).words(13.58)),
        FileCard::new("val_2", "val_2.json", &LAYOUT)
            .expecting(Expected::pairs(4885, 17_031).video_seconds(118.20).moment_seconds(40.25).words(12.02)),
    ],
    sides: &[],
    overall: Expected { videos: Some(14_926), pairs: Some(71_957), ..Expected::NOTHING },
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "activitynet-captions",
    about: "{VIDEO: {duration, timestamps, sentences}}, seconds",
    looks_like: video_json::looks_like,
    read: |source, options| {
        video_json::read(source, options, |entry| Ok(Timing::seconds(entry.duration.or(entry.video_duration))))
    },
};
