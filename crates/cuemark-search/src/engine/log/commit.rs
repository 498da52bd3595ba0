//! Commits: what makes a batch of records visible.

use super::record::{Header, Kind};
use super::{ALIGN, Encoded, Identity, aligned, long, number};
use crate::engine::limits;

const MAGIC: &[u8; 4] = b"CCMT";
/// Bytes of one record in the table: its header again and the hash of its video's name.
const ENTRY: usize = Header::BYTES + 8;

/// A commit and the batch that it covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Commit {
    pub(in crate::engine) identity: Identity,
    pub(in crate::engine) width: usize,
    /// Counts up from 1.
    pub(in crate::engine) sequence: u64,
    /// Where the first record of the batch begins.
    pub(in crate::engine) start: u64,
    /// Where the commit before this one begins; 0 for the first.
    pub(in crate::engine) previous: u64,
    pub(in crate::engine) records: Vec<Listed>,
    /// Records of the batch before that were not whole when this was written.
    pub(in crate::engine) voids: Vec<u64>,
    /// Where the first copy of the commit begins.
    pub(in crate::engine) at: u64,
    /// Behind the second copy: where the next batch begins.
    pub(in crate::engine) end: u64,
}

/// A record as a commit lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Listed {
    pub(in crate::engine) offset: usize,
    pub(in crate::engine) header: Header,
    /// A hash of the video's name.
    pub(in crate::engine) name: u64,
}

impl Listed {
    pub(in crate::engine) fn removes(&self) -> bool {
        self.header.kind == Kind::Remove
    }
}

/// Bytes of one copy.
fn size(records: usize, voids: usize) -> usize {
    ALIGN + aligned(ENTRY * records + 8 * voids)
}

impl Commit {
    /// The commit of `records`, which stand at `start`, behind the commit that begins at `previous`. Whoever calls sees to it
    /// that there are not too many of them.
    pub(in crate::engine) fn of(
        (identity, width): (Identity, usize),
        sequence: u64,
        (start, previous): (u64, u64),
        records: &[Encoded],
        voids: Vec<u64>,
    ) -> Self {
        let mut at = start;
        let listed = records.iter().map(|record| {
            let offset = at as usize;
            at += record.bytes.len() as u64;
            Listed { offset, header: record.header, name: record.name }
        });
        let records: Vec<Listed> = listed.collect();
        let end = at + 2 * size(records.len(), voids.len()) as u64;
        Self { identity, width, sequence, start, previous, records, voids, at, end }
    }

    /// Both copies.
    pub(in crate::engine) fn encode(&self) -> Vec<u8> {
        let mut table = Vec::with_capacity(ENTRY * self.records.len() + 8 * self.voids.len());
        for record in &self.records {
            table.extend(record.header.encode());
            table.extend(record.name.to_le_bytes());
        }
        table.extend(self.voids.iter().flat_map(|offset| offset.to_le_bytes()));
        table.resize(aligned(table.len()), 0);
        let mut bytes = MAGIC.to_vec();
        for number in [self.records.len(), self.voids.len(), self.width] {
            bytes.extend((number as u32).to_le_bytes());
        }
        bytes.extend(self.identity.bytes());
        for number in [self.sequence, self.start, self.previous] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(crc32fast::hash(&table).to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes.extend(table);
        bytes.repeat(2)
    }

    /// Bytes of one copy, by its first [`ALIGN`] alone; `None` when no commit begins there.
    pub(in crate::engine) fn size_at(bytes: &[u8]) -> Option<usize> {
        let fixed = bytes.get(..ALIGN)?;
        if !fixed.starts_with(MAGIC) || number(fixed, ALIGN - 4) != Some(crc32fast::hash(&fixed[..ALIGN - 4])) {
            return None;
        }
        let (records, voids) = (number(fixed, 4)? as usize, number(fixed, 8)? as usize);
        (records <= limits::COMMITTED && voids <= limits::COMMITTED).then(|| size(records, voids))
    }

    /// The commit of which a copy, the first or the second, is at the beginning of `bytes`, which stand at `offset` of the
    /// file; `None` when there is none, or it does not stand where it should behind its records.
    pub(in crate::engine) fn read(bytes: &[u8], offset: u64) -> Option<Self> {
        let size = Self::size_at(bytes)?;
        let table = bytes.get(ALIGN..size)?;
        if number(bytes, ALIGN - 8)? != crc32fast::hash(table) {
            return None;
        }
        let (count, voids) = (number(bytes, 4)? as usize, number(bytes, 8)? as usize);
        let width = number(bytes, 12)? as usize;
        let (start, previous) = (long(bytes, 40)?, long(bytes, 48)?);
        if previous >= start {
            // No writer does so, and whoever followed it would not come to an end.
            return None;
        }
        let mut place = usize::try_from(start).ok()?;
        let mut records = Vec::with_capacity(count);
        for entry in table.chunks_exact(ENTRY).take(count) {
            let (header, name) = (Header::read(entry)?, long(entry, Header::BYTES)?);
            records.push(Listed { offset: place, header, name });
            place = place.checked_add(header.length(width)?)?;
        }
        let at = place as u64;
        let end = at.checked_add(2 * size as u64)?;
        let is_copy = offset == at || offset == at + size as u64;
        let voids = (0..voids).map(|number| long(table, ENTRY * count + 8 * number)).collect::<Option<Vec<u64>>>()?;
        is_copy.then_some(Self {
            identity: Identity::read(bytes, 16)?,
            width,
            sequence: long(bytes, 32)?,
            start,
            previous,
            records,
            voids,
            at,
            end,
        })
    }

    /// Bytes that the commit itself takes, both copies.
    pub(in crate::engine) fn bytes(&self) -> u64 {
        self.end - self.at
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FIRST, Meta};
    use super::*;

    fn batch() -> (Vec<u8>, Commit) {
        let record = |id: &str| Encoded::bare(&Meta::Remove { id: id.into() }).unwrap();
        let records = [record("a"), record("b")];
        let mut bytes = vec![0; FIRST];
        records.iter().for_each(|record| bytes.extend(&record.bytes));
        let commit = Commit::of((Identity::random(), 3), 7, (FIRST as u64, 64), &records, vec![640]);
        bytes.extend(commit.encode());
        (bytes, commit)
    }

    #[test]
    fn either_copy_is_read_as_it_was_written_and_only_where_it_stands() {
        let (bytes, commit) = batch();
        let (at, second) = (commit.at as usize, (commit.at + commit.bytes() / 2) as usize);
        assert_eq!(commit.end as usize, bytes.len());
        assert_eq!(Commit::read(&bytes[at..], at as u64).as_ref(), Some(&commit));
        assert_eq!(Commit::read(&bytes[second..], second as u64), Some(commit));
        assert_eq!(Commit::read(&bytes[at..], at as u64 + 64), None);
        assert_eq!(Commit::read(&bytes[at..at + 64], at as u64), None);
    }

    #[test]
    fn one_that_follows_itself_or_something_behind_it_is_none() {
        let (bytes, commit) = batch();
        let at = commit.at as usize;
        for previous in [commit.start, commit.at, commit.end, 1 << 60, u64::MAX] {
            let wrong = Commit { previous, ..commit.clone() }.encode();
            let bytes = [&bytes[..at], &wrong].concat();
            assert_eq!(Commit::read(&bytes[at..], at as u64), None, "{previous}");
        }
    }

    #[test]
    fn no_changed_byte_of_a_copy_passes() {
        let (bytes, commit) = batch();
        let (at, half) = (commit.at as usize, commit.bytes() as usize / 2);
        for place in at..at + half {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            assert_eq!(Commit::read(&changed[at..], at as u64), None, "{place}");
            assert!(Commit::read(&changed[at + half..], (at + half) as u64).is_some(), "{place}");
        }
    }
}
