//! A graph as a file.
//!
//! ```text
//! file  = head(64) rows vectors ground upper_at upper      each part padded to 64 bytes
//! head  = "CUEMARKGRAPH0001" moments:u64 width:u32 entry:u32 top:u32 upper:u64
//! ```
//! Everything is little endian and lies as it is searched.

use std::fs::File;
use std::io::{BufWriter, Write};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{Overwrite, WholeFile};
use serde::{Deserialize, Serialize};

use super::build::Arrays;
use super::{GROUND_LINKS, LEVELS, LINKS, View};
use crate::engine::mapped::Mapped;
use crate::engine::snapshot::Snapshot;
use crate::{Result, SearchError};

/// The file that says which graph counts.
pub(crate) const FILE: &str = "graph.json";
const MAGIC: &[u8; 16] = b"CUEMARKGRAPH0001";
const ALIGN: usize = 64;

/// What `graph.json` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GraphFile {
    /// Counts up with every graph.
    number: u64,
    /// The generation of the log whose moments it numbers.
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
    pub(crate) fn read(folder: &Utf8Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(folder.join(FILE)).ok()?).ok()
    }

    fn path(&self, folder: &Utf8Path) -> Utf8PathBuf {
        folder.join(format!("graph-{}.hnsw", self.number))
    }

    /// Whether it numbers moments of this log; one of an earlier generation numbers others.
    pub(crate) fn fits(&self, snapshot: &Snapshot) -> bool {
        self.generation == snapshot.generation() && self.rows <= snapshot.rows()
    }

    /// What is wrong with the graph's file.
    pub(crate) fn problem(&self, folder: &Utf8Path) -> Option<String> {
        let Ok(file) = File::open(self.path(folder)) else { return Some("cannot be opened".to_owned()) };
        let Ok(map) = Mapped::new(&file) else { return Some("cannot be read".to_owned()) };
        let bytes = map.bytes();
        if bytes.len() as u64 != self.bytes {
            return Some(format!("has {} bytes instead of {}", bytes.len(), self.bytes));
        }
        (crc32fast::hash(bytes) != self.crc).then(|| "does not fit its checksum".to_owned())
    }
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
    /// Maps the file; `None` when its head does not fit its length or the width of the log.
    pub(super) fn open(file: &GraphFile, folder: &Utf8Path, width: usize) -> Option<Self> {
        let map = Mapped::new(&File::open(file.path(folder)).ok()?).ok()?;
        let head = map.bytes().get(..ALIGN)?;
        if !head.starts_with(MAGIC) {
            return None;
        }
        let short = |at: usize| head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let long = |at: usize| head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let moments = usize::try_from(long(16)?).ok()?;
        let upper = usize::try_from(long(36)?).ok()?;
        let entry = (moments > 0).then_some((short(28)?, (short(32)? as usize).min(LEVELS)));
        if entry.is_some_and(|(entry, _)| entry as usize >= moments) {
            return None;
        }
        if short(24)? as usize != width || moments > u32::MAX as usize || upper > u32::MAX as usize {
            return None;
        }
        let graph = Self { map, width, moments, entry, upper };
        (graph.parts()[4].end == graph.map.bytes().len()).then_some(graph)
    }

    /// Where rows, vectors, ground, upper_at and upper lie, padding included.
    fn parts(&self) -> [std::ops::Range<usize>; 5] {
        let lengths = [
            4 * self.moments,
            self.width * self.moments,
            4 * (GROUND_LINKS + 1) * self.moments,
            4 * self.moments,
            4 * (LINKS + 1) * self.upper,
        ];
        let mut at = ALIGN;
        lengths.map(|length| {
            let part = at..at + length.next_multiple_of(ALIGN);
            at = part.end;
            part
        })
    }

    pub(super) fn view(&self) -> View<'_> {
        let [rows, vectors, ground, upper_at, upper] = self.parts();
        let bytes = |part: std::ops::Range<usize>, length: usize| {
            self.map.bytes().get(part.start..part.start + length).unwrap_or_default()
        };
        let numbers = |part: std::ops::Range<usize>, count: usize| -> &[u32] {
            bytemuck::try_cast_slice(bytes(part, 4 * count)).unwrap_or_default()
        };
        View {
            width: self.width,
            entry: self.entry,
            rows: numbers(rows, self.moments),
            vectors: bytemuck::try_cast_slice(bytes(vectors, self.width * self.moments)).unwrap_or_default(),
            ground: numbers(ground, (GROUND_LINKS + 1) * self.moments),
            upper_at: numbers(upper_at, self.moments),
            upper: numbers(upper, (LINKS + 1) * self.upper),
        }
    }
}

/// Puts a graph over the first `rows` moments of a log of that `generation` into the folder, in place of an earlier one.
pub(super) fn write(folder: &Utf8Path, arrays: &Arrays, generation: u32, rows: usize, scale: f32) -> Result<()> {
    let number = GraphFile::read(folder).map_or(0, |file| file.number) + 1;
    let mut file = GraphFile { number, generation, rows, scale, bytes: 0, crc: 0 };
    let (path, unfinished) = (file.path(folder), folder.join(format!("graph-{number}.part")));
    let mut out = Summed::create(&unfinished).map_err(SearchError::io("write", &unfinished))?;
    put(&mut out, arrays).map_err(SearchError::io("write", &unfinished))?;
    (file.bytes, file.crc) = out.finish().map_err(SearchError::io("write", &unfinished))?;
    std::fs::rename(&unfinished, &path).map_err(SearchError::io("rename", &unfinished))?;
    // From here on the new graph counts; before, the old one did.
    let text = serde_json::to_vec(&file).unwrap_or_default();
    WholeFile::write_all_to(folder.join(FILE), Overwrite::Force, &text)?;
    clear(folder, number);
    Ok(())
}

fn put(out: &mut Summed, arrays: &Arrays) -> std::io::Result<()> {
    let (entry, top) = arrays.entry.unwrap_or((0, 0));
    let mut head = MAGIC.to_vec();
    head.extend((arrays.rows.len() as u64).to_le_bytes());
    head.extend((arrays.width as u32).to_le_bytes());
    head.extend(entry.to_le_bytes());
    head.extend((top as u32).to_le_bytes());
    head.extend(((arrays.upper.len() / (LINKS + 1)) as u64).to_le_bytes());
    out.part(&head)?;
    out.part(bytemuck::cast_slice(&arrays.rows))?;
    out.part(bytemuck::cast_slice(&arrays.vectors))?;
    out.part(bytemuck::cast_slice(&arrays.ground))?;
    out.part(bytemuck::cast_slice(&arrays.upper_at))?;
    out.part(bytemuck::cast_slice(&arrays.upper))
}

/// A file whose checksum is taken as it is written.
struct Summed {
    out: BufWriter<File>,
    sum: crc32fast::Hasher,
    bytes: u64,
}

impl Summed {
    fn create(path: &Utf8Path) -> std::io::Result<Self> {
        Ok(Self { out: BufWriter::new(File::create(path)?), sum: crc32fast::Hasher::new(), bytes: 0 })
    }

    fn part(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let padding = vec![0u8; bytes.len().next_multiple_of(ALIGN) - bytes.len()];
        for bytes in [bytes, &padding] {
            self.sum.update(bytes);
            self.out.write_all(bytes)?;
            self.bytes += bytes.len() as u64;
        }
        Ok(())
    }

    fn finish(self) -> std::io::Result<(u64, u32)> {
        let file = self.out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok((self.bytes, self.sum.finalize()))
    }
}

/// Removes graphs that no longer count. Readers that still map them keep what they have.
fn clear(folder: &Utf8Path, number: u64) {
    let Ok(listing) = folder.read_dir_utf8() else { return };
    for entry in listing.flatten() {
        let of = entry.file_name().strip_prefix("graph-").and_then(|rest| rest.split('.').next());
        if of.and_then(|of| of.parse::<u64>().ok()).is_some_and(|of| of != number) {
            // Whatever cannot be removed now is removed the next time.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
