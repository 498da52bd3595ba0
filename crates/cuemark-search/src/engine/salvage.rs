//! A sound index from what is left of a damaged one.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::{Advice, Progress, VideoId, whole_message};
use cuemark_formats::Overwrite;
use rustc_hash::FxHashSet;
use serde::Serialize;

use super::disk::{Disk, Mapped, RealDisk, read_small};
use super::log::{ALIGN, Commit, Head, Header, Identity, Listed, hash_of};
use super::snapshot::Snapshot;
use super::{LOG, create, limits, writer};
use crate::manifest::{self, LAYOUT, Manifest};
use crate::{Calibration, Result, SearchError, kept};

/// What became of an index that was salvaged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Salvaged {
    /// Videos of the new index.
    pub videos: usize,
    /// Their moments, those of vanished videos included.
    pub moments: usize,
    /// Records that could not be kept, in the order of the log.
    pub lost: Vec<Lost>,
    /// What had to be assumed where the log's head or the manifest cannot be read; empty when both can.
    pub assumed: Vec<String>,
}

/// A record that could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Where it begins in the log, in bytes.
    pub offset: u64,
    /// Whose it was, where that can still be told.
    pub video: Option<VideoId>,
    /// Why not.
    pub why: String,
}

/// Writes a sound index into the folder `to` from everything that is left in the folder `from`, which is only read. `encoder`
/// is used when the manifest does not say any more what made the embeddings. The steps of `progress` are bytes, then videos.
///
/// A video of which the last record is damaged is as it was before that record. A record behind the last commit, which was
/// never acknowledged, is kept where it is whole.
///
/// # Errors
/// When there is no log, `to` is `from` or holds an index that may not be replaced, somebody is writing to either, the encoder
/// is not known, or `progress` was stopped. Nothing is in `to` then that was not there.
pub fn salvage(
    from: &Utf8Path,
    to: &Utf8Path,
    encoder: Option<&str>,
    overwrite: Overwrite,
    progress: &Progress,
) -> Result<Salvaged> {
    salvage_on(&(Arc::new(RealDisk) as Arc<dyn Disk>), from, to, encoder, overwrite, progress)
}

/// As [`salvage`], on another disk.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_on(
    disk: &Arc<dyn Disk>,
    from: &Utf8Path,
    to: &Utf8Path,
    encoder: Option<&str>,
    overwrite: Overwrite,
    progress: &Progress,
) -> Result<Salvaged> {
    let disk = &**disk;
    let path = from.join(LOG);
    let file = match disk.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let problem = format!("there is no `{LOG}`");
            return Err(SearchError::NoIndex { path: from.to_owned(), problem });
        }
        Err(source) => return Err(SearchError::Io { what: "open", path, source }),
    };
    let stamp = file.stamp().map_err(SearchError::io("look at", &path))?;
    if from == to || disk.stamp(&to.join(LOG)).is_ok_and(|there| there.is_same_file(&stamp)) {
        return Err(SearchError::Question {
            problem: format!("`{from}` cannot be salvaged into itself"),
            advice: Advice::say("name another folder in ").setting("out"),
        });
    }
    // A writer could cut what is being read. Where the lock cannot even be opened (a read-only disk), there is none.
    let _lock = match writer::take_lock(disk, from) {
        Err(locked @ SearchError::Locked { .. }) => return Err(locked),
        lock => lock.ok(),
    };
    let map = file.map(stamp.length).map_err(SearchError::io("map", &path))?;
    let mut assumed = Vec::new();
    let left = Left::find(&map, Manifest::read_on(disk, from).ok().map(|about| about.width), progress, &mut assumed)
        .map_err(|error| error.unwrap_or_else(|| unreadable(&path)))?;
    let mut about = described(disk, from, left.head.width, encoder, &mut assumed)?;
    let files = kept::read(disk, from, &std::mem::take(&mut about.kept)).unwrap_or_else(|error| {
        let lies = format!("encoder `{}` where it lies outside of the index", about.encoder);
        assumed.push(format!("{lies}, since what the index kept of it cannot be used: {}", whole_message(&error)));
        Vec::new()
    });
    let names: Vec<Listed> = left.records.clone();
    let snapshot = Snapshot::of_records(map, left.head, stamp, &left.records, &left.voids);
    let lost = snapshot.damage.iter().map(|damage| Lost {
        offset: damage.offset,
        video: names.iter().find(|record| record.offset as u64 == damage.offset).and_then(|record| {
            let known = || snapshot.puts.iter().map(|put| &put.entry.id).find(|id| hash_of(id) == record.name);
            snapshot.meta_of(record).map(|meta| meta.id().clone()).or_else(|| known().cloned())
        }),
        why: damage.problem.clone(),
    });
    let lost: Vec<Lost> = lost.collect();
    let live: Vec<_> = snapshot.puts.iter().filter(|put| put.live).collect();
    progress.phase("writing", live.len());
    let records = live.iter().map(|put| {
        progress.advance(1)?;
        let damaged = |problem| SearchError::Damaged { path: path.clone(), offset: snapshot.offset(put), problem };
        snapshot.record(put).map_err(damaged)
    });
    create::create_with(disk, to, about.width, Some((&about, &files)), overwrite, records)?;
    Ok(Salvaged { videos: live.len(), moments: live.iter().map(|put| put.rows).sum(), lost, assumed })
}

fn unreadable(path: &Utf8Path) -> SearchError {
    SearchError::Damaged {
        path: path.to_owned(),
        offset: 0,
        problem: "neither the head, nor a commit, nor a manifest says how wide its embeddings are".to_owned(),
    }
}

/// The manifest of the new index, as far as the old one's can be read.
fn described(
    disk: &dyn Disk,
    from: &Utf8Path,
    width: usize,
    encoder: Option<&str>,
    assumed: &mut Vec<String>,
) -> Result<Manifest> {
    let cuemark = env!("CARGO_PKG_VERSION").to_owned();
    if let Ok(about) = Manifest::read_on(disk, from) {
        if about.width != width {
            assumed.push(format!("{width} numbers per embedding, as the log says; the manifest says {}", about.width));
        }
        return Ok(Manifest { layout: LAYOUT, width, log: None, ..about });
    }
    let text = read_small(disk, &from.join(manifest::FILE), limits::MANIFEST_BYTES).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let said = value.get("encoder").and_then(|encoder| encoder.as_str());
    let Some(encoder) = said.or(encoder) else {
        return Err(SearchError::NoEncoder { path: from.join(manifest::FILE) });
    };
    assumed.push(format!("encoder `{encoder}`, since the manifest cannot be read"));
    let calibration =
        value.get("calibration").and_then(|found| serde_json::from_value::<Calibration>(found.clone()).ok());
    if calibration.is_none() {
        assumed.push("probabilities that are a guess, since the manifest cannot be read".to_owned());
    }
    let encoder = encoder.to_owned();
    let kept = value.get("kept").and_then(|found| serde_json::from_value(found.clone()).ok()).unwrap_or_default();
    let calibration = calibration.unwrap_or_default();
    Ok(Manifest { layout: LAYOUT, cuemark, encoder, width, calibration, log: None, kept })
}

/// What can still be found in a log.
struct Left {
    head: Head,
    records: Vec<Listed>,
    voids: FxHashSet<u64>,
}

impl Left {
    /// Looks at every place where something may begin. `None` as the error when nothing says how wide embeddings are.
    fn find(
        map: &Mapped,
        width: Option<usize>,
        progress: &Progress,
        assumed: &mut Vec<String>,
    ) -> Result<Self, Option<SearchError>> {
        let bytes = map.bytes();
        progress.phase("reading", bytes.len());
        let mut commits = Vec::new();
        for at in (0..bytes.len()).step_by(ALIGN) {
            commits.extend(Commit::read(&bytes[at..], at as u64));
            if at % (1 << 20) == 0 {
                progress.check().map_err(|stopped| Some(stopped.into()))?;
            }
        }
        let head = match Head::read(bytes) {
            Ok((head, _)) => head,
            Err(problem) => {
                let (identity, width, from) = match (commits.last(), width) {
                    (Some(commit), _) => (commit.identity, commit.width, "the last commit"),
                    (None, Some(width)) => (Identity::default(), width, "the manifest"),
                    (None, None) => return Err(None),
                };
                assumed.push(format!(
                    "{width} numbers per embedding, as {from} says, since the head cannot be read: {problem}"
                ));
                Head { width, generation: 0, identity, old: commits.is_empty() }
            }
        };
        commits.retain(|commit| (commit.identity, commit.width) == (head.identity, head.width));
        let voids = commits.iter().flat_map(|commit| commit.voids.iter().copied()).collect();
        let listed: BTreeMap<usize, Listed> =
            commits.iter().flat_map(|commit| &commit.records).map(|record| (record.offset, *record)).collect();
        let mut records = Vec::new();
        let mut at = ALIGN;
        while at < bytes.len() {
            let unlisted = || {
                let header = Header::read(&bytes[at..])?;
                let placed = header.placed(at, head.width)?;
                // A damaged commit holds headers too, behind which no description stands.
                let is_record = head.old || header.read_meta(bytes, &placed).is_ok();
                is_record.then_some(Listed { offset: at, header, name: 0 })
            };
            if let Some(commit) = Commit::read(&bytes[at..], at as u64) {
                at += (commit.bytes() / 2) as usize;
                continue;
            }
            let record = listed.get(&at).copied().or_else(unlisted);
            let end = record.and_then(|record| Some(record.header.placed(at, head.width)?.end));
            let next = match record.zip(end.filter(|end| *end <= bytes.len())) {
                Some((record, end)) => {
                    records.push(record);
                    end
                }
                None => at + ALIGN,
            };
            progress.advance(next - at).map_err(|stopped| Some(stopped.into()))?;
            at = next;
        }
        Ok(Self { head, records, voids })
    }
}
