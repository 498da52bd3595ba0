//! The engine that needs nothing else: a folder with a log and a graph.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, Span, VideoId};
use cuemark_formats::Overwrite;
use rayon::prelude::*;

use super::disk::{Disk, DiskFile, FileStamp, RealDisk};
use super::graph::{self, Graph, GraphFile};
use super::log::{self, Encoded, Meta};
use super::snapshot::{Put, Snapshot, widen};
use super::writer::{self, Writer};
use super::{
    Compacted, Effort, Engine, EngineUrl, Fault, Hit, LOG, Moment, Nearest, Settling, Status, compact, create, evenly,
    limits, looking, rank,
};
use crate::manifest::LAYOUT;
use crate::{Embedding, Manifest, Result, SearchError, VideoEntry, VideoState};

/// Moments that are looked at one by one rather than put into a graph.
const FEW: usize = 20_000;
/// Candidates that the graph proposes at least; they are scored again with the log's numbers.
const EXPANSION: usize = 256;
/// What other processes write is looked for no more often than this, and only when something is asked.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The engine that needs nothing else: a folder with a log and a graph. Many may read while one writes; what others commit is
/// seen by the next question that comes a quarter of a second later.
pub struct Embedded {
    disk: Arc<dyn Disk>,
    folder: Utf8PathBuf,
    /// What the manifest named when the engine was opened; `None` without one.
    encoder: Option<String>,
    state: RwLock<Arc<State>>,
    /// How often this engine has written, and how often it had when `state` was read.
    written: AtomicU64,
    seen: AtomicU64,
    /// When other processes' work was last looked for, in milliseconds since `opened`.
    looked: AtomicU64,
    opened: Instant,
    /// Held by the one that reads anew.
    reading: Mutex<()>,
    writer: Mutex<Option<Writer>>,
}

struct State {
    snapshot: Snapshot,
    graph: Option<Arc<Graph>>,
    /// The file that names the graph, as it was when that was read.
    graph_stamp: Option<FileStamp>,
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
        create::create(&*disk, folder, width, None, overwrite)?;
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
        let written = create::create(&*disk, folder, about.width, Some(about), overwrite)?;
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
        let path = folder.join(LOG);
        let file = open_log(&*disk, folder)?;
        let snapshot = Snapshot::read(&*file, &path)?;
        let about = described(&*disk, folder, &snapshot)?;
        let graph_stamp = disk.stamp(&folder.join(graph::FILE)).ok();
        let graph = Graph::open(&*disk, folder, &snapshot).map(Arc::new);
        Ok(Self {
            disk,
            folder: folder.to_owned(),
            encoder: about.map(|about| about.encoder),
            state: RwLock::new(Arc::new(State { snapshot, graph, graph_stamp })),
            written: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            opened: Instant::now(),
            reading: Mutex::default(),
            writer: Mutex::new(None),
        })
    }

    /// Looks now whether another process has changed something, however short a time ago the last look was.
    ///
    /// # Errors
    /// When the log cannot be read any more.
    pub fn refresh(&self) -> Result<()> {
        let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.look(&reading)
    }

    /// Bytes of memory that the graph takes when all of it is in use; 0 without one.
    pub fn graph_bytes(&self) -> u64 {
        self.state().ok().and_then(|state| state.graph.as_ref().map(|graph| graph.bytes())).unwrap_or(0)
    }

    fn state(&self) -> Result<Arc<State>> {
        let since = self.opened.elapsed().as_millis() as u64;
        if self.is_stale() {
            let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
            if self.is_stale() {
                self.look(&reading)?;
            }
        } else if since >= self.looked.load(Ordering::Relaxed) + LOOK_EVERY.as_millis() as u64
            && let Ok(reading) = self.reading.try_lock()
        {
            // Others go on with what is known while one looks.
            self.look(&reading)?;
        }
        Ok(self.known())
    }

    fn known(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads what is new where the files are not as they were.
    fn look(&self, reading: &MutexGuard<'_, ()>) -> Result<()> {
        let path = self.folder.join(LOG);
        let state = self.known();
        let stamp = match self.disk.stamp(&path) {
            Ok(stamp) => stamp,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let problem = format!("its `{LOG}` is gone");
                return Err(SearchError::NoIndex { path: self.folder.clone(), problem });
            }
            Err(source) => return Err(SearchError::Io { what: "look at", path, source }),
        };
        let graph_stamp = self.disk.stamp(&self.folder.join(graph::FILE)).ok();
        let changed = stamp != state.snapshot.stamp || graph_stamp != state.graph_stamp;
        if changed || self.is_stale() {
            self.read_again(&*open_log(&*self.disk, &self.folder)?, reading)?;
        }
        // Only now: what could not be read is tried again by the next question.
        self.looked.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Reads what is new in `log`, which is the file at the log's path.
    fn read_again(&self, log: &dyn DiskFile, _: &MutexGuard<'_, ()>) -> Result<()> {
        let path = self.folder.join(LOG);
        // What is written from here on is read the next time.
        let written = self.written.load(Ordering::Acquire);
        let read = || {
            let state = self.known();
            let snapshot = state.snapshot.refreshed(log, &path)?;
            if snapshot.head != state.snapshot.head {
                let about = described(&*self.disk, &self.folder, &snapshot)?;
                // A new index in the old one's place is gone on with when sentences mean the same in it.
                let encoder = about.map(|about| about.encoder);
                if snapshot.width() != state.snapshot.width() || encoder != self.encoder {
                    return Err(SearchError::Replaced { path: self.folder.clone() });
                }
            }
            let graph_stamp = self.disk.stamp(&self.folder.join(graph::FILE)).ok();
            let named = GraphFile::read(&*self.disk, &self.folder);
            let known =
                state.graph.as_ref().filter(|graph| Some(&graph.file) == named.as_ref() && graph.file.fits(&snapshot));
            let open = || Graph::open(&*self.disk, &self.folder, &snapshot).map(Arc::new);
            let graph = known.cloned().or_else(open);
            Ok(State { snapshot, graph, graph_stamp })
        };
        let state = Arc::new(read()?);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        // Only now: after a failure the next question reads again.
        self.seen.store(written, Ordering::Release);
        Ok(())
    }

    fn is_stale(&self) -> bool {
        self.written.load(Ordering::Acquire) != self.seen.load(Ordering::Acquire)
    }

    fn wrote(&self) {
        self.written.fetch_add(1, Ordering::AcqRel);
    }

    /// Appends records as one batch and waits until they are on disk.
    fn append(&self, records: &[Encoded]) -> Result<()> {
        let mut guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = match guard.as_mut() {
            Some(writer) => writer,
            None => guard.insert(self.start_writing()?),
        };
        let appended = writer.append(records);
        // Also after a failure: a batch for which only waiting failed may be there.
        self.wrote();
        if appended.is_err() {
            *guard = None;
        }
        appended
    }

    /// A video and its moments as one record.
    fn record(&self, entry: &VideoEntry, moments: &[Moment]) -> Result<Encoded> {
        let expected = self.width();
        if let Some(wrong) = moments.iter().find(|moment| moment.embedding.width() != expected) {
            return Err(SearchError::Width { expected, found: wrong.embedding.width() });
        }
        limits::check_moments(entry, moments.len())?;
        let spans: Vec<[f64; 2]> = moments.iter().map(|moment| [moment.span.start(), moment.span.end()]).collect();
        let numbers: Vec<f32> = moments.iter().flat_map(|moment| moment.embedding.numbers()).copied().collect();
        Encoded::new(&Meta::Put(entry.clone()), &spans, &log::halves(&numbers))
    }

    /// Derives a graph when that is worth it, and says whether it was; the one who calls this is the writer.
    fn derive(&self, how: Settling, progress: &Progress) -> Result<bool> {
        let state = self.state()?;
        let covered = state.graph.as_ref().map_or(0, |graph| graph.file.rows);
        let rest = state.snapshot.rows() - covered;
        let worth_it = match how {
            Settling::WhenWorthIt => rest > FEW,
            Settling::Fully => rest > 0,
            Settling::Anew => state.snapshot.rows() > 0,
        };
        if worth_it {
            let earlier = state.graph.as_deref().filter(|_| how != Settling::Anew);
            Graph::derive(&*self.disk, &self.folder, &state.snapshot, earlier, progress)?;
            self.wrote();
        }
        Ok(worth_it)
    }

    /// Becomes the one that writes, in the log that is at the path now.
    fn start_writing(&self) -> Result<Writer> {
        let lock = writer::take_lock(&*self.disk, &self.folder)?;
        writer::clear_unfinished(&*self.disk, &self.folder)?;
        let path = self.folder.join(LOG);
        let open = || self.disk.open_to_write(&path).map_err(missing(&self.folder, &path));
        let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let mut log = open()?;
        self.read_again(&*log, &reading)?;
        if self.known().snapshot.head.old {
            // A log of the first version has no commits: it is written anew, whole, before anything is added.
            compact::replace(&*self.disk, &self.folder, &self.known().snapshot, &Progress::new())?;
            log = open()?;
            self.read_again(&*log, &reading)?;
            if let Ok(about) = Manifest::read_on(&*self.disk, &self.folder) {
                // Should this not come about, the manifest names no log, which is allowed.
                let log = Some(self.known().snapshot.identity());
                Manifest { layout: LAYOUT, log, ..about }.write_on(&*self.disk, &self.folder)?;
            }
        }
        drop(reading);
        Writer::start(Arc::clone(&self.disk), &self.folder, log, &self.known().snapshot, lock)
    }
}

fn open_log(disk: &dyn Disk, folder: &Utf8Path) -> Result<Box<dyn DiskFile>> {
    let path = folder.join(LOG);
    disk.open(&path).map_err(missing(folder, &path))
}

/// For `map_err` on opening the log.
fn missing<'a>(folder: &'a Utf8Path, path: &'a Utf8Path) -> impl FnOnce(std::io::Error) -> SearchError + 'a {
    move |source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            SearchError::NoIndex { path: folder.to_owned(), problem: format!("there is no `{LOG}`") }
        }
        _ => SearchError::Io { what: "open", path: path.to_owned(), source },
    }
}

/// The manifest beside a log; `None` when there is none that can be read, which is for those to say who need one.
///
/// # Errors
/// When it tells of another log.
fn described(disk: &dyn Disk, folder: &Utf8Path, snapshot: &Snapshot) -> Result<Option<Manifest>> {
    let Ok(about) = Manifest::read_on(disk, folder) else { return Ok(None) };
    let other = |problem: String| SearchError::NoIndex { path: folder.to_owned(), problem };
    if about.width != snapshot.width() {
        let (said, found) = (about.width, snapshot.width());
        return Err(other(format!("its manifest says {said} numbers per embedding, its log {found}")));
    }
    match &about.log {
        Some(said) if *said != snapshot.identity() => {
            Err(other(format!("its manifest tells of log `{said}`, and there is log `{}`", snapshot.identity())))
        }
        _ => Ok(Some(about)),
    }
}

impl Engine for Embedded {
    fn url(&self) -> EngineUrl {
        EngineUrl::File(self.folder.clone())
    }

    fn width(&self) -> usize {
        self.state.read().unwrap_or_else(PoisonError::into_inner).snapshot.width()
    }

    fn videos(&self) -> Result<Vec<VideoEntry>> {
        let state = self.state()?;
        let live = state.snapshot.puts.iter().filter(|put| put.live);
        let mut videos: Vec<VideoEntry> = live.map(|put| put.entry.clone()).collect();
        videos.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(videos)
    }

    fn video(&self, id: &VideoId) -> Result<Option<VideoEntry>> {
        Ok(self.state()?.snapshot.live(id).map(|put| put.entry.clone()))
    }

    fn put(&self, entry: &VideoEntry, moments: &[Moment]) -> Result<()> {
        self.append(&[self.record(entry, moments)?])
    }

    fn put_all(&self, videos: &[(VideoEntry, Vec<Moment>)]) -> Result<()> {
        let records = videos.par_iter().map(|(entry, moments)| self.record(entry, moments));
        let records: Vec<Encoded> = records.collect::<Result<_>>()?;
        if records.is_empty() { Ok(()) } else { self.append(&records) }
    }

    fn note(&self, id: &VideoId, state: VideoState, tags: &[String]) -> Result<bool> {
        let Some(entry) = self.video(id)? else { return Ok(false) };
        let tags = tags.to_vec();
        // Compacting makes one record of the video and the note, which has to be one that can be read.
        let together = Meta::Put(VideoEntry { state, tags: tags.clone(), ..entry });
        Encoded::new(&together, &[], &[])?;
        self.append(&[Encoded::new(&Meta::Note { id: id.clone(), state, tags }, &[], &[])?])?;
        Ok(true)
    }

    fn remove(&self, id: &VideoId) -> Result<bool> {
        if self.video(id)?.is_none() {
            return Ok(false);
        }
        self.append(&[Encoded::new(&Meta::Remove { id: id.clone() }, &[], &[])?])?;
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
        let before = self.state()?;
        let mut done = Compacted::default();
        if before.snapshot.waste() > 0 {
            compact::replace(&*self.disk, &self.folder, &before.snapshot, progress)?;
            self.wrote();
            done.freed = (before.snapshot.end as u64).saturating_sub(self.state()?.snapshot.end as u64);
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
        let state = self.state()?;
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
        let candidates: usize = if ask.filter.is_everywhere() {
            snapshot.rows()
        } else {
            snapshot.puts.iter().filter(admitted).map(|put| put.rows).sum()
        };
        let Some(graph) = state.graph.as_ref().filter(|_| candidates > FEW) else {
            return Ok(looking::look_at_all(snapshot, query, ask, 0));
        };
        let mut hits = looking::through_graph(graph, snapshot, query, ask, expansion);
        if graph.file.rows < snapshot.rows() {
            hits.extend(looking::look_at_all(snapshot, query, ask, graph.file.rows));
        }
        rank(&mut hits, ask.count);
        Ok(hits)
    }

    fn moments(&self, id: &VideoId) -> Result<Option<Vec<Moment>>> {
        let state = self.state()?;
        let snapshot = &state.snapshot;
        let Some(put) = snapshot.live(id) else { return Ok(None) };
        let mut buffer = vec![0f32; snapshot.width()];
        let moment = |row: usize| {
            widen(snapshot.vector(row), &mut buffer);
            // A moment without direction was never put.
            Embedding::unit(buffer.clone()).map(|embedding| Moment { span: snapshot.span(put, row), embedding })
        };
        Ok(Some((put.first_row..put.first_row + put.rows).filter_map(moment).collect()))
    }

    fn scores(&self, id: &VideoId, query: &Embedding) -> Result<Option<Vec<(Span, f32)>>> {
        let state = self.state()?;
        let snapshot = &state.snapshot;
        let Some(put) = snapshot.live(id) else { return Ok(None) };
        let scores = looking::scores(snapshot.vectors(put), snapshot.width(), query);
        let rows = put.first_row..put.first_row + put.rows;
        Ok(Some(rows.map(|row| snapshot.span(put, row)).zip(scores).collect()))
    }

    fn sample(&self, count: usize) -> Result<Vec<Embedding>> {
        let state = self.state()?;
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
        let state = self.state()?;
        let mut status =
            Status { in_graph: state.graph.as_ref().map_or(0, |graph| graph.file.rows), ..Status::default() };
        for put in &state.snapshot.puts {
            match (put.live, put.entry.state) {
                (false, _) => status.dead += put.rows,
                (true, VideoState::Vanished) => status.vanished += 1,
                (true, VideoState::Present) => {
                    status.videos += 1;
                    status.moments += put.rows;
                }
            }
        }
        status.damaged = state.snapshot.damage.len() + usize::from(state.snapshot.head_fault.is_some());
        status.waste = Some(state.snapshot.waste() as u64);
        status.bytes = Some(state.snapshot.end as u64 + state.graph.as_ref().map_or(0, |graph| graph.bytes()));
        Ok(status)
    }

    fn verify(&self, progress: &Progress) -> Result<Vec<Fault>> {
        self.refresh()?;
        let state = self.known();
        let log = self.folder.join(LOG);
        let fault = |damage: super::walk::Damage| Fault {
            place: format!("{log} at byte {}", damage.offset),
            problem: damage.problem,
        };
        let mut faults: Vec<Fault> = state.snapshot.check(progress)?.into_iter().map(fault).collect();
        if let Some(file) = GraphFile::read(&*self.disk, &self.folder) {
            let place = self.folder.join(graph::FILE).to_string();
            if let Some(problem) = file.problem(&*self.disk, &self.folder) {
                faults.push(Fault { place, problem: format!("the graph it names {problem}") });
            } else if file.is_of(&state.snapshot) && !file.fits(&state.snapshot) {
                faults.push(Fault { place, problem: "the graph covers more moments than the log has".to_owned() });
            }
        }
        for put in state.snapshot.puts.iter().filter(|put| put.live) {
            let beyond = (put.first_row..put.first_row + put.rows).any(|row| state.snapshot.span(put, row).is_empty());
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
