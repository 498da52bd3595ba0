//! Writing files: whole or not at all.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};

use crate::files::{Files, OpenFile, RealFiles};
use crate::{ReadError, Result};

/// What to do when the output is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// Refuse. Default.
    #[default]
    Never,
    /// Replace it (`--force`).
    Force,
}

impl Overwrite {
    /// Refuses a path that exists, unless told to replace it.
    ///
    /// # Errors
    /// [`ReadError::Exists`].
    pub fn check(self, path: &Utf8Path) -> Result<()> {
        if self == Self::Never && path.exists() {
            return Err(ReadError::Exists { path: path.to_owned() });
        }
        Ok(())
    }
}

/// A file that appears under its name when [`WholeFile::finish`] is called, and not before.
///
/// Bytes go to another file in the same folder; dropping it unfinished leaves nothing behind. Names that end in `.gz` or `.zst`
/// are compressed on the way.
pub struct WholeFile {
    path: Utf8PathBuf,
    overwrite: Overwrite,
    encoder: Encoder,
}

enum Encoder {
    Plain(BufWriter<Part>),
    Gzip(flate2::write::GzEncoder<BufWriter<Part>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<Part>>),
}

/// The file until it has its name; removed when it never gets it.
struct Part {
    file: Box<dyn OpenFile>,
    path: Utf8PathBuf,
    files: Arc<dyn Files>,
    is_finished: bool,
}

impl Part {
    fn create(files: &Arc<dyn Files>, path: &Utf8Path) -> io::Result<Self> {
        /// Tells the parts of one process from each other.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = path.file_name().unwrap_or("file");
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let part = folder_of(path).join(format!(".{name}.{}-{number}.part", std::process::id()));
            match files.create(&part) {
                Ok(file) => return Ok(Self { file, path: part, files: Arc::clone(files), is_finished: false }),
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts it under its name, safe on disk, name included.
    fn finish(mut self, path: &Utf8Path) -> io::Result<()> {
        again(|| self.file.sync())?;
        self.files.rename(&self.path, path)?;
        self.is_finished = true;
        // The file is on disk, but on many file systems its new name need not be.
        again(|| self.files.sync_folder(folder_of(path)))
    }
}

/// Waits again when a signal came in between.
fn again(mut wait: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.files.remove(&self.path);
        }
    }
}

impl WholeFile {
    /// Starts a file that will be called `path`, making its folder if need be.
    ///
    /// # Errors
    /// When something is there already and may not be replaced, or the folder cannot be written.
    pub fn create(path: impl Into<Utf8PathBuf>, overwrite: Overwrite) -> Result<Self> {
        Self::create_on(&(Arc::new(RealFiles) as Arc<dyn Files>), path, overwrite)
    }

    /// As [`WholeFile::create`], with other file operations.
    ///
    /// # Errors
    /// As [`WholeFile::create`].
    pub fn create_on(files: &Arc<dyn Files>, path: impl Into<Utf8PathBuf>, overwrite: Overwrite) -> Result<Self> {
        let path = path.into();
        overwrite.check(&path)?;
        let encoder = Self::start(files, &path).map_err(|source| ReadError::Write { path: path.clone(), source })?;
        Ok(Self { path, overwrite, encoder })
    }

    fn start(files: &Arc<dyn Files>, path: &Utf8Path) -> io::Result<Encoder> {
        files.make_folder(folder_of(path))?;
        let buffered = BufWriter::with_capacity(1 << 18, Part::create(files, path)?);
        Ok(match path.extension() {
            Some("gz") => Encoder::Gzip(flate2::write::GzEncoder::new(buffered, flate2::Compression::default())),
            Some("zst") => Encoder::Zstd(zstd::stream::write::Encoder::new(buffered, 3)?),
            _ => Encoder::Plain(buffered),
        })
    }

    /// Puts the file under its name, safe on disk.
    ///
    /// # Errors
    /// When the last bytes cannot be written or the file cannot be renamed.
    pub fn finish(self) -> Result<()> {
        let Self { path, overwrite, encoder } = self;
        overwrite.check(&path)?;
        let written = (|| {
            let buffered = match encoder {
                Encoder::Plain(buffered) => buffered,
                Encoder::Gzip(encoder) => encoder.finish()?,
                Encoder::Zstd(encoder) => encoder.finish()?,
            };
            buffered.into_inner().map_err(io::IntoInnerError::into_error)?.finish(&path)
        })();
        written.map_err(|source| ReadError::Write { path, source })
    }

    /// Writes `bytes` to a file called `path`.
    ///
    /// # Errors
    /// As [`WholeFile::create`] and [`WholeFile::finish`].
    pub fn write_all_to(path: impl Into<Utf8PathBuf>, overwrite: Overwrite, bytes: &[u8]) -> Result<()> {
        Self::write_all_on(&(Arc::new(RealFiles) as Arc<dyn Files>), path, overwrite, bytes)
    }

    /// As [`WholeFile::write_all_to`], with other file operations.
    ///
    /// # Errors
    /// As [`WholeFile::create`] and [`WholeFile::finish`].
    pub fn write_all_on(
        files: &Arc<dyn Files>,
        path: impl Into<Utf8PathBuf>,
        overwrite: Overwrite,
        bytes: &[u8],
    ) -> Result<()> {
        let mut file = Self::create_on(files, path, overwrite)?;
        file.put(bytes)?;
        file.finish()
    }

    /// As [`Write::write_all`], with an error that names the file.
    ///
    /// # Errors
    /// When the bytes cannot be written.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|source| ReadError::Write { path: self.path.clone(), source })
    }

    /// Writes `value` as JSON on one line, without a line end.
    ///
    /// # Errors
    /// When the bytes cannot be written, or `value` holds something that JSON cannot (a number that is not finite).
    pub fn put_json(&mut self, value: &impl serde::Serialize) -> Result<()> {
        let text = serde_json::to_vec(value).map_err(|problem| self.fault(problem))?;
        self.put(&text)
    }

    /// A fault of what should be written.
    pub(crate) fn fault(&self, problem: impl ToString) -> ReadError {
        ReadError::file(&self.path, problem)
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::Plain(writer) => writer.write(bytes),
            Encoder::Gzip(writer) => writer.write(bytes),
            Encoder::Zstd(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Plain(writer) => writer.flush(),
            Encoder::Gzip(writer) => writer.flush(),
            Encoder::Zstd(writer) => writer.flush(),
        }
    }
}

fn folder_of(path: &Utf8Path) -> &Utf8Path {
    match path.parent() {
        Some(parent) if !parent.as_str().is_empty() => parent,
        _ => Utf8Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Advise as _, Dialect};

    use super::*;
    use crate::Source;

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        (folder, path)
    }

    #[test]
    fn an_unfinished_file_leaves_nothing_behind() {
        let (_guard, folder) = folder();
        let mut file = WholeFile::create(folder.join("out.jsonl"), Overwrite::Never).unwrap();
        file.put(b"half a rec").unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    }

    /// The real files, which write down what is asked of them and fail one kind of thing.
    #[derive(Debug, Default)]
    struct Watched {
        done: std::sync::Mutex<Vec<String>>,
        fails: Option<&'static str>,
    }

    impl Watched {
        fn note(&self, what: &'static str, path: &Utf8Path) -> io::Result<()> {
            self.done.lock().unwrap().push(format!("{what} {}", path.file_name().unwrap_or_default()));
            if self.fails == Some(what) { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
        }
    }

    struct WatchedFile(Box<dyn OpenFile>, Arc<Watched>);

    impl Write for WatchedFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.note("write", Utf8Path::new("part"))?;
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    impl OpenFile for WatchedFile {
        fn sync(&mut self) -> io::Result<()> {
            self.1.note("sync", Utf8Path::new("part"))?;
            self.0.sync()
        }
    }

    impl Files for Arc<Watched> {
        fn create(&self, path: &Utf8Path) -> io::Result<Box<dyn OpenFile>> {
            self.note("create", Utf8Path::new("part"))?;
            Ok(Box::new(WatchedFile(RealFiles.create(path)?, Arc::clone(self))))
        }

        fn append(&self, path: &Utf8Path) -> io::Result<Box<dyn OpenFile>> {
            RealFiles.append(path)
        }

        fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
            self.note("rename", to)?;
            RealFiles.rename(from, to)
        }

        fn remove(&self, path: &Utf8Path) -> io::Result<()> {
            RealFiles.remove(path)
        }

        fn make_folder(&self, folder: &Utf8Path) -> io::Result<()> {
            RealFiles.make_folder(folder)
        }

        fn sync_folder(&self, folder: &Utf8Path) -> io::Result<()> {
            self.note("sync folder", folder)?;
            RealFiles.sync_folder(folder)
        }
    }

    #[test]
    fn a_file_is_on_disk_before_it_has_its_name_and_its_name_before_it_is_finished() {
        let (_guard, folder) = folder();
        let watched = Arc::new(Watched::default());
        let files: Arc<dyn Files> = Arc::new(Arc::clone(&watched));
        WholeFile::write_all_on(&files, folder.join("out.txt"), Overwrite::Never, b"bytes").unwrap();
        let wanted = ["create part", "write part", "sync part", "rename out.txt"].map(str::to_owned).to_vec();
        let done = watched.done.lock().unwrap().clone();
        let (last, before) = done.split_last().unwrap();
        assert_eq!(before, wanted);
        assert_eq!(*last, format!("sync folder {}", folder.file_name().unwrap()), "D30");
    }

    #[test]
    fn whatever_fails_is_told_and_leaves_nothing_half_written() {
        for fails in ["create", "write", "sync", "rename", "sync folder"] {
            let (_guard, folder) = folder();
            let path = folder.join("out.txt");
            WholeFile::write_all_to(&path, Overwrite::Never, b"old").unwrap();
            let files: Arc<dyn Files> = Arc::new(Arc::new(Watched { fails: Some(fails), ..Watched::default() }));
            let refused = WholeFile::write_all_on(&files, &path, Overwrite::Force, b"new").unwrap_err();
            assert!(refused.to_string().contains("out.txt"), "{refused}");
            let there = std::fs::read(&path).unwrap();
            assert_eq!(there, if fails == "sync folder" { b"new" } else { b"old" }, "{fails}");
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "{fails}");
        }
    }

    #[test]
    fn an_existing_file_is_replaced_only_by_force() {
        let (_guard, folder) = folder();
        let path = folder.join("out.txt");
        WholeFile::write_all_to(&path, Overwrite::Never, b"one").unwrap();
        let refused = WholeFile::write_all_to(&path, Overwrite::Never, b"two").unwrap_err();
        assert!(refused.advice_in(Dialect::Terminal).unwrap().contains("--force"));
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        WholeFile::write_all_to(&path, Overwrite::Force, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn compressed_files_read_back_as_if_they_were_not() {
        let (_guard, folder) = folder();
        for name in ["a.txt", "b.txt.gz", "c.txt.zst"] {
            WholeFile::write_all_to(folder.join(name), Overwrite::Never, b"first\n\nsecond\n").unwrap();
            let mut lines = Vec::new();
            Source::new(folder.join(name))
                .for_each_line(|number, line| {
                    lines.push((number, line.to_owned()));
                    Ok(())
                })
                .unwrap();
            assert_eq!(lines, [(1, "first".to_owned()), (3, "second".to_owned())], "{name}");
        }
    }
}
