//! What a query describes.

use crate::{Relevance, Span, VideoId};

/// A span in a named video.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// The video it lies in.
    pub video: VideoId,
    /// Where in that video.
    pub span: Span,
}

/// A moment and how well it answers its query.
#[derive(Debug, Clone, PartialEq)]
pub struct GradedMoment {
    /// The moment.
    pub moment: Moment,
    /// Its grade; `None` when the file grades nothing and the moment is simply right.
    pub relevance: Option<Relevance>,
}

impl GradedMoment {
    /// A moment that is simply right.
    pub fn right(video: VideoId, span: Span) -> Self {
        Self { moment: Moment { video, span }, relevance: None }
    }

    /// Whether it answers the query at all: ungraded, or graded above 0.
    pub fn is_right(&self) -> bool {
        self.relevance.is_none_or(|relevance| relevance.value() > 0.0)
    }
}
