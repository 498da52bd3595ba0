//! The one place of this crate that maps a file into memory.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// The first bytes of a file, paged in as they are touched.
#[derive(Debug)]
pub(crate) struct Mapped(Option<Mmap>);

impl Mapped {
    /// Maps what `file` holds now; what is added later is not seen.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        if length == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the mapping is read-only. Logs only grow: the one writer, kept alone by a lock, appends behind the mapped
        // part and cuts off nothing but an unfinished tail, which readers never look into (they stop at the first record
        // that is not whole). A compacted log is another file under the same name; the mapped one stays as it is until
        // nobody maps it. Bounds are checked against the mapped length.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(file)? };
        Ok(Self(Some(map)))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}
