//! A stretch of one video, in seconds.

use std::fmt;

/// A stretch of one video, in **seconds** from its first frame: `[start, end)`.
///
/// `0 <= start <= end` always holds and both are finite (an empty span is legal and has IoU 0 with everything);
/// build one with [`Span::new`]. Readers hold what a file says in a [`RawSpan`]; the
/// [`RowPolicy`](crate::RowPolicy) turns it into a `Span`.
/// For clip indices see [`ClipRange`](crate::ClipRange), for fractions of a duration [`NormSpan`](crate::NormSpan).
///
/// ```
/// use cuemark_core::Span;
/// let span = Span::new(2.5, 4.0).unwrap();
/// assert_eq!(span.len(), 1.5);
/// assert!(Span::new(4.0, 2.5).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    start: f64,
    end: f64,
}

/// Why two numbers are not a [`Span`].
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SpanError {
    /// A bound is NaN or infinite.
    #[error("{0} is not a finite number of seconds")]
    NotFinite(f64),
    /// The span would begin before the video does.
    #[error("{0} s is before the first frame")]
    Negative(f64),
    /// The end comes before the start.
    #[error("{end} s is before start {start} s")]
    Reversed {
        /// Start as given, in seconds.
        start: f64,
        /// End as given, in seconds.
        end: f64,
    },
}

impl Span {
    /// A span from `start` to `end` seconds.
    ///
    /// # Errors
    /// When a bound is not finite, `start` is negative, or `end < start`.
    pub fn new(start: f64, end: f64) -> Result<Self, SpanError> {
        for bound in [start, end] {
            if !bound.is_finite() {
                return Err(SpanError::NotFinite(bound));
            }
        }
        if end < start {
            return Err(SpanError::Reversed { start, end });
        }
        if start < 0.0 {
            return Err(SpanError::Negative(start));
        }
        Ok(Self { start, end })
    }

    /// The whole of a video that lasts `duration` seconds; negative or non-finite durations give an empty span.
    pub fn whole(duration: f64) -> Self {
        let end = if duration.is_finite() { duration.max(0.0) } else { 0.0 };
        Self { start: 0.0, end }
    }

    /// For code in this crate that has already established the invariant.
    pub(crate) fn trusted(start: f64, end: f64) -> Self {
        debug_assert!(0.0 <= start && start <= end && end.is_finite());
        Self { start, end }
    }

    /// Where it begins, in seconds.
    pub fn start(self) -> f64 {
        self.start
    }

    /// Where it ends, in seconds; the end itself is outside.
    pub fn end(self) -> f64 {
        self.end
    }

    /// Length in seconds.
    pub fn len(self) -> f64 {
        self.end - self.start
    }

    /// Whether it has no length.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Middle, in seconds.
    pub fn centre(self) -> f64 {
        self.start.midpoint(self.end)
    }

    /// The part that lies inside a video of `duration` seconds; empty at the video's end when nothing does.
    ///
    /// ```
    /// use cuemark_core::Span;
    /// let span = Span::new(8.0, 12.0).unwrap();
    /// assert_eq!(span.clip_to(10.0), Span::new(8.0, 10.0).unwrap());
    /// assert!(span.clip_to(5.0).is_empty());
    /// ```
    #[must_use]
    pub fn clip_to(self, duration: f64) -> Self {
        let last = Self::whole(duration).end;
        Self { start: self.start.min(last), end: self.end.min(last) }
    }

    /// Temporal intersection over union with `other`, 0 when both are empty ([`Iou::True`](crate::Iou::True)).
    ///
    /// ```
    /// use cuemark_core::Span;
    /// let (a, b) = (Span::new(0.0, 10.0).unwrap(), Span::new(5.0, 15.0).unwrap());
    /// assert_eq!(a.iou(b), 5.0 / 15.0);
    /// ```
    pub fn iou(self, other: Self) -> f64 {
        crate::Iou::True.of(self, other)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}] s", self.start, self.end)
    }
}

/// Two numbers as a file gives them, in **seconds**, before anybody has judged them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RawSpan {
    /// Start as written.
    pub start: f64,
    /// End as written.
    pub end: f64,
}

impl RawSpan {
    /// Holds `start` and `end`, whatever they are.
    pub fn new(start: f64, end: f64) -> Self {
        Self { start, end }
    }

    /// Frame numbers at `fps` frames a second, as seconds.
    pub fn from_frames(start: f64, end: f64, fps: f64) -> Self {
        Self { start: start / fps, end: end / fps }
    }

    /// The span of a *prediction*, which is never dropped, since that would move every rank below it.
    ///
    /// A reversed one becomes empty at its start (it overlaps nothing, which is how the published evaluators
    /// score it) and a negative start is raised to 0; the fault is returned so that it can be counted.
    ///
    /// # Errors
    /// When a bound is not finite.
    pub fn into_predicted(self) -> Result<(Span, Option<crate::RowFault>), SpanError> {
        use crate::RowFault;
        match Span::new(self.start, self.end) {
            Ok(span) => Ok((span, None)),
            Err(SpanError::Reversed { start, .. }) => {
                let start = start.max(0.0);
                Ok((Span::trusted(start, start), Some(RowFault::Reversed)))
            }
            Err(SpanError::Negative(_)) => {
                Ok((Span::trusted(0.0, self.end.max(0.0)), Some(RowFault::StartsBeforeVideo)))
            }
            Err(not_finite) => Err(not_finite),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowFault;

    #[test]
    fn bounds_must_be_finite_ordered_and_not_negative() {
        assert!(matches!(Span::new(f64::NAN, 1.0), Err(SpanError::NotFinite(_))));
        assert!(matches!(Span::new(0.0, f64::INFINITY), Err(SpanError::NotFinite(_))));
        assert!(matches!(Span::new(-1.0, 1.0), Err(SpanError::Negative(_))));
        assert!(matches!(Span::new(5.0, 3.5), Err(SpanError::Reversed { .. })));
        assert!(Span::new(3.0, 3.0).unwrap().is_empty());
    }

    #[test]
    fn a_reversed_prediction_keeps_its_rank_as_an_empty_span() {
        let (span, fault) = RawSpan::new(9.0, 4.0).into_predicted().unwrap();
        assert!(span.is_empty());
        assert_eq!(fault, Some(RowFault::Reversed));
    }

    #[test]
    fn a_prediction_before_the_video_begins_at_zero() {
        let (span, fault) = RawSpan::new(-2.0, 4.0).into_predicted().unwrap();
        assert_eq!(span, Span::new(0.0, 4.0).unwrap());
        assert_eq!(fault, Some(RowFault::StartsBeforeVideo));
        assert!(RawSpan::new(-4.0, -2.0).into_predicted().unwrap().0.is_empty());
    }
}
