//! Which files are videos.

use std::fs::Metadata;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Progress;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::names::{VideoFile, name_all};
use crate::{MediaError, Result};

/// What the names of a folder's videos end in, in any case; files that are named themselves may end in anything.
pub const ENDINGS: [&str; 16] =
    ["mp4", "m4v", "mov", "mkv", "webm", "avi", "mpg", "mpeg", "ts", "mts", "m2ts", "wmv", "flv", "3gp", "ogv", "mxf"];

/// The most files and folders that are looked at in one go.
const ENTRIES: usize = 5_000_000;
/// The most videos that are found in one go.
const VIDEOS: usize = 1_000_000;

/// What is below some folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundVideos {
    /// Videos, sorted by name; no file twice.
    pub videos: Vec<VideoFile>,
    /// What looks like a video, or was named, and is none, in the order found.
    pub left_out: Vec<LeftOut>,
}

/// Something that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its path; what is not UTF-8 in it is shown as �.
    pub what: String,
    /// Why.
    pub problem: String,
}

/// The videos among `paths` and below those that are folders, as deep as they go, and what each is called.
///
/// - A path that is given may be a link; links *below* a folder are not followed: what they point at inside the folders given is
///   found there anyway, and what lies outside was not given. So no folder is visited twice; should one be mounted twice, it is
///   visited once all the same.
/// - Only regular files are videos: no pipe, no device.
/// - A folder that may not be read, a name that is not UTF-8, a path that is not there: left out and told of.
///
/// # Errors
/// When there are more than five million files or a million videos, or the work was stopped.
pub fn find_videos(paths: &[Utf8PathBuf], progress: &Progress) -> Result<FoundVideos> {
    progress.phase("looking for videos", 0);
    let mut walk = Walk {
        progress,
        roots: Vec::new(),
        seen: FxHashSet::default(),
        entries: 0,
        files: Vec::new(),
        left_out: Vec::new(),
    };
    let mut given = Vec::new();
    for path in paths {
        match path.canonicalize_utf8().and_then(|whole| Ok((std::fs::metadata(&whole)?, whole))) {
            Ok(one) => given.push(one),
            Err(error) => walk.leave_out(path.as_str(), format!("cannot be read: {error}")),
        }
    }
    walk.roots = given.iter().map(|(_, path)| path.clone()).collect();
    for (data, path) in given {
        let (files, left_out) = (walk.files.len(), walk.left_out.len());
        if data.is_dir() {
            let looked = walk.folder(path.clone(), &data)?;
            if looked && (files, left_out) == (walk.files.len(), walk.left_out.len()) {
                let problem = format!("no video in this folder: names of videos end in {}", ENDINGS.join(", "));
                walk.leave_out(path.as_str(), problem);
            }
        } else if data.is_file() {
            walk.files.push(path);
        } else {
            walk.leave_out(path.as_str(), "is no regular file".to_owned());
        }
    }
    Ok(FoundVideos { videos: name_all(walk.files), left_out: walk.left_out })
}

struct Walk<'a> {
    progress: &'a Progress,
    roots: Vec<Utf8PathBuf>,
    seen: FxHashSet<Identity>,
    entries: usize,
    files: Vec<Utf8PathBuf>,
    left_out: Vec<LeftOut>,
}

impl Walk<'_> {
    fn leave_out(&mut self, what: &str, problem: String) {
        self.left_out.push(LeftOut { what: what.to_owned(), problem });
    }

    /// Everything below one folder. Returns whether it was looked at: one that was seen before is not.
    fn folder(&mut self, top: Utf8PathBuf, data: &Metadata) -> Result<bool> {
        if !self.seen.insert(identity(&top, data)) {
            return Ok(false);
        }
        let mut waiting = vec![top];
        while let Some(folder) = waiting.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.leave_out(folder.as_str(), format!("this folder cannot be read: {error}"));
                    continue;
                }
            };
            for entry in entries {
                self.count(&folder)?;
                // A folder that breaks off in the middle of its list gives what it has.
                let Ok(entry) = entry else { break };
                self.entry(&entry, &mut waiting);
            }
        }
        Ok(true)
    }

    fn count(&mut self, folder: &Utf8Path) -> Result<()> {
        self.progress.advance(1)?;
        self.entries += 1;
        let bounds = [(self.entries, ENTRIES, "files"), (self.files.len(), VIDEOS, "videos")];
        match bounds.into_iter().find(|(count, most, _)| count > most) {
            Some((_, most, what)) => Err(MediaError::TooMany { path: folder.to_owned(), most, what }),
            None => Ok(()),
        }
    }

    fn entry(&mut self, entry: &std::fs::DirEntry, waiting: &mut Vec<Utf8PathBuf>) {
        let lossy = entry.path().to_string_lossy().into_owned();
        let Ok(kind) = entry.file_type() else { return };
        let looks_like_video = has_video_ending(Utf8Path::new(&lossy));
        let Ok(path) = Utf8PathBuf::from_path_buf(entry.path()) else {
            if looks_like_video || kind.is_dir() {
                self.leave_out(&lossy, "its name is not UTF-8".to_owned());
            }
            return;
        };
        if kind.is_dir() {
            match entry.metadata() {
                Ok(data) if self.seen.insert(identity(&path, &data)) => waiting.push(path),
                Ok(_) => {}
                Err(error) => self.leave_out(path.as_str(), format!("this folder cannot be read: {error}")),
            }
        } else if kind.is_symlink() {
            match path.canonicalize_utf8() {
                Ok(target) if self.roots.iter().any(|root| target.starts_with(root)) => {}
                Ok(target) if looks_like_video || target.is_dir() => {
                    self.leave_out(
                        path.as_str(),
                        "is a link out of the folders given: name what it points at".to_owned(),
                    );
                }
                Err(_) if looks_like_video => self.leave_out(path.as_str(), "is a link to nothing".to_owned()),
                _ => {}
            }
        } else if looks_like_video && kind.is_file() {
            self.files.push(path);
        } else if looks_like_video {
            self.leave_out(path.as_str(), "is no regular file".to_owned());
        }
    }
}

fn has_video_ending(path: &Utf8Path) -> bool {
    path.extension().is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}

/// What tells folders apart however they are reached.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = Utf8PathBuf;

#[cfg(unix)]
fn identity(_path: &Utf8Path, data: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (data.dev(), data.ino())
}

#[cfg(not(unix))]
fn identity(path: &Utf8Path, _data: &Metadata) -> Identity {
    path.to_owned()
}
