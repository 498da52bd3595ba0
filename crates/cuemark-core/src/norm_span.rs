//! A stretch of a video as fractions of its duration.

use crate::Span;

/// A stretch of a video in **fractions of its duration**; `start <= end`, both finite, not necessarily inside 0..1.
///
/// Annotated moments may end after their video, and some protocols look at exactly that, so nothing is clipped
/// before [`NormSpan::clipped`] is asked to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormSpan {
    start: f64,
    end: f64,
}

impl NormSpan {
    /// From two fractions, put in order. `None` when one is not finite.
    pub fn new(start: f64, end: f64) -> Option<Self> {
        (start.is_finite() && end.is_finite()).then(|| Self { start: start.min(end), end: start.max(end) })
    }

    /// `span` divided by the video's `duration` in seconds. `None` unless the duration is positive and finite.
    ///
    /// ```
    /// use cuemark_core::{NormSpan, Span};
    /// let norm = NormSpan::of(Span::new(5.0, 20.0).unwrap(), 40.0).unwrap();
    /// assert_eq!((norm.start(), norm.end()), (0.125, 0.5));
    /// ```
    pub fn of(span: Span, duration: f64) -> Option<Self> {
        (duration > 0.0).then(|| Self::new(span.start() / duration, span.end() / duration)).flatten()
    }

    /// Start as a fraction.
    pub fn start(self) -> f64 {
        self.start
    }

    /// End as a fraction.
    pub fn end(self) -> f64 {
        self.end
    }

    /// Length as a fraction.
    pub fn len(self) -> f64 {
        self.end - self.start
    }

    /// Whether it has no length.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Middle as a fraction.
    pub fn centre(self) -> f64 {
        self.start.midpoint(self.end)
    }

    /// Both bounds moved into 0..1.
    #[must_use]
    pub fn clipped(self) -> Self {
        Self { start: self.start.clamp(0.0, 1.0), end: self.end.clamp(0.0, 1.0) }
    }

    /// Back to seconds of a video that lasts `duration`, clipped to it.
    pub fn to_span(self, duration: f64) -> Span {
        let inside = self.clipped();
        let whole = Span::whole(duration).end();
        Span::trusted(inside.start * whole, inside.end * whole)
    }

    /// Intersection over hull, as the bias papers' figures need it; 0 when the hull is empty.
    pub fn iou_hull(self, other: Self) -> f64 {
        let inter = (self.end.min(other.end) - self.start.max(other.start)).max(0.0);
        let hull = self.end.max(other.end) - self.start.min(other.start);
        if hull > 0.0 { inter / hull } else { 0.0 }
    }
}
