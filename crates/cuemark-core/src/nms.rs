//! Greedy non-maximum suppression: a named step, never a hidden part of a metric.

use crate::{Iou, Prediction, Progress, Span, Stopped, VideoId};

/// Non-maximum suppression (NMS): walks a ranked list and keeps a prediction when its overlap with every kept one **of the same
/// video** is at most `threshold`.
///
/// Predictions that name no video count as one video. The order of the list is the ranking; sort first if it should be the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nms {
    /// The largest overlap that two kept predictions may have.
    pub threshold: f64,
    /// How overlap is measured.
    pub iou: Iou,
    /// Stop once this many are kept.
    pub limit: usize,
}

impl Nms {
    /// Suppresses above `threshold`, measuring the true overlap, and keeps as many as there are.
    pub fn new(threshold: f64) -> Self {
        Self { threshold, iou: Iou::True, limit: usize::MAX }
    }

    /// Positions in `ranked` that survive, in order.
    ///
    /// ```
    /// use cuemark_core::{Nms, Prediction, Span};
    /// let at = |start, end| Prediction { video: None, span: Span::new(start, end).unwrap(), score: None };
    /// let ranked = [at(0.0, 10.0), at(1.0, 11.0), at(20.0, 30.0)];
    /// assert_eq!(Nms::new(0.5).keep(&ranked), [0, 2]);
    /// ```
    pub fn keep(&self, ranked: &[Prediction]) -> Vec<usize> {
        let at = |position: usize| (ranked[position].video.as_ref(), ranked[position].span);
        // Only who holds a progress can stop it, and this one is held here alone.
        self.keep_by(ranked.len(), at, &Progress::new()).unwrap_or_default()
    }

    /// As [`Nms::keep`], for a list of `len` in the caller's own layout: `at` gives the video and span at a position.
    /// `progress` counts positions.
    ///
    /// # Errors
    /// When it was stopped.
    pub fn keep_by<'a>(
        &self,
        len: usize,
        at: impl Fn(usize) -> (Option<&'a VideoId>, Span),
        progress: &Progress,
    ) -> Result<Vec<usize>, Stopped> {
        progress.announce(len);
        let mut kept: Vec<usize> = Vec::new();
        for position in 0..len {
            if kept.len() == self.limit {
                break;
            }
            progress.advance(1)?;
            let (video, span) = at(position);
            let suppressed = kept.iter().any(|&earlier| {
                let (kept_video, kept_span) = at(earlier);
                kept_video == video && self.iou.of(kept_span, span) > self.threshold
            });
            if !suppressed {
                kept.push(position);
            }
        }
        Ok(kept)
    }
}
