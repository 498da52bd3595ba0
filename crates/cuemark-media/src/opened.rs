//! A video file that is open: what is looked at is what is decoded.

use std::fs::{File, Metadata, OpenOptions};
use std::process::Stdio;
use std::sync::OnceLock;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{MediaError, Result};

/// What tells a file from a changed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its size.
    pub bytes: u64,
    /// When it was last changed, in milliseconds since 1970.
    pub modified: i64,
}

impl Stamp {
    /// Of the file that is at `path` now.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(path: &Utf8Path) -> Result<Self> {
        Ok(Self::from(&std::fs::metadata(path).map_err(MediaError::io("look at", path))?))
    }
}

impl From<&Metadata> for Stamp {
    fn from(data: &Metadata) -> Self {
        let modified = data.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        Self { bytes: data.len(), modified: modified.map_or(0, |since| since.as_millis() as i64) }
    }
}

/// A video file that is open. Programs get the open file, not its name (where the system lets them), so that nobody can put
/// another in its place between a look and the decoding, and no name is ever taken for an option or an address.
#[derive(Debug)]
pub struct OpenedVideo {
    path: Utf8PathBuf,
    file: File,
    stamp: Stamp,
    /// What ffprobe has said of it.
    told: OnceLock<Vec<u8>>,
}

impl OpenedVideo {
    /// Opens the file at `path`, through links.
    ///
    /// # Errors
    /// When it is not there, or is empty or no regular file: a pipe would keep the reader waiting for ever.
    pub fn open(path: &Utf8Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            // Opening a pipe without a writer would wait for one: O_NONBLOCK, as Linux and the BSDs number it.
            options.custom_flags(if cfg!(target_os = "linux") { 0o4000 } else { 0x4 });
        }
        let file = options.open(path).map_err(MediaError::io("read", path))?;
        Self::of(path, file)
    }

    /// A file that the caller has opened, and perhaps checked; `path` is for messages and for systems that open by name only.
    ///
    /// # Errors
    /// When it is empty or no regular file.
    pub fn of(path: &Utf8Path, file: File) -> Result<Self> {
        let data = file.metadata().map_err(MediaError::io("look at", path))?;
        let problem = match data.len() {
            _ if data.is_dir() => "is a folder",
            _ if !data.is_file() => "is no regular file",
            0 => "is empty: 0 bytes",
            _ => return Ok(Self { path: path.to_owned(), stamp: Stamp::from(&data), file, told: OnceLock::new() }),
        };
        Err(MediaError::video(path, problem))
    }

    /// Where it lay when it was opened.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// What it was like when it was opened.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    pub(crate) fn told(&self) -> Option<&[u8]> {
        self.told.get().map(Vec::as_slice)
    }

    /// Keeps what was said of it; what was kept before stays.
    pub(crate) fn tell(&self, answer: Vec<u8>) -> &[u8] {
        self.told.get_or_init(|| answer)
    }

    /// Refuses a file that has grown, shrunk or been written since it was opened.
    ///
    /// # Errors
    /// [`MediaError::Changed`].
    pub fn check_unchanged(&self) -> Result<()> {
        let now = self.file.metadata().map_err(MediaError::io("look at", &self.path))?;
        if Stamp::from(&now) == self.stamp { Ok(()) } else { Err(MediaError::Changed { path: self.path.clone() }) }
    }

    /// The standard input and the address that a program reads it by.
    pub(crate) fn handed_over(&self) -> Result<(Stdio, String)> {
        const BY_HANDLE: &str = "/proc/self/fd/0";
        if cfg!(target_os = "linux") && Utf8Path::new("/proc/self/fd").is_dir() {
            let file = self.file.try_clone().map_err(MediaError::io("read", &self.path))?;
            return Ok((file.into(), format!("file:{BY_HANDLE}")));
        }
        let whole = std::path::absolute(&self.path).map_err(MediaError::io("find", &self.path))?;
        Ok((Stdio::null(), format!("file:{}", whole.display())))
    }
}
