//! Charades-CD: the Charades-STA moments split anew so that test-ood has another distribution of locations.
//!
//! One JSON object per file, a member per video: `timestamps` in seconds, `sentences`, `video_duration` (also
//! `framestamps`, `encoded_sentences`, `decode_fps` and `video_fps`, which nothing here needs). 4,564 videos and
//! 11,071 pairs in train, 333 and 859 in val, 333 and 823 in test-iid, 1,442 and 3,375 in test-ood; no video is in two.
//!
//! Oddities: `video_duration` differs from the `length` of Charades by up to 0.27 s; sentences have lost their full
//! stop; the 4 reversed rows of Charades-STA stand here with start and end exchanged; 2,286 rows end after the video,
//! by up to 25.69 s in test-ood, where 3 also start after it.

use crate::Layout;
use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::video_json::{self, Timing};

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "charades-cd",
    title: "Charades-CD: Charades-STA under changing distributions",
    origin: "yytzsy/grounding_changing_distribution",
    licence: "none stated",
    ids: QueryIds::Running,
    files: &[
        FileCard::new("train", "charades_train.json", &LAYOUT)
            .expecting(Expected::pairs(4564, 11_071).video_seconds(30.46).moment_seconds(7.91).words(6.23)),
        FileCard::new("val", "charades_val.json", &LAYOUT)
            .expecting(Expected::pairs(333, 859).video_seconds(30.92).moment_seconds(8.20).words(6.27)),
        FileCard::new("test-iid", "charades_test_iid.json", &LAYOUT)
            .expecting(Expected::pairs(333, 823).video_seconds(30.11).moment_seconds(7.78).words(6.23)),
        FileCard::new("test-ood", "charades_test_ood.json", &LAYOUT)
            .expecting(Expected::pairs(1442, 3375).video_seconds(31.77).moment_seconds(9.40).words(6.16)),
    ],
    sides: &[],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "charades-cd",
    about: "{VIDEO: {video_duration, timestamps, sentences}}, seconds",
    looks_like: |peek| video_json::looks_like(peek) && peek.has(2, "video_duration"),
    read: |source, options| {
        video_json::read(source, options, |entry| Ok(Timing::seconds(entry.video_duration.or(entry.duration))))
    },
};
