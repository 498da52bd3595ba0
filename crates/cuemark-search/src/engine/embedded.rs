//! The engine that needs nothing else: a folder with a log and a graph.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Span, VideoId};
use cuemark_formats::{Overwrite, WholeFile};
use rayon::prelude::*;

use super::graph::{self, Graph, GraphFile};
use super::log::{self, Head, Meta};
use super::snapshot::{Put, Snapshot, widen};
use super::{Effort, Engine, EngineUrl, Fault, Hit, Moment, Nearest, Settling, Status, compact, evenly, looking, rank};
use crate::{Embedding, Result, SearchError, VideoEntry, VideoState};

/// The log's name in the folder.
const LOG: &str = "moments.log";
/// The name of the file that a writer locks.
const LOCK: &str = "lock";
/// Moments that are looked at one by one rather than put into a graph.
const FEW: usize = 20_000;
/// Candidates that the graph proposes at least; they are scored again with the log's numbers.
const EXPANSION: usize = 256;

/// The engine that needs nothing else: a folder with a log and a graph. Many may read while one writes.
pub struct Embedded {
    folder: Utf8PathBuf,
    state: RwLock<Arc<State>>,
    /// Whether the log has grown since `state` was read.
    stale: AtomicBool,
    writer: Mutex<Option<Writer>>,
}

struct State {
    snapshot: Snapshot,
    graph: Option<Arc<Graph>>,
}

/// The one that may append; the lock lasts as long as it lives.
struct Writer {
    log: File,
    end: u64,
    _lock: File,
}

impl Embedded {
    /// Makes an empty engine in `folder`.
    ///
    /// # Errors
    /// When there is one already and it may not be replaced, or the folder cannot be written.
    pub fn create(folder: &Utf8Path, width: usize, overwrite: Overwrite) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(SearchError::io("make", folder))?;
        WholeFile::write_all_to(folder.join(LOG), overwrite, &log::head(Head { width, generation: 0 }))?;
        if folder.join(graph::FILE).exists() {
            // A graph of the log that was replaced.
            std::fs::remove_file(folder.join(graph::FILE))
                .map_err(SearchError::io("remove", &folder.join(graph::FILE)))?;
        }
        Self::open(folder)
    }

    /// Opens the engine in `folder`.
    ///
    /// # Errors
    /// When there is none, or its log is damaged.
    pub fn open(folder: &Utf8Path) -> Result<Self> {
        let path = folder.join(LOG);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let problem = format!("there is no `{LOG}`");
                return Err(SearchError::NoIndex { path: folder.to_owned(), problem });
            }
            Err(source) => return Err(SearchError::Io { what: "open", path, source }),
        };
        let snapshot = Snapshot::read(&file, &path)?;
        let graph = Graph::open(folder, &snapshot).map(Arc::new);
        Ok(Self {
            folder: folder.to_owned(),
            state: RwLock::new(Arc::new(State { snapshot, graph })),
            stale: AtomicBool::new(false),
            writer: Mutex::new(None),
        })
    }

    /// Looks whether another process has added something.
    ///
    /// # Errors
    /// When the log cannot be read any more.
    pub fn refresh(&self) -> Result<()> {
        self.stale.store(true, Ordering::Release);
        self.state().map(drop)
    }

    /// Bytes of memory that the graph takes when all of it is in use; 0 without one.
    pub fn graph_bytes(&self) -> u64 {
        self.state().ok().and_then(|state| state.graph.as_ref().map(|graph| graph.bytes())).unwrap_or(0)
    }

    fn state(&self) -> Result<Arc<State>> {
        if self.stale.swap(false, Ordering::AcqRel) {
            let path = self.folder.join(LOG);
            let file = File::open(&path).map_err(SearchError::io("open", &path))?;
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            let snapshot = state.snapshot.refreshed(&file, &path)?;
            let named = GraphFile::read(&self.folder);
            let known =
                state.graph.as_ref().filter(|graph| Some(&graph.file) == named.as_ref() && graph.file.fits(&snapshot));
            let graph = known.cloned().or_else(|| Graph::open(&self.folder, &snapshot).map(Arc::new));
            *state = Arc::new(State { snapshot, graph });
        }
        Ok(Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Appends one record and waits until it is on disk.
    fn append(&self, record: &[u8]) -> Result<()> {
        let path = self.folder.join(LOG);
        let mut guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = match guard.as_mut() {
            Some(writer) => writer,
            None => guard.insert(self.start_writing(&path)?),
        };
        let written = writer.log.write_all(record).and_then(|()| writer.log.sync_data());
        if let Err(source) = written {
            // Whatever has arrived of it must not be taken for a record.
            let _ = writer.log.set_len(writer.end);
            *guard = None;
            return Err(SearchError::Io { what: "write", path, source });
        }
        writer.end += record.len() as u64;
        self.stale.store(true, Ordering::Release);
        Ok(())
    }

    /// A video and its moments as one record.
    fn record(&self, entry: &VideoEntry, moments: &[Moment]) -> Result<Vec<u8>> {
        let expected = self.width();
        if let Some(wrong) = moments.iter().find(|moment| moment.embedding.width() != expected) {
            return Err(SearchError::Width { expected, found: wrong.embedding.width() });
        }
        if moments.len() > log::MOST_ROWS {
            return Err(SearchError::Question {
                problem: format!("video `{}` has {} moments, more than an index holds of one", entry.id, moments.len()),
                hint: "cut the video into parts",
            });
        }
        let spans: Vec<[f64; 2]> = moments.iter().map(|moment| [moment.span.start(), moment.span.end()]).collect();
        let numbers: Vec<f32> = moments.iter().flat_map(|moment| moment.embedding.numbers()).copied().collect();
        Ok(log::encode(&Meta::Put(entry.clone()), &spans, &log::halves(&numbers)))
    }

    /// Derives a graph when that is worth it; the one who calls this is the writer.
    fn derive(&self, how: Settling, progress: &mut dyn FnMut(usize, usize)) -> Result<()> {
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
            Graph::derive(&self.folder, &state.snapshot, earlier, progress)?;
            self.stale.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn start_writing(&self, path: &Utf8Path) -> Result<Writer> {
        let lock = self.folder.join(LOCK);
        let lock_file = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
        let lock_file = lock_file.map_err(SearchError::io("open", &lock))?;
        match lock_file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(SearchError::Locked { path: self.folder.clone() }),
            Err(std::fs::TryLockError::Error(source)) => {
                return Err(SearchError::Io { what: "lock", path: lock, source });
            }
        }
        let log = OpenOptions::new().read(true).append(true).open(path).map_err(SearchError::io("open", path))?;
        self.stale.store(true, Ordering::Release);
        let end = self.state()?.snapshot.end as u64;
        let unfinished = self.folder.join(compact::UNFINISHED);
        if unfinished.exists() {
            std::fs::remove_file(&unfinished).map_err(SearchError::io("remove", &unfinished))?;
        }
        // What an earlier writer left unfinished was never acknowledged.
        log.set_len(end).map_err(SearchError::io("cut", path))?;
        log.sync_all().map_err(SearchError::io("write", path))?;
        Ok(Writer { log, end, _lock: lock_file })
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
        self.append(&self.record(entry, moments)?)
    }

    fn put_all(&self, videos: &[(VideoEntry, Vec<Moment>)]) -> Result<()> {
        let records = videos.par_iter().map(|(entry, moments)| self.record(entry, moments));
        let records: Vec<Vec<u8>> = records.collect::<Result<_>>()?;
        if records.is_empty() { Ok(()) } else { self.append(&records.concat()) }
    }

    fn note(&self, id: &VideoId, state: VideoState, tags: &[String]) -> Result<bool> {
        if self.video(id)?.is_none() {
            return Ok(false);
        }
        self.append(&log::encode(&Meta::Note { id: id.clone(), state, tags: tags.to_vec() }, &[], &[]))?;
        Ok(true)
    }

    fn remove(&self, id: &VideoId) -> Result<bool> {
        if self.video(id)?.is_none() {
            return Ok(false);
        }
        self.append(&log::encode(&Meta::Remove { id: id.clone() }, &[], &[]))?;
        Ok(true)
    }

    fn settle(&self, how: Settling, progress: &mut dyn FnMut(usize, usize)) -> Result<()> {
        let path = self.folder.join(LOG);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_none() {
            *writer = Some(self.start_writing(&path)?);
        }
        drop(writer);
        self.derive(how, progress)?;
        // Others may write now.
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    fn compact(&self, progress: &mut dyn FnMut(usize, usize)) -> Result<()> {
        let path = self.folder.join(LOG);
        // Nobody else adds anything until the new log is there: the writer is kept for as long as this takes.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = match writer.take() {
            Some(writer) => writer,
            None => self.start_writing(&path)?,
        };
        let state = self.state()?;
        if state.snapshot.waste() > 0 {
            compact::replace(&self.folder, &path, &state.snapshot, progress)?;
            self.stale.store(true, Ordering::Release);
            // Small collections are looked at one by one, as before.
            let how = if state.graph.is_some() { Settling::Anew } else { Settling::WhenWorthIt };
            self.derive(how, progress)?;
        }
        drop(lock);
        Ok(())
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
        status.waste = Some(state.snapshot.waste() as u64);
        status.bytes = Some(state.snapshot.end as u64 + state.graph.as_ref().map_or(0, |graph| graph.bytes()));
        Ok(status)
    }

    fn verify(&self, progress: &mut dyn FnMut(usize, usize)) -> Result<Vec<Fault>> {
        let state = self.state()?;
        let mut faults = Vec::new();
        let log = self.folder.join(LOG).to_string();
        state.snapshot.check(progress, &mut |offset, problem| {
            faults.push(Fault { place: format!("{log} at byte {offset}"), problem });
        });
        if let Some(file) = GraphFile::read(&self.folder) {
            let place = self.folder.join(graph::FILE).to_string();
            if let Some(problem) = file.problem(&self.folder) {
                faults.push(Fault { place, problem: format!("the graph it names {problem}") });
            } else if file.generation == state.snapshot.generation() && !file.fits(&state.snapshot) {
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
