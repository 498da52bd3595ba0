//! The one that may append to a log.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use super::disk::{self, Disk, DiskFile, Held, read_full_at, write_all_at};
use super::log::{Commit, Encoded, FIRST, Head};
use super::snapshot::Snapshot;
use super::{LOCK, LOG, limits};
use crate::{Result, SearchError};

/// Takes the lock of an index for as long as what is returned lives.
///
/// # Errors
/// When somebody else has it, or the lock's file cannot be opened.
pub(super) fn take_lock(disk: &dyn Disk, folder: &Utf8Path) -> Result<Box<dyn Held>> {
    let lock = folder.join(LOCK);
    let held = disk.lock(&lock).map_err(SearchError::io("lock", &lock))?;
    held.ok_or_else(|| SearchError::Locked { path: folder.to_owned() })
}

/// Removes what an earlier writer did not finish; the one who calls this has the lock.
pub(super) fn clear_unfinished(disk: &dyn Disk, folder: &Utf8Path) -> Result<()> {
    let names = disk.list(folder).map_err(SearchError::io("list", folder))?;
    for name in names.iter().filter(|name| is_unfinished(name)) {
        let path = folder.join(name);
        disk.remove(&path).map_err(SearchError::io("remove", &path))?;
    }
    Ok(())
}

fn is_unfinished(name: &str) -> bool {
    let stem = name.strip_suffix(".part").unwrap_or_default();
    ["moments", "index", "graph"].contains(&stem) || stem.strip_prefix("graph-").is_some()
}

/// The one that may append; the lock lasts as long as it lives.
pub(super) struct Writer {
    disk: Arc<dyn Disk>,
    folder: Utf8PathBuf,
    log: Box<dyn DiskFile>,
    head: Head,
    /// Behind the last commit.
    end: u64,
    /// The last commit: where it begins, and its number.
    last: (u64, u64),
    /// Records of the last batch that the next commit has to name.
    voids: Vec<u64>,
    _lock: Box<dyn Held>,
}

impl Writer {
    /// Begins where `snapshot` ends, which was read from `log` under `lock`. Whatever lies behind was never acknowledged and is
    /// cut off.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(super) fn start(
        disk: Arc<dyn Disk>,
        folder: &Utf8Path,
        log: Box<dyn DiskFile>,
        snapshot: &Snapshot,
        lock: Box<dyn Held>,
    ) -> Result<Self> {
        let path = folder.join(LOG);
        let end = snapshot.end as u64;
        let length = log.stamp().map_err(SearchError::io("look at", &path))?.length;
        if length > end {
            log.truncate(end).map_err(SearchError::io("cut", &path))?;
        }
        // An earlier writer may have died between its last write and its `fsync`: nothing is built upon what is not on disk.
        disk::sync(&*log).map_err(SearchError::io("write", &path))?;
        let (last, voids) = (snapshot.last, snapshot.not_whole.clone());
        Ok(Self { disk, folder: folder.to_owned(), log, head: snapshot.head, end, last, voids, _lock: lock })
    }

    /// Appends a batch with its commit and waits until it is on disk. After an error the writer must not be used any more.
    ///
    /// # Errors
    /// When the file is no longer the one at the index's path, or cannot be written. Nothing of the batch was acknowledged
    /// then; it may be there all the same, when only waiting for the disk failed.
    pub(super) fn append(&mut self, records: &[Encoded]) -> Result<()> {
        let path = self.folder.join(LOG);
        self.check_place(&path)?;
        let mut bytes = Vec::with_capacity(records.iter().map(|record| record.bytes.len() + 256).sum());
        let (mut end, mut last) = (self.end, self.last);
        // Where each commit ends.
        let mut ends = Vec::new();
        for part in records.chunks(limits::COMMITTED) {
            let voids = std::mem::take(&mut self.voids);
            let about = (self.head.identity, self.head.width);
            let commit = Commit::of(about, last.1 + 1, (end, last.0), part, voids);
            part.iter().for_each(|record| bytes.extend_from_slice(&record.bytes));
            bytes.extend(commit.encode());
            (end, last) = (commit.end, (commit.at, commit.sequence));
            ends.push(end);
        }
        if let Err((written, source)) = write_all_at(&*self.log, self.end, &bytes) {
            // What readers cannot have seen yet is cut off, so that a full disk has room again. A commit that is whole may be
            // mapped by a reader already and has to stay.
            let whole = ends.iter().rfind(|end| **end <= self.end + written as u64);
            // A tail that cannot be cut is behind the last commit and does no harm.
            let _ = self.log.truncate(*whole.unwrap_or(&self.end));
            return Err(SearchError::Io { what: "write", path, source });
        }
        disk::sync(&*self.log).map_err(SearchError::io("write", &path))?;
        (self.end, self.last) = (end, last);
        Ok(())
    }

    /// Refuses to write unless the file that is open is still the index's log, and as it was left.
    fn check_place(&self, path: &Utf8Path) -> Result<()> {
        let replaced = || SearchError::Replaced { path: self.folder.clone() };
        let here = match self.disk.stamp(path) {
            Ok(here) => here,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(replaced()),
            Err(source) => return Err(SearchError::Io { what: "look at", path: path.to_owned(), source }),
        };
        let open = self.log.stamp().map_err(SearchError::io("look at", path))?;
        let mut head = vec![0; FIRST];
        let read = read_full_at(&*self.log, 0, &mut head).map_err(SearchError::io("read", path))?;
        head.truncate(read);
        let same = Head::read(&head).is_ok_and(|(head, _)| head == self.head);
        // Nobody else writes: a file of another length is not what it was, whatever it is.
        if !here.is_same_file(&open) || open.length != self.end || !same {
            return Err(replaced());
        }
        Ok(())
    }
}
