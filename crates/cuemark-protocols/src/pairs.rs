//! Query-moment pairs on the scale of their video: what densities and splits are made of.

use cuemark_core::{NormSpan, Truth, VideoId};

use crate::{ProtocolError, Result};

/// One query with one moment of its own video, in fractions of the duration; neither clipped nor moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) truth: &'a Truth,
    pub(crate) span: NormSpan,
}

/// The video a query is about and its duration in seconds.
pub(crate) fn video_of(truth: &Truth) -> Result<(&VideoId, f64)> {
    let query = &truth.query.id;
    let video = truth.video.as_ref().ok_or_else(|| ProtocolError::NoVideo { query: query.clone() })?;
    let duration = video.duration.filter(|duration| *duration > 0.0 && duration.is_finite());
    let duration =
        duration.ok_or_else(|| ProtocolError::NoDuration { query: query.clone(), video: video.id.clone() })?;
    Ok((&video.id, duration))
}

/// Every pair, in order; moments that are not right, or lie in another video than the query's own, are not pairs.
pub(crate) fn pairs(truths: &[Truth]) -> Result<Vec<Pair<'_>>> {
    let mut pairs = Vec::with_capacity(truths.len());
    for truth in truths {
        pairs.extend(pairs_of(truth)?);
    }
    Ok(pairs)
}

/// The pairs of one query; none, and no error, for a query without moments.
pub(crate) fn pairs_of(truth: &Truth) -> Result<Vec<Pair<'_>>> {
    if truth.moments.is_empty() {
        return Ok(Vec::new());
    }
    let (video, duration) = video_of(truth)?;
    let moments = truth.right().filter(|moment| moment.video == *video);
    let pairs = moments.map(|moment| {
        // A finite time over a tiny duration may still overflow.
        let span = NormSpan::of(moment.span, duration).ok_or(ProtocolError::Spread { points: 1 })?;
        Ok(Pair { truth, span })
    });
    pairs.collect()
}
