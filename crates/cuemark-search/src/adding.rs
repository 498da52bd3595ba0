//! Adding videos to an index: by their files, or by features that are stored already.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use cuemark_core::{Progress, VideoId, printable, whole_message};
use cuemark_media::{MediaError, Partial, Stamp, VideoFile, find_videos, free_name};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::encoder::EmbeddedVideo;
use crate::{Index, Result, SearchError, VideoEntry, VideoState};

/// Videos that are embedded side by side and wait for the disk together.
const TOGETHER: usize = 16;

/// What to add and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AddOptions {
    /// Tags that every added video gets.
    pub tags: Vec<String>,
}

/// What became of one video.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "became", rename_all = "lowercase")]
pub enum Became {
    /// It is new.
    New,
    /// Its file has changed and it was embedded again.
    Changed,
    /// It is there already, as it is.
    Unchanged,
    /// It could not be added.
    Failed {
        /// Why not.
        reason: String,
    },
}

/// One video and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddedVideo {
    /// Its name in the index; of what failed, its path.
    pub video: String,
    /// What became of it.
    #[serde(flatten)]
    pub became: Became,
    /// What of its file could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
}

/// What was added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Added {
    /// New videos.
    pub new: usize,
    /// Videos whose file had changed.
    pub changed: usize,
    /// Videos that were there already, as they are.
    pub unchanged: usize,
    /// Of all these, videos that could be read only in part.
    pub partial: usize,
    /// Videos that could not be added.
    pub failed: usize,
    /// Moments that were added.
    pub moments: usize,
    /// Every video, in the order it came.
    pub videos: Vec<AddedVideo>,
}

impl Added {
    fn note(&mut self, one: AddedVideo, progress: &Progress) {
        let shown = printable(&one.video).into_owned();
        match (&one.became, &one.partial) {
            (Became::Failed { reason }, _) => progress.say(format!("left out: {shown}: {}", printable(reason))),
            // What was said when it was added need not be said again.
            (Became::Unchanged, _) | (_, None) => {}
            (_, Some(partial)) => progress.say(format!("in part: {shown}: {}", printable(&partial.to_string()))),
        }
        match one.became {
            Became::New => self.new += 1,
            Became::Changed => self.changed += 1,
            Became::Unchanged => self.unchanged += 1,
            Became::Failed { .. } => self.failed += 1,
        }
        self.partial += usize::from(one.partial.is_some());
        self.videos.push(one);
    }

    fn failed(&mut self, what: &str, reason: &str, progress: &Progress) {
        // Most messages begin with the file, which stands beside them here.
        let reason = reason.strip_prefix(&format!("{what}: ")).unwrap_or(reason).to_owned();
        self.note(AddedVideo { video: what.to_owned(), became: Became::Failed { reason }, partial: None }, progress);
    }
}

impl Index {
    /// Adds video files, and every video file below folders ([`find_videos`] says which and how they are called); a video known
    /// already is embedded again only when its file has changed. Each video is safe once `progress` counts it. When the work is
    /// stopped, what was added by then is returned.
    ///
    /// # Errors
    /// When the index cannot be written, a program that decodes is missing, or there are too many files. A video that cannot be
    /// decoded is told of and left out.
    pub fn add_files(&self, paths: &[Utf8PathBuf], options: &AddOptions, progress: &Progress) -> Result<Added> {
        let mut added = Added::default();
        let found = match find_videos(paths, progress) {
            Err(MediaError::Stopped(_)) => return Ok(added),
            found => found?,
        };
        let mut known = Known::of(self.engine().videos()?);
        progress.phase("embedding", found.videos.len() + found.left_out.len());
        for one in found.left_out {
            added.failed(&one.what, &one.problem, progress);
            let _ = progress.advance(1);
        }
        for file in &found.videos {
            if progress.is_stopped() {
                break;
            }
            match self.add_file(file, options, &mut known, progress) {
                Ok((entry, became, moments)) => {
                    added.moments += moments;
                    let one = AddedVideo { video: entry.id.to_string(), became, partial: entry.partial };
                    added.note(one, progress);
                }
                Err(OfOne::Index(error)) => return Err(error),
                // It was stopped in the middle of this one, which says nothing about it.
                Err(OfOne::Video(_)) if progress.is_stopped() => break,
                Err(OfOne::Video(error @ SearchError::Media(MediaError::Program { .. }))) => return Err(error),
                Err(OfOne::Video(error)) => added.failed(file.path.as_str(), &whole_message(&error), progress),
            }
            let _ = progress.advance(1);
        }
        Ok(added)
    }

    fn add_file(
        &self,
        file: &VideoFile,
        options: &AddOptions,
        known: &mut Known,
        progress: &Progress,
    ) -> Result<(VideoEntry, Became, usize), OfOne> {
        let (path, id) = (&file.path, known.name(file));
        let stamp = Stamp::of(path).map_err(|error| OfOne::Video(error.into()))?;
        let earlier = known.by_id.get(&id);
        let mut tags: BTreeSet<String> = options.tags.iter().cloned().collect();
        tags.extend(earlier.into_iter().flat_map(|entry| entry.tags.iter().cloned()));
        let tags: Vec<String> = tags.into_iter().collect();
        if let Some(earlier) = earlier.filter(|entry| entry.stamp() == stamp && entry.path.as_ref() == Some(path)) {
            let mut entry = earlier.clone();
            if entry.tags != tags || entry.state != VideoState::Present {
                (entry.tags, entry.state) = (tags, VideoState::Present);
                self.engine().note(&id, entry.state, &entry.tags).map_err(OfOne::Index)?;
                known.insert(entry.clone());
            }
            return Ok((entry, Became::Unchanged, 0));
        }
        let became = if earlier.is_some() { Became::Changed } else { Became::New };
        let embedded = self.encoder().video(&id, Some(path), progress).map_err(OfOne::Video)?;
        // What lies under the name by now may be another film, or more of it: then this is not what was embedded.
        if Stamp::of(path).ok() != Some(stamp) {
            return Err(OfOne::Video(MediaError::Changed { path: path.clone() }.into()));
        }
        let entry = VideoEntry {
            id,
            path: Some(path.clone()),
            duration: embedded.duration,
            bytes: stamp.bytes,
            modified: stamp.modified,
            tags,
            state: VideoState::Present,
            partial: embedded.partial,
        };
        self.engine().put(&entry, &embedded.moments).map_err(OfOne::Index)?;
        known.insert(entry.clone());
        Ok((entry, became, embedded.moments.len()))
    }

    /// Adds videos by their stored features, without files: they can be found but not played. They are embedded side by
    /// side, some at a time; each is safe once `progress` counts it.
    ///
    /// # Errors
    /// As [`Index::add_files`].
    pub fn add_stored(&self, videos: &[VideoId], options: &AddOptions, progress: &Progress) -> Result<Added> {
        let tags: Vec<String> = options.tags.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
        let known: FxHashSet<VideoId> = self.engine().videos()?.into_iter().map(|entry| entry.id).collect();
        let mut added = Added::default();
        progress.phase("embedding", videos.len());
        for batch in videos.chunks(TOGETHER) {
            if progress.is_stopped() {
                break;
            }
            let embedded: Vec<_> = batch
                .par_iter()
                .map(|id| {
                    let of_video = |EmbeddedVideo { duration, moments, partial }| {
                        let (id, tags, state) = (id.clone(), tags.clone(), VideoState::Present);
                        let (path, bytes, modified) = (None, 0, 0);
                        (VideoEntry { id, path, duration, bytes, modified, tags, state, partial }, moments)
                    };
                    (!known.contains(id)).then(|| self.encoder().video(id, None, progress).map(of_video))
                })
                .collect();
            // What came out well is safe before anything is told of it.
            let (mut became, mut good) = (Vec::with_capacity(batch.len()), Vec::new());
            for video in embedded {
                became.push(match video {
                    None => Became::Unchanged,
                    Some(Err(error)) => Became::Failed { reason: whole_message(&error) },
                    Some(Ok(video)) => {
                        good.push(video);
                        Became::New
                    }
                });
            }
            self.engine().put_all(&good)?;
            added.moments += good.iter().map(|(_, moments)| moments.len()).sum::<usize>();
            for (id, became) in batch.iter().zip(became) {
                added.note(AddedVideo { video: id.to_string(), became, partial: None }, progress);
                let _ = progress.advance(1);
            }
        }
        Ok(added)
    }
}

/// Whose fault it is that one file could not be added.
enum OfOne {
    /// The file's, or its encoder's: others may do better.
    Video(SearchError),
    /// The index cannot be written: nothing more can be added.
    Index(SearchError),
}

/// The videos of an index, by name and by file.
struct Known {
    by_id: FxHashMap<VideoId, VideoEntry>,
    by_path: FxHashMap<Utf8PathBuf, VideoId>,
}

impl Known {
    fn of(entries: Vec<VideoEntry>) -> Self {
        let mut known = Self { by_id: FxHashMap::default(), by_path: FxHashMap::default() };
        entries.into_iter().for_each(|entry| known.insert(entry));
        known
    }

    fn insert(&mut self, entry: VideoEntry) {
        if let Some(path) = &entry.path {
            self.by_path.insert(path.clone(), entry.id.clone());
        }
        self.by_id.insert(entry.id.clone(), entry);
    }

    /// A file keeps the name that it was indexed under; a new one whose name is another's gets a number behind it.
    fn name(&self, file: &VideoFile) -> VideoId {
        if let Some(id) = self.by_path.get(&file.path) {
            return id.clone();
        }
        VideoId::new(free_name(file.video.as_str(), |name| self.by_id.contains_key(&VideoId::new(name))))
    }
}
