//! TACoS as 2D-TAN published it: a member per video with `timestamps` in **frames**, `sentences`, `fps`, `num_frames`.
//!
//! 75, 27 and 25 videos with 9,790, 4,436 and 4,001 pairs in train, val and test. Not only fewer rows than `tacos`:
//! the longer, merged moments are here too, 27.88 s on average.
//!
//! Oddities: 2,284 rows repeat an earlier one; 48 end after the last frame, by at most 15 frames.

use crate::Layout;
use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::video_json::{self, Timing};

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "tacos-2dtan",
    title: "TACoS (2D-TAN): cooking in one kitchen, 5 min videos, merged moments",
    origin: "microsoft/VideoX",
    licence: "MIT",
    ids: QueryIds::Running,
    files: &[
        FileCard::new("train", "train.json", &LAYOUT).expecting(Expected::pairs(75, 9790)),
        FileCard::new("val", "val.json", &LAYOUT).expecting(Expected::pairs(27, 4436)),
        FileCard::new("test", "test.json", &LAYOUT).expecting(Expected::pairs(25, 4001)),
    ],
    sides: &[],
    overall: Expected::pairs(127, 18_227).video_seconds(286.59).moment_seconds(27.88).words(8.50),
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "tacos-2dtan",
    about: "{VIDEO: {timestamps, sentences, fps, num_frames}}, frames",
    looks_like: |peek| video_json::looks_like(peek) && peek.has_all(2, &["fps", "num_frames"]),
    read: |source, options| video_json::read(source, options, |entry| Timing::frames(entry.fps, entry.num_frames)),
};
