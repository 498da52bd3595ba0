//! Opening files from outside: compressed or not, UTF-8 or refused, within limits.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Progress, SpanFault};

use crate::{Budget, Meter, ReadError, Result, Unread};

/// What to do about a span that [`RowPolicy::Error`](cuemark_core::RowPolicy::Error) refuses.
pub(crate) fn bad_row_advice() -> Advice {
    let advice = Advice::say("pass ").set_to("bad_rows", "keep");
    advice.and(" to swap such rows or `skip` to leave them out; either way they are counted")
}

/// The largest things that are read into memory at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a document that has to be held whole (JSON that is one value), decompressed. Default: 512 MiB
    pub document: u64,
    /// Bytes of one line. Default: 64 MiB
    pub line: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { document: 512 << 20, line: 64 << 20 }
    }
}

/// A file to read: where it lies, and how much of it may be held in memory.
///
/// What a reading keeps is counted by one [`Meter`], which starts again whenever the file is opened; clones share it.
#[derive(Debug, Clone)]
pub struct Source {
    path: Utf8PathBuf,
    limits: Limits,
    content: Option<Content>,
    /// What a pipe said: it can be read once, and a layout is judged before it is read.
    piped: Arc<OnceLock<Content>>,
    progress: Option<Progress>,
    meter: Arc<Meter>,
}

/// The name that stands for standard input.
pub const STDIN: &str = "-";

/// What a file would hold, had it been written.
#[derive(Clone)]
struct Content(Arc<[u8]>);

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// A file whose bytes are counted as they are read; reading ends with an error when it was called off.
struct Watched {
    file: Box<dyn Read + Send>,
    progress: Option<Progress>,
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy)]
enum Packing {
    Gzip,
    Zstd,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        if let Some(progress) = &self.progress {
            progress.advance(read).map_err(io::Error::other)?;
        }
        Ok(read)
    }
}

impl Source {
    /// The file at `path`, with the default limits. [`STDIN`] is standard input; that and every other pipe is read once, into
    /// memory, within the budget, however often the source (or a clone of it) is opened.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self {
            path: path.into(),
            limits: Limits::default(),
            content: None,
            piped: Arc::default(),
            progress: None,
            meter: Arc::default(),
        }
    }

    /// Something in memory that is read as the file `name` would be; no file of that name is looked for.
    pub fn in_memory(name: impl Into<Utf8PathBuf>, content: impl Into<Arc<[u8]>>) -> Self {
        Self { content: Some(Content(content.into())), ..Self::new(name) }
    }

    /// The same file, with its bytes (as they lie on disk) counted by `progress`, which can also call the reading off.
    ///
    /// Nothing is expected by itself: who knows how often a file is opened tells `progress` how much there is.
    #[must_use]
    pub fn watched(mut self, progress: &Progress) -> Self {
        self.progress = Some(progress.clone());
        self
    }

    /// The same file, read without anybody watching: a second look must not be counted as progress.
    #[must_use]
    pub fn unwatched(mut self) -> Self {
        self.progress = None;
        self
    }

    /// The same file with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same file with another memory budget. Default: the process's ([`Budget::of_process`])
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.meter = Arc::new(Meter::new(budget));
        self
    }

    /// What the reading that is under way keeps.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Counts `bytes` that somebody is about to keep of what stands on `line`.
    ///
    /// # Errors
    /// When they would pass the memory budget.
    #[inline]
    pub fn charge(&self, line: usize, bytes: usize) -> Result<()> {
        self.meter
            .charge(bytes as u64)
            .map_err(|exceeded| ReadError::memory(&self.path, format!("line {line}"), exceeded))
    }

    /// `folder/name`, or its `.gz` or `.zst` form when only that is there. `None` when none is.
    pub fn find(folder: &Utf8Path, name: &str) -> Option<Self> {
        [name.to_owned(), format!("{name}.gz"), format!("{name}.zst")]
            .into_iter()
            .map(|candidate| folder.join(candidate))
            .find(|path| path.is_file())
            .map(Self::new)
    }

    /// Where it lies.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Bytes that there are to read, as they lie on disk; `None` when that cannot be told.
    pub fn size(&self) -> Option<u64> {
        match &self.content {
            Some(content) => Some(content.0.len() as u64),
            None if self.is_pipe() => self.piped.get().map(|content| content.0.len() as u64),
            None => std::fs::metadata(self.present_path()).ok().map(|meta| meta.len()),
        }
    }

    /// Whether it can be read only once: standard input, a named pipe, the `/dev/fd/63` of a shell.
    pub fn is_pipe(&self) -> bool {
        self.content.is_none()
            && (self.path == STDIN || std::fs::metadata(&self.path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()))
    }

    /// What the pipe says, read at the first call.
    fn drained(&self) -> Result<Content> {
        if let Some(content) = self.piped.get() {
            return Ok(content.clone());
        }
        let file: Box<dyn Read + Send> = if self.path == STDIN {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(&self.path).map_err(|source| self.io(source))?)
        };
        let watched = Watched { file, progress: self.progress.clone() };
        let bytes = self.meter.read_all(watched, 0).map_err(|unread| match unread {
            Unread::Io(source) => self.io(source),
            Unread::Exceeded(exceeded) => ReadError::memory(&self.path, "what the pipe says", exceeded),
        })?;
        Ok(self.piped.get_or_init(|| Content(bytes.into())).clone())
    }

    /// The file's name without its compression ending and without its own: `val_1` for `val_1.json.gz`.
    pub fn stem(&self) -> &str {
        let name = self.path.file_name().unwrap_or_default();
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }

    /// A stream of its decompressed bytes; what it keeps is counted from zero again.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(&self) -> Result<Box<dyn BufRead + Send>> {
        self.meter.begin();
        if let Some(content) = &self.content {
            return Ok(Box::new(io::Cursor::new(content.clone())));
        }
        if self.is_pipe() {
            let content = self.drained()?;
            self.meter.begin();
            // A pipe has no ending to go by; compressed files begin with bytes that no text begins with.
            return match content.as_ref() {
                [0x1f, 0x8b, ..] => self.decompressed(Packing::Gzip, io::Cursor::new(content)),
                [0x28, 0xb5, 0x2f, 0xfd, ..] => self.decompressed(Packing::Zstd, io::Cursor::new(content)),
                _ => Ok(Box::new(io::Cursor::new(content))),
            };
        }
        let path = self.present_path();
        let file = File::open(&path).map_err(|source| self.io(source))?;
        let file = Watched { file: Box::new(file), progress: self.progress.clone() };
        match path.extension() {
            Some("gz") => self.decompressed(Packing::Gzip, file),
            Some("zst") => self.decompressed(Packing::Zstd, file),
            _ => Ok(Box::new(BufReader::with_capacity(1 << 18, file))),
        }
    }

    fn decompressed(&self, packing: Packing, stream: impl Read + Send + 'static) -> Result<Box<dyn BufRead + Send>> {
        Ok(match packing {
            Packing::Gzip => Box::new(BufReader::with_capacity(1 << 18, flate2::read::MultiGzDecoder::new(stream))),
            Packing::Zstd => {
                let decoder = zstd::stream::read::Decoder::new(stream).map_err(|source| self.io(source))?;
                Box::new(BufReader::with_capacity(1 << 18, decoder))
            }
        })
    }

    /// The whole decompressed file as text.
    ///
    /// # Errors
    /// When it cannot be read, is larger than the limit, or is not UTF-8 (the error names the line).
    pub fn text(&self) -> Result<String> {
        let stream = self.open()?.take(self.limits.document.saturating_add(1));
        let mut bytes = self.meter.read_all(stream, self.size().unwrap_or(0)).map_err(|unread| match unread {
            Unread::Io(source) => self.io(source),
            Unread::Exceeded(exceeded) => ReadError::memory(&self.path, "the decompressed text", exceeded),
        })?;
        if bytes.len() as u64 > self.limits.document {
            let what = "the decompressed file".to_owned();
            return Err(ReadError::TooLarge { path: self.path.clone(), what, limit: self.limits.document });
        }
        if bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = 1 + memchr::memchr_iter(b'\n', &error.as_bytes()[..valid]).count();
            self.not_utf8(line)
        })
    }

    /// Calls `each` with every line (number from 1, text without its line end), skipping blank ones.
    ///
    /// # Errors
    /// When the file cannot be read, a line is too long or not UTF-8, or `each` says so.
    pub fn for_each_line(&self, mut each: impl FnMut(usize, &str) -> Result<()>) -> Result<()> {
        let mut reader = self.open()?;
        let mut buffer = Vec::new();
        for number in 1.. {
            buffer.clear();
            let limit = self.limits.line.saturating_add(1);
            let read = reader.by_ref().take(limit).read_until(b'\n', &mut buffer).map_err(|source| self.io(source))?;
            if read == 0 {
                break;
            }
            if read as u64 == limit && buffer.last() != Some(&b'\n') {
                let what = format!("line {number}");
                return Err(ReadError::TooLarge { path: self.path.clone(), what, limit: self.limits.line });
            }
            let text = std::str::from_utf8(&buffer).map_err(|_| self.not_utf8(number))?;
            let text = text.trim_end_matches(['\n', '\r']);
            let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
            if !text.trim().is_empty() {
                each(number, text)?;
            }
        }
        Ok(())
    }

    /// The first `bytes` of the decompressed file, for guessing its layout; never an error for being short.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn head(&self, bytes: usize) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        self.open()?.take(bytes as u64).read_to_end(&mut head).map_err(|source| self.io(source))?;
        Ok(head)
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// A fault of one record of this file.
    pub fn record(&self, line: usize, field: impl Into<String>, problem: impl ToString) -> ReadError {
        ReadError::record(&self.path, line, field, problem)
    }

    /// A fault of this file as a whole.
    pub fn fault(&self, problem: impl ToString) -> ReadError {
        ReadError::file(&self.path, problem)
    }

    /// An error of the operating system (or of the decompressor) about this file.
    pub fn io(&self, source: io::Error) -> ReadError {
        ReadError::Io { path: self.path.clone(), source }
    }

    /// An annotated span that the row policy refuses, with what other policies can do about it.
    pub fn bad_row(&self, line: usize, field: impl Into<String>, fault: SpanFault) -> ReadError {
        let error = self.record(line, field, fault);
        match fault {
            SpanFault::Bad { .. } => error.with_hint(bad_row_advice()),
            SpanFault::NotASpan(_) => error,
        }
    }

    /// The path itself, or its compressed form when only that is there.
    fn present_path(&self) -> Utf8PathBuf {
        if self.path.exists() {
            return self.path.clone();
        }
        [".gz", ".zst"]
            .into_iter()
            .map(|ending| Utf8PathBuf::from(format!("{}{ending}", self.path)))
            .find(|path| path.exists())
            .unwrap_or_else(|| self.path.clone())
    }

    pub(crate) fn not_utf8(&self, line: usize) -> ReadError {
        self.record(line, "text", "is not UTF-8").with_hint("convert the file to UTF-8 first")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_memory_reads_like_a_file() {
        let source = Source::in_memory("truth", b"\xef\xbb\xbfone\n\ntwo".to_vec());
        let mut lines = Vec::new();
        source
            .for_each_line(|number, line| {
                lines.push((number, line.to_owned()));
                Ok(())
            })
            .unwrap();
        assert_eq!(lines, [(1, "one".to_owned()), (3, "two".to_owned())]);
        assert_eq!(source.text().unwrap(), "one\n\ntwo");
        assert_eq!(source.record(3, "end", "is late").to_string(), "truth:3: `end`: is late");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_read_once_and_opened_as_often_as_one_likes_compressed_or_not() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut packed, b"one\ntwo\n").unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("plain", b"one\ntwo\n".to_vec()), ("packed", packed.finish().unwrap())] {
            let path = Utf8PathBuf::from_path_buf(folder.path().join(name)).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            let writer = std::thread::spawn({
                let path = path.clone();
                move || std::fs::write(path, bytes).unwrap()
            });
            let source = Source::new(&path);
            assert!(source.is_pipe());
            assert_eq!(source.head(3).unwrap(), b"one");
            assert_eq!(source.clone().text().unwrap(), "one\ntwo\n");
            writer.join().unwrap();
        }
    }

    #[test]
    fn reading_is_counted_and_can_be_called_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("lines")).unwrap();
        std::fs::write(&path, "a line\n".repeat(100_000)).unwrap();
        let progress = Progress::new();
        let source = Source::new(&path).watched(&progress);
        assert_eq!(source.text().unwrap().len(), 700_000);
        assert_eq!(progress.done(), 700_000);
        progress.stop();
        assert!(matches!(source.text(), Err(ReadError::Io { .. })));
    }
}
