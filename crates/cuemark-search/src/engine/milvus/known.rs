//! What was asked of the server a moment ago and need not be asked again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuemark_core::{Span, VideoId};
use rustc_hash::FxHashMap;

use crate::VideoEntry;

/// What another process changes is seen after so long at the latest.
const LASTS: Duration = Duration::from_secs(5);
/// Videos of which something is known.
const MOST_VIDEOS: usize = 100_000;
/// Bytes of moments that are kept.
const MOST_BYTES: usize = 128 << 20;

/// A row of the catalogue.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) entry: VideoEntry,
    /// The number of the put whose moments count.
    pub(super) put: i64,
    pub(super) moments: usize,
}

/// The moments of one video as they are stored, in the order they were put.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) spans: Vec<Span>,
    /// One row of numbers per span.
    pub(super) numbers: Vec<f32>,
}

/// How many there are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) videos: usize,
    pub(super) vanished: usize,
    pub(super) moments: usize,
}

/// What was asked a moment ago.
#[derive(Debug, Default)]
pub(super) struct Known {
    videos: FxHashMap<VideoId, (Instant, Option<Arc<Row>>)>,
    moments: FxHashMap<(VideoId, i64), Arc<Stored>>,
    bytes: usize,
    counts: Option<(Instant, Counts)>,
}

impl Known {
    /// A video, or that it is not there; `None` when that is not known any more.
    pub(super) fn video(&self, id: &VideoId) -> Option<Option<Arc<Row>>> {
        let (when, row) = self.videos.get(id)?;
        (when.elapsed() < LASTS).then(|| row.clone())
    }

    /// Whether a put counted when last looked. Once it does it only ends by its moments being removed.
    pub(super) fn counts(&self, id: &VideoId, put: i64) -> bool {
        matches!(self.videos.get(id), Some((_, Some(row))) if row.put == put)
    }

    pub(super) fn learn(&mut self, id: VideoId, row: Option<Arc<Row>>) {
        if self.videos.len() >= MOST_VIDEOS {
            self.videos.clear();
        }
        self.videos.insert(id, (Instant::now(), row));
    }

    /// Forgets a video, and the counts.
    pub(super) fn forget(&mut self, id: &VideoId) {
        self.videos.remove(id);
        self.counts = None;
    }

    pub(super) fn moments(&self, id: &VideoId, put: i64) -> Option<Arc<Stored>> {
        self.moments.get(&(id.clone(), put)).cloned()
    }

    pub(super) fn learn_moments(&mut self, id: &VideoId, put: i64, stored: &Arc<Stored>) {
        let bytes = size_of_val(stored.spans.as_slice()) + size_of_val(stored.numbers.as_slice());
        if self.bytes + bytes > MOST_BYTES {
            self.moments.clear();
            self.bytes = 0;
        }
        if bytes <= MOST_BYTES {
            self.moments.insert((id.clone(), put), Arc::clone(stored));
            self.bytes += bytes;
        }
    }

    pub(super) fn counted(&self) -> Option<Counts> {
        self.counts.filter(|(when, _)| when.elapsed() < LASTS).map(|(_, counts)| counts)
    }

    pub(super) fn learn_counts(&mut self, counts: Counts) {
        self.counts = Some((Instant::now(), counts));
    }
}
