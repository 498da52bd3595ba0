//! Which answers to a query are right.

use cuemark_core::{Span, Truth, VideoId};
use rustc_hash::FxHashMap;

/// A moment of this grade or more is right; in ungraded truth every listed one is.
const RIGHT_GRADE: f64 = 3.0;
/// An answer that overlaps a right moment so much is right.
const RIGHT_IOU: f64 = 0.5;

/// The right moments of one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RightMoments(FxHashMap<VideoId, Vec<Span>>);

impl RightMoments {
    /// Those of grade 3 or 4, or all where nothing is graded.
    pub fn of(truth: &Truth) -> Self {
        let mut right: FxHashMap<VideoId, Vec<Span>> = FxHashMap::default();
        let graded = truth.moments.iter();
        for one in graded.filter(|one| one.relevance.is_none_or(|grade| grade.value() >= RIGHT_GRADE)) {
            right.entry(one.moment.video.clone()).or_default().push(one.moment.span);
        }
        Self(right)
    }

    /// Whether a video has one.
    pub fn are_in(&self, video: &VideoId) -> bool {
        self.0.contains_key(video)
    }

    /// Whether an answer overlaps one by half or more (IoU).
    pub fn found_by(&self, video: &VideoId, span: Span) -> bool {
        self.0.get(video).is_some_and(|spans| spans.iter().any(|right| right.iou(span) >= RIGHT_IOU))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::{GradedMoment, Moment, Query, QueryId, Relevance};

    use super::*;

    #[test]
    fn a_right_answer_overlaps_a_well_graded_moment_by_half() {
        let span = |start, end| Span::new(start, end).unwrap();
        let graded = |video: &str, grade: f64| GradedMoment {
            moment: Moment { video: video.into(), span: span(10.0, 20.0) },
            relevance: Relevance::new(grade),
        };
        let query = Query { id: QueryId::new("q"), text: String::new() };
        let truth = Truth { moments: vec![graded("a", 3.0), graded("b", 2.0)], ..Truth::bare(query) };
        let right = RightMoments::of(&truth);
        assert!(right.found_by(&"a".into(), span(10.0, 15.0)));
        assert!(!right.found_by(&"a".into(), span(10.0, 14.9)));
        assert!(!right.found_by(&"b".into(), span(10.0, 20.0)), "grade 2 is not right");
        assert!(right.are_in(&"a".into()) && !right.are_in(&"b".into()) && !right.is_empty());
    }
}
