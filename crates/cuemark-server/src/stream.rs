//! The bytes of an open file as an answer, read as the client takes them.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use futures_util::stream::unfold;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;
/// Bytes read at a time when there are many readers: what each of them holds while it stalls.
const SMALL_PIECE: usize = 8 << 10;
/// From so many readers on, pieces are small.
const MANY: usize = 512;

/// How many answers are being streamed.
#[derive(Clone, Default)]
pub(crate) struct Readers(Arc<AtomicUsize>);

/// One reader, counted until it is gone.
struct Reader(Readers);

impl Readers {
    fn enter(&self) -> Reader {
        self.0.fetch_add(1, Ordering::Relaxed);
        Reader(self.clone())
    }

    /// A stalled reader holds two pieces; thousands of them must not hold gigabytes.
    fn piece(&self) -> usize {
        if self.0.load(Ordering::Relaxed) < MANY { PIECE } else { SMALL_PIECE }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
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
        let read = tokio::task::spawn_blocking(move || read_at(&from, part.start, piece)).await;
        let bytes = read.unwrap_or_else(|_| Err(ErrorKind::Other.into()));
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
    use super::*;

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
        assert_eq!(readers.0.load(Ordering::Relaxed), 0);
    }
}
