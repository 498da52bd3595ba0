//! One way in which truth files are laid out.

use std::sync::Arc;

use cuemark_core::{RowPolicy, Split};
use cuemark_formats::{Result, Source};

use crate::Durations;
use crate::peek::Peek;

/// One way in which truth files are laid out: how to recognise it and how to read it.
pub struct Layout {
    /// The name that `--truth-format` takes.
    pub name: &'static str,
    /// The layout in one line.
    pub about: &'static str,
    /// Whether a file that begins like this is laid out so.
    pub(crate) looks_like: fn(&Peek) -> bool,
    /// Reads a file into its splits, each in file order. Where a file holds one split, its name is left empty.
    pub(crate) read: fn(&Source, &ReadOptions) -> Result<Vec<Split>>,
}

impl std::fmt::Debug for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Layout({})", self.name)
    }
}

/// How truth files are read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// What to do with rows that cannot be right. Default: [`RowPolicy::Keep`]
    pub bad_rows: RowPolicy,
    /// Durations for files that state none; what a file says itself comes first. Default: none
    pub durations: Option<Arc<Durations>>,
}

impl ReadOptions {
    /// The duration of `video` in seconds, from the side file that the caller gave.
    pub(crate) fn duration(&self, video: &str) -> Option<f64> {
        self.durations.as_ref()?.get(video)
    }
}
