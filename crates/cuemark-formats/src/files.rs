//! The seam (file-system trait) between whole files and the disk: everything that writing one does to files it does here.
//!
//! There is one production implementation, [`RealFiles`]. Tests have another that fails the n-th operation or stops there as a
//! power cut does (`cuemark-train/tests/faults/`), which is why the trait is public. Reading goes past it: what was written is
//! where it was written.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Write};

use camino::Utf8Path;

/// What is done to files to write them. Paths are taken as they are.
pub trait Files: Send + Sync + Debug {
    /// Makes an empty file where none may be.
    ///
    /// # Errors
    /// What the system says.
    fn create(&self, path: &Utf8Path) -> io::Result<Box<dyn OpenFile>>;

    /// Opens a file to write behind its end, making it if need be.
    ///
    /// # Errors
    /// What the system says.
    fn append(&self, path: &Utf8Path) -> io::Result<Box<dyn OpenFile>>;

    /// Puts `from` under the name `to`, in place of what is there, in one step.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says; `NotFound` when there is none.
    fn remove(&self, path: &Utf8Path) -> io::Result<()>;

    /// Makes a folder and those above it; one that is there is fine.
    ///
    /// # Errors
    /// What the system says.
    fn make_folder(&self, folder: &Utf8Path) -> io::Result<()>;

    /// Waits until the names in a folder are on disk (`fsync` of the directory).
    ///
    /// # Errors
    /// What the system says.
    fn sync_folder(&self, folder: &Utf8Path) -> io::Result<()>;
}

/// A file that is being written.
pub trait OpenFile: Write + Send {
    /// Waits until what was written is on disk (`fsync`).
    ///
    /// # Errors
    /// What the system says.
    fn sync(&mut self) -> io::Result<()>;
}

/// The files of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFiles;

impl Files for RealFiles {
    fn create(&self, path: &Utf8Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(File::create_new(path)?))
    }

    fn append(&self, path: &Utf8Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(File::options().create(true).append(true).open(path)?))
    }

    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Utf8Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn make_folder(&self, folder: &Utf8Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)
    }

    #[cfg(unix)]
    fn sync_folder(&self, folder: &Utf8Path) -> io::Result<()> {
        match File::open(folder)?.sync_all() {
            // Some file systems have no such thing for folders.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            synced => synced,
        }
    }

    #[cfg(not(unix))]
    fn sync_folder(&self, _: &Utf8Path) -> io::Result<()> {
        Ok(())
    }
}

impl OpenFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
