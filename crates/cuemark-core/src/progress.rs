//! How far long work has come, and whether it should go on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Shared by work, which counts its steps, and whoever waits for it, who looks and may call it off.
///
/// A step is whatever the work says it is: a byte, a query, a resample. Counting costs one atomic addition.
///
/// ```
/// use cuemark_core::{Progress, Stopped};
/// let progress = Progress::new();
/// progress.expect(10);
/// assert_eq!(progress.advance(4), Ok(()));
/// assert_eq!((progress.done(), progress.total()), (4, 10));
/// progress.stop();
/// assert_eq!(progress.advance(1), Err(Stopped));
/// ```
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicUsize,
    total: AtomicUsize,
    stopped: AtomicBool,
}

/// Work was called off before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped before it was done")]
pub struct Stopped;

impl Progress {
    /// Nothing done, nothing expected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `steps` to what there is to do.
    pub fn expect(&self, steps: usize) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    /// Notes that `steps` more are done.
    ///
    /// # Errors
    /// When the work was called off: whoever counts should return as soon as it can.
    pub fn advance(&self, steps: usize) -> Result<(), Stopped> {
        self.done.fetch_add(steps, Ordering::Relaxed);
        if self.stopped.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }

    /// Calls the work off.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Steps done so far; may pass [`Progress::total`] where the work knew it only roughly.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Steps expected in all, as far as they are known by now.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}
