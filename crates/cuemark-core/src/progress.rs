//! How far long work has come, what it has to say meanwhile, and whether it should go on.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared by work, which counts its steps, and whoever waits for it, who looks (a progress bar) and may stop it.
///
/// A step is whatever the work says it is: a byte, a query, a resample. Counting costs one atomic addition. Long work
/// may pass through named phases, each counted from zero, and may say a line now and then that a person should read at
/// once; figures belong into its answer. A clone is another handle on the same work.
///
/// ```
/// use cuemark_core::{Progress, Stopped};
/// let progress = Progress::new();
/// progress.phase("reading", 10);
/// assert_eq!(progress.advance(4), Ok(()));
/// let seen = progress.look();
/// assert_eq!((seen.phase.as_ref(), seen.done, seen.total), ("reading", 4, 10));
/// progress.say("row 3 is empty");
/// assert_eq!(progress.heard(), ["row 3 is empty"]);
/// progress.stop();
/// assert_eq!(progress.advance(1), Err(Stopped));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Progress {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    done: AtomicUsize,
    total: AtomicUsize,
    stopped: AtomicBool,
    phase: Mutex<Cow<'static, str>>,
    said: Mutex<Vec<String>>,
}

/// What somebody who waits sees of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What the work is at; empty while it has named nothing.
    pub phase: Cow<'static, str>,
    /// Steps of this phase that are done; may pass `total` where the work knew it only roughly.
    pub done: usize,
    /// Steps of this phase, as far as they are known by now; 0 where they are not.
    pub total: usize,
}

/// Work was stopped (cancelled) before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped before it was done")]
pub struct Stopped;

/// Lines that nobody fetches are dropped beyond so many, so that unwatched work does not grow.
const LINES_KEPT: usize = 1_000;

impl Progress {
    /// Nothing done, nothing announced. Work whose progress nobody watches gets one of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a phase of `steps` steps (0 where nobody knows yet): the count starts again at zero.
    pub fn phase(&self, name: impl Into<Cow<'static, str>>, steps: usize) {
        let mut phase = held(&self.shared.phase);
        *phase = name.into();
        self.shared.done.store(0, Ordering::Relaxed);
        self.shared.total.store(steps, Ordering::Relaxed);
    }

    /// Adds `steps` to what there is to do in this phase.
    pub fn announce(&self, steps: usize) {
        self.shared.total.fetch_add(steps, Ordering::Relaxed);
    }

    /// Notes that `steps` more are done.
    ///
    /// # Errors
    /// When the work was stopped: whoever counts should return as soon as it can.
    pub fn advance(&self, steps: usize) -> Result<(), Stopped> {
        self.shared.done.fetch_add(steps, Ordering::Relaxed);
        self.check()
    }

    /// Whether the work may go on.
    ///
    /// # Errors
    /// When it was stopped.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_stopped() { Err(Stopped) } else { Ok(()) }
    }

    /// Stops (cancels) the work: the next [`Progress::advance`] or [`Progress::check`] is an error.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has stopped the work.
    pub fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::Relaxed)
    }

    /// Says a line that a person should read while the work goes on.
    pub fn say(&self, line: impl Into<String>) {
        let mut said = held(&self.shared.said);
        if said.len() < LINES_KEPT {
            said.push(line.into());
        }
    }

    /// The lines said since somebody last asked, oldest first.
    pub fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *held(&self.shared.said))
    }

    /// Where the work is now.
    pub fn look(&self) -> Seen {
        // The phase is held so that no count of another phase stands beside its name.
        let phase = held(&self.shared.phase);
        Seen { phase: phase.clone(), done: self.done(), total: self.total() }
    }

    /// Steps of this phase done so far; may pass [`Progress::total`] where the work knew it only roughly.
    pub fn done(&self) -> usize {
        self.shared.done.load(Ordering::Relaxed)
    }

    /// Steps of this phase expected in all, as far as they are known by now.
    pub fn total(&self) -> usize {
        self.shared.total.load(Ordering::Relaxed)
    }
}

/// What a panic elsewhere left behind is still a name and a list of lines.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_phase_counts_from_zero() {
        let progress = Progress::new();
        progress.phase("reading", 3);
        progress.advance(3).unwrap();
        progress.phase("scoring", 7);
        assert_eq!(progress.look(), Seen { phase: "scoring".into(), done: 0, total: 7 });
    }

    #[test]
    fn lines_that_nobody_fetches_do_not_grow_without_bound() {
        let progress = Progress::new();
        (0..LINES_KEPT + 5).for_each(|line| progress.say(line.to_string()));
        assert_eq!(progress.heard().len(), LINES_KEPT);
        assert!(progress.heard().is_empty());
    }
}
