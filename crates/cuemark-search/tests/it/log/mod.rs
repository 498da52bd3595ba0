//! The log of the embedded engine: nothing acknowledged is lost, damage costs one record and is said, readers follow.

mod damage;
mod making;
mod old;
mod readers;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise, Dialect, Progress};
use cuemark_formats::{Overwrite, ReadError};
use cuemark_search::engine::Embedded;
use cuemark_search::engine::disk::{Disk, DiskFile, FileStamp, Held, RealDisk};
use cuemark_search::{
    Effort, Engine, Filter, IndexedMoment, Manifest, Nearest, SearchError, Settling, VideoEntry, VideoState, salvage,
};

use crate::toy::{self, WIDTH, entry, manifest};

struct Folder(#[allow(dead_code)] tempfile::TempDir, Utf8PathBuf);

fn folder() -> Folder {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    Folder(guard, path)
}

fn moments(seed: u64) -> Vec<IndexedMoment> {
    toy::moments(seed, 4)
}

fn create(folder: &Utf8Path, overwrite: Overwrite) -> cuemark_search::Result<Embedded> {
    Embedded::create_described(Arc::new(RealDisk), folder, &manifest(), overwrite).map(|(engine, _)| engine)
}

fn names(engine: &Embedded) -> Vec<String> {
    engine.videos().unwrap().iter().map(|entry| entry.id.to_string()).collect()
}

fn log(folder: &Utf8Path) -> Utf8PathBuf {
    folder.join("moments.log")
}

/// An index with five batches: `a`; `b`, `c` and `d`; `b` is gone; `c` has a tag; `e`.
fn filled(folder: &Utf8Path) {
    let engine = create(folder, Overwrite::Never).unwrap();
    engine.put(&entry("a"), &moments(1)).unwrap();
    let three = ["b", "c", "d"].map(|id| (entry(id), moments(2)));
    engine.put_all(&three).unwrap();
    engine.remove(&"b".into()).unwrap();
    engine.note(&"c".into(), VideoState::Present, &["seen".to_owned()]).unwrap();
    engine.put(&entry("e"), &moments(3)).unwrap();
}
