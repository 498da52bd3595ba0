//! The append-only log of an index: what was put, changed and removed, in order, with checksums.
//!
//! ```text
//! file    = head(64) head(64) batch*
//! head    = "CUEMARKMOMENTS02" width:u32 generation:u32 identity(16) zeros(20) crc:u32
//! batch   = record+ commit commit
//! record  = header(40) meta pad64 spans pad64 vectors pad64 words pad64
//! header  = "CREC" kind:u32 meta:u32 rows:u32 crc(meta):u32 crc(spans vectors words):u32 words:u32 zeros(8) crc(header):u32
//! commit  = "CCMT" records:u32 voids:u32 width:u32 identity(16) sequence:u64 start:u64 previous:u64 crc(table):u32 crc:u32 table pad64
//! table   = (header(40) name:u64){records} offset:u64{voids}
//! ```
//! All numbers are little endian. `meta` is JSON, `spans` are pairs of f64 seconds, `vectors` rows of f16; each part begins
//! at a multiple of 64 bytes, so that vectors can be read where they lie.
//! `words` are the lines that are said and written in the video (`words.rs`); records from before there were any have none, and
//! a manifest of layout 3 keeps programs away that would not step over them. Words stand in the record of their video's
//! vectors, under the same checksum and the same commit: no power cut tears the two apart.
//!
//! **Identity.** Every log has 128 random bits, the same in its head, in its commits and in `index.json`, by which it is told
//! from every other. Compacting keeps them and counts the generation up.
//!
//! **Commits.** A batch of records becomes visible by the commit behind it, which goes to disk with it (one `fsync`) before
//! anything is acknowledged. Readers never look past the last commit. What lies behind it was never acknowledged: no damage,
//! and the next writer cuts it off. What a commit covers is never cut, and what does not fit its checksum there is damage.
//!
//! **Damage costs one record.** Heads and commits are there twice. A commit repeats the headers of its records, so that a
//! damaged header costs nothing and a damaged description only its record. `name` is a hash of the video's: a removal counts
//! even when its record is damaged. Commits are chained backwards (`previous` is where the last one begins, `start` where its
//! second copy ends), so that no record need be read to find the next.
//!
//! **Voids.** A power cut may keep the commit of the last batch and lose pages of its records. Readers check the last batch
//! against its checksums and do not use a record that fails; the next writer names it among the voids of its first commit, so
//! that it stays so when the batch is the last no more.
//!
//! Logs of the first version (`CUEMARKMOMENTS01`) have one head, no identity and no commits. They are read as they were and
//! rewritten whole by the first that writes.

mod commit;
mod head;
mod record;
pub(super) mod words;

pub(super) use commit::{Commit, Listed};
pub(super) use head::{FIRST, Head, HeadFault, Identity};
pub(super) use record::{Encoded, Header, Meta, Placed, halves, hash_of};

/// Everything begins at a multiple of this.
pub(super) const ALIGN: usize = 64;

pub(super) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

pub(super) fn aligned(length: usize) -> usize {
    length.next_multiple_of(ALIGN)
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(aligned(bytes.len()), 0);
}
