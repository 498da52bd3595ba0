//! How far long work has come, what it has to say meanwhile, and whether it should go on.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Shared by work, which counts its steps, and whoever waits for it, who looks (a progress bar) and may stop it. A clone is
/// the same progress: hand one to a thread, keep the other.
///
/// A step is whatever the work says it is: a byte, a query, a resample. Counting costs one atomic addition. Long work
/// may pass through named phases, each counted from zero, may have parts that go on side by side, and may say a line now
/// and then that a person should read at once; figures belong into its answer.
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
    /// Parts share it with the whole: stopping the one stops the others.
    stopped: Arc<AtomicBool>,
    /// Shared too, so that the last line of a part that is over is still read.
    said: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug, Default)]
struct Shared {
    done: AtomicUsize,
    total: AtomicUsize,
    /// The count at which the work is stopped; 0 for none.
    limit: AtomicUsize,
    phase: Mutex<Cow<'static, str>>,
    remark: Mutex<String>,
    /// A part is gone once its work has dropped it.
    parts: Mutex<Vec<(String, Weak<Shared>)>>,
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
    /// What the work says beside its count, such as a loss; mostly empty.
    pub remark: String,
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
        held(&self.shared.remark).clear();
        self.shared.done.store(0, Ordering::Relaxed);
        self.shared.total.store(steps, Ordering::Relaxed);
    }

    /// Begins a part of the work, called `name`, which counts for itself, has phases of its own, and is stopped with the
    /// whole. It is seen until its last clone is dropped; its lines are said by the whole.
    pub fn part(&self, name: impl Into<String>) -> Self {
        let part = Self { shared: Arc::default(), ..self.clone() };
        let mut parts = held(&self.shared.parts);
        parts.retain(|(_, part)| part.strong_count() > 0);
        parts.push((name.into(), Arc::downgrade(&part.shared)));
        part
    }

    /// Adds `steps` to what there is to do in this phase.
    pub fn announce(&self, steps: usize) {
        self.shared.total.fetch_add(steps, Ordering::Relaxed);
    }

    /// The counts as somebody else has them: for work that goes on elsewhere and says how far it is.
    pub fn set(&self, done: usize, total: usize) {
        self.shared.done.store(done, Ordering::Relaxed);
        self.shared.total.store(total, Ordering::Relaxed);
    }

    /// Notes that `steps` more are done.
    ///
    /// # Errors
    /// When the work was stopped: whoever counts should return as soon as it can.
    pub fn advance(&self, steps: usize) -> Result<(), Stopped> {
        let done = self.shared.done.fetch_add(steps, Ordering::Relaxed) + steps;
        let limit = self.shared.limit.load(Ordering::Relaxed);
        if limit > 0 && done >= limit {
            self.stop();
        }
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
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Stops the work once `steps` steps of a phase are done: a budget, or a stop at a place that is known beforehand.
    pub fn stop_at(&self, steps: usize) {
        self.shared.limit.store(steps.max(1), Ordering::Relaxed);
    }

    /// Whether somebody has stopped the work.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Says something short beside the count, in place of what was said there before: a loss, a file's name.
    pub fn remark(&self, text: impl Into<String>) {
        *held(&self.shared.remark) = text.into();
    }

    /// Says a line that a person should read while the work goes on.
    pub fn say(&self, line: impl Into<String>) {
        let mut said = held(&self.said);
        if said.len() < LINES_KEPT {
            said.push(line.into());
        }
    }

    /// The lines said since somebody last asked, oldest first, those of parts among them.
    pub fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *held(&self.said))
    }

    /// Where the work is now.
    pub fn look(&self) -> Seen {
        self.shared.look()
    }

    /// Where the parts are that go on now, by name, in the order they began.
    pub fn parts(&self) -> Vec<(String, Seen)> {
        self.shared.living_parts().into_iter().map(|(name, part)| (name, part.look())).collect()
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

impl Shared {
    fn look(&self) -> Seen {
        // The phase is held so that no count of another phase stands beside its name.
        let phase = held(&self.phase);
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        let remark = held(&self.remark).clone();
        Seen { phase: phase.clone(), done: count(&self.done), total: count(&self.total), remark }
    }

    fn living_parts(&self) -> Vec<(String, Arc<Self>)> {
        let parts = held(&self.parts);
        parts.iter().filter_map(|(name, part)| Some((name.clone(), part.upgrade()?))).collect()
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
        assert_eq!(progress.look(), Seen { phase: "scoring".into(), done: 0, total: 7, remark: String::new() });
    }

    #[test]
    fn lines_that_nobody_fetches_do_not_grow_without_bound() {
        let progress = Progress::new();
        (0..LINES_KEPT + 5).for_each(|line| progress.say(line.to_string()));
        assert_eq!(progress.heard().len(), LINES_KEPT);
        assert!(progress.heard().is_empty());
    }

    #[test]
    fn a_clone_is_the_same_progress() {
        let progress = Progress::new();
        let other = progress.clone();
        other.announce(5);
        other.advance(2).unwrap();
        assert_eq!((progress.done(), progress.total()), (2, 5));
        progress.stop();
        assert_eq!(other.check(), Err(Stopped));
    }

    #[test]
    fn a_budget_of_steps_stops_the_work_when_it_is_spent() {
        let progress = Progress::new();
        progress.stop_at(3);
        assert_eq!((progress.advance(2), progress.advance(1)), (Ok(()), Err(Stopped)));
    }

    #[test]
    fn parts_count_for_themselves_and_are_stopped_with_the_whole() {
        let whole = Progress::new();
        whole.phase("cells", 2);
        let part = whole.part("a cell");
        part.phase("training", 9);
        part.advance(3).unwrap();
        part.remark("loss 0.5");
        part.say("epoch 1");
        let seen = Seen { phase: "training".into(), done: 3, total: 9, remark: "loss 0.5".to_owned() };
        assert_eq!((whole.done(), whole.parts()), (0, vec![("a cell".to_owned(), seen)]));
        whole.stop();
        assert!(part.is_stopped());
        drop(part);
        assert!(whole.parts().is_empty());
        assert_eq!(whole.heard(), ["epoch 1"]);
    }
}
