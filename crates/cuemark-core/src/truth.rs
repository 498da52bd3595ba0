//! What a dataset says is right.

use crate::{Extra, GradedMoment, Highlights, QueryId, Span, Video, VideoId};

/// One sentence with an id.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Its id; compared as text.
    pub id: QueryId,
    /// The sentence as written.
    pub text: String,
}

/// One query and everything its dataset says is right about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// The query.
    pub query: Query,
    /// The video it was written for, when there is exactly one.
    pub video: Option<Video>,
    /// The moments that answer it, in file order; several annotators of one query give several.
    pub moments: Vec<GradedMoment>,
    /// The videos it is searched in, when the dataset fixes them.
    pub pool: Option<Vec<VideoId>>,
    /// What kind of query it is, in the dataset's own words (TVR: `v`, `t`, `vt`).
    pub kind: Option<String>,
    /// Clip ratings, where the dataset has them.
    pub highlights: Option<Box<Highlights>>,
    /// Fields that cuemark does not know.
    pub extra: Extra,
}

impl Truth {
    /// A query about one video, with the spans that answer it.
    pub fn single(query: Query, video: Video, spans: impl IntoIterator<Item = Span>) -> Self {
        let moments = spans.into_iter().map(|span| GradedMoment::right(video.id.clone(), span)).collect();
        Self { video: Some(video), moments, ..Self::bare(query) }
    }

    /// A query of which nothing else is known.
    pub fn bare(query: Query) -> Self {
        Self {
            query,
            video: None,
            moments: Vec::new(),
            pool: None,
            kind: None,
            highlights: None,
            extra: Extra::default(),
        }
    }

    /// The duration of the video it was written for, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.video.as_ref()?.duration
    }

    /// The moments that answer the query at all (ungraded, or graded above 0).
    pub fn right(&self) -> impl Iterator<Item = &crate::Moment> {
        self.moments.iter().filter(|graded| graded.is_right()).map(|graded| &graded.moment)
    }
}
