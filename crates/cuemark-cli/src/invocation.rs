//! How this program was started: as a program of its own, or by the interpreter that its wheel was installed into.

use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How this program was started.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// What starts it again, for the processes that fill the cells of a study: a program and words that stand before its own.
    pub again: Vec<OsString>,
    /// What was typed behind it.
    pub words: Vec<OsString>,
}

impl Invocation {
    /// Of a process that is nothing else.
    pub fn of_this_process() -> Self {
        let again = std::env::current_exe().ok().map(OsString::from);
        Self { again: again.into_iter().collect(), words: std::env::args_os().skip(1).collect() }
    }
}

/// The latest: an interpreter may call more than once. Errors look for `--json` wherever they are told.
static CURRENT: Mutex<Invocation> = Mutex::new(Invocation { again: Vec::new(), words: Vec::new() });

/// Remembers it until the next.
pub(crate) fn remember(invocation: &Invocation) {
    current().clone_from(invocation);
}

/// What starts this program again.
pub(crate) fn again() -> Vec<OsString> {
    current().again.clone()
}

/// What was typed behind it.
pub(crate) fn words() -> Vec<OsString> {
    current().words.clone()
}

fn current() -> MutexGuard<'static, Invocation> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}
