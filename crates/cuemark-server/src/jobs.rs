//! Work that takes longer than a request: adding videos.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_search::{AddOptions, Added, Index, Settling};
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

/// Jobs that are remembered; the oldest finished ones are forgotten.
const REMEMBERED: usize = 100;
/// Failures that are listed.
const LISTED: usize = 20;
/// How often whoever watches a job is told how far it is.
const LOOK: Duration = Duration::from_millis(100);

/// Every job of this server, oldest first.
#[derive(Default)]
pub(crate) struct Jobs {
    next: AtomicU64,
    list: Mutex<Vec<Arc<Job>>>,
}

/// One job and whoever watches it.
pub(crate) struct Job {
    pub(crate) id: u64,
    state: watch::Sender<JobState>,
    progress: Progress,
}

/// How far a job is.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct JobState {
    /// Its number.
    pub(crate) id: u64,
    /// Where it is.
    pub(crate) phase: Phase,
    /// Videos done.
    done: usize,
    /// Videos in all; 0 while they are being counted.
    total: usize,
    /// New videos.
    new: usize,
    /// Videos embedded again.
    changed: usize,
    /// Videos that were there already.
    unchanged: usize,
    /// Videos that could be read only in part.
    partial: usize,
    /// What could not be added and why; the first few.
    failed: Vec<String>,
    /// Why the job as a whole failed.
    error: Option<String>,
}

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// Embedding videos.
    Adding,
    /// Bringing the graph up to date.
    Settling,
    /// Over.
    Finished,
    /// Over, because somebody asked.
    Stopped,
    /// Over, because something went wrong.
    Failed,
}

impl Phase {
    /// Whether nothing more will happen.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Stopped | Self::Failed)
    }
}

impl Job {
    /// How far it is.
    pub(crate) fn state(&self) -> JobState {
        self.state.borrow().clone()
    }

    /// Hears of every change.
    pub(crate) fn watch(&self) -> watch::Receiver<JobState> {
        self.state.subscribe()
    }

    /// Asks it to stop (cancel), wherever it is.
    pub(crate) fn stop(&self) {
        self.progress.stop();
    }

    /// Runs to its end; a panic is the end of this job and of nothing else.
    fn run(&self, work: impl FnOnce(&Self)) {
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            self.state.send_modify(|state| {
                let error = "the program met a fault of its own, which it has written to its standard error";
                (state.phase, state.error) = (Phase::Failed, Some(error.to_owned()));
            });
        }
    }

    fn add(&self, index: &Index, paths: &[Utf8PathBuf], tags: Vec<String>) {
        let over = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    self.look();
                    std::thread::park_timeout(LOOK);
                }
            });
            // Also when the work panics, or the scope would wait for the onlooker for ever.
            let added = catch_unwind(AssertUnwindSafe(|| index.add_files(paths, &AddOptions { tags }, &self.progress)));
            over.store(true, Ordering::Relaxed);
            looking.thread().unpark();
            added.unwrap_or_else(|panic| resume_unwind(panic))
        });
        self.look();
        let done = done.and_then(|added: Added| {
            self.state.send_modify(|state| {
                (state.new, state.changed, state.unchanged) = (added.new, added.changed, added.unchanged);
                state.partial = added.partial;
                state.phase = Phase::Settling;
            });
            if self.progress.is_stopped() { Ok(()) } else { index.settle(Settling::WhenWorthIt, &self.progress) }
        });
        self.state.send_modify(|state| match done {
            Ok(()) if self.progress.is_stopped() => state.phase = Phase::Stopped,
            Ok(()) => state.phase = Phase::Finished,
            Err(error) => (state.phase, state.error) = (Phase::Failed, Some(error.to_string())),
        });
    }

    /// Tells whoever watches how far it is.
    fn look(&self) {
        let (seen, lines) = (self.progress.look(), self.progress.heard());
        self.state.send_if_modified(|state| {
            let before = (state.done, state.total);
            // Files that are merely looked at are no videos yet.
            if seen.phase == "embedding" {
                (state.done, state.total) = (seen.done, seen.total);
            }
            let room = LISTED.saturating_sub(state.failed.len());
            let news = lines.iter().filter_map(|line| line.strip_prefix("left out: ")).take(room);
            // What lies where on the server's disk is nobody's business.
            state.failed.extend(news.map(|line| line.rsplit('/').next().unwrap_or_default().to_owned()));
            before != (state.done, state.total) || !lines.is_empty()
        });
    }
}

impl Jobs {
    /// Starts to add videos; `None` while another job is at it, since only one can write.
    pub(crate) fn start(
        self: &Arc<Self>,
        index: Arc<Index>,
        paths: Vec<Utf8PathBuf>,
        tags: Vec<String>,
    ) -> Option<Arc<Job>> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.iter().any(|job| !job.state.borrow().phase.is_over()) {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let state = JobState {
            id,
            phase: Phase::Adding,
            done: 0,
            total: 0,
            new: 0,
            changed: 0,
            unchanged: 0,
            partial: 0,
            failed: Vec::new(),
            error: None,
        };
        let job = Arc::new(Job { id, state: watch::Sender::new(state), progress: Progress::new() });
        if list.len() >= REMEMBERED {
            list.remove(0);
        }
        list.push(Arc::clone(&job));
        let running = Arc::clone(&job);
        tokio::task::spawn_blocking(move || running.run(|job| job.add(&index, &paths, tags)));
        Some(job)
    }

    /// Every remembered job, oldest first.
    pub(crate) fn list(&self) -> Vec<JobState> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|job| job.state()).collect()
    }

    /// One job.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Job>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).iter().find(|job| job.id == id).cloned()
    }

    /// Asks all jobs to stop.
    pub(crate) fn stop(&self) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|job| job.stop());
    }
}
