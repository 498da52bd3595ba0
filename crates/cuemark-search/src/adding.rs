//! Adding videos to an index: by their files, or by features that are stored already.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::VideoId;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::encoder::EmbeddedVideo;
use crate::video::Stamp;
use crate::{Index, Result, SearchError, VideoEntry, VideoState, media};

/// Videos that are embedded side by side and wait for the disk together.
const TOGETHER: usize = 16;

/// What to add and how.
#[derive(Debug, Clone, Default)]
pub struct AddOptions {
    /// Tags that every added video gets.
    pub tags: Vec<String>,
}

/// What became of one video.
#[derive(Debug)]
pub enum Adding<'a> {
    /// It is new.
    New(&'a VideoEntry),
    /// Its file has changed and it was embedded again.
    Changed(&'a VideoEntry),
    /// It is there already, as it is.
    Unchanged(&'a VideoId),
    /// It could not be added.
    Failed {
        /// What was tried.
        what: &'a str,
        /// Why not.
        error: SearchError,
    },
}

/// What was added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Added {
    /// New videos.
    pub new: usize,
    /// Videos whose file had changed.
    pub changed: usize,
    /// Videos that were there already, as they are.
    pub unchanged: usize,
    /// Videos that could not be added.
    pub failed: usize,
    /// Moments that were added.
    pub moments: usize,
}

impl Index {
    /// Adds video files, and every video file below folders; a video known already is embedded again only when its file
    /// has changed. Each video is safe once `told` hears of it; `stop` is asked between videos.
    ///
    /// # Errors
    /// When the index cannot be written. A video that cannot be decoded is told of and left out.
    pub fn add_files(
        &self,
        paths: &[Utf8PathBuf],
        options: &AddOptions,
        told: &mut dyn FnMut(usize, usize, Adding),
        stop: &dyn Fn() -> bool,
    ) -> Result<Added> {
        let files = files_below(paths)?;
        let mut known: FxHashMap<VideoId, VideoEntry> =
            self.engine().videos()?.into_iter().map(|entry| (entry.id.clone(), entry)).collect();
        let mut added = Added::default();
        for (number, file) in files.iter().enumerate() {
            if stop() {
                break;
            }
            match self.add_file(file, options, &mut known)? {
                AddedOne::Put { entry, became, moments } => {
                    let adding = match became {
                        Became::New => Adding::New(&entry),
                        Became::Changed => Adding::Changed(&entry),
                        Became::Unchanged => Adding::Unchanged(&entry.id),
                    };
                    added.count(&adding, moments);
                    told(number + 1, files.len(), adding);
                }
                AddedOne::Failed(error) => {
                    added.failed += 1;
                    told(number + 1, files.len(), Adding::Failed { what: file.as_str(), error });
                }
            }
        }
        Ok(added)
    }

    fn add_file(
        &self,
        file: &Utf8Path,
        options: &AddOptions,
        known: &mut FxHashMap<VideoId, VideoEntry>,
    ) -> Result<AddedOne> {
        let path = match file.canonicalize_utf8() {
            Ok(path) => path,
            Err(error) => return Ok(AddedOne::Failed(SearchError::io("open", file)(error))),
        };
        let id = free_id(&path, known);
        let stamp = match Stamp::of(&path) {
            Ok(stamp) => stamp,
            Err(error) => return Ok(AddedOne::Failed(error)),
        };
        let earlier = known.get(&id);
        let mut tags: BTreeSet<String> = options.tags.iter().cloned().collect();
        tags.extend(earlier.into_iter().flat_map(|entry| entry.tags.iter().cloned()));
        let tags: Vec<String> = tags.into_iter().collect();
        if let Some(earlier) = earlier.filter(|entry| entry.stamp() == stamp && entry.path.as_ref() == Some(&path)) {
            let mut entry = earlier.clone();
            if entry.tags != tags || entry.state != VideoState::Present {
                (entry.tags, entry.state) = (tags, VideoState::Present);
                self.engine().note(&id, entry.state, &entry.tags)?;
                known.insert(id, entry.clone());
            }
            return Ok(AddedOne::Put { entry, became: Became::Unchanged, moments: 0 });
        }
        let became = if earlier.is_some() { Became::Changed } else { Became::New };
        let embedded = match self.encoder().video(&id, Some(&path)) {
            Ok(embedded) => embedded,
            Err(error) => return Ok(AddedOne::Failed(error)),
        };
        let entry = VideoEntry {
            id: id.clone(),
            path: Some(path),
            duration: embedded.duration,
            bytes: stamp.bytes,
            modified: stamp.modified,
            tags,
            state: VideoState::Present,
        };
        self.engine().put(&entry, &embedded.moments)?;
        known.insert(id, entry.clone());
        Ok(AddedOne::Put { entry, became, moments: embedded.moments.len() })
    }

    /// Adds videos by their stored features, without files: they can be found but not played. They are embedded side by
    /// side, some at a time; each is safe once `told` hears of it.
    ///
    /// # Errors
    /// As [`Index::add_files`].
    pub fn add_stored(
        &self,
        videos: &[VideoId],
        options: &AddOptions,
        told: &mut dyn FnMut(usize, usize, Adding),
        stop: &dyn Fn() -> bool,
    ) -> Result<Added> {
        let tags: Vec<String> = options.tags.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
        let known: FxHashSet<VideoId> = self.engine().videos()?.into_iter().map(|entry| entry.id).collect();
        let mut added = Added::default();
        let mut number = 0;
        for batch in videos.chunks(TOGETHER) {
            if stop() {
                break;
            }
            let embedded: Vec<_> = batch
                .par_iter()
                .map(|id| {
                    let of_video = |EmbeddedVideo { duration, moments }| {
                        let (id, tags, state) = (id.clone(), tags.clone(), VideoState::Present);
                        (VideoEntry { id, path: None, duration, bytes: 0, modified: 0, tags, state }, moments)
                    };
                    (!known.contains(id)).then(|| self.encoder().video(id, None).map(of_video))
                })
                .collect();
            // What came out well is safe before anything is told of it.
            let (mut became, mut good) = (Vec::with_capacity(batch.len()), Vec::new());
            for video in embedded {
                became.push(match video {
                    None => Stored::Known,
                    Some(Err(error)) => Stored::Failed(error),
                    Some(Ok(video)) => {
                        good.push(video);
                        Stored::New
                    }
                });
            }
            self.engine().put_all(&good)?;
            let mut good = good.iter();
            for (id, became) in batch.iter().zip(became) {
                number += 1;
                let adding = match (became, id.as_str()) {
                    (Stored::Failed(error), what) => {
                        added.failed += 1;
                        Adding::Failed { what, error }
                    }
                    (Stored::New, _) => {
                        let Some((entry, moments)) = good.next() else { continue };
                        added.count(&Adding::New(entry), moments.len());
                        Adding::New(entry)
                    }
                    (Stored::Known, _) => {
                        added.count(&Adding::Unchanged(id), 0);
                        Adding::Unchanged(id)
                    }
                };
                told(number, videos.len(), adding);
            }
        }
        Ok(added)
    }
}

/// What became of one file; errors of the engine are not among it.
enum AddedOne {
    Put { entry: VideoEntry, became: Became, moments: usize },
    Failed(SearchError),
}

/// What became of a video that was added by its stored features.
enum Stored {
    New,
    Known,
    Failed(SearchError),
}

enum Became {
    New,
    Changed,
    Unchanged,
}

impl Added {
    fn count(&mut self, adding: &Adding, moments: usize) {
        match adding {
            Adding::New(_) => self.new += 1,
            Adding::Changed(_) => self.changed += 1,
            Adding::Unchanged(_) => self.unchanged += 1,
            Adding::Failed { .. } => self.failed += 1,
        }
        self.moments += moments;
    }
}

/// The file's name without its extension; with a number behind it when another file has that name already.
fn free_id(path: &Utf8Path, known: &FxHashMap<VideoId, VideoEntry>) -> VideoId {
    let stem = path.file_stem().unwrap_or("video");
    let mut id = VideoId::new(stem);
    let mut number = 2;
    while known.get(&id).is_some_and(|entry| entry.path.as_deref() != Some(path)) {
        id = VideoId::new(format!("{stem}-{number}"));
        number += 1;
    }
    id
}

/// Files as given, and every video file below folders, sorted.
fn files_below(paths: &[Utf8PathBuf]) -> Result<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut below = Vec::new();
            walk(path, 0, &mut below)?;
            below.sort();
            files.extend(below);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn walk(folder: &Utf8Path, depth: usize, files: &mut Vec<Utf8PathBuf>) -> Result<()> {
    // Deep enough for every collection; a limit, because links can make circles.
    if depth > 16 {
        return Ok(());
    }
    for entry in folder.read_dir_utf8().map_err(SearchError::io("list", folder))? {
        let entry = entry.map_err(SearchError::io("list", folder))?;
        let path = entry.into_path();
        if path.is_dir() {
            walk(&path, depth + 1, files)?;
        } else if path.extension().is_some_and(|found| media::EXTENSIONS.contains(&found.to_ascii_lowercase().as_str()))
        {
            files.push(path);
        }
    }
    Ok(())
}
