//! Adding videos to an index: by their files, or by features that are stored already.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use cuemark_core::{Progress, VideoId, printable, whole_message};
use cuemark_media::{MediaError, Partial, find_videos};
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::encoder::EmbeddedVideo;
use crate::one_film::{Done, Known, OfOne};
use crate::{Index, Result, SearchError, TrackRead, VideoEntry, VideoState};

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
    /// Its file has changed and it was embedded again, or what is said and written in it was read anew.
    Changed,
    /// It is there already, as it is.
    Unchanged,
    /// Its file was moved or renamed: it keeps its name in the index, and nothing had to be embedded again.
    Moved {
        /// Where the file lay before.
        from: Utf8PathBuf,
    },
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
    /// What was read of its words, and which of its tracks could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracks: Vec<TrackRead>,
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
    /// Videos whose file was moved or renamed.
    #[serde(default)]
    pub moved: usize,
    /// Of all these, videos that could be read only in part.
    pub partial: usize,
    /// Videos that could not be added.
    pub failed: usize,
    /// Moments that were added.
    pub moments: usize,
    /// Lines of what is said and written that were added.
    #[serde(default)]
    pub lines: usize,
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
        let failed = one.tracks.iter().filter_map(|read| Some((read, read.problem.as_ref()?)));
        for (read, problem) in failed.filter(|_| one.became != Became::Unchanged) {
            let track = read.track.name();
            progress.say(format!("in part: {shown}: not {track} ({}): {}", printable(&read.from), printable(problem)));
        }
        match one.became {
            Became::New => self.new += 1,
            Became::Changed => self.changed += 1,
            Became::Unchanged => self.unchanged += 1,
            Became::Moved { .. } => self.moved += 1,
            Became::Failed { .. } => self.failed += 1,
        }
        self.partial += usize::from(one.partial.is_some());
        self.videos.push(one);
    }

    fn failed(&mut self, what: &str, reason: &str, progress: &Progress) {
        // Most messages begin with the file, which stands beside them here.
        let reason = reason.strip_prefix(&format!("{what}: ")).unwrap_or(reason).to_owned();
        self.note(
            AddedVideo { video: what.to_owned(), became: Became::Failed { reason }, partial: None, tracks: Vec::new() },
            progress,
        );
    }
}

impl Index {
    /// Adds video files, and every video file below folders ([`find_videos`] says which and how they are called); a video known
    /// already is embedded again only when its file has changed, by its content: one that was moved, renamed or touched is known
    /// again. What is said and written is read from the index's sources ([`Index::reading`]) and is safe together with the
    /// moments. Each video is safe once `progress` counts it; the one that is being read is a part of `progress` that counts
    /// **seconds of film**. When the work is stopped, what was added by then is returned.
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
                Ok(Done { entry, became, moments, lines }) => {
                    added.moments += moments;
                    added.lines += lines;
                    let (video, partial, tracks) = (entry.id.to_string(), entry.partial, entry.tracks);
                    added.note(AddedVideo { video, became, partial, tracks }, progress);
                }
                Err(OfOne::Index(error)) => return Err(error),
                // It was stopped in the middle of this one, which says nothing about it.
                Err(OfOne::Video(_)) if progress.is_stopped() => break,
                Err(OfOne::Video(error @ SearchError::Media(MediaError::Program { .. }))) => return Err(error),
                Err(OfOne::Video(error)) => added.failed(file.path.as_str(), &whole_message(&error), progress),
            }
            let _ = progress.advance(1);
        }
        // The films are safe by now; what their lines mean can be made again from them at any time.
        if let Err(error) = self.settle_meanings(progress)
            && !progress.is_stopped()
        {
            progress.say(format!("what is said is found by its words alone: {}", whole_message(&error)));
        }
        Ok(added)
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
                        let (digest, tracks) = (None, Vec::new());
                        (
                            VideoEntry { id, path, duration, bytes, modified, tags, state, partial, digest, tracks },
                            moments,
                        )
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
                added.note(AddedVideo { video: id.to_string(), became, partial: None, tracks: Vec::new() }, progress);
                let _ = progress.advance(1);
            }
        }
        Ok(added)
    }
}
