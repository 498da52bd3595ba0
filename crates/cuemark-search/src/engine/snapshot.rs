//! The state of a log at one moment: which videos there are and where their moments lie.

use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::{Progress, Span, VideoId};
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use rustc_hash::{FxHashMap, FxHashSet};

use super::disk::{DiskFile, FileStamp, Mapped, read_full_at};
use super::log::{self, Commit, Encoded, Head, HeadFault, Header, Listed, Meta, Placed};
use super::walk::{self, Batch, Damage};
use crate::{Result, SearchError, VideoEntry, VideoState};

/// The state of a log at one moment. Moments are numbered over the whole log, dead ones too.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    map: Arc<Mapped>,
    pub(super) head: Head,
    pub(super) head_fault: Option<HeadFault>,
    /// The file when it was read.
    pub(super) stamp: FileStamp,
    /// Everything that was ever put, in order.
    pub(crate) puts: Vec<Put>,
    by_id: FxHashMap<VideoId, usize>,
    /// The put that each moment belongs to.
    put_of_row: Vec<u32>,
    /// Where the next record begins.
    pub(crate) end: usize,
    /// The last commit: where it begins and its number; zeros where there is none.
    pub(super) last: (u64, u64),
    /// Records of the last batch that are not as they were written: never acknowledged, or damaged since.
    pub(super) not_whole: Vec<u64>,
    /// What is damaged, as far as reading descriptions shows it.
    pub(super) damage: Vec<Damage>,
    /// Records that were not whole when the next writer came: never acknowledged, or said to be damaged then.
    voids: FxHashSet<u64>,
    /// Bytes of the commits.
    committing: usize,
}

/// A video as it was put.
#[derive(Debug, Clone)]
pub(crate) struct Put {
    pub(crate) entry: VideoEntry,
    /// Whether it is still what the index has under that name.
    pub(crate) live: bool,
    pub(crate) first_row: usize,
    pub(crate) rows: usize,
    spans: usize,
    vectors: usize,
    words: std::ops::Range<usize>,
    header: Header,
    /// Where its record begins and ends.
    record: std::ops::Range<usize>,
}

impl Put {
    /// Whether its moments can be found at all.
    pub(crate) fn is_found(&self) -> bool {
        self.live && self.entry.state == VideoState::Present
    }
}

const BAD_MOMENTS: &str = "the record's moments or words do not fit their checksum";

impl Snapshot {
    /// Reads a log from its beginning.
    pub(crate) fn read(file: &dyn DiskFile, path: &Utf8Path) -> Result<Self> {
        let stamp = file.stamp().map_err(SearchError::io("look at", path))?;
        let (head, head_fault) = read_head(file, path)?;
        let empty = |map: Mapped| Self::empty(map, (head, head_fault), stamp);
        if head.old {
            let map = file.map(stamp.length).map_err(SearchError::io("map", path))?;
            return empty(map).with_old_records(path);
        }
        let last = walk::last_commit(file, &head, head.first() as u64, stamp.length);
        let last = last.map_err(SearchError::io("read", path))?;
        let end = last.as_ref().map_or(head.first() as u64, |last| last.end);
        let map = file.map(end).map_err(SearchError::io("map", path))?;
        Ok(empty(map).with(last))
    }

    /// What is said by `records`, wherever they were found; all of each is checked.
    pub(super) fn of_records(
        map: Mapped,
        head: Head,
        stamp: FileStamp,
        records: &[Listed],
        voids: &FxHashSet<u64>,
    ) -> Self {
        let mut snapshot = Self::empty(map, (head, None), stamp);
        let map = Arc::clone(&snapshot.map);
        records.iter().for_each(|record| snapshot.apply(&map, record, voids, Check::All));
        snapshot
    }

    fn empty(map: Mapped, (head, head_fault): (Head, Option<HeadFault>), stamp: FileStamp) -> Self {
        Self {
            map: Arc::new(map),
            head,
            head_fault,
            stamp,
            puts: Vec::new(),
            by_id: FxHashMap::default(),
            put_of_row: Vec::new(),
            end: head.first(),
            last: (0, 0),
            not_whole: Vec::new(),
            damage: Vec::new(),
            voids: FxHashSet::default(),
            committing: 0,
        }
    }

    /// The same with what was added to the log since; everything anew when it is another log, or not what it was.
    pub(crate) fn refreshed(&self, file: &dyn DiskFile, path: &Utf8Path) -> Result<Self> {
        let stamp = file.stamp().map_err(SearchError::io("look at", path))?;
        let (head, head_fault) = read_head(file, path)?;
        let goes_on = stamp.is_same_file(&self.stamp) && head == self.head && !head.old;
        // A record that was not whole may have been on its way: whatever has become of it is read again.
        if !goes_on || stamp.length < self.end as u64 || !self.not_whole.is_empty() {
            return Self::read(file, path);
        }
        let last = walk::last_commit(file, &head, self.last.0, stamp.length);
        let Some(last) = last.map_err(SearchError::io("read", path))? else { return Self::read(file, path) };
        if (last.at, last.sequence) == self.last {
            return Ok(Self { stamp, head_fault, ..self.clone() });
        }
        let map = file.map(last.end).map_err(SearchError::io("map", path))?;
        let (at, sequence) = self.last;
        if at > 0 && walk::commit_between(map.bytes(), &head, (at, self.end as u64), sequence).is_none() {
            // An older copy was put over it, byte for byte into the same file.
            return Self::read(file, path);
        }
        Ok(Self { map: Arc::new(map), stamp, head_fault, ..self.clone() }.with(Some(last)))
    }

    /// Takes in what was committed behind what is known.
    fn with(mut self, last: Option<Commit>) -> Self {
        let Some(last) = last else { return self };
        let map = Arc::clone(&self.map);
        let (known, end) = ((last.at, last.sequence), last.end as usize);
        let batches = walk::batches(map.bytes(), &self.head, last, self.last.0, &mut self.damage);
        let commits = || batches.iter().filter_map(|batch| batch.commit.as_ref());
        let voids: FxHashSet<u64> = commits().flat_map(|commit| commit.voids.iter().copied()).collect();
        self.voids.extend(&voids);
        self.committing += commits().map(|commit| commit.bytes() as usize).sum::<usize>();
        // What was not whole of the last batch that was known is among the voids, and was never taken in.
        self.not_whole.clear();
        let count = batches.len();
        for (number, Batch { records, .. }) in batches.into_iter().enumerate() {
            for record in records {
                self.apply(&map, &record, &voids, if number + 1 == count { Check::All } else { Check::Description });
            }
        }
        (self.last, self.end) = (known, end);
        self
    }

    fn apply(&mut self, map: &Mapped, record: &Listed, voids: &FxHashSet<u64>, check: Check) {
        let bytes = map.bytes();
        let offset = record.offset as u64;
        let Some(placed) = record.header.placed(record.offset, self.head.width) else { return };
        let meta = if voids.contains(&offset) {
            Err("the record was not whole when the next was written".to_owned())
        } else {
            record.header.read_meta(bytes, &placed)
        };
        let meta = match (meta, check) {
            (Ok(_), Check::All) if !record.header.is_sound(bytes, &placed) => Err(BAD_MOMENTS.to_owned()),
            (meta, _) => meta,
        };
        match meta {
            Ok(meta) => self.take(meta, record, &placed),
            Err(problem) => {
                if check == Check::All {
                    self.not_whole.push(offset);
                }
                self.damage.push(Damage { offset, problem });
                if record.removes() {
                    // The commit says whose removal it was.
                    let gone = self.by_id.keys().find(|id| log::hash_of(id) == record.name).cloned();
                    gone.into_iter().for_each(|id| self.remove(&id));
                }
            }
        }
    }

    fn take(&mut self, meta: Meta, record: &Listed, placed: &Placed) {
        match meta {
            Meta::Put(entry) => {
                let place = self.puts.len();
                if let Some(earlier) = self.by_id.insert(entry.id.clone(), place) {
                    self.puts[earlier].live = false;
                }
                let (first_row, rows) = (self.put_of_row.len(), record.header.rows);
                self.put_of_row.resize(first_row + rows, place as u32);
                let (spans, vectors) = (placed.spans.start, placed.vectors.start);
                let (header, record, words) = (record.header, record.offset..placed.end, placed.words.clone());
                self.puts.push(Put { entry, live: true, first_row, rows, spans, vectors, words, header, record });
            }
            Meta::Note { id, state, tags } => {
                if let Some(put) = self.by_id.get(&id).and_then(|place| self.puts.get_mut(*place)) {
                    (put.entry.state, put.entry.tags) = (state, tags);
                }
            }
            Meta::Remove { id } => self.remove(&id),
        }
    }

    fn remove(&mut self, id: &VideoId) {
        if let Some(place) = self.by_id.remove(id) {
            self.puts[place].live = false;
        }
    }

    /// The records of a log of the first version, which has no commits: a record that is not whole is an end, and everything
    /// behind damage is out of reach.
    fn with_old_records(mut self, path: &Utf8Path) -> Result<Self> {
        let map = Arc::clone(&self.map);
        let bytes = map.bytes();
        loop {
            let rest = bytes.get(self.end..).unwrap_or_default();
            let Some(header) = Header::read(rest) else {
                // After a power cut a file may have grown without its bytes having arrived.
                if rest.len() < log::ALIGN || rest.iter().all(|byte| *byte == 0) {
                    return Ok(self);
                }
                let problem = "no record begins here".to_owned();
                return Err(SearchError::Damaged { path: path.to_owned(), offset: self.end as u64, problem });
            };
            let record = Listed { offset: self.end, header, name: 0 };
            let placed = header.placed(self.end, self.head.width).filter(|placed| placed.end <= bytes.len());
            let Some(placed) = placed else { return Ok(self) };
            let offset = self.end as u64;
            let meta = header.read_meta(bytes, &placed).map_err(|problem| SearchError::Damaged {
                path: path.to_owned(),
                offset,
                problem,
            })?;
            // The last record may have been cut short by a power cut after the file had grown.
            let behind = &bytes[placed.end..];
            let last = Header::read(behind).is_none() && behind.iter().all(|byte| *byte == 0);
            if last && !header.is_sound(bytes, &placed) {
                self.damage.push(Damage { offset, problem: BAD_MOMENTS.to_owned() });
                self.not_whole.push(offset);
                return Ok(self);
            }
            self.take(meta, &record, &placed);
            self.end = placed.end;
        }
    }

    /// Numbers per embedding.
    pub(crate) fn width(&self) -> usize {
        self.head.width
    }

    /// Which log it is; empty for one of the first version, which has no identity.
    pub(crate) fn identity(&self) -> String {
        if self.head.old { String::new() } else { self.head.identity.to_string() }
    }

    /// How often the log was compacted.
    pub(crate) fn generation(&self) -> u32 {
        self.head.generation
    }

    /// Bytes of the log that nothing needs any more: removed and replaced videos, and what was noted about others.
    pub(crate) fn waste(&self) -> usize {
        let live: usize = self.puts.iter().filter(|put| put.live).map(|put| put.record.len()).sum();
        self.end.saturating_sub(self.head.first() + self.committing + live)
    }

    /// The live video as one record, with what was noted about it since.
    ///
    /// # Errors
    /// What is wrong, when its moments do not fit their checksum.
    pub(crate) fn record(&self, put: &Put) -> Result<Encoded, String> {
        self.record_as(put, &put.entry, self.words(put))
    }

    /// The moments of a live video as a record that says something else about it and has other words.
    ///
    /// # Errors
    /// As [`Snapshot::record`].
    pub(super) fn record_as(&self, put: &Put, entry: &VideoEntry, words: &[u8]) -> Result<Encoded, String> {
        let body = self.map.bytes().get(put.spans..put.words.start).unwrap_or_default();
        let placed = put.header.placed(put.record.start, self.width());
        if !placed.is_some_and(|placed| put.header.is_sound(self.map.bytes(), &placed)) {
            return Err(BAD_MOMENTS.to_owned());
        }
        let meta = Meta::Put(entry.clone());
        Encoded::of_body(&meta, put.rows, body.to_vec(), words).map_err(|error| error.to_string())
    }

    /// What is said and written in a video, as its record keeps it.
    pub(super) fn words(&self, put: &Put) -> &[u8] {
        self.map.bytes().get(put.words.clone()).unwrap_or_default()
    }

    /// Whether nothing was ever written to the log.
    pub(super) fn is_untouched(&self) -> bool {
        self.end == self.head.first() && self.damage.is_empty()
    }

    /// What a record says, however damaged its moments are; `None` when its description is.
    pub(super) fn meta_of(&self, record: &Listed) -> Option<Meta> {
        let placed = record.header.placed(record.offset, self.width())?;
        record.header.read_meta(self.map.bytes(), &placed).ok()
    }

    /// Whether the record there counts as never written.
    pub(super) fn is_void(&self, offset: u64) -> bool {
        self.voids.contains(&offset) || self.not_whole.contains(&offset)
    }

    /// Where a video's record begins in the file.
    pub(crate) fn offset(&self, put: &Put) -> u64 {
        put.record.start as u64
    }

    /// Moments over the whole log, dead ones too.
    pub(crate) fn rows(&self) -> usize {
        self.put_of_row.len()
    }

    /// The live video of that name.
    pub(crate) fn live(&self, id: &VideoId) -> Option<&Put> {
        self.by_id.get(id).and_then(|place| self.puts.get(*place))
    }

    /// Which of the puts a moment belongs to.
    pub(crate) fn place_of(&self, row: usize) -> Option<usize> {
        Some(*self.put_of_row.get(row)? as usize)
    }

    /// The video that a moment belongs to.
    pub(crate) fn put_of(&self, row: usize) -> Option<(usize, &Put)> {
        let place = self.place_of(row)?;
        Some((place, self.puts.get(place)?))
    }

    /// Where a moment lies; empty at 0 when its bytes are no span.
    pub(crate) fn span(&self, put: &Put, row: usize) -> Span {
        let at = put.spans + 16 * (row - put.first_row);
        let seconds =
            |at: usize| -> Option<f64> { Some(f64::from_le_bytes(self.map.bytes().get(at..at + 8)?.try_into().ok()?)) };
        let span = seconds(at).zip(seconds(at + 8)).and_then(|(start, end)| Span::new(start, end).ok());
        span.unwrap_or_else(|| Span::whole(0.0))
    }

    /// The numbers of one moment.
    pub(crate) fn vector(&self, row: usize) -> &[f16] {
        let Some((_, put)) = self.put_of(row) else { return &[] };
        let at = put.vectors + 2 * self.width() * (row - put.first_row);
        self.halves(at, 1)
    }

    /// The numbers of all moments of a video.
    pub(crate) fn vectors(&self, put: &Put) -> &[f16] {
        self.halves(put.vectors, put.rows)
    }

    fn halves(&self, at: usize, rows: usize) -> &[f16] {
        let bytes = self.map.bytes().get(at..at + 2 * self.width() * rows).unwrap_or_default();
        // Parts of a record begin at multiples of 64 bytes of a page-aligned map.
        bytemuck::try_cast_slice::<u8, u16>(bytes).unwrap_or_default().reinterpret_cast()
    }

    /// Walks the log again, every checksum and every second copy included, and says what does not fit; the steps of
    /// `progress` are bytes.
    ///
    /// # Errors
    /// When `progress` was stopped.
    pub(super) fn check(&self, progress: &Progress) -> Result<Vec<Damage>> {
        let bytes = self.map.bytes();
        progress.phase("reading", self.end);
        let mut damage = self.damage.clone();
        if let Some(HeadFault { offset }) = self.head_fault {
            damage.push(Damage { offset, problem: "one of the two heads is damaged; the other is used".to_owned() });
        }
        if self.head.old {
            for put in &self.puts {
                let placed = put.header.placed(put.record.start, self.width());
                if !placed.is_some_and(|placed| put.header.is_sound(bytes, &placed)) {
                    damage.push(Damage { offset: self.offset(put), problem: BAD_MOMENTS.to_owned() });
                }
                progress.advance(put.record.len())?;
            }
            return Ok(damage);
        }
        let (at, sequence) = self.last;
        let last = walk::commit_between(bytes, &self.head, (at, self.end as u64), sequence);
        // What is wrong with commits was said when they were read.
        let batches = last.map(|last| walk::batches(bytes, &self.head, last, 0, &mut Vec::new())).unwrap_or_default();
        let known: FxHashSet<u64> = damage.iter().map(|known| known.offset).collect();
        for Batch { commit, records } in batches {
            for record in records {
                let offset = record.offset as u64;
                let Some(placed) = record.header.placed(record.offset, self.width()) else { continue };
                let problem = if known.contains(&offset) {
                    None
                } else if !record.header.is_sound(bytes, &placed) {
                    Some(BAD_MOMENTS)
                } else if bytes.get(record.offset..).and_then(Header::read) != Some(record.header) {
                    Some("the record's header is damaged; the one that its commit keeps is used")
                } else if !placed.is_padded_with_zeros(bytes) {
                    Some("the record has something behind its description where nothing belongs")
                } else {
                    None
                };
                damage.extend(problem.map(|problem| Damage { offset, problem: problem.to_owned() }));
                progress.advance(placed.end - record.offset)?;
            }
            let Some(commit) = commit else { continue };
            let half = commit.bytes() / 2;
            for at in [commit.at, commit.at + half] {
                let copy = bytes.get(at as usize..).and_then(|copy| Commit::read(copy, at));
                if copy.as_ref() != Some(&commit) {
                    let problem = "one of the two copies of a commit is damaged; the other is used".to_owned();
                    damage.push(Damage { offset: at, problem });
                }
            }
            progress.advance(commit.bytes() as usize)?;
        }
        damage.sort_by_key(|damage| damage.offset);
        Ok(damage)
    }
}

/// How much of a record is compared with its checksums before it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// What opening must know.
    Description,
    /// Its moments too.
    All,
}

/// The head of a log.
pub(super) fn read_head(file: &dyn DiskFile, path: &Utf8Path) -> Result<(Head, Option<HeadFault>)> {
    let mut bytes = vec![0; log::FIRST];
    let read = read_full_at(file, 0, &mut bytes).map_err(SearchError::io("read", path))?;
    bytes.truncate(read);
    Head::read(&bytes).map_err(|problem| SearchError::Damaged { path: path.to_owned(), offset: 0, problem })
}

/// Halves as full numbers, into a buffer of the same length; nothing but zeros of a row that is not there.
pub(crate) fn widen(halves: &[f16], buffer: &mut [f32]) {
    if halves.len() == buffer.len() {
        halves.convert_to_f32_slice(buffer);
    } else {
        buffer.fill(0.0);
    }
}
