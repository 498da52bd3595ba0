//! Writing files: whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::NamedTempFile;

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
/// Bytes go to a temporary file in the same folder; dropping it unfinished leaves nothing behind. Names that end in
/// `.gz` or `.zst` are compressed on the way.
pub struct WholeFile {
    path: Utf8PathBuf,
    overwrite: Overwrite,
    encoder: Encoder,
}

enum Encoder {
    Plain(BufWriter<NamedTempFile>),
    Gzip(flate2::write::GzEncoder<BufWriter<NamedTempFile>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<NamedTempFile>>),
}

impl WholeFile {
    /// Starts a file that will be called `path`, making its folder if need be.
    ///
    /// # Errors
    /// When something is there already and may not be replaced, or the folder cannot be written.
    pub fn create(path: impl Into<Utf8PathBuf>, overwrite: Overwrite) -> Result<Self> {
        let path = path.into();
        overwrite.check(&path)?;
        let encoder = Self::start(&path).map_err(|source| ReadError::Write { path: path.clone(), source })?;
        Ok(Self { path, overwrite, encoder })
    }

    fn start(path: &Utf8Path) -> io::Result<Encoder> {
        let folder = match path.parent() {
            Some(parent) if !parent.as_str().is_empty() => parent,
            _ => Utf8Path::new("."),
        };
        std::fs::create_dir_all(folder)?;
        let buffered = BufWriter::with_capacity(1 << 18, NamedTempFile::new_in(folder)?);
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
            let mut buffered = match encoder {
                Encoder::Plain(buffered) => buffered,
                Encoder::Gzip(encoder) => encoder.finish()?,
                Encoder::Zstd(encoder) => encoder.finish()?,
            };
            buffered.flush()?;
            let temporary = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
            temporary.as_file().sync_all()?;
            let file = temporary.persist(&path).map_err(|error| error.error)?;
            allow_everyone_to_read(&file)
        })();
        written.map_err(|source| ReadError::Write { path, source })
    }

    /// Writes `bytes` to a file called `path`.
    ///
    /// # Errors
    /// As [`WholeFile::create`] and [`WholeFile::finish`].
    pub fn write_all_to(path: impl Into<Utf8PathBuf>, overwrite: Overwrite, bytes: &[u8]) -> Result<()> {
        let mut file = Self::create(path, overwrite)?;
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

/// Temporary files are private; a finished result should be as readable as any other file a program writes.
#[cfg(unix)]
fn allow_everyone_to_read(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn allow_everyone_to_read(_: &File) -> io::Result<()> {
    Ok(())
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
