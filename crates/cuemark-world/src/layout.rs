//! What lies in a world's folder beside what others read ([`cuemark_formats::world_folder`]), and how its videos are shared out.

use cuemark_core::VideoId;

use crate::Side;

/// The splits, in the order in which videos are numbered.
pub const SPLITS: [&str; 4] = ["train", "val", "test-iid", "test-ood"];

/// The share of videos that goes to val, test-iid and test-ood; train has the rest.
const SHARES: [f64; 3] = [0.06, 0.12, 0.12];

pub(crate) const EVENTS: &str = "events.jsonl";
pub(crate) const MEANINGS: &str = "meanings.jsonl";
pub(crate) const SUBTITLES: &str = "subtitles.jsonl";
pub(crate) const POOLS: &str = "pools.jsonl";
pub(crate) const GRADED: &str = "graded.jsonl";
pub(crate) const GRADED_VAL: &str = "graded-val.jsonl";
pub(crate) const MANIFEST: &str = "manifest.json";

/// The videos of each split, as numbers from 0; no split is empty when there are eight videos.
pub(crate) fn split_ranges(videos: usize) -> [std::ops::Range<usize>; 4] {
    let sizes = SHARES.map(|share| ((videos as f64 * share).round() as usize).max(1));
    let train = videos.saturating_sub(sizes.iter().sum());
    let [val, iid, ood] = sizes;
    let (a, b, c) = (train, train + val, train + val + iid);
    [0..a, a..b, b..c, c..c + ood]
}

/// Test-ood has moments where they usually are not.
pub(crate) fn side(split: &str) -> Side {
    if split == "test-ood" { Side::Reversed } else { Side::Usual }
}

/// The name of video number `index`.
pub(crate) fn video_id(index: usize) -> VideoId {
    VideoId::new(format!("film{index:06}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_video_is_in_exactly_one_split() {
        for videos in [8, 9, 100, 2000] {
            let ranges = split_ranges(videos);
            let all: Vec<usize> = ranges.iter().cloned().flatten().collect();
            assert_eq!(all, (0..videos).collect::<Vec<_>>());
            assert!(ranges.iter().all(|range| !range.is_empty()), "{videos}: {ranges:?}");
        }
    }
}
