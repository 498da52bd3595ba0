//! Videos through the `ffmpeg` and `ffprobe` programs: length, frames, thumbnails, cuts.
//!
//! Paths reach the programs from the root and with `file:` in front, so that no name is taken for an option or for another
//! protocol, and only local files are opened whatever a playlist says.

mod cut;
#[cfg(feature = "models")]
mod frames;
mod probe;
mod thumbnail;

use std::io::{ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use cuemark_core::{Progress, Stopped};

pub use cut::cut;
#[cfg(feature = "models")]
pub use frames::WorldFrames;
pub use probe::{Probe, probe};
pub use thumbnail::thumbnail;

use crate::{Result, SearchError};

/// Extensions of the files that are taken for videos when a folder is given.
pub const EXTENSIONS: [&str; 9] = ["mp4", "m4v", "mov", "mkv", "webm", "avi", "mpg", "mpeg", "ts"];

const INSTALL: &str = "install it: `apt-get install ffmpeg`, `brew install ffmpeg` or ffmpeg.org";
const DAMAGED: &str = "does it play elsewhere? re-encode it with `ffmpeg -i IN OUT.mp4`";

/// A call of `program` that reads no input and opens nothing but local files.
fn call(program: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["-v", "error"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if program == "ffmpeg" {
        command.args(["-nostdin", "-y"]);
    }
    command.args(["-protocol_whitelist", "file,pipe,crypto,data"]);
    command
}

/// `path` as the programs take it.
fn address(path: &Utf8Path) -> Result<String> {
    let whole = path.canonicalize_utf8().map_err(SearchError::io("open", path))?;
    Ok(format!("file:{whole}"))
}

fn start(command: &mut Command, path: &Utf8Path) -> Result<Child> {
    command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let program = command.get_program().to_string_lossy().into_owned();
            fault(path, format!("there is no program `{program}`"), INSTALL)
        }
        _ => fault(path, format!("cannot run ffmpeg: {error}"), INSTALL),
    })
}

/// Runs a call to its end, at most `limit` long, and returns at most `most` bytes of its output. The process is gone when
/// this returns, also where `progress` was stopped.
fn output(command: &mut Command, path: &Utf8Path, limit: Duration, most: u64, progress: &Progress) -> Result<Vec<u8>> {
    let mut child = start(command, path)?;
    let stderr = child.stderr.take();
    let said = std::thread::spawn(move || {
        let mut text = Vec::new();
        // What it says is for the message only.
        let _ = stderr.map(|pipe| pipe.take(4096).read_to_end(&mut text));
        String::from_utf8_lossy(&text).trim().to_owned()
    });
    let stdout = child.stdout.take();
    let read = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.map_or(Ok(0), |pipe| pipe.take(most).read_to_end(&mut bytes)).map(|_| bytes)
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if progress.is_stopped() => {
                // It is ours and nobody waits for it any more.
                let _ = child.kill();
                let _ = child.wait();
                return Err(fault(path, Stopped.to_string(), DAMAGED));
            }
            Ok(None) if began.elapsed() > limit => {
                // It is ours and hangs; whatever it wrote is thrown away.
                let _ = child.kill();
                let _ = child.wait();
                return Err(fault(path, format!("took longer than {} s", limit.as_secs()), DAMAGED));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(4)),
            Err(error) => return Err(fault(path, format!("ffmpeg: {error}"), DAMAGED)),
        }
    };
    let said = said.join().unwrap_or_default();
    let bytes = read.join().ok().and_then(std::io::Result::ok).unwrap_or_default();
    if status.success() {
        return Ok(bytes);
    }
    Err(fault(path, first_line(&said), DAMAGED))
}

fn first_line(said: &str) -> String {
    let line = said.lines().next_back().unwrap_or_default();
    if line.is_empty() { "cannot be decoded".to_owned() } else { format!("cannot be decoded: {line}") }
}

fn fault(path: &Utf8Path, problem: String, hint: &'static str) -> SearchError {
    SearchError::Media { path: path.to_owned(), problem, hint }
}
