//! Named steps that a list goes through before a metric sees it.

use std::fmt;

use cuemark_core::Nms;

/// One named step. Metrics themselves never clip, sort or suppress.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Keep the first `n` predictions of the list.
    TakeFirst(usize),
    /// Order by score, highest first.
    SortByScore(Ties),
    /// Greedy non-maximum suppression inside each video.
    Suppress(Nms),
    /// Drop predictions in videos outside the query's pool.
    OnlyPool,
    /// Clip true spans to their video.
    ClipTruth,
    /// Divide all times by the video's duration and clip them to 0..1, as if the video lasted one second.
    Normalise,
}

/// What comes first among equal scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// What comes first in the file.
    FileOrder,
    /// What comes last in the file (TALL and MoLEF).
    LastFirst,
    /// The video that sorts first, then the lower start, then the lower end.
    ByPlace,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakeFirst(n) => write!(f, "take the first {n}"),
            Self::SortByScore(Ties::FileOrder) => f.write_str("sort by score, ties in file order"),
            Self::SortByScore(Ties::LastFirst) => f.write_str("sort by score, ties: the last in the file first"),
            Self::SortByScore(Ties::ByPlace) => f.write_str("sort by score, ties by video, start, end"),
            Self::Suppress(nms) => write!(f, "NMS: suppress above IoU {} inside a video", nms.threshold),
            Self::OnlyPool => f.write_str("drop videos outside the pool"),
            Self::ClipTruth => f.write_str("clip truth to the video"),
            Self::Normalise => f.write_str("divide by the duration and clip to 0..1"),
        }
    }
}
