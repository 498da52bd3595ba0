//! Finding the commits of a log: the last one from the end of the file, then one before the other.

use std::io;

use super::disk::{DiskFile, read_full_at};
use super::log::{ALIGN, Commit, Head, Header, Listed};

/// Bytes that are read at once while the last commit is looked for.
const CHUNK: usize = 1 << 20;

/// Something in a log that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) offset: u64,
    pub(super) problem: String,
}

/// A batch of records.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    /// `None` when both copies are damaged: then the records are those whose own headers could be read.
    pub(super) commit: Option<Commit>,
    pub(super) records: Vec<Listed>,
}

/// The last commit at or behind `from` of a file that has `length` bytes; `None` when there is none.
///
/// The end of a file is looked at with reads and not through a map: a writer may be cutting it at this moment.
pub(super) fn last_commit(file: &dyn DiskFile, head: &Head, from: u64, length: u64) -> io::Result<Option<Commit>> {
    let align = ALIGN as u64;
    let mut end = length / align * align;
    let mut buffer = Vec::new();
    // Nearly always the last thing in the file is a short commit.
    let mut chunk = 4 * align;
    while end > from {
        let begin = end.saturating_sub(chunk).max(from / align * align);
        buffer.resize((end - begin) as usize, 0);
        let read = read_full_at(file, begin, &mut buffer)?;
        buffer.truncate(read / ALIGN * ALIGN);
        for place in (0..buffer.len()).step_by(ALIGN).rev() {
            let at = begin + place as u64;
            let Some(size) = Commit::size_at(&buffer[place..]) else { continue };
            let mut copy = vec![0; size];
            let read = read_full_at(file, at, &mut copy)?;
            copy.truncate(read);
            let commit = Commit::read(&copy, at).filter(|commit| belongs(commit, head));
            // One whose second copy never arrived was not acknowledged; were it used, a writer that failed could not cut it.
            if let Some(commit) = commit.filter(|commit| commit.end <= length && commit.start >= head.first() as u64) {
                let mut both = vec![0; commit.bytes() as usize];
                let read = read_full_at(file, commit.at, &mut both)?;
                both.truncate(read);
                let copy = |at: u64| Commit::read(both.get(usize::try_from(at - commit.at).ok()?..)?, at);
                let agreed = of_copies(copy, head, (commit.at, commit.end), commit.sequence);
                return Ok(agreed.or(Some(commit)));
            }
        }
        end = begin;
        chunk = (8 * chunk).min(CHUNK as u64);
    }
    Ok(None)
}

fn belongs(commit: &Commit, head: &Head) -> bool {
    commit.identity == head.identity && commit.width == head.width
}

/// The commit that takes all of `from..to` and is the `sequence`th, by whichever copy says so.
pub(super) fn commit_between(bytes: &[u8], head: &Head, place: (u64, u64), sequence: u64) -> Option<Commit> {
    of_copies(|at| Commit::read(bytes.get(usize::try_from(at).ok()?..)?, at), head, place, sequence)
}

/// The first copy of a commit if it stands there as it should, else the second.
///
/// Every way to a commit, from the end of the file and along the chain, ends here: two copies that both fit their checksums may
/// still list other records (somebody made them so), and a record that one way sees and another does not would be there
/// before a write and gone after it.
fn of_copies(
    copy: impl Fn(u64) -> Option<Commit>,
    head: &Head,
    (from, to): (u64, u64),
    sequence: u64,
) -> Option<Commit> {
    let half = to.checked_sub(from)? / 2;
    let is_it =
        |commit: &Commit| belongs(commit, head) && commit.at == from && commit.end == to && commit.sequence == sequence;
    copy(from).filter(is_it).or_else(|| copy(from + half).filter(is_it))
}

/// The batches from the one behind `known` (where its commit begins; 0 for all of them) to `last`, oldest first. What is
/// wrong with them goes to `damage`; the records of a batch whose commit is gone are found by their own headers.
pub(super) fn batches(bytes: &[u8], head: &Head, last: Commit, known: u64, damage: &mut Vec<Damage>) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut next = Some(last);
    while let Some(commit) = next {
        let (start, previous, sequence) = (commit.start, commit.previous, commit.sequence);
        let records = commit.records.clone();
        batches.push(Batch { commit: Some(commit), records });
        if previous <= known {
            break;
        }
        next = sequence.checked_sub(1).and_then(|before| commit_between(bytes, head, (previous, start), before));
        if next.is_none() {
            damage.push(Damage { offset: previous, problem: "both copies of a commit are damaged".to_owned() });
            let before = commit_before(bytes, head, (known, previous.max(known)), sequence);
            let from = before.as_ref().map_or_else(|| head.first().max(known as usize), |before| before.end as usize);
            batches.push(Batch { commit: None, records: by_headers(bytes, head, from, previous as usize) });
            next = before;
        }
    }
    batches.reverse();
    batches
}

/// The last commit inside `known..end` that came before the `sequence`th. One that claims to be a later one is skipped: whatever
/// it is, it hides nothing that stands before it.
fn commit_before(bytes: &[u8], head: &Head, (known, end): (u64, u64), sequence: u64) -> Option<Commit> {
    let places = (known as usize..end as usize).step_by(ALIGN).rev();
    let at = |place: usize| Commit::read(bytes.get(place..)?, place as u64);
    let found = |commit: &Commit| belongs(commit, head) && commit.end <= end && commit.sequence < sequence;
    let commit = places.filter_map(at).find(found)?;
    commit_between(bytes, head, (commit.at, commit.end), commit.sequence)
}

/// The records between two places by their own headers; where none begins, the next one is looked for.
fn by_headers(bytes: &[u8], head: &Head, from: usize, to: usize) -> Vec<Listed> {
    let mut records = Vec::new();
    let mut offset = from;
    while offset < to {
        let header = bytes.get(offset..).and_then(Header::read);
        let placed = header.and_then(|header| header.placed(offset, head.width)).filter(|placed| placed.end <= to);
        // A damaged commit holds headers too, behind which no description stands.
        match header.zip(placed).filter(|(header, placed)| header.read_meta(bytes, placed).is_ok()) {
            Some((header, placed)) => {
                records.push(Listed { offset, header, name: 0 });
                offset = placed.end;
            }
            None => offset += ALIGN,
        }
    }
    records
}
