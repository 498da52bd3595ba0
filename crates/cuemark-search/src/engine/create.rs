//! Making an empty index in a folder, alone and without losing what is there.

use camino::Utf8Path;
use cuemark_formats::{Overwrite, ReadError};

use super::disk::Disk;
use super::log::{Encoded, Head, Identity};
use super::snapshot::Snapshot;
use super::{LOG, compact, graph, limits, writer};
use crate::{KeptFile, Manifest, Result, SearchError, kept, manifest};

/// Makes a log with `records` in `folder`, and behind it the manifest and what the index keeps of its encoder; the manifest gets
/// the log's identity and is returned as it was written.
///
/// # Errors
/// When somebody is writing there; when an index is there, or a log that holds anything, and may not be replaced; when a file
/// cannot be written; and those of `records`. Nothing that was there has changed then, save that a manifest that may be replaced
/// is gone, and with it what it kept.
pub(super) fn create_with(
    disk: &dyn Disk,
    folder: &Utf8Path,
    width: usize,
    about: Option<(&Manifest, &[KeptFile])>,
    overwrite: Overwrite,
    records: impl Iterator<Item = Result<Encoded>>,
) -> Result<Option<Manifest>> {
    if width == 0 || width > limits::WIDTH {
        return Err(SearchError::Width { expected: limits::WIDTH, found: width });
    }
    disk.make_folder(folder).map_err(SearchError::io("make", folder))?;
    let _lock = writer::take_lock(disk, folder)?;
    let described = folder.join(manifest::FILE);
    let is_described = is_there(disk, &described)?;
    if overwrite == Overwrite::Never {
        if is_described {
            return Err(ReadError::Exists { path: described }.into());
        }
        check_holds_nothing(disk, folder)?;
    }
    writer::clear_unfinished(disk, folder)?;
    if is_described {
        let old = Manifest::read_on(disk, folder).map(|old| old.kept).unwrap_or_default();
        // From here on until the new manifest there is no index, rather than one whose manifest tells of another log.
        disk.remove(&described).map_err(SearchError::io("remove", &described))?;
        disk.sync_folder(folder).map_err(SearchError::io("write", folder))?;
        kept::remove(disk, folder, &old);
    }
    let head = Head { width, generation: 0, identity: Identity::random(), old: false };
    compact::write(disk, folder, &head, records)?;
    disk.sync_folder(folder).map_err(SearchError::io("write", folder))?;
    // A graph of the log that was replaced; one that stays names that log and is not used.
    let _ = disk.remove(&folder.join(graph::FILE));
    let Some((about, files)) = about else { return Ok(None) };
    let kept = kept::write(disk, folder, files)?;
    let about = Manifest { log: Some(head.identity.to_string()), kept, ..about.clone() };
    // The manifest last: without it there is no index.
    about.write_on(disk, folder)?;
    Ok(Some(about))
}

/// Refuses when a log is there that has records, or that cannot be read and may have them.
pub(super) fn check_holds_nothing(disk: &dyn Disk, folder: &Utf8Path) -> Result<()> {
    let path = folder.join(LOG);
    if !is_there(disk, &path)? {
        return Ok(());
    }
    let file = disk.open(&path).map_err(SearchError::io("open", &path))?;
    let holds = match Snapshot::read(&*file, &path) {
        Ok(snapshot) if snapshot.is_untouched() => return Ok(()),
        Ok(snapshot) => format!("{} videos", snapshot.puts.iter().filter(|put| put.live).count()),
        Err(SearchError::Damaged { .. }) => "something that cannot be read".to_owned(),
        Err(error) => return Err(error),
    };
    Err(SearchError::Undescribed { path, holds })
}

fn is_there(disk: &dyn Disk, path: &Utf8Path) -> Result<bool> {
    match disk.stamp(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(SearchError::Io { what: "look at", path: path.to_owned(), source }),
    }
}
