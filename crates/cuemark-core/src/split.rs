//! A named list of queries.

use crate::{RowCounts, Truth, Video};

/// A named list of queries with the videos they are about.
#[derive(Debug, Clone, Default)]
pub struct Split {
    /// Its name in our words: `train`, `val`, `test-iid` …
    pub name: String,
    /// The file it was read from, relative to the dataset's folder.
    pub file: String,
    /// Its videos, each once, in file order.
    pub videos: Vec<Video>,
    /// Its queries, in file order.
    pub queries: Vec<Truth>,
    /// What was wrong with its rows and what was done about it.
    pub rows: RowCounts,
}

impl Split {
    /// Number of query-moment pairs.
    pub fn pairs(&self) -> usize {
        self.queries.iter().map(|truth| truth.moments.len()).sum()
    }
}
