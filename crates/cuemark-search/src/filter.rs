//! Where to look: some videos, some tags, some stretch.

use cuemark_core::{Span, VideoId};
use rustc_hash::FxHashSet;

use crate::{VideoEntry, VideoState};

/// Where to look. The default is everywhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Only these videos; `None` for all.
    pub videos: Option<FxHashSet<VideoId>>,
    /// Only videos that carry all of these tags.
    pub tags: Vec<String>,
    /// Only moments that lie inside this stretch of their video, in **seconds**.
    pub within: Option<Span>,
}

impl Filter {
    /// One video only.
    pub fn video(id: VideoId) -> Self {
        Self { videos: Some(std::iter::once(id).collect()), ..Self::default() }
    }

    /// Whether nothing is left out, vanished videos apart.
    pub fn is_everywhere(&self) -> bool {
        self.videos.is_none() && self.tags.is_empty() && self.within.is_none()
    }

    /// Whether moments of a video may be found. Vanished videos never are.
    pub fn admits(&self, entry: &VideoEntry) -> bool {
        entry.state == VideoState::Present
            && self.videos.as_ref().is_none_or(|videos| videos.contains(&entry.id))
            && self.tags.iter().all(|tag| entry.tags.contains(tag))
    }

    /// Whether a moment lies where it should; its video was admitted already.
    pub fn admits_span(&self, span: Span) -> bool {
        self.within.is_none_or(|within| within.start() <= span.start() && span.end() <= within.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, tags: &[&str], state: VideoState) -> VideoEntry {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        VideoEntry { tags, state, ..VideoEntry::without_file(id, 1.0) }
    }

    #[test]
    fn every_condition_must_hold() {
        let filter = Filter { tags: vec!["red".into(), "day".into()], ..Filter::video("a".into()) };
        assert!(filter.admits(&entry("a", &["day", "red", "x"], VideoState::Present)));
        assert!(!filter.admits(&entry("a", &["red"], VideoState::Present)));
        assert!(!filter.admits(&entry("b", &["day", "red"], VideoState::Present)));
        assert!(!filter.admits(&entry("a", &["day", "red"], VideoState::Vanished)));
    }

    #[test]
    fn a_moment_must_lie_inside_the_stretch() {
        let span = |start, end| Span::new(start, end).unwrap();
        let filter = Filter { within: Some(span(5.0, 10.0)), ..Filter::default() };
        assert!(filter.admits_span(span(5.0, 10.0)));
        assert!(!filter.admits_span(span(4.9, 6.0)));
        assert!(!filter.admits_span(span(9.0, 10.1)));
    }
}
