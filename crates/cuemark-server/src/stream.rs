//! The bytes of an open file as an answer, read as the client takes them.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use futures_util::stream::unfold;
use tokio::sync::Semaphore;

use crate::limits::READS;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;
/// Bytes read at a time when there are many readers: what each of them holds while it stalls.
const SMALL_PIECE: usize = 8 << 10;
/// From so many readers on, pieces are small.
const MANY: usize = 512;
/// How many answers are being streamed, and the right to read a piece.
#[derive(Clone)]
pub(crate) struct Readers {
    count: Arc<AtomicUsize>,
    reads: Arc<Semaphore>,
}

impl Default for Readers {
    fn default() -> Self {
        Self { count: Arc::default(), reads: Arc::new(Semaphore::new(READS)) }
    }
}

/// One reader, counted until it is gone.
struct Reader(Readers);

impl Readers {
    fn enter(&self) -> Reader {
        self.count.fetch_add(1, Ordering::Relaxed);
        Reader(self.clone())
    }

    /// A stalled reader holds two pieces; thousands of them must not hold gigabytes.
    fn piece(&self) -> usize {
        if self.count.load(Ordering::Relaxed) < MANY { PIECE } else { SMALL_PIECE }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The bytes `part` of `file`. Nothing is read before the client wants it; a file that became shorter meanwhile breaks the
/// connection off.
pub(crate) fn body(file: File, part: Range<u64>, readers: &Readers) -> Body {
    let start = (Arc::new(file), part, readers.enter());
    Body::from_stream(unfold(start, |(file, part, reader)| async move {
        let left = part.end - part.start;
        if left == 0 {
            return None;
        }
        let (piece, from) = (left.min(reader.0.piece() as u64) as usize, Arc::clone(&file));
        // The right goes with the work and comes back with it: a client that hangs up does not start another read beside the
        // one that goes on, and the next read finds a thread that is free.
        let right = Arc::clone(&reader.0.reads).acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || (read_at(&from, part.start, piece), right));
        let bytes = read.await.map_or_else(|_| Err(ErrorKind::Other.into()), |(bytes, _)| bytes);
        // After an error the connection is broken off and nobody asks again.
        let next = bytes.as_ref().map_or(part.end, |bytes| part.start + bytes.len() as u64);
        Some((bytes, (file, next..part.end, reader)))
    }))
}

/// Up to `piece` bytes from `start` on, at least one.
fn read_at(file: &File, start: u64, piece: usize) -> Result<Bytes> {
    let mut bytes = vec![0; piece];
    #[cfg(unix)]
    let read = std::os::unix::fs::FileExt::read_at(file, &mut bytes, start)?;
    #[cfg(windows)]
    let read = std::os::windows::fs::FileExt::seek_read(file, &mut bytes, start)?;
    if read == 0 {
        return Err(Error::new(ErrorKind::UnexpectedEof, "the file became shorter"));
    }
    bytes.truncate(read);
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn nobody_reads_without_the_right_to() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &[7; 4 * PIECE]).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let readers = Readers::default();
        let elsewhere = readers.reads.try_acquire_many(READS as u32).unwrap();
        let all: Vec<_> = (0..300)
            .map(|_| {
                let body = body(file.try_clone().unwrap(), 0..PIECE as u64, &readers);
                runtime.spawn(axum::body::to_bytes(body, usize::MAX))
            })
            .collect();
        // Long enough for one of 300 to come through; how many threads there are meanwhile depends on how busy the machine is.
        std::thread::sleep(Duration::from_millis(200));
        assert!(!all.iter().any(tokio::task::JoinHandle::is_finished), "a piece was read while every right was taken");
        drop(elsewhere);
        for one in all {
            assert_eq!(runtime.block_on(one).unwrap().unwrap().len(), PIECE);
        }
        assert_eq!(readers.reads.available_permits(), READS, "every right comes back");
    }

    #[test]
    fn thousands_of_readers_hold_small_pieces() {
        let readers = Readers::default();
        let first = readers.enter();
        assert_eq!(readers.piece(), PIECE);
        let many: Vec<Reader> = (0..MANY).map(|_| readers.enter()).collect();
        assert_eq!(readers.piece(), SMALL_PIECE);
        drop(many);
        assert_eq!(readers.piece(), PIECE);
        drop(first);
        assert_eq!(readers.count.load(Ordering::Relaxed), 0);
    }
}
