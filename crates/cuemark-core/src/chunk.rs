//! DiDeMo's five-second chunks.

use crate::Span;

/// Seconds in one DiDeMo chunk.
pub const CHUNK_SECONDS: f64 = 5.0;

/// **Inclusive** five-second chunk indices, as DiDeMo's annotators mark them: `[0, 2]` is 0 to 15 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkRange {
    first: u32,
    last: u32,
}

impl ChunkRange {
    /// Chunks `first..=last`. `None` when `last < first`.
    pub fn new(first: u32, last: u32) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// The chunks that `span` covers exactly, to the nearest chunk; `None` when it covers none.
    ///
    /// ```
    /// use cuemark_core::{ChunkRange, Span};
    /// let chunks = ChunkRange::from_span(Span::new(5.0, 15.0).unwrap());
    /// assert_eq!(chunks, ChunkRange::new(1, 2));
    /// ```
    pub fn from_span(span: Span) -> Option<Self> {
        let first = (span.start() / CHUNK_SECONDS).round() as u32;
        let end = (span.end() / CHUNK_SECONDS).round() as u32;
        Self::new(first, end.checked_sub(1)?)
    }

    /// First chunk.
    pub fn first(self) -> u32 {
        self.first
    }

    /// Last chunk, inside the range.
    pub fn last(self) -> u32 {
        self.last
    }

    /// The seconds these chunks cover.
    pub fn to_span(self) -> Span {
        let start = f64::from(self.first) * CHUNK_SECONDS;
        Span::trusted(start, (f64::from(self.last) + 1.0) * CHUNK_SECONDS)
    }
}
