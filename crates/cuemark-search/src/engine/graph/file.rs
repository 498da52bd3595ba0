//! A graph as a file.
//!
//! ```text
//! file  = head(64) rows nodes upper_at upper      each part padded to 64 bytes
//! head  = "CUEMARKGRAPH0002" moments:u64 width:u32 entry:u32 top:u32 upper:u64
//! node  = vector:i8 × width, padded to 4 bytes; links on the ground:u32 × 32
//! ```
//! Everything is little endian and lies as it is searched. A graph of another layout is not used, and derived anew.

use std::io::{BufWriter, Write};

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::build::Finished;
use super::{LEVELS, LINKS, View, node_words, vector_words};
use crate::engine::disk::{Appender, Disk, Mapped, read_small, write_whole};
use crate::engine::limits;
use crate::engine::snapshot::Snapshot;
use crate::{Result, SearchError};

/// The file that says which graph counts.
pub(crate) const FILE: &str = "graph.json";
const MAGIC: &[u8; 16] = b"CUEMARKGRAPH0002";
// A cache line, on which vectors of 64, 128, … numbers then begin; and a multiple of what `u32` needs, so that arrays are read
// where they lie.
const ALIGN: usize = 64;
/// Bytes whose checksum one thread computes.
const SUMMED_AT_ONCE: usize = 4 << 20;

/// What `graph.json` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GraphFile {
    /// Counts up with every graph.
    number: u64,
    /// The identity of the log whose moments it numbers; empty where that has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    log: String,
    /// The generation of that log.
    #[serde(default)]
    pub(crate) generation: u32,
    /// The first so many moments of the log are in it, save those that were dead when it was made.
    pub(crate) rows: usize,
    /// What 127 stands for.
    pub(super) scale: f32,
    pub(super) bytes: u64,
    crc: u32,
}

impl GraphFile {
    /// What the folder says; `None` when there is no graph, or nothing sensible about one.
    pub(crate) fn read(disk: &dyn Disk, folder: &Utf8Path) -> Option<Self> {
        serde_json::from_slice(&read_small(disk, &folder.join(FILE), limits::MANIFEST_BYTES).ok()?).ok()
    }

    fn path(&self, folder: &Utf8Path) -> Utf8PathBuf {
        folder.join(format!("graph-{}.hnsw", self.number))
    }

    /// Whether it numbers moments of this log, and not of another or one of an earlier generation.
    pub(crate) fn is_of(&self, snapshot: &Snapshot) -> bool {
        self.log == snapshot.identity() && self.generation == snapshot.generation()
    }

    /// Whether it numbers moments of this log and of no more than there are.
    pub(crate) fn fits(&self, snapshot: &Snapshot) -> bool {
        self.is_of(snapshot) && self.rows <= snapshot.rows()
    }

    /// The graph's file in memory, held to its length and its checksum, or what is wrong with it.
    // A graph's file is written whole before it has its name and never changed.
    pub(crate) fn checked(&self, disk: &dyn Disk, folder: &Utf8Path) -> std::result::Result<Mapped, String> {
        let map = disk.open(&self.path(folder)).and_then(|file| file.map(file.stamp()?.length));
        let map = map.map_err(|_| "cannot be opened".to_owned())?;
        let bytes = map.bytes();
        if bytes.len() as u64 != self.bytes {
            return Err(format!("has {} bytes instead of {}", bytes.len(), self.bytes));
        }
        if checksum(bytes) != self.crc {
            return Err("does not fit its checksum".to_owned());
        }
        Ok(map)
    }
}

/// The checksum of bytes, computed in parts by all threads: it is most of what opening a large index takes.
fn checksum(bytes: &[u8]) -> u32 {
    let sums = bytes.par_chunks(SUMMED_AT_ONCE).map(|part| {
        let mut sum = crc32fast::Hasher::new();
        sum.update(part);
        sum
    });
    let mut whole = crc32fast::Hasher::new();
    sums.collect::<Vec<_>>().iter().for_each(|sum| whole.combine(sum));
    whole.finalize()
}

/// A graph's file in memory.
pub(super) struct GraphMap {
    map: Mapped,
    width: usize,
    moments: usize,
    entry: Option<(u32, usize)>,
    upper: usize,
}

impl GraphMap {
    /// A graph of what was mapped; `None` when its head does not fit its length or the width of the log.
    pub(super) fn of(map: Mapped, width: usize) -> Option<Self> {
        let head = map.bytes().get(..ALIGN)?;
        if !head.starts_with(MAGIC) {
            return None;
        }
        let short = |at: usize| head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let long = |at: usize| head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let moments = usize::try_from(long(16)?).ok()?;
        let upper = usize::try_from(long(36)?).ok()?;
        // Every number of the head is held to something before it is believed: the checksum guards against accidents, not against
        // somebody who computed it again.
        let entry = (moments > 0).then_some((short(28)?, (short(32)? as usize).min(LEVELS)));
        if entry.is_some_and(|(entry, _)| entry as usize >= moments) {
            return None;
        }
        if short(24)? as usize != width || moments > u32::MAX as usize || upper > u32::MAX as usize {
            return None;
        }
        let graph = Self { map, width, moments, entry, upper };
        (graph.parts()[3].end == graph.map.bytes().len()).then_some(graph)
    }

    /// Where rows, nodes, upper_at and upper lie, padding included.
    fn parts(&self) -> [std::ops::Range<usize>; 4] {
        let mut at = ALIGN;
        self.lengths().map(|words| {
            let part = at..at + (4 * words).next_multiple_of(ALIGN);
            at = part.end;
            part
        })
    }

    /// Words of four bytes in each part.
    fn lengths(&self) -> [usize; 4] {
        [self.moments, node_words(self.width) * self.moments, self.moments, LINKS * self.upper]
    }

    pub(super) fn view(&self) -> View<'_> {
        self.map.walk();
        let (parts, lengths) = (self.parts(), self.lengths());
        let numbers = |part: usize| -> &[u32] {
            let (start, words) = (parts[part].start, lengths[part]);
            let bytes = self.map.bytes().get(start..start + 4 * words).unwrap_or_default();
            bytemuck::try_cast_slice(bytes).unwrap_or_default()
        };
        let (rows, nodes, upper_at, upper) = (numbers(0), numbers(1), numbers(2), numbers(3));
        View { width: self.width, entry: self.entry, rows, nodes, upper_at, upper }
    }
}

/// Puts a graph over all moments of a log into the folder, in place of an earlier one.
///
/// # Errors
/// When a file cannot be written. Nothing of the new graph is left then, and the earlier one counts.
pub(super) fn write(
    disk: &dyn Disk,
    folder: &Utf8Path,
    graph: &Finished,
    snapshot: &Snapshot,
    scale: f32,
) -> Result<()> {
    // A name of its own: readers map the graph that counts, and a mapped file must not change.
    let number = GraphFile::read(disk, folder).map_or(0, |file| file.number) + 1;
    let (generation, rows) = (snapshot.generation(), snapshot.rows());
    let mut file = GraphFile { number, log: snapshot.identity(), generation, rows, scale, bytes: 0, crc: 0 };
    let (path, unfinished) = (file.path(folder), folder.join(format!("graph-{number}.part")));
    let written = (|| {
        let mut out = Summed::create(disk, &unfinished)?;
        put(&mut out, graph)?;
        (file.bytes, file.crc) = out.finish()?;
        disk.rename(&unfinished, &path)
    })();
    if let Err(source) = written {
        // Most often the disk is full, and should not stay so.
        let _ = disk.remove(&unfinished);
        return Err(SearchError::Io { what: "write", path: unfinished, source });
    }
    // From here on the new graph counts; before, the old one did.
    let text = serde_json::to_vec(&file).unwrap_or_default();
    if let Err(source) = write_whole(disk, folder, "graph.part", FILE, &text) {
        // It may have come as far as the disk before it failed; then the new graph counts and must stay.
        let counts = GraphFile::read(disk, folder).is_some_and(|counts| counts == file);
        if !counts {
            let _ = disk.remove(&path);
        }
        return Err(SearchError::Io { what: "write", path: folder.join(FILE), source });
    }
    clear(disk, folder, number);
    Ok(())
}

fn put(out: &mut Summed, graph: &Finished) -> std::io::Result<()> {
    let (entry, top) = graph.entry.unwrap_or((0, 0));
    let mut head = MAGIC.to_vec();
    head.extend((graph.rows.len() as u64).to_le_bytes());
    head.extend((graph.width as u32).to_le_bytes());
    head.extend(entry.to_le_bytes());
    head.extend((top as u32).to_le_bytes());
    head.extend(((graph.upper.len() / LINKS) as u64).to_le_bytes());
    out.part(&head)?;
    out.part(bytemuck::cast_slice(&graph.rows))?;
    let padding = vec![0u8; 4 * vector_words(graph.width) - graph.width];
    for (vector, links) in graph.nodes() {
        out.write(bytemuck::cast_slice(vector))?;
        out.write(&padding)?;
        out.write(bytemuck::cast_slice(links.as_ref()))?;
    }
    out.pad()?;
    out.part(bytemuck::cast_slice(&graph.upper_at))?;
    out.part(bytemuck::cast_slice(&graph.upper))
}

/// A file whose checksum is taken as it is written.
struct Summed {
    out: BufWriter<Appender>,
    sum: crc32fast::Hasher,
    bytes: u64,
}

impl Summed {
    fn create(disk: &dyn Disk, path: &Utf8Path) -> std::io::Result<Self> {
        let out = BufWriter::with_capacity(1 << 20, Appender::create(disk, path)?);
        Ok(Self { out, sum: crc32fast::Hasher::new(), bytes: 0 })
    }

    fn part(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.write(bytes)?;
        self.pad()
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn pad(&mut self) -> std::io::Result<()> {
        let padding = self.bytes.next_multiple_of(ALIGN as u64) - self.bytes;
        self.write(&[0; ALIGN][..padding as usize])
    }

    fn finish(self) -> std::io::Result<(u64, u32)> {
        let file = self.out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync()?;
        Ok((self.bytes, self.sum.finalize()))
    }
}

/// Removes graphs that no longer count. Readers that still map them keep what they have.
fn clear(disk: &dyn Disk, folder: &Utf8Path, number: u64) {
    for name in disk.list(folder).unwrap_or_default() {
        let of = name.strip_prefix("graph-").and_then(|rest| rest.split('.').next());
        if of.and_then(|of| of.parse::<u64>().ok()).is_some_and(|of| of != number) {
            // Whatever cannot be removed now is removed the next time.
            let _ = disk.remove(&folder.join(name));
        }
    }
}
