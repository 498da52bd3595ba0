//! Work that takes longer than a request: adding videos.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_search::{AddOptions, Added, Adding, Index, Settling};
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

/// Jobs that are remembered; the oldest finished ones are forgotten.
const REMEMBERED: usize = 100;
/// Failures that are listed.
const LISTED: usize = 20;

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
        let mut told = |done: usize, total: usize, adding: Adding| {
            self.state.send_modify(|state| {
                (state.done, state.total) = (done, total);
                match adding {
                    Adding::New(_) => state.new += 1,
                    Adding::Changed(_) => state.changed += 1,
                    Adding::Unchanged(_) => state.unchanged += 1,
                    Adding::Failed { what, error } if state.failed.len() < LISTED => {
                        let name = what.rsplit('/').next().unwrap_or_default();
                        state.failed.push(format!("{name}: {error}"));
                    }
                    Adding::Failed { .. } => {}
                }
            });
        };
        let stopped = || self.progress.is_stopped();
        let done = index.add_files(paths, &AddOptions { tags }, &mut told, &stopped).and_then(|added: Added| {
            self.state.send_modify(|state| state.phase = Phase::Settling);
            index.settle(Settling::WhenWorthIt, &mut |_, _| {}).map(|()| added)
        });
        self.state.send_modify(|state| match done {
            Ok(_) if stopped() => state.phase = Phase::Stopped,
            Ok(_) => state.phase = Phase::Finished,
            Err(error) => (state.phase, state.error) = (Phase::Failed, Some(error.to_string())),
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
