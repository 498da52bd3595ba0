//! A disk in memory, so that an index costs microseconds to open, write and throw away.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_search::engine::disk::{Disk, DiskFile, FileStamp, Held, Mapped};

/// Files by name. Clones are the same disk; nothing fails and nobody else writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<BTreeMap<Utf8PathBuf, Content>>>);

/// What is in a file, and the number by which it is told from others.
type Content = (Arc<Mutex<Vec<u8>>>, u64);

impl Memory {
    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        let mut files = held(&self.0);
        let number = files.len() as u64 + 1;
        files.insert(path.into(), (Arc::new(Mutex::new(bytes.to_vec())), number));
    }

    pub(crate) fn get(&self, path: &str) -> Option<Vec<u8>> {
        held(&self.0).get(Utf8Path::new(path)).map(|(content, _)| held(content).clone())
    }

    /// A disk with the same files, on which changes are not seen here.
    pub(crate) fn copy(&self) -> Self {
        let copied = |(content, number): &Content| (Arc::new(Mutex::new(held(content).clone())), *number);
        Self(Arc::new(Mutex::new(held(&self.0).iter().map(|(path, file)| (path.clone(), copied(file))).collect())))
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Open(Content);

struct Lock;

impl Held for Lock {}

impl Disk for Memory {
    fn open(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        let file = held(&self.0).get(path).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Open(file)))
    }

    fn open_to_write(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path)
    }

    fn create(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        self.put(path.as_str(), &[]);
        self.open(path)
    }

    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        let mut files = held(&self.0);
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Utf8Path) -> io::Result<()> {
        held(&self.0).remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_folder(&self, _: &Utf8Path) -> io::Result<()> {
        Ok(())
    }

    fn make_folder(&self, _: &Utf8Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, folder: &Utf8Path) -> io::Result<Vec<String>> {
        let files = held(&self.0);
        let here = files.keys().filter(|path| path.parent() == Some(folder));
        Ok(here.filter_map(|path| path.file_name()).map(str::to_owned).collect())
    }

    fn stamp(&self, path: &Utf8Path) -> io::Result<FileStamp> {
        self.open(path)?.stamp()
    }

    fn lock(&self, _: &Utf8Path) -> io::Result<Option<Box<dyn Held>>> {
        Ok(Some(Box::new(Lock)))
    }
}

impl DiskFile for Open {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let content = held(&self.0.0);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let there = content.get(from..).unwrap_or_default();
        let count = there.len().min(buffer.len());
        buffer.iter_mut().zip(there).for_each(|(to, from)| *to = *from);
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut content = held(&self.0.0);
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let to = from.checked_add(bytes.len()).filter(|to| *to < 1 << 28).ok_or(io::ErrorKind::FileTooLarge)?;
        let length = content.len().max(to);
        content.resize(length, 0);
        content.get_mut(from..to).unwrap_or_default().copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut content = held(&self.0.0);
        assert!(length <= content.len() as u64, "a cut to {length} bytes makes a file of {} longer", content.len());
        content.truncate(length as usize);
        Ok(())
    }

    fn stamp(&self) -> io::Result<FileStamp> {
        let length = held(&self.0.0).len() as u64;
        Ok(FileStamp { device: 1, inode: self.0.1, length, modified: i128::from(length) })
    }

    fn map(&self, length: u64) -> io::Result<Mapped> {
        let content = held(&self.0.0);
        let mapped = usize::try_from(length).ok().and_then(|length| content.get(..length));
        Ok(Mapped::of_bytes(mapped.ok_or(io::ErrorKind::UnexpectedEof)?, Arc::new(())))
    }
}
