//! A log without what nobody can find any more.
//!
//! The live videos are written to a file beside the log, which takes the log's place once all of it is on disk. Until then the
//! old log counts, from then on the new one, and at no point neither. The new one is of the next generation, by which readers
//! notice that they have to begin anew and that an earlier graph numbers moments of another log.

use std::io::{BufWriter, Write as _};

use camino::Utf8Path;
use cuemark_core::Progress;

use super::disk::{Appender, Disk};
use super::log::{Commit, Encoded, Head, Identity};
use super::snapshot::{Put, Snapshot};
use super::{LOG, limits};
use crate::{Result, SearchError};

/// The name of a compacted log that is not finished.
pub(super) const UNFINISHED: &str = "moments.part";

/// Bytes of records that wait for a commit of their own.
const BATCH_BYTES: usize = 16 << 20;

/// Writes the live videos of a log and puts that in the log's place; the steps of `progress` are videos. The one who calls
/// this has the lock.
///
/// # Errors
/// When something is damaged, which a new log would hide, a file cannot be written, or `progress` was stopped. The log is as
/// it was then.
pub(super) fn replace(disk: &dyn Disk, folder: &Utf8Path, snapshot: &Snapshot, progress: &Progress) -> Result<()> {
    let log = folder.join(LOG);
    let damaged = |offset, problem| SearchError::Damaged { path: log.clone(), offset, problem };
    // What was not whole when a writer came was never acknowledged, or was said before; the rest would be hidden.
    let hidden = snapshot.damage.iter().find(|damage| !snapshot.is_void(damage.offset));
    if let Some(hidden) = hidden {
        return Err(damaged(hidden.offset, hidden.problem.clone()));
    }
    let live: Vec<&Put> = snapshot.puts.iter().filter(|put| put.live).collect();
    progress.phase("compacting", live.len());
    // A log of the first version gets an identity with its commits.
    let old = snapshot.head;
    let identity = if old.old { Identity::random() } else { old.identity };
    let head = Head { generation: old.generation.wrapping_add(1), identity, old: false, ..old };
    let records = live.iter().map(|put| {
        progress.advance(1)?;
        snapshot.record(put).map_err(|problem| damaged(snapshot.offset(put), problem))
    });
    write(disk, folder, &head, records)?;
    // The name itself has to be on disk before anything is added to the new log.
    disk.sync_folder(folder).map_err(SearchError::io("write", folder))
}

/// Writes a whole log and puts it under its name; the folder is not waited for.
///
/// # Errors
/// Those of `records`, and when a file cannot be written. Nothing has changed then.
pub(super) fn write(
    disk: &dyn Disk,
    folder: &Utf8Path,
    head: &Head,
    records: impl Iterator<Item = Result<Encoded>>,
) -> Result<()> {
    let unfinished = folder.join(UNFINISHED);
    let written = write_to(disk, &unfinished, head, records)
        .and_then(|()| disk.rename(&unfinished, &folder.join(LOG)).map_err(SearchError::io("rename", &unfinished)));
    if written.is_err() {
        // Most often the disk is full. What cannot be removed now is removed by the next writer.
        let _ = disk.remove(&unfinished);
    }
    written
}

fn write_to(
    disk: &dyn Disk,
    path: &Utf8Path,
    head: &Head,
    records: impl Iterator<Item = Result<Encoded>>,
) -> Result<()> {
    let out = Appender::create(disk, path).map_err(SearchError::io("make", path))?;
    let mut out = BufWriter::with_capacity(1 << 20, out);
    out.write_all(&head.encode()).map_err(SearchError::io("write", path))?;
    let (mut end, mut last) = (head.first() as u64, (0, 0));
    let (mut batch, mut bytes) = (Vec::new(), 0);
    let mut flush = |batch: &mut Vec<Encoded>| -> std::io::Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let commit = Commit::of((head.identity, head.width), last.1 + 1, (end, last.0), batch, Vec::new());
        for record in batch.drain(..) {
            out.write_all(&record.bytes)?;
        }
        (end, last) = (commit.end, (commit.at, commit.sequence));
        out.write_all(&commit.encode())
    };
    for record in records {
        let record = record?;
        bytes += record.bytes.len();
        batch.push(record);
        if batch.len() == limits::COMMITTED || bytes > BATCH_BYTES {
            flush(&mut batch).map_err(SearchError::io("write", path))?;
            bytes = 0;
        }
    }
    flush(&mut batch).map_err(SearchError::io("write", path))?;
    let out = out.into_inner().map_err(std::io::IntoInnerError::into_error);
    out.and_then(|out| out.sync()).map_err(SearchError::io("write", path))
}
