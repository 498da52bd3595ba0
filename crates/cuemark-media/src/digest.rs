//! What tells a film from others wherever it lies.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use camino::Utf8Path;
use sha2::{Digest as _, Sha256};

use crate::{MediaError, Result};

/// Pieces of a film that are read, spread evenly, the first and the last among them.
const PIECES: u64 = 32;
/// Bytes of one piece.
const PIECE: u64 = 1 << 16;

/// 128 bits by which a film is known again after it was moved or renamed, as hexadecimal digits: a SHA-256 of its length and of
/// 32 pieces of 64 KiB, all of it when it is no longer than they are. Two films that differ in one place only may have the same;
/// films that were encoded anew, cut, or tagged at either end do not.
///
/// # Errors
/// When the file cannot be read.
pub fn content_digest(path: &Utf8Path) -> Result<String> {
    let mut file = File::open(path).map_err(MediaError::io("read", path))?;
    let length = file.metadata().map_err(MediaError::io("look at", path))?.len();
    let mut hash = Sha256::new();
    hash.update(length.to_le_bytes());
    let mut read = |from: u64, bytes: u64| -> std::io::Result<()> {
        file.seek(SeekFrom::Start(from))?;
        let mut piece = Vec::with_capacity(PIECE as usize);
        file.by_ref().take(bytes).read_to_end(&mut piece)?;
        hash.update(&piece);
        Ok(())
    };
    if length <= PIECES * PIECE {
        let mut at = 0;
        while at < length {
            read(at, PIECE).map_err(MediaError::io("read", path))?;
            at += PIECE;
        }
    } else {
        for piece in 0..PIECES {
            read((length - PIECE) / (PIECES - 1) * piece, PIECE).map_err(MediaError::io("read", path))?;
        }
        read(length - PIECE, PIECE).map_err(MediaError::io("read", path))?;
    }
    Ok(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    #[test]
    fn a_copy_has_the_same_digest_and_a_film_of_another_length_or_end_has_not() {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        for length in [0usize, 1, 100_000, 5 << 20] {
            let bytes: Vec<u8> = (0..length).map(|n| (n * 7 / 3) as u8).collect();
            let write = |name: &str, bytes: &[u8]| {
                std::fs::write(folder.join(name), bytes).unwrap();
                content_digest(&folder.join(name)).unwrap()
            };
            let digest = write("a", &bytes);
            assert_eq!((digest.len(), &write("b", &bytes)), (32, &digest));
            assert_ne!(write("c", &[&bytes[..], &[0]].concat()), digest);
            if let Some((_, rest)) = bytes.split_last() {
                assert_ne!(write("d", &[rest, &[0xa5]].concat()), digest);
            }
        }
        assert!(content_digest(&folder.join("none")).is_err());
    }
}
