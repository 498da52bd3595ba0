//! The one place of this crate that maps a file into memory.

use std::fs::File;
use std::io;
use std::sync::Arc;

use memmap2::{Mmap, MmapOptions};

/// The first bytes of a file, paged in as they are touched.
#[derive(Debug)]
pub struct Mapped(Bytes);

#[derive(Debug)]
enum Bytes {
    None,
    Map(Mmap),
    /// Of a disk that has no maps. Words, because what is in a file begins at multiples of 64 bytes and is read in place.
    Copy {
        words: Vec<u64>,
        length: usize,
        _alive: Arc<()>,
    },
}

impl Mapped {
    /// Maps the first `length` bytes of `file`; what is added later is not seen.
    pub(super) fn of_file(file: &File, length: u64) -> io::Result<Self> {
        if length == 0 {
            return Ok(Self(Bytes::None));
        }
        let there = file.metadata()?.len();
        let short = || io::Error::new(io::ErrorKind::UnexpectedEof, format!("{there} bytes where {length} were"));
        if there < length {
            return Err(short());
        }
        let length = usize::try_from(length).map_err(|_| short())?;
        // SAFETY: the mapping is read-only and ends where the last commit of the log ends (a graph's where the file does).
        // Nothing that a commit covers is ever cut off: the one writer, kept alone by a lock, cuts back a batch that failed
        // only while no commit of it is whole in the file, and a later writer cuts off only what lies behind the last
        // commit. Whatever may still be cut is looked at with reads, never through a map (`walk.rs`). A compacted log or a
        // new graph is another file under the same name; the mapped one stays as it is until nobody maps it. Bounds are
        // checked against the mapped length. A file that somebody else shortens in place is beyond us, as for every
        // program that maps files.
        #[allow(unsafe_code)]
        let map = unsafe { MmapOptions::new().len(length).map(file)? };
        Ok(Self(Bytes::Map(map)))
    }

    /// A copy that stands for a map, for disks that have none; `alive` is dropped with it.
    pub fn of_bytes(bytes: &[u8], alive: Arc<()>) -> Self {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        if let Some(room) = bytemuck::cast_slice_mut::<u64, u8>(&mut words).get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
        }
        Self(Bytes::Copy { words, length: bytes.len(), _alive: alive })
    }

    /// What is mapped.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::None => &[],
            Bytes::Map(map) => map,
            Bytes::Copy { words, length, .. } => {
                bytemuck::cast_slice::<u64, u8>(words).get(..*length).unwrap_or_default()
            }
        }
    }
}
