//! Clip indices: what one feature row stands for.

use crate::Span;

/// The length of one clip, in **seconds**; positive and finite. Comes from a feature file's header, never from a default.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct ClipLen(f64);

impl ClipLen {
    /// `None` unless `seconds` is positive and finite.
    pub fn new(seconds: f64) -> Option<Self> {
        (seconds > 0.0 && seconds.is_finite()).then_some(Self(seconds))
    }

    /// Seconds per clip.
    pub fn seconds(self) -> f64 {
        self.0
    }
}

/// Consecutive clips by **index**: `first..end`, never reversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClipRange {
    first: usize,
    end: usize,
}

impl ClipRange {
    /// Clips `first..end`. `None` when `end < first`.
    pub fn new(first: usize, end: usize) -> Option<Self> {
        (first <= end).then_some(Self { first, end })
    }

    /// The clips that `span` touches, at most `clips` of them.
    ///
    /// ```
    /// use cuemark_core::{ClipLen, ClipRange, Span};
    /// let touched = ClipRange::touching(Span::new(1.0, 4.0).unwrap(), ClipLen::new(2.0).unwrap(), 10);
    /// assert_eq!((touched.first(), touched.end()), (0, 2));
    /// ```
    pub fn touching(span: Span, clip: ClipLen, clips: usize) -> Self {
        // The casts saturate, so a span far past the features lands on the last clip.
        let first = ((span.start() / clip.0).floor() as usize).min(clips);
        let end = ((span.end() / clip.0).ceil() as usize).clamp(first, clips.max(first));
        Self { first, end }
    }

    /// First clip.
    pub fn first(self) -> usize {
        self.first
    }

    /// One past the last clip.
    pub fn end(self) -> usize {
        self.end
    }

    /// Number of clips.
    pub fn len(self) -> usize {
        self.end - self.first
    }

    /// Whether it holds no clip.
    pub fn is_empty(self) -> bool {
        self.first == self.end
    }

    /// The seconds these clips cover.
    pub fn to_span(self, clip: ClipLen) -> Span {
        Span::trusted(self.first as f64 * clip.0, self.end as f64 * clip.0)
    }
}
