//! Adding one film: what is known of it is kept, the rest is embedded and read.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Line, Progress, Track, VideoId, whole_message};
use cuemark_media::{MediaError, Stamp, VideoFile, content_digest, free_name};
use rustc_hash::FxHashMap;

use crate::encoder::EmbeddedVideo;
use crate::words::Lines;
use crate::{AddOptions, Became, Index, Result, SearchError, TrackRead, VideoEntry, VideoState};

/// What became of one film.
pub(crate) struct Done {
    pub(crate) entry: VideoEntry,
    pub(crate) became: Became,
    /// Moments and lines that were added.
    pub(crate) moments: usize,
    pub(crate) lines: usize,
}

/// Whose fault it is that one file could not be added.
pub(crate) enum OfOne {
    /// The file's, or its encoder's: others may do better.
    Video(SearchError),
    /// The index cannot be written: nothing more can be added.
    Index(SearchError),
}

/// A source of lines that has something to read a film from.
struct Reading<'a> {
    lines: &'a dyn Lines,
    from: String,
}

impl Reading<'_> {
    /// Whether a video's lines were read from the same already.
    fn is_done(&self, entry: &VideoEntry) -> bool {
        entry.tracks.iter().any(|read| read.track == self.lines.track() && read.from == self.from)
    }
}

impl Index {
    pub(crate) fn add_file(
        &self,
        file: &VideoFile,
        options: &AddOptions,
        known: &mut Known,
        progress: &Progress,
    ) -> Result<Done, OfOne> {
        let path = &file.path;
        let of_video = |error: MediaError| OfOne::Video(error.into());
        let stamp = Stamp::of(path).map_err(of_video)?;
        let film = progress.part(path.file_name().unwrap_or_default());
        let done = match known.at(path).filter(|entry| entry.stamp() == stamp).cloned() {
            Some(same) => self.keep(&same, file, (stamp, None), options, &film)?,
            None => {
                let digest = content_digest(path).map_err(of_video)?;
                match known.again(path, stamp, &digest).cloned() {
                    Some(again) => self.keep(&again, file, (stamp, Some(digest)), options, &film)?,
                    None => self.embed(file, known, (stamp, digest), options, &film)?,
                }
            }
        };
        known.insert(done.entry.clone());
        Ok(done)
    }

    /// A film whose moments are there already: notes what else has changed about it, and reads words that are new.
    fn keep(
        &self,
        earlier: &VideoEntry,
        file: &VideoFile,
        (stamp, digest): (Stamp, Option<String>),
        options: &AddOptions,
        progress: &Progress,
    ) -> Result<Done, OfOne> {
        let mut entry = earlier.clone();
        (entry.tags, entry.state) = (tags(options, Some(earlier)), VideoState::Present);
        (entry.path, entry.bytes, entry.modified) = (Some(file.path.clone()), stamp.bytes, stamp.modified);
        entry.digest = digest.or(entry.digest);
        let became = match &earlier.path {
            Some(from) if *from != file.path => Became::Moved { from: from.clone() },
            _ => Became::Unchanged,
        };
        let mut stale = self.readings(&file.path);
        stale.retain(|reading| !reading.is_done(earlier));
        if stale.is_empty() {
            let noted = VideoEntry { tags: entry.tags.clone(), state: entry.state, ..earlier.clone() };
            if entry != noted {
                self.engine().amend(&entry, None).map_err(OfOne::Index)?;
            } else if entry != *earlier {
                self.engine().note(&entry.id, entry.state, &entry.tags).map_err(OfOne::Index)?;
            }
            return Ok(Done { entry, became, moments: 0, lines: 0 });
        }
        let anew: Vec<Track> = stale.iter().map(|reading| reading.lines.track()).collect();
        let mut lines = self.engine().lines(&entry.id).map_err(OfOne::Index)?.unwrap_or_default();
        lines.retain(|(track, _)| !anew.contains(track));
        entry.tracks.retain(|read| !anew.contains(&read.track));
        let (read, tracks) = read_lines(&stale, &file.path, progress)?;
        let new = read.len();
        lines.extend(read);
        entry.tracks.extend(tracks);
        check_same(&file.path, stamp)?;
        self.engine().amend(&entry, Some(&lines)).map_err(OfOne::Index)?;
        let became = if became == Became::Unchanged { Became::Changed } else { became };
        Ok(Done { entry, became, moments: 0, lines: new })
    }

    /// A film that is new, or another than it was.
    fn embed(
        &self,
        file: &VideoFile,
        known: &Known,
        (stamp, digest): (Stamp, String),
        options: &AddOptions,
        progress: &Progress,
    ) -> Result<Done, OfOne> {
        let (path, id) = (&file.path, known.name(file));
        let earlier = known.by_id.get(&id);
        let became = if earlier.is_some() { Became::Changed } else { Became::New };
        let tags = tags(options, earlier);
        // What is not here for one film is not here for any.
        self.encoder().prepare().map_err(OfOne::Index)?;
        // Each track leaves a core idle now and then, so they are read side by side; progress is told of the pictures, which take longest.
        // To find out what there is to read takes a while as well.
        let (read, seen) = std::thread::scope(|scope| {
            let reading = scope.spawn(|| read_lines(&self.readings(path), path, progress));
            let seen = self.encoder().video(&id, Some(path), progress);
            (joined(reading), seen)
        });
        let (lines, mut tracks) = read?;
        let embedded = match seen {
            Ok(embedded) => embedded,
            // A film without pictures may be found by its words, unless what failed would fail for every film.
            Err(error) if lines.is_empty() || progress.is_stopped() || is_of_all(&error) => {
                return Err(OfOne::Video(error));
            }
            Err(error) => {
                let problem = Some(whole_message(&error));
                let from = self.encoder().name().to_owned();
                tracks.insert(0, TrackRead { track: Track::Seen, from, lines: 0, problem });
                let duration = lines.iter().map(|(_, line)| line.span.end()).fold(0.0, f64::max);
                EmbeddedVideo { duration, moments: Vec::new(), partial: None }
            }
        };
        check_same(path, stamp)?;
        let entry = VideoEntry {
            path: Some(path.clone()),
            bytes: stamp.bytes,
            modified: stamp.modified,
            tags,
            partial: embedded.partial,
            digest: Some(digest),
            tracks,
            ..VideoEntry::without_file(id, embedded.duration)
        };
        self.engine().put_with_words(&entry, &embedded.moments, &lines).map_err(OfOne::Index)?;
        Ok(Done { entry, became, moments: embedded.moments.len(), lines: lines.len() })
    }

    /// The first source of each track that has something to read a film from; none where the engine keeps no words.
    fn readings(&self, film: &Utf8Path) -> Vec<Reading<'_>> {
        let mut readings: Vec<Reading<'_>> = Vec::new();
        if !self.engine().keeps_words() {
            return readings;
        }
        for lines in self.sources() {
            if readings.iter().any(|reading| reading.lines.track() == lines.track()) {
                continue;
            }
            if let Some(from) = lines.source(film) {
                readings.push(Reading { lines: &**lines, from });
            }
        }
        readings
    }
}

/// Lines by track, and what became of each track.
type ReadLines = (Vec<(Track, Line)>, Vec<TrackRead>);

/// What a thread gives back; its panic goes on here.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The lines of every reading, side by side, and what became of each. One that fails costs its track only.
fn read_lines(readings: &[Reading<'_>], film: &Utf8Path, progress: &Progress) -> Result<ReadLines, OfOne> {
    let (mut all, mut tracks) = (Vec::new(), Vec::new());
    let of_each: Vec<_> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for Reading { lines, .. } in readings {
            let (lines, part) = (*lines, progress.part(lines.track().name()));
            threads.push(scope.spawn(move || lines.of(film, &part)));
        }
        threads.into_iter().map(joined).collect()
    });
    progress.check().map_err(|stopped| OfOne::Video(stopped.into()))?;
    for (Reading { lines, from }, read) in readings.iter().zip(of_each) {
        let (track, from) = (lines.track(), from.clone());
        let (lines, problem) = match read {
            Ok(lines) => (lines, None),
            Err(error) => (Vec::new(), Some(whole_message(&*error))),
        };
        tracks.push(TrackRead { track, from, lines: lines.len(), problem });
        all.extend(lines.into_iter().map(|line| (track, line)));
    }
    Ok((all, tracks))
}

/// Refuses a film that is another by now, or more of it: then this is not what was read.
fn check_same(path: &Utf8Path, stamp: Stamp) -> Result<(), OfOne> {
    if Stamp::of(path).ok() == Some(stamp) {
        return Ok(());
    }
    Err(OfOne::Video(MediaError::Changed { path: path.to_owned() }.into()))
}

/// Whether every film would fail in this way.
fn is_of_all(error: &SearchError) -> bool {
    matches!(
        error,
        SearchError::Media(MediaError::Program { .. } | MediaError::Changed { .. }) | SearchError::Stopped(_)
    )
}

/// What a video had, and what is to be added.
fn tags(options: &AddOptions, earlier: Option<&VideoEntry>) -> Vec<String> {
    let mut tags: BTreeSet<String> = options.tags.iter().cloned().collect();
    tags.extend(earlier.into_iter().flat_map(|entry| entry.tags.iter().cloned()));
    tags.into_iter().collect()
}

/// The videos of an index, by name, by file and by content.
pub(crate) struct Known {
    by_id: FxHashMap<VideoId, VideoEntry>,
    by_path: FxHashMap<Utf8PathBuf, VideoId>,
    by_digest: FxHashMap<String, Vec<VideoId>>,
}

impl Known {
    pub(crate) fn of(entries: Vec<VideoEntry>) -> Self {
        let mut known =
            Self { by_id: FxHashMap::default(), by_path: FxHashMap::default(), by_digest: FxHashMap::default() };
        entries.into_iter().for_each(|entry| known.insert(entry));
        known
    }

    fn insert(&mut self, entry: VideoEntry) {
        if let Some(earlier) = self.by_id.get(&entry.id).and_then(|earlier| earlier.path.as_ref()) {
            self.by_path.remove(earlier);
        }
        if let Some(path) = &entry.path {
            self.by_path.insert(path.clone(), entry.id.clone());
        }
        if let Some(digest) = &entry.digest {
            let of_digest = self.by_digest.entry(digest.clone()).or_default();
            if !of_digest.contains(&entry.id) {
                of_digest.push(entry.id.clone());
            }
        }
        self.by_id.insert(entry.id.clone(), entry);
    }

    /// The video whose file lies there.
    fn at(&self, path: &Utf8Path) -> Option<&VideoEntry> {
        self.by_path.get(path).and_then(|id| self.by_id.get(id))
    }

    /// The video that this film is: the one that lies there, when only its time has changed, or one whose own file is gone.
    fn again(&self, path: &Utf8Path, stamp: Stamp, digest: &str) -> Option<&VideoEntry> {
        let same = |entry: &&VideoEntry| entry.bytes == stamp.bytes && entry.digest.as_deref() == Some(digest);
        if let Some(here) = self.at(path) {
            return Some(here).filter(same);
        }
        let is_gone = |entry: &&VideoEntry| entry.path.as_ref().is_some_and(|path| !path.is_file());
        self.by_digest.get(digest)?.iter().filter_map(|id| self.by_id.get(id)).filter(same).find(is_gone)
    }

    /// A file keeps the name that it was indexed under; a new one whose name is another's gets a number behind it.
    fn name(&self, file: &VideoFile) -> VideoId {
        if let Some(id) = self.by_path.get(&file.path) {
            return id.clone();
        }
        VideoId::new(free_name(file.video.as_str(), |name| self.by_id.contains_key(&VideoId::new(name))))
    }
}
