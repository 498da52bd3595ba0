//! The seam (file-system trait) between the embedded engine and the disk: everything that the engine does to files it does here.
//!
//! There is one production implementation, [`RealDisk`]. Tests have another that fails the n-th operation or stops there as
//! a power cut does (`tests/faults/`), which is why the trait is public.

use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};

use camino::Utf8Path;

pub use super::mapped::Mapped;

/// The file operations of the embedded engine. Paths are taken as they are; nothing is cached.
pub trait Disk: Send + Sync + Debug {
    /// Opens a file that is there, to read.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file that is there, to read and write.
    ///
    /// # Errors
    /// What the system says.
    fn open_to_write(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>>;

    /// Makes an empty file, in place of one that is there.
    ///
    /// # Errors
    /// What the system says.
    fn create(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>>;

    /// Puts `from` under the name `to`, in place of what is there, in one step.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, path: &Utf8Path) -> io::Result<()>;

    /// Waits until the names in a folder are on disk (`fsync` of the directory).
    ///
    /// # Errors
    /// What the system says.
    fn sync_folder(&self, folder: &Utf8Path) -> io::Result<()>;

    /// Makes a folder and those above it; one that is there is fine.
    ///
    /// # Errors
    /// What the system says.
    fn make_folder(&self, folder: &Utf8Path) -> io::Result<()>;

    /// The names in a folder, in no promised order. Names that are not UTF-8 are none of ours and left out.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self, folder: &Utf8Path) -> io::Result<Vec<String>>;

    /// What tells the file at `path` from another one there.
    ///
    /// # Errors
    /// What the system says; `NotFound` when there is none.
    fn stamp(&self, path: &Utf8Path) -> io::Result<FileStamp>;

    /// Takes the lock on `path`, making the file if need be; `None` when somebody else has it. It lasts as long as what is
    /// returned.
    ///
    /// # Errors
    /// What the system says.
    fn lock(&self, path: &Utf8Path) -> io::Result<Option<Box<dyn Held>>>;
}

/// A lock that is held until this is dropped.
pub trait Held: Send + Sync {}

impl Held for File {}

/// A file that is open.
pub trait DiskFile: Send + Sync {
    /// Reads from `offset` on; fewer bytes than asked for, or none, at the end.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes at `offset`; may write fewer bytes than given.
    ///
    /// # Errors
    /// What the system says.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until what was written is on disk (`fsync`).
    ///
    /// # Errors
    /// What the system says.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file back to `length` bytes. The engine never makes a file longer with it.
    ///
    /// # Errors
    /// What the system says.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// What tells this file from another, and how long it is now.
    ///
    /// # Errors
    /// What the system says.
    fn stamp(&self) -> io::Result<FileStamp>;

    /// The first `length` bytes, paged in as they are touched. The caller promises that the file is never cut to less.
    ///
    /// # Errors
    /// When the file is shorter, or what the system says.
    fn map(&self, length: u64) -> io::Result<Mapped>;
}

/// What tells a file from another one under the same name, and from itself at another time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileStamp {
    /// The device that it is on; 0 where the system has none.
    pub device: u64,
    /// Its number there (inode); 0 where the system has none.
    pub inode: u64,
    /// Bytes.
    pub length: u64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified: i128,
}

impl FileStamp {
    /// Whether both are the same file, whatever has become of it in between.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// The disk of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::open(path)?))
    }

    fn open_to_write(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn create(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?))
    }

    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Utf8Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    #[cfg(unix)]
    fn sync_folder(&self, folder: &Utf8Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    #[cfg(not(unix))]
    fn sync_folder(&self, _: &Utf8Path) -> io::Result<()> {
        Ok(())
    }

    fn make_folder(&self, folder: &Utf8Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)
    }

    fn list(&self, folder: &Utf8Path) -> io::Result<Vec<String>> {
        let names = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(io::Result::transpose).collect()
    }

    fn stamp(&self, path: &Utf8Path) -> io::Result<FileStamp> {
        Ok(stamp_of(&std::fs::metadata(path)?))
    }

    fn lock(&self, path: &Utf8Path) -> io::Result<Option<Box<dyn Held>>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl DiskFile for File {
    #[cfg(unix)]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(self, bytes, offset)
    }

    // Elsewhere the cursor is moved: every handle of the engine has one user at a time.
    #[cfg(not(unix))]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        use std::io::{Read as _, Seek as _};
        let mut file = self;
        file.seek(io::SeekFrom::Start(offset))?;
        file.read(buffer)
    }

    #[cfg(not(unix))]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        use std::io::Seek as _;
        let mut file = self;
        file.seek(io::SeekFrom::Start(offset))?;
        file.write(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn stamp(&self) -> io::Result<FileStamp> {
        Ok(stamp_of(&self.metadata()?))
    }

    fn map(&self, length: u64) -> io::Result<Mapped> {
        Mapped::of_file(self, length)
    }
}

fn stamp_of(data: &std::fs::Metadata) -> FileStamp {
    #[cfg(unix)]
    let (device, inode) = (std::os::unix::fs::MetadataExt::dev(data), std::os::unix::fs::MetadataExt::ino(data));
    #[cfg(not(unix))]
    let (device, inode) = (0, 0);
    let modified = data.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    FileStamp { device, inode, length: data.len(), modified: modified.map_or(0, |since| since.as_nanos() as i128) }
}

/// Writes all of `bytes` at `offset`; with an error comes how many arrived before it.
pub(super) fn write_all_at(file: &dyn DiskFile, offset: u64, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    while written < bytes.len() {
        match file.write_at(offset + written as u64, &bytes[written..]) {
            Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

/// Fills `buffer` from `offset` on as far as the file goes; how much that was.
pub(super) fn read_full_at(file: &dyn DiskFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(offset + read as u64, &mut buffer[read..]) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Waits for the disk, again when a signal came in between.
pub(super) fn sync(file: &dyn DiskFile) -> io::Result<()> {
    loop {
        match file.sync() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A small file as a whole, `most` bytes at most.
pub(crate) fn read_small(disk: &dyn Disk, path: &Utf8Path, most: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let length = file.stamp()?.length;
    if length > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{length} bytes, more than {most}")));
    }
    let mut bytes = vec![0; length as usize];
    let read = read_full_at(&*file, 0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Writes a file whose bytes are safe on disk afterwards; its name is once its folder is.
pub(crate) fn write_synced(disk: &dyn Disk, path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let file = disk.create(path)?;
    write_all_at(&*file, 0, bytes).map_err(|(_, error)| error)?;
    sync(&*file)
}

/// Puts a file under its name whole or not at all, name included: `unfinished` is what it is called until then.
pub(crate) fn write_whole(
    disk: &dyn Disk,
    folder: &Utf8Path,
    unfinished: &str,
    name: &str,
    bytes: &[u8],
) -> io::Result<()> {
    let part = folder.join(unfinished);
    let written = write_synced(disk, &part, bytes).and_then(|()| disk.rename(&part, &folder.join(name)));
    if written.is_err() {
        // What cannot be removed now is removed by the next writer.
        let _ = disk.remove(&part);
    }
    written?;
    disk.sync_folder(folder)
}

/// A new file, written from its beginning.
pub(super) struct Appender {
    file: Box<dyn DiskFile>,
    at: u64,
}

impl Appender {
    pub(super) fn create(disk: &dyn Disk, path: &Utf8Path) -> io::Result<Self> {
        Ok(Self { file: disk.create(path)?, at: 0 })
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        sync(&*self.file)
    }
}

impl Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(self.at, bytes)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
