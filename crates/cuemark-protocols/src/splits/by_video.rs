//! Whole videos go one way or the other, so that no split shares one.

use cuemark_core::{NormSpan, Rng, Split, Truth, VideoId};
use indexmap::IndexMap;

use super::new_split;
use crate::pairs::{pairs_of, video_of};
use crate::{ProtocolError, Result};

/// Queries with at least one moment, under their videos.
pub(super) struct ByVideo<'a> {
    truths: Vec<&'a Truth>,
    /// For each video in order of appearance, positions in `truths`.
    videos: IndexMap<&'a VideoId, Vec<usize>>,
    /// For each of `truths`, the video's position and the moments' places, neither clipped nor moved.
    pub(super) moments: Vec<(usize, Vec<NormSpan>)>,
    /// Queries that were left out because they have no moment.
    pub(super) without_moments: usize,
}

impl<'a> ByVideo<'a> {
    /// # Errors
    /// When a query is about no single video, a duration is not known, or no query has a moment.
    pub(super) fn of(truths: &'a [Truth]) -> Result<Self> {
        let mut by_video =
            Self { truths: Vec::new(), videos: IndexMap::new(), moments: Vec::new(), without_moments: 0 };
        for truth in truths {
            let spans: Vec<NormSpan> = pairs_of(truth)?.iter().map(|pair| pair.span).collect();
            if spans.is_empty() {
                by_video.without_moments += 1;
                continue;
            }
            let entry = by_video.videos.entry(video_of(truth)?.0);
            let video = entry.index();
            entry.or_default().push(by_video.truths.len());
            by_video.truths.push(truth);
            by_video.moments.push((video, spans));
        }
        if by_video.truths.is_empty() {
            return Err(ProtocolError::NoMoments { what: "the dataset".to_owned() });
        }
        Ok(by_video)
    }

    /// The queries' texts, in the order of `moments`.
    pub(super) fn sentences(&self) -> impl Iterator<Item = &str> {
        self.truths.iter().map(|truth| truth.query.text.as_str())
    }

    /// Number of videos; they are numbered from 0 in order of appearance.
    pub(super) fn len(&self) -> usize {
        self.videos.len()
    }

    /// Number of query-moment pairs.
    pub(super) fn pairs(&self) -> usize {
        self.moments.iter().map(|(_, spans)| spans.len()).sum()
    }

    /// The queries for which `wanted` says yes, as a split; it is given their position and their video's.
    pub(super) fn split(&self, name: &str, wanted: impl Fn(usize, usize) -> bool) -> Split {
        let chosen =
            self.truths.iter().zip(&self.moments).enumerate().filter(|(n, (_, (video, _)))| wanted(*n, *video));
        new_split(name, chosen.map(|(_, (truth, _))| (*truth).clone()).collect())
    }
}

/// Which part of the rest a video falls to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// `train`
    Train,
    /// `val`
    Val,
    /// `test-iid`
    TestIid,
}

/// Deals the videos that `is_in_rest` names to train, val and test-iid at random: `held_out` videos each to val and to
/// test-iid, at least one, the others to train. Videos outside the rest get `None`.
///
/// # Errors
/// When the rest has too few videos to leave one for training.
pub(super) fn deal(
    videos: usize,
    is_in_rest: impl Fn(usize) -> bool,
    held_out: usize,
    seed: u64,
) -> Result<Vec<Option<Part>>> {
    let mut rest: Vec<usize> = (0..videos).filter(|video| is_in_rest(*video)).collect();
    let held_out = held_out.max(1);
    if rest.len() <= 2 * held_out {
        return Err(ProtocolError::TooFew {
            what: "train, val and test-iid",
            needed: 2 * held_out + 1,
            found: rest.len(),
        });
    }
    Rng::stream(seed, "videos to train, val and test-iid").shuffle(&mut rest);
    let mut parts = vec![None; videos];
    for (n, video) in rest.into_iter().enumerate() {
        parts[video] = Some(match n {
            n if n < held_out => Part::Val,
            n if n < 2 * held_out => Part::TestIid,
            _ => Part::Train,
        });
    }
    Ok(parts)
}
