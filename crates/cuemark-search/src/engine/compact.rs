//! A log without what nobody can find any more.
//!
//! The live videos are written to a file beside the log, which takes the log's place once all of it is on disk. Until then the
//! old log counts, from then on the new one, and at no point neither. The new one is of the next generation, by which readers
//! notice that they have to begin anew and that an earlier graph numbers moments of another log.

use std::fs::File;
use std::io::{BufWriter, Write as _};

use camino::Utf8Path;

use super::log::{self, Head};
use super::snapshot::{Put, Snapshot};
use crate::{Result, SearchError};

/// The name of a compacted log that is not finished.
pub(super) const UNFINISHED: &str = "moments.part";

/// Writes the live videos of a log and puts that in the log's place; `progress` counts videos.
///
/// # Errors
/// When a live video is damaged, which a new log would hide, or a file cannot be written. The log is as it was then.
pub(super) fn replace(
    folder: &Utf8Path,
    log: &Utf8Path,
    snapshot: &Snapshot,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<()> {
    let unfinished = folder.join(UNFINISHED);
    let written = write(&unfinished, log, snapshot, progress);
    if written.is_err() {
        // Most often the disk is full. What cannot be removed now is removed by the next writer.
        let _ = std::fs::remove_file(&unfinished);
    }
    written?;
    std::fs::rename(&unfinished, log).map_err(SearchError::io("rename", &unfinished))?;
    // The name itself has to be on disk before anything is added to the new log.
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(SearchError::io("write", folder))
}

fn write(
    unfinished: &Utf8Path,
    log: &Utf8Path,
    snapshot: &Snapshot,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<()> {
    let live: Vec<&Put> = snapshot.puts.iter().filter(|put| put.live).collect();
    let mut out = BufWriter::new(File::create(unfinished).map_err(SearchError::io("make", unfinished))?);
    let head = log::head(Head { width: snapshot.width(), generation: snapshot.generation().wrapping_add(1) });
    out.write_all(&head).map_err(SearchError::io("write", unfinished))?;
    for (done, put) in live.iter().enumerate() {
        let record = snapshot.record(put).map_err(|problem| SearchError::Damaged {
            path: log.to_owned(),
            offset: snapshot.offset(put),
            problem,
        })?;
        out.write_all(&record).map_err(SearchError::io("write", unfinished))?;
        progress(done + 1, live.len());
    }
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error);
    file.and_then(|file| file.sync_all()).map_err(SearchError::io("write", unfinished))
}
