//! The engine that needs nothing else: a folder with a log and a graph.

use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8Path;
use cuemark_core::{Line, Progress, Span, Track, VideoId};
use cuemark_formats::Overwrite;
use rayon::prelude::*;

use super::disk::{Disk, RealDisk};
use super::following::{Followed, missing};
use super::graph::{self, Graph, GraphFile};
use super::log::{self, Encoded, Meta};
use super::snapshot::{Put, widen};
use super::writer::{self, Writer};
use super::{
    Compacted, Effort, Engine, EngineUrl, Fault, Hit, IndexedMoment, LOG, Nearest, Settling, Status, compact, create,
    evenly, limits, looking, rank,
};
use crate::manifest::LAYOUT;
use crate::words::{Inverted, Passages, Shelved, WordsAsked};
use crate::{Embedding, Filter, KeptFile, Manifest, Result, SearchError, VideoEntry, VideoState, kept};

/// Moments that are looked at one by one rather than put into a graph: that takes a third of a millisecond.
const FEW: usize = 4_000;
/// The same where a filter admits only some of them: a walk through a graph passes by the others in vain.
const FEW_ADMITTED: usize = 20_000;
/// Candidates that the graph proposes at least; they are scored again with the log's numbers.
const EXPANSION: usize = 256;

/// The engine that needs nothing else: a folder with a log and a graph. Many may read while one writes; what others commit is
/// seen by the next question that comes a quarter of a second later.
pub struct Embedded {
    index: Followed,
    writer: Mutex<Option<Writer>>,
    /// What makes words fast to find, from the first question for them on.
    words: Mutex<Option<Arc<Inverted>>>,
}

impl Embedded {
    /// Makes an empty engine in `folder`, without a manifest.
    ///
    /// # Errors
    /// When there is one already that holds anything and it may not be replaced, somebody is writing there, or the folder
    /// cannot be written.
    pub fn create(folder: &Utf8Path, width: usize, overwrite: Overwrite) -> Result<Self> {
        Self::create_on(Arc::new(RealDisk), folder, width, overwrite)
    }

    /// As [`Embedded::create`], on another disk.
    ///
    /// # Errors
    /// As [`Embedded::create`].
    pub fn create_on(disk: Arc<dyn Disk>, folder: &Utf8Path, width: usize, overwrite: Overwrite) -> Result<Self> {
        create::create_with(&*disk, folder, width, None, overwrite, std::iter::empty())?;
        Self::open_on(disk, folder)
    }

    /// Makes an empty engine in `folder` and the manifest that describes it, which is returned with the log's identity.
    ///
    /// # Errors
    /// As [`Embedded::create`], and when there is a manifest already and it may not be replaced.
    pub fn create_described(
        disk: Arc<dyn Disk>,
        folder: &Utf8Path,
        about: &Manifest,
        overwrite: Overwrite,
    ) -> Result<(Self, Manifest)> {
        Self::create_keeping(disk, folder, about, &[], overwrite)
    }

    /// As [`Embedded::create_described`], with files of the encoder that the index keeps.
    ///
    /// # Errors
    /// As [`Embedded::create_described`].
    pub fn create_keeping(
        disk: Arc<dyn Disk>,
        folder: &Utf8Path,
        about: &Manifest,
        files: &[KeptFile],
        overwrite: Overwrite,
    ) -> Result<(Self, Manifest)> {
        let about_and_files = Some((about, files));
        let written = create::create_with(&*disk, folder, about.width, about_and_files, overwrite, std::iter::empty())?;
        Ok((Self::open_on(disk, folder)?, written.unwrap_or_else(|| about.clone())))
    }

    /// Opens the engine in `folder`.
    ///
    /// # Errors
    /// When there is none, its manifest tells of another log, or the log cannot be read.
    pub fn open(folder: &Utf8Path) -> Result<Self> {
        Self::open_on(Arc::new(RealDisk), folder)
    }

    /// As [`Embedded::open`], on another disk.
    ///
    /// # Errors
    /// As [`Embedded::open`].
    pub fn open_on(disk: Arc<dyn Disk>, folder: &Utf8Path) -> Result<Self> {
        Ok(Self { index: Followed::open(disk, folder)?, writer: Mutex::default(), words: Mutex::default() })
    }

    /// Looks now whether another process has changed something, however short a time ago the last look was.
    ///
    /// # Errors
    /// When the log cannot be read any more.
    pub fn refresh(&self) -> Result<()> {
        self.index.refresh()
    }

    /// Bytes of memory that the graph takes when all of it is in use; 0 without one.
    pub fn graph_bytes(&self) -> u64 {
        self.index.state().ok().and_then(|state| state.graph.as_ref().map(|graph| graph.bytes())).unwrap_or(0)
    }

    /// Appends records as one batch and waits until they are on disk.
    fn append(&self, records: &[Encoded]) -> Result<()> {
        let mut guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = match guard.as_mut() {
            Some(writer) => writer,
            None => guard.insert(self.start_writing()?),
        };
        if records.iter().any(|record| record.header.words > 0) {
            self.announce_words()?;
        }
        let appended = writer.append(records);
        // Also after a failure: a batch for which only waiting failed may be there.
        self.index.wrote();
        if appended.is_err() {
            *guard = None;
        }
        appended
    }

    /// A video, its moments and its words as one record.
    fn record(&self, entry: &VideoEntry, moments: &[IndexedMoment], lines: &[(Track, Line)]) -> Result<Encoded> {
        let expected = self.width();
        if let Some(wrong) = moments.iter().find(|moment| moment.embedding.width() != expected) {
            return Err(SearchError::Width { expected, found: wrong.embedding.width() });
        }
        limits::check_moments(entry, moments.len())?;
        limits::check_lines(&entry.id, lines)?;
        let spans: Vec<[f64; 2]> = moments.iter().map(|moment| [moment.span.start(), moment.span.end()]).collect();
        let numbers: Vec<f32> = moments.iter().flat_map(|moment| moment.embedding.numbers()).copied().collect();
        Encoded::new(&Meta::Put(entry.clone()), &spans, &log::halves(&numbers), &log::words::encode(lines))
    }

    /// Says in the manifest that words may follow, before the first do: programs that do not know of them stay away.
    fn announce_words(&self) -> Result<()> {
        let (disk, folder) = (&*self.index.disk, &self.index.folder);
        match Manifest::read_on(disk, folder) {
            Ok(about) if about.layout < LAYOUT => Manifest { layout: LAYOUT, ..about }.write_on(disk, folder),
            _ => Ok(()),
        }
    }

    /// Derives a graph when that is worth it, and says whether it was; the one who calls this is the writer.
    fn derive(&self, how: Settling, progress: &Progress) -> Result<bool> {
        let state = self.index.state()?;
        let covered = state.graph.as_ref().map_or(0, |graph| graph.file.rows);
        let rest = state.snapshot.rows() - covered;
        let worth_it = match how {
            // A graph is written whole, so a large one waits for more.
            Settling::WhenWorthIt => rest > (covered / 10).clamp(FEW, FEW_ADMITTED),
            Settling::Fully => rest > 0,
            Settling::Anew => state.snapshot.rows() > 0,
        };
        if worth_it {
            let earlier = state.graph.as_deref().filter(|_| how != Settling::Anew);
            Graph::derive(&*self.index.disk, &self.index.folder, &state.snapshot, earlier, progress)?;
            self.index.wrote();
        }
        Ok(worth_it)
    }

    /// Becomes the one that writes, in the log that is at the path now.
    fn start_writing(&self) -> Result<Writer> {
        let lock = writer::take_lock(&*self.index.disk, &self.index.folder)?;
        writer::clear_unfinished(&*self.index.disk, &self.index.folder)?;
        let path = self.index.folder.join(LOG);
        let open = || self.index.disk.open_to_write(&path).map_err(missing(&self.index.folder, &path));
        let reading = self.index.reading();
        let mut log = open()?;
        self.index.read_again(&*log, &reading)?;
        if self.index.known().snapshot.head.old {
            // A log of the first version has no commits: it is written anew, whole, before anything is added.
            compact::replace(&*self.index.disk, &self.index.folder, &self.index.known().snapshot, &Progress::new())?;
            log = open()?;
            self.index.read_again(&*log, &reading)?;
            if let Ok(about) = Manifest::read_on(&*self.index.disk, &self.index.folder) {
                // Should this not come about, the manifest names no log, which is allowed.
                let log = Some(self.index.known().snapshot.identity());
                Manifest { layout: LAYOUT, log, ..about }.write_on(&*self.index.disk, &self.index.folder)?;
            }
        }
        drop(reading);
        Writer::start(Arc::clone(&self.index.disk), &self.index.folder, log, &self.index.known().snapshot, lock)
    }
}

impl Engine for Embedded {
    fn url(&self) -> EngineUrl {
        EngineUrl::File(self.index.folder.clone())
    }

    fn width(&self) -> usize {
        self.index.known().snapshot.width()
    }

    fn videos(&self) -> Result<Vec<VideoEntry>> {
        let state = self.index.state()?;
        let live = state.snapshot.puts.iter().filter(|put| put.live);
        let mut videos: Vec<VideoEntry> = live.map(|put| put.entry.clone()).collect();
        videos.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(videos)
    }

    fn video(&self, id: &VideoId) -> Result<Option<VideoEntry>> {
        Ok(self.index.state()?.snapshot.live(id).map(|put| put.entry.clone()))
    }

    fn put(&self, entry: &VideoEntry, moments: &[IndexedMoment]) -> Result<()> {
        self.append(&[self.record(entry, moments, &[])?])
    }

    fn keeps_words(&self) -> bool {
        true
    }

    fn put_with_words(&self, entry: &VideoEntry, moments: &[IndexedMoment], lines: &[(Track, Line)]) -> Result<()> {
        self.append(&[self.record(entry, moments, lines)?])
    }

    fn amend(&self, entry: &VideoEntry, lines: Option<&[(Track, Line)]>) -> Result<bool> {
        let state = self.index.state()?;
        let Some(put) = state.snapshot.live(&entry.id) else { return Ok(false) };
        let new = match lines {
            Some(lines) => {
                limits::check_lines(&entry.id, lines)?;
                Some(log::words::encode(lines))
            }
            None => None,
        };
        let words = new.as_deref().unwrap_or_else(|| state.snapshot.words(put));
        let damaged = |problem| {
            let offset = state.snapshot.offset(put);
            SearchError::Damaged { path: self.index.folder.join(LOG), offset, problem }
        };
        self.append(&[state.snapshot.record_as(put, entry, words).map_err(damaged)?])?;
        Ok(true)
    }

    fn lines(&self, id: &VideoId) -> Result<Option<Vec<(Track, Line)>>> {
        let state = self.index.state()?;
        let Some(put) = state.snapshot.live(id) else { return Ok(None) };
        let damaged = |problem| {
            let offset = state.snapshot.offset(put);
            SearchError::Damaged { path: self.index.folder.join(LOG), offset, problem }
        };
        log::words::decode(state.snapshot.words(put)).map(Some).map_err(damaged)
    }

    fn passages(&self, ask: &WordsAsked, filter: &Filter) -> Result<Passages> {
        let state = self.index.state()?;
        let snapshot = &state.snapshot;
        // A film whose words cannot be read has none; `verify` says so.
        let lines_of = |put: usize| {
            let put = snapshot.puts.get(put)?;
            log::words::decode(snapshot.words(put)).ok()
        };
        let inverted = {
            let mut inverted = self.words.lock().unwrap_or_else(PoisonError::into_inner);
            let films = snapshot.puts.iter().map(|put| Shelved {
                video: &put.entry.id,
                live: put.live,
                has_words: !snapshot.words(put).is_empty(),
            });
            let log = (snapshot.identity(), snapshot.generation());
            let followed = match inverted.take() {
                Some(known) => known.followed(log, films.collect(), &lines_of),
                None => Arc::new(Inverted::new(log, films.collect(), &lines_of)),
            };
            Arc::clone(inverted.insert(followed))
        };
        let admits = |put: usize| snapshot.puts.get(put).is_some_and(|put| put.is_found() && filter.admits(&put.entry));
        let mut found = inverted.passages(ask, &admits, &lines_of);
        found.passages.retain(|passage| filter.admits_span(passage.span));
        Ok(found)
    }

    fn put_all(&self, videos: &[(VideoEntry, Vec<IndexedMoment>)]) -> Result<()> {
        let records = videos.par_iter().map(|(entry, moments)| self.record(entry, moments, &[]));
        let records: Vec<Encoded> = records.collect::<Result<_>>()?;
        if records.is_empty() { Ok(()) } else { self.append(&records) }
    }

    fn note(&self, id: &VideoId, state: VideoState, tags: &[String]) -> Result<bool> {
        let Some(entry) = self.video(id)? else { return Ok(false) };
        let tags = tags.to_vec();
        // Compacting makes one record of the video and the note, which has to be one that can be read.
        let together = Meta::Put(VideoEntry { state, tags: tags.clone(), ..entry });
        Encoded::bare(&together)?;
        self.append(&[Encoded::bare(&Meta::Note { id: id.clone(), state, tags })?])?;
        Ok(true)
    }

    fn remove(&self, id: &VideoId) -> Result<bool> {
        if self.video(id)?.is_none() {
            return Ok(false);
        }
        self.append(&[Encoded::bare(&Meta::Remove { id: id.clone() })?])?;
        Ok(true)
    }

    fn settle(&self, how: Settling, progress: &Progress) -> Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_none() {
            *writer = Some(self.start_writing()?);
        }
        drop(writer);
        let derived = self.derive(how, progress);
        // Others may write now.
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = None;
        derived.map(drop)
    }

    fn compact(&self, progress: &Progress) -> Result<Compacted> {
        // Nobody else adds anything until the new log is there: the writer is kept for as long as this takes.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = match writer.take() {
            Some(writer) => writer,
            None => self.start_writing()?,
        };
        let before = self.index.state()?;
        let mut done = Compacted::default();
        if before.snapshot.waste() > 0 {
            compact::replace(&*self.index.disk, &self.index.folder, &before.snapshot, progress)?;
            self.index.wrote();
            done.freed = (before.snapshot.end as u64).saturating_sub(self.index.state()?.snapshot.end as u64);
            // Small collections are looked at one by one, as before.
            let how = if before.graph.is_some() { Settling::Anew } else { Settling::WhenWorthIt };
            if self.derive(how, progress)? {
                done.graph = Some(self.graph_bytes());
            }
        }
        drop(lock);
        Ok(done)
    }

    fn nearest(&self, query: &Embedding, ask: &Nearest) -> Result<Vec<Hit>> {
        let state = self.index.state()?;
        let snapshot = &state.snapshot;
        if query.width() != snapshot.width() {
            return Err(SearchError::Width { expected: snapshot.width(), found: query.width() });
        }
        let expansion = match ask.effort {
            Effort::Exact => return Ok(looking::look_at_all(snapshot, query, ask, 0)),
            Effort::Approximate => EXPANSION,
            Effort::Expansion(expansion) => expansion,
        };
        let admitted = |put: &&Put| put.is_found() && ask.filter.admits(&put.entry);
        let (candidates, few): (usize, usize) = if ask.filter.is_everywhere() {
            (snapshot.rows(), FEW)
        } else {
            (snapshot.puts.iter().filter(admitted).map(|put| put.rows).sum(), FEW_ADMITTED)
        };
        let Some(graph) = state.graph.as_ref().filter(|_| candidates > few) else {
            return Ok(looking::look_at_all(snapshot, query, ask, 0));
        };
        let mut hits = looking::through_graph(graph, &state, query, ask, expansion);
        if graph.file.rows < snapshot.rows() {
            hits.extend(looking::look_at_all(snapshot, query, ask, graph.file.rows));
        }
        rank(&mut hits, ask.count);
        Ok(hits)
    }

    fn moments(&self, id: &VideoId) -> Result<Option<Vec<IndexedMoment>>> {
        let state = self.index.state()?;
        let snapshot = &state.snapshot;
        let Some(put) = snapshot.live(id) else { return Ok(None) };
        let mut buffer = vec![0f32; snapshot.width()];
        let moment = |row: usize| {
            widen(snapshot.vector(row), &mut buffer);
            // A moment without direction was never put.
            Embedding::unit(buffer.clone()).map(|embedding| IndexedMoment { span: snapshot.span(put, row), embedding })
        };
        Ok(Some((put.first_row..put.first_row + put.rows).filter_map(moment).collect()))
    }

    fn scores(&self, id: &VideoId, query: &Embedding) -> Result<Option<Vec<(Span, f32)>>> {
        let state = self.index.state()?;
        let snapshot = &state.snapshot;
        let Some(put) = snapshot.live(id) else { return Ok(None) };
        let scores = looking::scores(snapshot.vectors(put), snapshot.width(), query);
        let rows = put.first_row..put.first_row + put.rows;
        Ok(Some(rows.map(|row| snapshot.span(put, row)).zip(scores).collect()))
    }

    fn embedding(&self, hit: &Hit) -> Result<Option<Embedding>> {
        let state = self.index.state()?;
        let snapshot = &state.snapshot;
        let Some(put) = snapshot.live(&hit.video) else { return Ok(None) };
        let mut rows = put.first_row..put.first_row + put.rows;
        let is_it = |row: &usize| snapshot.span(put, *row) == hit.span;
        let row = match hit.place {
            Some(place) => rows.nth(place).filter(is_it),
            None => rows.find(is_it),
        };
        let mut buffer = vec![0f32; snapshot.width()];
        Ok(row.and_then(|row| {
            widen(snapshot.vector(row), &mut buffer);
            Embedding::unit(buffer)
        }))
    }

    fn sample(&self, count: usize) -> Result<Vec<Embedding>> {
        let state = self.index.state()?;
        let snapshot = &state.snapshot;
        let found: Vec<&Put> = snapshot.puts.iter().filter(|put| put.is_found() && put.rows > 0).collect();
        let total: usize = found.iter().map(|put| put.rows).sum();
        let mut sample = Vec::with_capacity(count.min(total));
        let (mut place, mut before) = (0, 0);
        let mut buffer = vec![0f32; snapshot.width()];
        for wanted in evenly(count, total) {
            while found.get(place).is_some_and(|put| before + put.rows <= wanted) {
                before += found[place].rows;
                place += 1;
            }
            let Some(put) = found.get(place) else { break };
            widen(snapshot.vector(put.first_row + wanted - before), &mut buffer);
            sample.extend(Embedding::unit(buffer.clone()));
        }
        Ok(sample)
    }

    fn status(&self) -> Result<Status> {
        Ok(self.index.state()?.status())
    }

    fn verify(&self, progress: &Progress) -> Result<Vec<Fault>> {
        self.refresh()?;
        let state = self.index.known();
        let log = self.index.folder.join(LOG);
        let fault = |damage: super::walk::Damage| Fault {
            place: format!("{log} at byte {}", damage.offset),
            problem: damage.problem,
        };
        let mut faults: Vec<Fault> = state.snapshot.check(progress)?.into_iter().map(fault).collect();
        if let Some(file) = GraphFile::read(&*self.index.disk, &self.index.folder) {
            let place = self.index.folder.join(graph::FILE).to_string();
            if let Err(problem) = file.checked(&*self.index.disk, &self.index.folder) {
                faults.push(Fault { place, problem: format!("the graph it names {problem}") });
            } else if file.is_of(&state.snapshot) && !file.fits(&state.snapshot) {
                faults.push(Fault { place, problem: "the graph covers more moments than the log has".to_owned() });
            }
        }
        if let Ok(about) = Manifest::read_on(&*self.index.disk, &self.index.folder) {
            faults.extend(kept::faults(&*self.index.disk, &self.index.folder, &about.kept));
        }
        for put in state.snapshot.puts.iter().filter(|put| put.live) {
            let beyond = (put.first_row..put.first_row + put.rows).any(|row| state.snapshot.span(put, row).is_empty());
            if let Err(problem) = log::words::decode(state.snapshot.words(put)) {
                let problem = format!("its words cannot be read: {problem}");
                faults.push(Fault { place: format!("video `{}`", put.entry.id), problem });
            }
            if beyond {
                faults.push(Fault {
                    place: format!("video `{}`", put.entry.id),
                    problem: "a moment has no length".to_owned(),
                });
            }
        }
        Ok(faults)
    }
}
