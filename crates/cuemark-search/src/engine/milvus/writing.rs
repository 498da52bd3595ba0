//! Putting and removing.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cuemark_core::VideoId;
use half::f16;

use super::calls::Fresh;
use super::columns::{bools, doubles, jsons, longs, texts, vectors};
use super::expression::quoted;
use super::schema::{LONGEST_ENTRY, LONGEST_NAME, UNUSED};
use super::wire::Failure;
use super::{EMBEDDING, Milvus};
use crate::engine::IndexedMoment;
use crate::{Result, SearchError, VideoEntry, VideoState};

/// Bytes of moments that travel together.
const BATCH: usize = 4 << 20;

impl Milvus {
    /// Puts a video in: its moments first, then the row of the catalogue that makes them count, then away with older ones.
    pub(super) fn put_video(&self, entry: &VideoEntry, moments: &[IndexedMoment]) -> Result<()> {
        let text = serde_json::to_string(entry).unwrap_or_default();
        if entry.id.as_str().len() > LONGEST_NAME || text.len() > LONGEST_ENTRY {
            return Err(SearchError::Question {
                problem: format!("video `{}` has a longer name, path or list of tags than Milvus takes", entry.id),
                advice: "names have 4 096 bytes at most, everything about a video 65 535".into(),
            });
        }
        let earlier = self.row(&entry.id)?.is_some();
        let mut attempts = 0;
        // An insert that was not answered may have happened or not: the whole is done again under a new number.
        let put = self.wire.patiently(|| {
            attempts += 1;
            let put = new_number();
            self.insert_moments(entry, moments, put).map(|()| put)
        })?;
        let row = [
            texts("id", vec![entry.id.to_string()]),
            longs("put", vec![put]),
            longs("moments", vec![moments.len() as i64]),
            bools("present", vec![entry.state == VideoState::Present]),
            texts("entry", vec![text]),
            vectors("unused", UNUSED, vec![0.0; UNUSED]),
        ];
        let when = self.wire.upsert(&self.catalogue, &row, 1)?;
        self.wrote(when);
        self.known().forget(&entry.id);
        let others = format!("video == {} and put != {put}", quoted(entry.id.as_str()));
        if earlier || attempts > 1 || self.wire.count(&self.collection, &others, self.fresh())? > 0 {
            self.wire.delete(&self.collection, &others)?;
        }
        Ok(())
    }

    fn insert_moments(&self, entry: &VideoEntry, moments: &[IndexedMoment], put: i64) -> Result<(), Failure> {
        let rows = (BATCH / (4 * self.width).max(1)).max(1);
        let tags = serde_json::to_vec(&serde_json::json!({ "tags": entry.tags })).unwrap_or_default();
        for (batch, moments) in moments.chunks(rows).enumerate() {
            let count = moments.len();
            let first = batch * rows;
            let numbers = moments.iter().flat_map(|moment| moment.embedding.numbers());
            let columns = vec![
                texts("video", vec![entry.id.to_string(); count]),
                longs("put", vec![put; count]),
                longs("number", (first..first + count).map(|number| number as i64).collect()),
                longs("lot", (first..first + count).map(|number| lot(&entry.id, number)).collect()),
                doubles("start", moments.iter().map(|moment| moment.span.start()).collect()),
                doubles("end", moments.iter().map(|moment| moment.span.end()).collect()),
                bools("present", vec![entry.state == VideoState::Present; count]),
                jsons("tags", vec![tags.clone(); count]),
                // Rounded as the embedded engine stores them, so that both give the same scores.
                vectors(EMBEDDING, self.width, numbers.map(|x| f16::from_f32(*x).to_f32()).collect()),
            ];
            let when = self.wire.insert(&self.collection, columns, count)?;
            self.wrote(when);
        }
        Ok(())
    }

    /// Takes a video out: it does not count from the moment that its row is gone.
    pub(super) fn remove_video(&self, id: &VideoId) -> Result<()> {
        self.wire.delete(&self.catalogue, &format!("id in [{}]", quoted(id.as_str())))?;
        self.known().forget(id);
        self.wrote(0);
        self.wire.delete(&self.collection, &format!("video == {}", quoted(id.as_str())))
    }

    /// Removes what writers that died left behind.
    pub(super) fn sweep(&self) -> Result<()> {
        let mut left = Vec::new();
        self.scan("id > 0", &["id", "video", "put"], Fresh::Now, &mut |page| {
            let committed = page.committed(self)?;
            left.extend(page.ids.iter().zip(committed).filter(|(_, committed)| !committed).map(|(id, _)| *id));
            Ok(())
        })?;
        for ids in left.chunks(1000) {
            let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
            self.wire.delete(&self.collection, &format!("id in [{}]", ids.join(", ")))?;
        }
        Ok(())
    }

    fn wrote(&self, when: u64) {
        if when > 0 {
            let mut last = self.last_write.lock().unwrap_or_else(PoisonError::into_inner);
            let latest = last.map_or(when, |(_, before)| before.max(when));
            *last = Some((Instant::now(), latest));
        }
        self.unflushed.store(true, Ordering::Release);
    }
}

/// A number that no earlier put of the same video has: the time in nanoseconds.
fn new_number() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_nanos()).ok())
        .unwrap_or(i64::MAX)
}

/// Where a moment stands in a lottery, in 0..2^32: always the same for the same moment.
fn lot(video: &VideoId, number: usize) -> i64 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(video.as_str().as_bytes());
    sum.update(&(number as u64).to_le_bytes());
    i64::from(sum.finalize())
}
