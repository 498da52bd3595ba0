//! The one place that maps a file into memory.

use std::fs::File;
use std::io;

use camino::Utf8Path;
use memmap2::Mmap;

/// A file's bytes, paged in as they are touched.
#[derive(Debug)]
pub(crate) struct MappedFile(Mmap);

impl MappedFile {
    pub(crate) fn open(path: &Utf8Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: the mapping is read-only, and shards are never changed in place: the writer puts them under their
        // name by a rename, which leaves the mapped file as it was. Every bound is checked against the mapped length.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file)? };
        Ok(Self(map))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
