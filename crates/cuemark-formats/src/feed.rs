//! A JSON document that is read in pieces: a submission of gigabytes takes the memory of what is kept of it, not its own.
//!
//! A [`Feed`] walks over the outermost values. Lists of objects are handed on in blocks, decoded by all cores while the next
//! block is read; every other value is handed on whole.

use std::io::{BufRead, Read as _};
use std::ops::{ControlFlow, Range};

use crate::cursor::{Cursor, end_of_object, end_of_value};
use crate::fault::Fault;
use crate::{ReadError, Result, Source};

/// Bytes that are read at once: enough for all cores, little beside what is kept of them.
const BLOCK: usize = 2 << 20;

/// A place in a document of which only a part is in memory.
pub(crate) struct Feed<'s> {
    source: &'s Source,
    stream: Box<dyn BufRead + Send>,
    /// What has been read and not been handed on begins at `at`.
    window: Vec<u8>,
    at: usize,
    /// The line on which the window begins.
    line: usize,
    ended: bool,
    /// Room for the next block, left over from the one before the last.
    spare: Vec<u8>,
    /// Bytes of both that the meter was told of.
    counted: u64,
}

/// Whole objects of a list.
pub(crate) struct Block {
    bytes: Vec<u8>,
    /// Where each stands, and on which line it begins.
    objects: Vec<(Range<usize>, usize)>,
    /// How many objects of the list stand before the first.
    pub(crate) first: usize,
}

/// One object of a list: its text, and how to say where it stands.
pub(crate) struct Piece<'b> {
    bytes: &'b [u8],
    /// The line on which it begins.
    pub(crate) line: usize,
}

/// A value that is handed on whole.
pub(crate) struct Whole {
    pub(crate) text: String,
    line: usize,
}

/// What may come next in a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    ObjectOrEnd,
    Object,
    CommaOrEnd,
    Nothing,
}

impl<'s> Feed<'s> {
    /// At the beginning of `source`.
    pub(crate) fn open(source: &'s Source) -> Result<Self> {
        let mut stream = source.open()?;
        let head = stream.fill_buf().map_err(|error| source.io(error))?;
        if head.starts_with(b"\xef\xbb\xbf") {
            stream.consume(3);
        }
        Ok(Self { source, stream, window: Vec::new(), at: 0, line: 1, ended: false, spare: Vec::new(), counted: 0 })
    }

    /// Reads on. The rest of the window moves to its beginning; a value that does not end doubles it, so that what is looked
    /// at again and again is never more than what is new.
    fn read_on(&mut self) -> Result<()> {
        self.line += lines(self.window.get(..self.at).unwrap_or_default());
        self.window.drain(..self.at);
        self.at = 0;
        let limit = self.source.limits().document;
        if self.window.len() as u64 > limit {
            let what = "the decompressed file".to_owned();
            return Err(ReadError::TooLarge { path: self.source.path().to_owned(), what, limit });
        }
        let step = BLOCK.max(self.window.len()).min(limit.saturating_add(1) as usize);
        let more = (self.window.len() + step).saturating_sub(self.window.capacity());
        self.source.charge(self.line, more)?;
        self.counted += more as u64;
        self.window.reserve_exact(step);
        let stream = self.stream.by_ref().take(step as u64);
        let read = { stream }.read_to_end(&mut self.window).map_err(|error| self.source.io(error))?;
        self.ended = read == 0;
        Ok(())
    }

    /// The next byte that is not white space, without taking it; 0 at the end.
    fn peek(&mut self) -> Result<u8> {
        loop {
            match self.window.get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                Some(byte) => return Ok(*byte),
                None if self.ended => return Ok(0),
                None => self.read_on()?,
            }
        }
    }

    fn take(&mut self, wanted: u8) -> Result<bool> {
        let there = self.peek()? == wanted;
        self.at += usize::from(there);
        Ok(there)
    }

    /// Something else stands here than `wanted`; `way` leads here from the root.
    fn unexpected(&self, wanted: &str, way: impl FnOnce(Box<Fault>) -> Box<Fault>) -> ReadError {
        let rest = self.window.get(self.at..).unwrap_or_default();
        let near = String::from_utf8_lossy(rest.get(..rest.len().min(200)).unwrap_or_default());
        let fault = Cursor::new(&near, self.source.meter()).unexpected(wanted);
        way(fault).into_error(self.source, self.here(), "")
    }

    /// A problem with what stands here, under `key`.
    pub(crate) fn fault(&self, problem: &str, key: &str) -> ReadError {
        Fault::new(0, problem).inside_key(key).into_error(self.source, self.here(), "")
    }

    /// The line of this place.
    fn here(&self) -> usize {
        self.line + lines(self.window.get(..self.at).unwrap_or_default())
    }

    /// Calls `each` at every value of the object that begins here, with the value's key, until it has seen enough.
    pub(crate) fn object(&mut self, mut each: impl FnMut(&mut Self, &str) -> Result<ControlFlow<()>>) -> Result<()> {
        if !self.take(b'{')? {
            return Err(self.unexpected("an object", |fault| fault));
        }
        if self.take(b'}')? {
            return Ok(());
        }
        loop {
            if self.peek()? != b'"' {
                return Err(self.unexpected("text", |fault| fault));
            }
            let key = self.whole("")?;
            let mut cursor = Cursor::new(&key.text, self.source.meter());
            let name = cursor.string().map_err(|fault| key.fault(*fault, self.source))?;
            if !self.take(b':')? {
                return Err(self.unexpected("`:`", |fault| fault.inside_key(&name)));
            }
            if each(self, &name)?.is_break() || self.take(b'}')? {
                return Ok(());
            }
            if !self.take(b',')? {
                return Err(self.unexpected("`,` or `}`", |fault| fault.inside_key(&name)));
            }
        }
    }

    /// Hands on whatever stands here, under `key`.
    pub(crate) fn whole(&mut self, key: &str) -> Result<Whole> {
        let inside = |fault: Box<Fault>| if key.is_empty() { fault } else { fault.inside_key(key) };
        if self.peek()? == 0 {
            return Err(self.unexpected("a value", inside));
        }
        let end = loop {
            let rest = self.window.get(self.at..).unwrap_or_default();
            match end_of_value(rest) {
                // What is no list, object or text ends where the next thing begins, or where the document does.
                Some(end) if end < rest.len() || self.ended => break end,
                None if self.ended => break rest.len(),
                _ => self.read_on()?,
            }
        };
        let line = self.here();
        let bytes = self.window.get(self.at..self.at + end).unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(self.source, line, bytes, &error))?;
        self.source.charge(line, text.len())?;
        let whole = Whole { text: text.to_owned(), line };
        self.source.meter().release(whole.text.len() as u64);
        self.at += end;
        Ok(whole)
    }

    /// The list of objects that begins here, under `key` (none at the root): `decode` is called with every block while the
    /// next is read, `take` with what came of it, in order.
    pub(crate) fn list<T: Send>(
        &mut self,
        key: Option<&str>,
        decode: impl Fn(&Block) -> Result<T> + Sync,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let inside = |fault: Box<Fault>| match key {
            Some(key) => fault.inside_key(key),
            None => fault,
        };
        if !self.take(b'[')? {
            return Err(self.unexpected("a list", inside));
        }
        let (mut next, mut count) = (Next::ObjectOrEnd, 0);
        let mut block = self.block(&mut next, &mut count, &inside)?;
        while let Some(current) = block {
            let (decoded, following) = rayon::join(|| decode(&current), || self.block(&mut next, &mut count, &inside));
            take(decoded?)?;
            self.spare = current.bytes;
            block = following?;
        }
        Ok(())
    }

    /// The next objects of a list; `None` behind the last.
    fn block(
        &mut self,
        next: &mut Next,
        count: &mut usize,
        inside: &impl Fn(Box<Fault>) -> Box<Fault>,
    ) -> Result<Option<Block>> {
        let mut objects = Vec::new();
        // Lines are counted up to here.
        let mut counted = self.at;
        let mut line = self.here();
        while *next != Next::Nothing {
            let byte = match self.window.get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r') => {
                    self.at += 1;
                    continue;
                }
                Some(byte) => *byte,
                // What there is makes a block; who asks again gets what follows.
                None if !objects.is_empty() => break,
                None if self.ended => 0,
                None => {
                    self.read_on()?;
                    (counted, line) = (self.at, self.here());
                    continue;
                }
            };
            let place = *count;
            match (*next, byte) {
                (Next::ObjectOrEnd | Next::CommaOrEnd, b']') => {
                    self.at += 1;
                    *next = Next::Nothing;
                }
                (Next::CommaOrEnd, b',') => {
                    self.at += 1;
                    *next = Next::Object;
                }
                (Next::CommaOrEnd, _) => {
                    let way = |fault: Box<Fault>| inside(fault.inside_index(place.saturating_sub(1)));
                    return Err(self.unexpected("`,` or `]`", way));
                }
                (_, b'{') => match end_of_object(self.window.get(self.at..).unwrap_or_default()) {
                    Some(end) => {
                        line += lines(self.window.get(counted..self.at).unwrap_or_default());
                        counted = self.at;
                        objects.push((self.at..self.at + end, line));
                        self.at += end;
                        *count += 1;
                        *next = Next::CommaOrEnd;
                    }
                    None if !objects.is_empty() => break,
                    None if self.ended => {
                        let fault = inside(Fault::new(0, "the object has no end").inside_index(place));
                        return Err(fault.into_error(self.source, self.here(), ""));
                    }
                    None => {
                        self.read_on()?;
                        (counted, line) = (self.at, self.here());
                    }
                },
                _ => return Err(self.unexpected("an object", |fault| inside(fault.inside_index(place)))),
            }
        }
        if objects.is_empty() {
            return Ok(None);
        }
        let first = *count - objects.len();
        // The block takes the window; what is not part of it begins another.
        let mut rest = std::mem::take(&mut self.spare);
        rest.clear();
        let unread = self.window.get(self.at..).unwrap_or_default();
        let more = unread.len().saturating_sub(rest.capacity());
        self.source.charge(self.line, more)?;
        self.counted += more as u64;
        rest.extend_from_slice(unread);
        self.line = line + lines(self.window.get(counted..self.at).unwrap_or_default());
        self.window.truncate(self.at);
        let block = Block { bytes: std::mem::replace(&mut self.window, rest), objects, first };
        self.at = 0;
        Ok(Some(block))
    }

    /// Refuses anything but white space after the value.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.peek()?;
        if self.at < self.window.len() {
            return Err(self.unexpected("the end", |fault| fault));
        }
        Ok(())
    }
}

impl Drop for Feed<'_> {
    fn drop(&mut self) {
        self.source.meter().release(self.counted);
    }
}

impl Block {
    /// The objects, in order.
    pub(crate) fn pieces(&self) -> Vec<Piece<'_>> {
        let piece = |(range, line): &(Range<usize>, usize)| Piece {
            bytes: self.bytes.get(range.clone()).unwrap_or_default(),
            line: *line,
        };
        self.objects.iter().map(piece).collect()
    }
}

impl<'b> Piece<'b> {
    /// Its text.
    pub(crate) fn text(&self, source: &Source) -> Result<&'b str> {
        std::str::from_utf8(self.bytes).map_err(|error| not_utf8(source, self.line, self.bytes, &error))
    }
}

impl Whole {
    /// A fault of its text as an error.
    pub(crate) fn fault(&self, fault: Fault, source: &Source) -> ReadError {
        fault.into_error(source, self.line, &self.text)
    }
}

fn lines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

fn not_utf8(source: &Source, line: usize, bytes: &[u8], error: &std::str::Utf8Error) -> ReadError {
    source.not_utf8(line + lines(bytes.get(..error.valid_up_to()).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every object of the list at the root as its text, with its line and its place.
    fn objects(text: &str) -> Result<Vec<(usize, usize, String)>> {
        let source = Source::in_memory("doc", text.as_bytes().to_vec());
        let mut feed = Feed::open(&source)?;
        let mut found = Vec::new();
        let decode = |block: &Block| {
            let pieces = block.pieces();
            let each = |(place, piece): (usize, &Piece<'_>)| {
                Ok((block.first + place, piece.line, piece.text(&source)?.to_owned()))
            };
            pieces.iter().enumerate().map(each).collect::<Result<Vec<_>>>()
        };
        feed.list(None, decode, |block| {
            found.extend(block);
            Ok(())
        })?;
        feed.end()?;
        Ok(found)
    }

    #[test]
    fn a_list_larger_than_the_window_is_cut_at_its_objects() {
        // Longer than two blocks, with a text in every object that looks like its end.
        let object = |place: usize| format!("{{\"n\":{place},\n\"x\":\"}}]{}\"}}", "é".repeat(700));
        let text = format!(" [{}]\n", (0..5_000).map(object).collect::<Vec<_>>().join(" , "));
        assert!(text.len() > 3 * BLOCK);
        let found = objects(&text).unwrap();
        assert_eq!(found.len(), 5_000);
        for (place, (at, line, text)) in found.into_iter().enumerate() {
            assert_eq!((at, line, text), (place, place + 1, object(place)));
        }
    }

    #[test]
    fn one_object_may_be_larger_than_the_window() {
        let object = format!("{{\"x\":\"{}\"}}", "y".repeat(5 * BLOCK));
        let found = objects(&format!("[{object},{{}}]")).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].2, object);
    }

    #[test]
    fn what_is_no_list_of_objects_is_refused_where_it_stands() {
        for (text, message) in [
            ("", "doc:1: `.`: the end of the text is not a list"),
            ("[", "doc:1: `[0]`: the end of the text is not an object"),
            ("[{},\n]", "doc:2: `[1]`: `]` is not an object"),
            ("[{}\n{}]", "doc:2: `[0]`: `{` is not `,` or `]`"),
            ("[\n{\"a\"", "doc:2: `[0]`: the object has no end"),
            ("[] 1", "doc:1: `.`: `1` is not the end"),
            ("[]\u{0}", "doc:1: `.`: `\u{0}` is not the end"),
            ("[3]", "doc:1: `[0]`: `3` is not an object"),
        ] {
            assert_eq!(objects(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn the_window_is_counted_and_given_back() {
        let text = format!("[{{\"x\":\"{}\"}}]", "y".repeat(3 * BLOCK));
        let source = Source::in_memory("doc", text.into_bytes());
        let mut feed = Feed::open(&source).unwrap();
        feed.list(None, |block| Ok(block.pieces().len()), |_| Ok(())).unwrap();
        assert!(source.meter().kept() >= 3 * BLOCK as u64);
        drop(feed);
        assert_eq!(source.meter().kept(), 0);
        let small = source.with_budget(crate::Budget::new(BLOCK as u64));
        let mut feed = Feed::open(&small).unwrap();
        let error = feed.list(None, |block| Ok(block.pieces().len()), |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("budget"), "{error}");
    }
}
