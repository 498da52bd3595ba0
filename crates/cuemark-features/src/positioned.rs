//! A file that is read piece by piece, wherever the piece lies.
//!
//! Shards were mapped into memory once. A mapping is only as good as the file behind it: when somebody shortens the file in
//! place (a copy over it, a synchronising disk, `truncate`), touching the missing pages ends the process with SIGBUS, and no
//! check beforehand helps, because the file may shrink between the check and the touch. A positioned read (`pread`) of the same
//! bytes costs one copy from the system's cache and fails like any other read. Our own writer never does this, since it
//! puts a new file under the name; but who copies stores around does.

use std::fs::File;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// An open file; several threads may read at once.
#[derive(Debug)]
pub(crate) struct PositionedFile {
    file: File,
    /// Where systems that cannot read at a position open it anew.
    #[cfg_attr(unix, allow(dead_code))]
    path: Utf8PathBuf,
    length: u64,
}

impl PositionedFile {
    pub(crate) fn open(path: &Utf8Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, path: path.to_owned(), length })
    }

    /// Bytes that it had when it was opened.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The file from its start; for whoever reads before there are other threads.
    pub(crate) fn stream(&self) -> impl io::Read {
        &self.file
    }

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// When the file is shorter than that by now, or cannot be read.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileExt;
            self.file.read_exact_at(bytes, offset)
        }
        #[cfg(not(unix))]
        {
            use std::io::{Read, Seek, SeekFrom};
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(bytes)
        }
    }
}
