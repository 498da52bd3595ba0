//! The one place of this crate that maps a file into memory.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use memmap2::{Mmap, MmapOptions};

/// The first bytes of a file, paged in as they are touched.
#[derive(Debug)]
pub struct Mapped(Bytes);

#[derive(Debug)]
enum Bytes {
    None,
    Map(Mmap),
    Walked(Arc<Walked>),
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

    /// The same for bytes that are walked through at random, see [`Walked`]. Few of them, and very many, stay as they are.
    #[must_use]
    pub(super) fn walked(self) -> Self {
        match self.0 {
            Bytes::Map(small) if cfg!(target_os = "linux") && WORTH_LARGE_PAGES.contains(&small.len()) => {
                Self(Bytes::Walked(Arc::new(Walked { small, large: OnceLock::new(), walks: AtomicUsize::new(0) })))
            }
            other => Self(other),
        }
    }

    /// Says that a walk begins.
    pub(super) fn walk(&self) {
        if let Bytes::Walked(walked) = &self.0 {
            walked.walk();
        }
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
            Bytes::Walked(walked) => walked.large.get().unwrap_or(&walked.small),
            Bytes::Copy { words, length, .. } => {
                bytemuck::cast_slice::<u64, u8>(words).get(..*length).unwrap_or_default()
            }
        }
    }
}

/// How many bytes large pages are worth a copy for. A processor's table of pages holds some megabytes of small ones; and what is copied is
/// memory that the system cannot take back, as it can the pages of a file, so a graph of many gigabytes stays there.
const WORTH_LARGE_PAGES: std::ops::RangeInclusive<usize> = 32 << 20..=1 << 30;
/// Walks after which a copy is made: a program that asks one question and ends is not to wait for it.
const WORTH_A_COPY: usize = 256;

/// Bytes that are walked through at random, in pages of two megabytes once there were many walks.
///
/// Each step of a walk through a graph touches another page. Small ones are not found in the processor's table of pages once there are
/// hundreds of megabytes of them, and maps of files have no others, so this is a copy; a thread makes it while walks go on.
#[derive(Debug)]
struct Walked {
    small: Mmap,
    /// The same bytes; empty while nobody has walked much, and where the system has no large pages.
    large: OnceLock<Mmap>,
    walks: AtomicUsize,
}

impl Walked {
    fn walk(self: &Arc<Self>) {
        if self.walks.fetch_add(1, Ordering::Relaxed) != WORTH_A_COPY {
            return;
        }
        let walked = Arc::clone(self);
        // Without a thread, or without memory for a copy, walks go on as they were.
        let _ = std::thread::Builder::new().name("large pages".to_owned()).spawn(move || walked.copy());
    }

    fn copy(&self) {
        let Some(copied) = in_large_pages(&self.small) else { return };
        if self.large.set(copied).is_ok() {
            // The map stays for walks that began in it, but its pages need not be held twice.
            // SAFETY: pages of an unchanged file, mapped read-only, are read from it again when they are touched.
            #[cfg(target_os = "linux")]
            #[allow(unsafe_code)]
            let _ = unsafe { self.small.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
    }
}

/// A copy in large pages; `None` where there are none to be had.
#[cfg(target_os = "linux")]
fn in_large_pages(bytes: &[u8]) -> Option<Mmap> {
    let mut room = memmap2::MmapMut::map_anon(bytes.len()).ok()?;
    room.advise(memmap2::Advice::HugePage).ok()?;
    room.copy_from_slice(bytes);
    room.make_read_only().ok()
}

#[cfg(not(target_os = "linux"))]
fn in_large_pages(_: &[u8]) -> Option<Mmap> {
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use super::*;

    fn mapped(bytes: &[u8]) -> Mapped {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Mapped::of_file(&file, bytes.len() as u64).unwrap()
    }

    /// Where its bytes lie; the same as long as nothing was copied.
    fn place(map: &Mapped) -> *const u8 {
        map.bytes().as_ptr()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn many_walks_move_a_large_map_and_none_of_its_bytes_changes() {
        let bytes: Vec<u8> = (0..*WORTH_LARGE_PAGES.start() as u64 / 8)
            .flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes())
            .collect();
        let map = mapped(&bytes).walked();
        let before = place(&map);
        (0..WORTH_A_COPY).for_each(|_| map.walk());
        assert_eq!(place(&map), before, "a few questions are not worth a copy");
        // Somebody who began to read before the copy was there goes on reading what was there.
        let held = map.bytes();
        map.walk();
        let began = std::time::Instant::now();
        while place(&map) == before && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(place(&map) != before, "this system copies");
        assert!(map.bytes() == bytes && held == bytes);
    }

    #[test]
    fn a_small_map_stays_where_it_is() {
        let map = mapped(&[7; 5_000]).walked();
        let before = place(&map);
        (0..4 * WORTH_A_COPY).for_each(|_| map.walk());
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(place(&map), before);
        assert_eq!(map.bytes(), [7; 5_000]);
    }
}
