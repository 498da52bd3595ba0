//! Ctrl-C: once to end in order, twice to end at once.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use cuemark_core::Progress;

use crate::output::say;

/// What the shell calls a program that Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// What Ctrl-C stops now. Signals come to the process, not to a caller, so this has to be in one place for all.
static CURRENT: Mutex<Option<Progress>> = Mutex::new(None);

/// As long as it lives Ctrl-C stops its work; then what it stopped before.
pub(crate) struct Wired {
    before: Option<Progress>,
}

/// The first Ctrl-C stops `progress`; the second, and one when there is nothing to stop, ends the program.
pub(crate) fn on_ctrl_c(progress: &Progress) -> Wired {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        if let Err(error) = ctrlc::set_handler(heard) {
            say(&format!("Ctrl-C will not save anything: {error}"));
        }
    });
    Wired { before: current().replace(progress.clone()) }
}

fn heard() {
    match &*current() {
        Some(progress) if !progress.is_stopped() => progress.stop(),
        _ => std::process::exit(INTERRUPTED.into()),
    }
}

fn current() -> MutexGuard<'static, Option<Progress>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Wired {
    fn drop(&mut self) {
        *current() = self.before.take();
    }
}
