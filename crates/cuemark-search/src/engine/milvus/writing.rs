//! Putting and removing.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cuemark_core::VideoId;
use half::f16;

use super::calls::Fresh;
use super::columns::{bools, doubles, jsons, longs, texts, vectors};
use super::expression::{list, quoted};
use super::schema::{LONGEST_ENTRY, LONGEST_NAME, UNUSED};
use super::wire::Failure;
use super::{EMBEDDING, Milvus};
use crate::engine::IndexedMoment;
use crate::{Result, SearchError, VideoEntry, VideoState};

/// Bytes of moments that travel together.
const BATCH: usize = 4 << 20;

/// A video with its moments.
pub(super) type Video<'a> = (&'a VideoEntry, &'a [IndexedMoment]);

impl Milvus {
    /// Puts videos in: their moments first, then the rows of the catalogue that make them count, then away with older ones. They
    /// share every request, since a server takes some tenths of a second to say that it has done one. No video is named twice.
    pub(super) fn put_videos(&self, videos: &[Video]) -> Result<()> {
        let mut texts_of = Vec::with_capacity(videos.len());
        for (entry, moments) in videos {
            self.fits(entry, moments)?;
            texts_of.push(in_catalogue(entry)?);
        }
        let ids: Vec<VideoId> = videos.iter().map(|(entry, _)| entry.id.clone()).collect();
        let earlier = self.has_any(&ids)?;
        let mut attempts = 0;
        // An insert that was not answered may have happened or not: the whole is done again under a new number.
        let put = self.wire.patiently(|| {
            attempts += 1;
            let put = new_number();
            self.insert_moments(videos, put).map(|()| put)
        })?;
        let count = videos.len();
        let rows = [
            texts("id", ids.iter().map(VideoId::to_string).collect()),
            longs("put", vec![put; count]),
            longs("moments", videos.iter().map(|(_, moments)| moments.len() as i64).collect()),
            bools("present", videos.iter().map(|(entry, _)| entry.state == VideoState::Present).collect()),
            texts("entry", texts_of),
            vectors("unused", UNUSED, vec![0.0; count * UNUSED]),
        ];
        let when = self.wire.upsert(&self.catalogue, &rows, count)?;
        self.wrote(when);
        let mut known = self.known();
        ids.iter().for_each(|id| known.forget(id));
        drop(known);
        let others = format!("video in {} and put != {put}", list(ids.iter().map(VideoId::as_str)));
        if earlier || attempts > 1 || self.wire.count(&self.collection, &others, self.fresh())? > 0 {
            self.wire.delete(&self.collection, &others)?;
        }
        Ok(())
    }

    fn fits(&self, entry: &VideoEntry, moments: &[IndexedMoment]) -> Result<()> {
        let expected = self.width;
        match moments.iter().find(|moment| moment.embedding.width() != expected) {
            Some(wrong) => Err(SearchError::Width { expected, found: wrong.embedding.width() }),
            None if entry.id.as_str().len() > LONGEST_NAME => Err(too_long(entry)),
            None => Ok(()),
        }
    }

    fn insert_moments(&self, videos: &[Video], put: i64) -> Result<(), Failure> {
        let tags =
            |entry: &VideoEntry| serde_json::to_vec(&serde_json::json!({ "tags": entry.tags })).unwrap_or_default();
        let tags: Vec<Vec<u8>> = videos.iter().map(|(entry, _)| tags(entry)).collect();
        // Video, number of the moment in it, moment.
        let all = videos.iter().enumerate().flat_map(|(video, (_, moments))| {
            moments.iter().enumerate().map(move |(number, moment)| (video, number, moment))
        });
        let all: Vec<(usize, usize, &IndexedMoment)> = all.collect();
        let id = |video: usize| &videos[video].0.id;
        for batch in all.chunks((BATCH / (4 * self.width).max(1)).max(1)) {
            let count = batch.len();
            let each = batch.iter().copied();
            let numbers = each.clone().flat_map(|(_, _, moment)| moment.embedding.numbers());
            let present = |video: usize| videos[video].0.state == VideoState::Present;
            let columns = vec![
                texts("video", each.clone().map(|(video, _, _)| id(video).to_string()).collect()),
                longs("put", vec![put; count]),
                longs("number", each.clone().map(|(_, number, _)| number as i64).collect()),
                longs("lot", each.clone().map(|(video, number, _)| lot(id(video), number)).collect()),
                doubles("start", each.clone().map(|(_, _, moment)| moment.span.start()).collect()),
                doubles("end", each.clone().map(|(_, _, moment)| moment.span.end()).collect()),
                bools("present", each.clone().map(|(video, _, _)| present(video)).collect()),
                jsons("tags", each.clone().map(|(video, _, _)| tags[video].clone()).collect()),
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

/// What the catalogue holds of a video.
fn in_catalogue(entry: &VideoEntry) -> Result<String> {
    let text = serde_json::to_string(entry).unwrap_or_default();
    if text.len() > LONGEST_ENTRY { Err(too_long(entry)) } else { Ok(text) }
}

fn too_long(entry: &VideoEntry) -> SearchError {
    SearchError::Question {
        problem: format!("video `{}` has a longer name, path or list of tags than Milvus takes", entry.id),
        advice: "names have 4 096 bytes at most, everything about a video 65 535".into(),
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
