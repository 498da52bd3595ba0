//! TACoS as text: `VIDEO_START_END:sentence#sentence#…#`, one segment with all its sentences a line, in **frames**.
//!
//! 29.4 frames a second, which the files do not say; they do not state durations either. The same 10,146, 4,589 and
//! 4,083 pairs as `tacos`, in train (videos 0 to 74), val (100 to 126) and test (75 to 99).
//!
//! Oddities: every line ends in `#`; sentences are repeated within a line.

use cuemark_core::{RawSpan, Split};
use cuemark_formats::{Result, Source};

use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::readers::tacos::FPS;
use crate::split_builder::{SplitBuilder, bound_at_fault};
use crate::{Layout, ReadOptions};

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "tacos-raw",
    title: "TACoS (text): the sentences of the full release by segment",
    origin: "JaywongWang/TGN",
    licence: "none stated",
    ids: QueryIds::Running,
    files: &[
        FileCard::new("train", "tacos_train_0_74.txt", &LAYOUT).expecting(Expected::pairs(75, 10_146)),
        FileCard::new("val", "tacos_val_100_126.txt", &LAYOUT).expecting(Expected::pairs(27, 4589)),
        FileCard::new("test", "tacos_test_75_99.txt", &LAYOUT).expecting(Expected::pairs(25, 4083)),
    ],
    sides: &[],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "tacos-raw",
    about: "VIDEO_START_END:sentence#sentence#…, one segment a line, frames at 29.4 a second",
    looks_like: |peek| segment(peek.first_line()).is_some(),
    read,
};

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let mut split = SplitBuilder::new(source, options);
    let mut number = 0;
    source.for_each_line(|line, row| {
        let (id, start, end, sentences) =
            segment(row).ok_or_else(|| source.record(line, "segment", "is not `VIDEO_START_END:sentences`"))?;
        let raw = RawSpan::from_frames(start, end, FPS);
        let video = split.video(id, options.duration(id), || (line, "duration".to_owned()))?;
        for text in sentences.strip_suffix('#').unwrap_or(sentences).split('#') {
            split.pair(number, &video, raw, text.to_owned(), |why| (line, bound_at_fault(why, raw).to_owned()))?;
            number += 1;
        }
        Ok(())
    })?;
    Ok(vec![split.finish()])
}

/// The video, start frame, end frame and sentences of one line.
fn segment(row: &str) -> Option<(&str, f64, f64, &str)> {
    let (head, sentences) = row.split_once(':')?;
    let (head, end) = head.rsplit_once('_')?;
    let (video, start) = head.rsplit_once('_')?;
    Some((video, start.parse().ok()?, end.parse().ok()?, sentences))
}
