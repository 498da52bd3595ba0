//! Long work without the interpreter's lock: other threads run, Ctrl-C stops it, a bar shows how far it is.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use cuemark_core::{Progress, Seen};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::failure::{Failure, Result};

/// How often signals are looked for and the bar is moved.
const LOOK: Duration = Duration::from_millis(50);
/// Work that is done by then shows no bar.
const PATIENCE: Duration = Duration::from_millis(400);

/// Who wants to know how far work has come.
pub(crate) enum Audience {
    /// Nobody.
    Nobody,
    /// A person: a bar on standard error.
    Person,
    /// A function of `(what, done, total)`.
    Function(Py<PyAny>),
}

impl Audience {
    /// From the argument `progress`: `True`, `False`, a function, or `None` for a bar when standard error is a terminal.
    pub(crate) fn of(py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        let Some(progress) = progress else {
            let shown: bool = py.import("cuemark._progress")?.call_method0("is_watched")?.extract()?;
            return Ok(if shown { Self::Person } else { Self::Nobody });
        };
        if let Ok(wanted) = progress.cast::<PyBool>() {
            return Ok(if wanted.is_true() { Self::Person } else { Self::Nobody });
        }
        if progress.is_callable() {
            return Ok(Self::Function(progress.clone().unbind()));
        }
        let kind = progress.get_type().name()?;
        Err(Failure::wrong_type("progress", format!("a `{kind}` is neither True, False, None nor a function")))
    }
}

/// Runs `work` on a thread of its own with the interpreter's lock released, and waits for it.
///
/// `what` names the work to the audience until it names a phase of its own. When a signal handler raises (Ctrl-C), `progress` calls the work off and the
/// exception is handed on once the work has ended, so nothing goes on in the background.
///
/// # Errors
/// What the work says, or what a signal handler or the audience raised.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    audience: &Audience,
    what: &str,
    progress: &Progress,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let mut bar = Bar { audience, what, shown: None };
    let (result, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, is_done) = channel::<()>();
            let worker = scope.spawn(move || {
                // Dropped when the work ends, however it ends.
                let _done = done;
                work()
            });
            let begin = Instant::now();
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(LOOK) {
                if raised.is_some() {
                    continue;
                }
                let looked = Python::attach(|py| {
                    py.check_signals()?;
                    if begin.elapsed() > PATIENCE { bar.show(py, progress) } else { Ok(()) }
                });
                if let Err(error) = looked {
                    progress.stop();
                    raised = Some(error);
                }
            }
            (worker.join(), raised)
        })
    });
    bar.close(py)?;
    if let Some(error) = raised {
        return Err(error.into());
    }
    bar.finish(py, progress)?;
    py.check_signals()?;
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

struct Bar<'a> {
    audience: &'a Audience,
    what: &'a str,
    /// The bar of a phase.
    shown: Option<(String, Py<PyAny>)>,
}

impl Bar<'_> {
    fn show(&mut self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        let Seen { phase, done, total, .. } = progress.look();
        let what = if phase.is_empty() { self.what } else { phase.as_ref() };
        let done = done.min(total);
        match self.audience {
            Audience::Nobody => Ok(()),
            Audience::Function(function) => function.call1(py, (what, done, total)).map(drop),
            Audience::Person => {
                let bar = match self.shown.take() {
                    Some((phase, bar)) if phase == what => bar,
                    earlier => {
                        if let Some((_, bar)) = earlier {
                            bar.call_method0(py, "close")?;
                        }
                        py.import("cuemark._progress")?.call_method1("Bar", (what,))?.unbind()
                    }
                };
                bar.call_method1(py, "show", (done, total))?;
                self.shown = Some((what.to_owned(), bar));
                Ok(())
            }
        }
    }

    /// Takes a bar away.
    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        self.shown.take().map_or(Ok(()), |(_, bar)| bar.call_method0(py, "close").map(drop))
    }

    /// Tells a function where the work ended, also when it was too short to be told of before.
    fn finish(&mut self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        if matches!(self.audience, Audience::Function(_)) && progress.total() > 0 {
            self.show(py, progress)
        } else {
            Ok(())
        }
    }
}
