//! Pictures that were made already, as many as fit into a number of bytes (LRU cache).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use cuemark_search::VideoEntry;
use rustc_hash::FxHashMap;

/// What one entry costs besides its picture and its name: the two maps' own.
const OVERHEAD: usize = 256;

/// Which picture. A film that was indexed anew has new pictures.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Picture {
    video: String,
    bytes: u64,
    modified: i64,
    tenths: u64,
    width: usize,
}

impl Picture {
    /// Of a video at `seconds`; pictures closer than a tenth of a second are one.
    pub(crate) fn new(entry: &VideoEntry, seconds: f64, width: usize) -> Self {
        let (bytes, modified) = (entry.bytes, entry.modified);
        Self { video: entry.id.to_string(), bytes, modified, tenths: (10.0 * seconds) as u64, width }
    }
}

/// Keeps the pictures that were asked for last.
pub(crate) struct Thumbnails {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    bytes: usize,
    clock: u64,
    pictures: FxHashMap<Picture, (u64, Bytes)>,
    /// When each was last asked for; the first goes first.
    order: BTreeMap<u64, Picture>,
}

impl Thumbnails {
    /// Room for `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    pub(crate) fn get(&self, picture: &Picture) -> Option<Bytes> {
        let mut kept = self.held();
        let bytes = kept.forget(picture)?;
        kept.keep(picture.clone(), bytes.clone());
        Some(bytes)
    }

    /// Keeps a picture, and forgets those not asked for the longest until all fit.
    pub(crate) fn put(&self, picture: Picture, bytes: Bytes) {
        if cost(&picture, &bytes) > self.most {
            return;
        }
        let mut kept = self.held();
        kept.forget(&picture);
        kept.keep(picture, bytes);
        while kept.bytes > self.most {
            let Some((_, oldest)) = kept.order.first_key_value() else { break };
            let oldest = oldest.clone();
            kept.forget(&oldest);
        }
    }

    fn held(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn keep(&mut self, picture: Picture, bytes: Bytes) {
        self.clock += 1;
        self.bytes += cost(&picture, &bytes);
        self.order.insert(self.clock, picture.clone());
        self.pictures.insert(picture, (self.clock, bytes));
    }

    fn forget(&mut self, picture: &Picture) -> Option<Bytes> {
        let (asked, bytes) = self.pictures.remove(picture)?;
        self.order.remove(&asked);
        self.bytes -= cost(picture, &bytes);
        Some(bytes)
    }
}

fn cost(picture: &Picture, bytes: &Bytes) -> usize {
    bytes.len() + 2 * picture.video.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(tenths: u64) -> Picture {
        Picture { video: "film".to_owned(), bytes: 1, modified: 2, tenths, width: 320 }
    }

    #[test]
    fn many_large_pictures_never_take_more_than_there_is_room_for() {
        let thumbnails = Thumbnails::new(10 << 20);
        for tenths in 0..390 {
            thumbnails.put(picture(tenths), Bytes::from(vec![0; 3 << 20]));
            assert!(thumbnails.held().bytes <= 10 << 20);
        }
        let kept = thumbnails.held();
        assert_eq!((kept.pictures.len(), kept.order.len()), (3, 3));
    }

    #[test]
    fn what_was_asked_for_last_stays_and_what_does_not_fit_at_all_is_not_kept() {
        let thumbnails = Thumbnails::new(3000);
        (0..3).for_each(|tenths| thumbnails.put(picture(tenths), Bytes::from(vec![tenths as u8; 600])));
        assert!(thumbnails.get(&picture(0)).is_some());
        thumbnails.put(picture(3), Bytes::from(vec![3; 600]));
        let there: Vec<bool> = (0..4).map(|tenths| thumbnails.get(&picture(tenths)).is_some()).collect();
        assert_eq!(there, [true, false, true, true]);
        thumbnails.put(picture(9), Bytes::from(vec![0; 5000]));
        assert!(thumbnails.get(&picture(9)).is_none() && thumbnails.get(&picture(3)).is_some());
    }
}
