//! TACoS, the full release: laid out as ActivityNet Captions, but `duration` and `timestamps` are in **frames**.
//!
//! 29.4 frames a second, which the files do not say. 75, 27 and 25 videos with 10,146, 4,589 and 4,083 pairs in train,
//! val and test: short single-action moments, 6.10 s on average, of 286.59 s videos.
//!
//! Oddities: 2,659 rows repeat an earlier one; 53 end after the last frame, by at most 15 frames.
//! `tacos-2dtan` has other moments; `tacos-raw` is the text the release was made from.

use crate::Layout;
use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::video_json::{self, Timing};

/// Frames per second of every TACoS video.
pub(crate) const FPS: f64 = 29.4;

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "tacos",
    title: "TACoS (full): cooking in one kitchen, 5 min videos, short moments",
    origin: "yytzsy/SCDM",
    licence: "none stated",
    ids: QueryIds::Running,
    files: &[
        FileCard::new("train", "train.json", &LAYOUT).expecting(Expected::pairs(75, 10_146)),
        FileCard::new("val", "val.json", &LAYOUT).expecting(Expected::pairs(27, 4589)),
        FileCard::new("test", "test.json", &LAYOUT).expecting(Expected::pairs(25, 4083)),
    ],
    sides: &[],
    overall: Expected::pairs(127, 18_818).video_seconds(286.59).moment_seconds(6.10).words(8.87),
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "tacos",
    about: "{VIDEO: {duration, timestamps, sentences}}, frames at 29.4 a second",
    looks_like: |peek| {
        video_json::looks_like(peek) && peek.has(2, "duration") && peek.first_key().is_some_and(is_tacos_video)
    },
    read: |source, options| video_json::read(source, options, |entry| Timing::frames(Some(FPS), entry.duration)),
};

/// Whether `name` is a TACoS video, such as `s34-d28.avi`: nothing else in the file tells frames from seconds.
fn is_tacos_video(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.strip_suffix(".avi").unwrap_or(name);
    let parts = name.strip_prefix('s').and_then(|rest| rest.split_once("-d"));
    parts.is_some_and(|(subject, dish)| number(subject) && number(dish))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tacos_videos_are_known_by_their_names() {
        assert!(is_tacos_video("s34-d28.avi") && is_tacos_video("s30-d52"));
        assert!(!is_tacos_video("v_QOlSCBRmfWY") && !is_tacos_video("s-d") && !is_tacos_video("s3-dx.avi"));
    }
}
