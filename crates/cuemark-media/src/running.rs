//! A program that runs: what comes out of it, for how long, and its end.

use std::io::{self, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Progress;

use crate::complaints::{Complaints, Heard, listen};
use crate::{MediaError, Result};

/// How often a wait looks whether it should go on.
const LOOK: Duration = Duration::from_millis(25);
/// How long a program that has ended may have more to say: another that it started may hold its pipes.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Pieces that may wait on either side of a pipe.
const WAITING: usize = 2;

/// A program that runs. Dropping it kills the program and waits until it is gone.
#[derive(Debug)]
pub(crate) struct Running {
    program: &'static str,
    /// The video that it works on: what goes wrong then is about that video, and another may well succeed.
    video: Option<Utf8PathBuf>,
    child: Child,
    heard: Option<Heard>,
    began: Instant,
    wall: Option<Duration>,
}

impl Running {
    pub(crate) fn new(
        program: &'static str,
        video: Option<&Utf8Path>,
        mut child: Child,
        wall: Option<Duration>,
    ) -> Self {
        let heard = child.stderr.take().map(listen);
        Self { program, video: video.map(Utf8Path::to_owned), child, heard, began: Instant::now(), wall }
    }

    fn fault(&self, problem: &dyn std::fmt::Display) -> MediaError {
        let (program, problem) = (self.program, problem.to_string());
        match &self.video {
            Some(path) => MediaError::video(path, format!("`{program}`: {problem}")),
            None => MediaError::Program { program, problem },
        }
    }

    /// Whether the program may go on.
    ///
    /// # Errors
    /// When the work was stopped, or the program's time is over.
    pub(crate) fn watch(&self, progress: &Progress) -> Result<()> {
        progress.check()?;
        match self.wall {
            Some(wall) if self.began.elapsed() > wall => {
                Err(self.fault(&format_args!("it took longer than {} s", wall.as_secs())))
            }
            _ => Ok(()),
        }
    }

    /// Its output, `size` bytes at a time, read on a thread of its own so that whoever waits can stop waiting. What is left at
    /// the end and is not `size` bytes is dropped.
    pub(crate) fn pieces(&mut self, size: usize) -> Receiver<io::Result<Vec<u8>>> {
        let (send, receive) = sync_channel(WAITING);
        let stdout = self.child.stdout.take();
        std::thread::spawn(move || stdout.map(|pipe| read_pieces(pipe, size, &send)));
        receive
    }

    /// The next of `pieces`; `None` at the end.
    ///
    /// # Errors
    /// When the pipe breaks, the work was stopped, or the program's time is over.
    pub(crate) fn next<T>(&self, pieces: &Receiver<T>, progress: &Progress) -> Result<Option<T>> {
        loop {
            self.watch(progress)?;
            match pieces.recv_timeout(LOOK) {
                Ok(piece) => return Ok(Some(piece)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// All of its output, at most `most` bytes.
    ///
    /// # Errors
    /// When it says more, and as [`Running::next`].
    pub(crate) fn collect(&mut self, most: usize, progress: &Progress) -> Result<Vec<u8>> {
        let (send, receive) = sync_channel(1);
        let stdout = self.child.stdout.take();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.map_or(Ok(0), |pipe| pipe.take(most as u64 + 1).read_to_end(&mut bytes));
            send.send(read.map(|_| bytes))
        });
        match self.next(&receive, progress)? {
            Some(Ok(bytes)) if bytes.len() > most => Err(self.fault(&format_args!("it wrote more than {most} bytes"))),
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(error)) => Err(self.fault(&error)),
            None => Ok(Vec::new()),
        }
    }

    /// Writes pieces into its input, one after the other, and closes it. A program that gives up closes the pipe itself; why, its
    /// own words say, so that is no error here.
    ///
    /// # Errors
    /// When the work was stopped, or the program's time is over.
    pub(crate) fn feed(&mut self, pieces: impl Iterator<Item = Vec<u8>>, progress: &Progress) -> Result<Fed> {
        let Some(stdin) = self.child.stdin.take() else { return Ok(Fed::Cut) };
        let (send, receive) = sync_channel(WAITING);
        let (wrote, written) = sync_channel(1);
        std::thread::spawn(move || wrote.send(write_pieces(stdin, &receive)));
        for piece in pieces {
            if !self.hand_over(&send, piece, progress)? {
                break;
            }
        }
        drop(send);
        Ok(self.next(&written, progress)?.unwrap_or(Fed::Cut))
    }

    fn hand_over(&self, to: &SyncSender<Vec<u8>>, mut piece: Vec<u8>, progress: &Progress) -> Result<bool> {
        loop {
            self.watch(progress)?;
            piece = match to.try_send(piece) {
                Ok(()) => return Ok(true),
                Err(TrySendError::Disconnected(_)) => return Ok(false),
                Err(TrySendError::Full(piece)) => piece,
            };
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The next time that it announced.
    pub(crate) fn next_time(&self, progress: &Progress) -> Result<Option<f64>> {
        self.heard.as_ref().map_or(Ok(None), |heard| self.next(&heard.times, progress))
    }

    /// Waits for its end, and for its last words.
    ///
    /// # Errors
    /// When the work was stopped, or the program's time is over.
    pub(crate) fn end(&mut self, progress: &Progress) -> Result<(ExitStatus, Complaints)> {
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => self.watch(progress)?,
                Err(error) => return Err(self.fault(&error)),
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let heard = self.heard.take();
        let complaints = heard.and_then(|heard| heard.complaints.recv_timeout(LAST_WORDS).ok()).unwrap_or_default();
        Ok((status, complaints))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; either way it must not be left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How much of what it was fed a program took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fed {
    /// Everything.
    Whole,
    /// It closed its input before the end.
    Cut,
}

fn read_pieces(mut pipe: ChildStdout, size: usize, to: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = vec![0; size];
        let read = match pipe.read_exact(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return,
            read => read.map(|()| piece),
        };
        let broken = read.is_err();
        // Nobody is there any more when the reader was dropped.
        if to.send(read).is_err() || broken {
            return;
        }
    }
}

fn write_pieces(mut pipe: ChildStdin, pieces: &Receiver<Vec<u8>>) -> Fed {
    for piece in pieces {
        if pipe.write_all(&piece).is_err() {
            return Fed::Cut;
        }
    }
    Fed::Whole
}

/// The signal that ended a program, where the system has signals.
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    return (!status.success() && status.code().is_none()).then_some(0);
}
