//! The state of an index on disk, followed while this process and others write.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::LOG;
use super::disk::{Disk, DiskFile, FileStamp};
use super::graph::{self, Graph, GraphFile};
use super::snapshot::{Put, Snapshot};
use super::{Status, log};
use crate::{Manifest, Result, SearchError, VideoState};

/// What other processes write is looked for no more often than this, and only when something is asked.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The state of an index on disk. What others commit is seen by the next question that comes a quarter of a second later.
pub(super) struct Followed {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) folder: Utf8PathBuf,
    /// What the manifest named when the index was opened; `None` without one.
    encoder: Option<String>,
    state: RwLock<Arc<State>>,
    /// How often this process has written, and how often it had when `state` was read.
    written: AtomicU64,
    seen: AtomicU64,
    /// When other processes' work was last looked for, in milliseconds since `opened`.
    looked: AtomicU64,
    opened: Instant,
    /// Held by the one that reads anew.
    reading: Mutex<()>,
}

/// What an index is at one moment.
pub(super) struct State {
    pub(super) snapshot: Snapshot,
    pub(super) graph: Option<Arc<Graph>>,
    /// Whether the moments of everything that was ever put can be found: nothing is replaced, removed or vanished.
    pub(super) all_found: bool,
    /// The file that names the graph, as it was when that was read.
    graph_stamp: Option<FileStamp>,
    status: OnceLock<Status>,
}

impl State {
    fn new(snapshot: Snapshot, graph: Option<Arc<Graph>>, graph_stamp: Option<FileStamp>) -> Self {
        let all_found = snapshot.puts.iter().all(Put::is_found);
        Self { snapshot, graph, all_found, graph_stamp, status: OnceLock::new() }
    }

    /// What is there, counted once: every question asks for it.
    pub(super) fn status(&self) -> Status {
        self.status.get_or_init(|| self.counted()).clone()
    }

    fn counted(&self) -> Status {
        let mut status =
            Status { in_graph: self.graph.as_ref().map_or(0, |graph| graph.file.rows), ..Status::default() };
        for put in &self.snapshot.puts {
            match (put.live, put.entry.state) {
                (false, _) => status.dead += put.rows,
                (true, VideoState::Vanished) => status.vanished += 1,
                (true, VideoState::Present) => {
                    status.videos += 1;
                    status.moments += put.rows;
                    status.lines += log::words::count(self.snapshot.words(put));
                }
            }
        }
        status.damaged = self.snapshot.damage.len() + usize::from(self.snapshot.head_fault.is_some());
        status.waste = Some(self.snapshot.waste() as u64);
        status.bytes = Some(self.snapshot.end as u64 + self.graph.as_ref().map_or(0, |graph| graph.bytes()));
        status
    }
}

impl Followed {
    /// # Errors
    /// When there is no log, the manifest tells of another one, or the log cannot be read.
    pub(super) fn open(disk: Arc<dyn Disk>, folder: &Utf8Path) -> Result<Self> {
        let path = folder.join(LOG);
        let file = disk.open(&path).map_err(missing(folder, &path))?;
        let snapshot = Snapshot::read(&*file, &path)?;
        let about = described(&*disk, folder, &snapshot)?;
        let graph_stamp = disk.stamp(&folder.join(graph::FILE)).ok();
        let graph = Graph::open(&*disk, folder, &snapshot).map(Arc::new);
        Ok(Self {
            disk,
            folder: folder.to_owned(),
            encoder: about.map(|about| about.encoder),
            state: RwLock::new(Arc::new(State::new(snapshot, graph, graph_stamp))),
            written: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            opened: Instant::now(),
            reading: Mutex::default(),
        })
    }

    /// The state now, as far as it must be known: with everything that was written from here, and with what others wrote until
    /// a moment ago.
    pub(super) fn state(&self) -> Result<Arc<State>> {
        let since = self.opened.elapsed().as_millis() as u64;
        if self.is_stale() {
            let reading = self.reading();
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

    /// The state as it was last read.
    pub(super) fn known(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks now whether anything has changed.
    pub(super) fn refresh(&self) -> Result<()> {
        self.look(&self.reading())
    }

    /// The right to read anew, which one has at a time.
    pub(super) fn reading(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
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
            let log = self.disk.open(&path).map_err(missing(&self.folder, &path))?;
            self.read_again(&*log, reading)?;
        }
        // Only now: what could not be read is tried again by the next question.
        self.looked.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Reads what is new in `log`, which is the file at the log's path.
    pub(super) fn read_again(&self, log: &dyn DiskFile, _: &MutexGuard<'_, ()>) -> Result<()> {
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
            Ok(State::new(snapshot, graph, graph_stamp))
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

    /// Says that this process has written something.
    pub(super) fn wrote(&self) {
        self.written.fetch_add(1, Ordering::AcqRel);
    }
}

/// For `map_err` on opening the log.
pub(super) fn missing<'a>(folder: &'a Utf8Path, path: &'a Utf8Path) -> impl FnOnce(std::io::Error) -> SearchError + 'a {
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
