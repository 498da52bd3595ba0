//! How this program was started: as a program of its own, or by the interpreter that its wheel was installed into.

use std::ffi::OsString;
use std::sync::OnceLock;

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

static INVOCATION: OnceLock<Invocation> = OnceLock::new();

/// Remembers it for the whole process; an interpreter may call more than once, and its first call says how to start it.
pub(crate) fn remember(invocation: Invocation) {
    let _ = INVOCATION.set(invocation);
}

/// What starts this program again.
pub(crate) fn again() -> &'static [OsString] {
    INVOCATION.get().map_or(&[], |invocation| &invocation.again)
}

/// What was typed behind it.
pub(crate) fn words() -> &'static [OsString] {
    INVOCATION.get().map_or(&[], |invocation| &invocation.words)
}
