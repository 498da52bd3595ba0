//! Frame numbers as annotation tools count them.

use cuemark_core::Span;
use serde::Serialize;

/// Frames per second; positive and finite. Comes from the video, never from a default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct FrameRate(f64);

impl FrameRate {
    /// `None` unless `per_second` is positive and finite.
    pub fn new(per_second: f64) -> Option<Self> {
        (per_second > 0.0 && per_second.is_finite()).then_some(Self(per_second))
    }
}

/// Frames as Label Studio counts them: from **1**, both ends inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FrameRange {
    #[serde(rename = "start")]
    first: u64,
    #[serde(rename = "end")]
    last: u64,
}

impl FrameRange {
    /// Frames `first..=last`. `None` when `first` is 0 or after `last`.
    pub fn new(first: u64, last: u64) -> Option<Self> {
        (1 <= first && first <= last).then_some(Self { first, last })
    }

    /// The frames that are shown at some time in `span`; frame `n` is shown from `(n - 1) / rate` to `n / rate`.
    ///
    /// An empty span gives the one frame shown at its start.
    ///
    /// ```
    /// use {cuemark_core::Span, cuemark_protocols::ranked::frames::{FrameRange, FrameRate}};
    /// let rate = FrameRate::new(25.0).unwrap();
    /// let frames = FrameRange::covering(Span::new(1.0, 2.0).unwrap(), rate);
    /// assert_eq!(Some(frames), FrameRange::new(26, 50));
    /// ```
    pub fn covering(span: Span, rate: FrameRate) -> Self {
        // Times that came from frames land a rounding error beside them; that must not add a frame.
        let snap = |frames: f64| if (frames - frames.round()).abs() < 1e-6 { frames.round() } else { frames };
        // The casts saturate.
        let first = (snap(span.start() * rate.0).floor() as u64).saturating_add(1);
        Self { first, last: (snap(span.end() * rate.0).ceil() as u64).max(first) }
    }

    /// The seconds during which these frames are shown.
    pub fn to_span(self, rate: FrameRate) -> Option<Span> {
        Span::new((self.first - 1) as f64 / rate.0, self.last as f64 / rate.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_span_is_one_frame() {
        let rate = FrameRate::new(10.0).unwrap();
        assert_eq!(Some(FrameRange::covering(Span::new(1.25, 1.25).unwrap(), rate)), FrameRange::new(13, 13));
        assert_eq!(FrameRange::new(0, 4), None);
        assert_eq!(FrameRate::new(0.0), None);
    }

    proptest! {
        #[test]
        fn frames_survive_the_way_to_seconds_and_back(first in 1u64..200_000, more in 0u64..5_000, rate in 1.0f64..240.0) {
            let rate = FrameRate::new(rate).unwrap();
            let frames = FrameRange::new(first, first + more).unwrap();
            prop_assert_eq!(FrameRange::covering(frames.to_span(rate).unwrap(), rate), frames);
        }

        #[test]
        fn the_frames_cover_the_span_and_little_more(start in 0.0f64..500.0, length in 0.1f64..90.0, rate in 5.0f64..60.0) {
            let span = Span::new(start, start + length).unwrap();
            let rate = FrameRate::new(rate).unwrap();
            let shown = FrameRange::covering(span, rate).to_span(rate).unwrap();
            prop_assert!(shown.start() <= span.start() + 1e-5 && span.end() <= shown.end() + 1e-5);
            prop_assert!(shown.len() - span.len() < 2.0 / rate.0 + 1e-5);
        }
    }
}
