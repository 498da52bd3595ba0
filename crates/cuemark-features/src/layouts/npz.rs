//! `.npz` per video: a zip archive of `.npy` arrays by name (QVHighlights: `features`; its queries `last_hidden_state` and
//! `pooler_output`).

use std::fs::File;
use std::io::{Read, Seek};

use camino::Utf8Path;
use cuemark_core::Advice;
use cuemark_formats::ReadError;
use zip::ZipArchive;

use super::files::{self, Files};
use super::npy;
use crate::foreign::OpenOptions;
use crate::{Features, Result};

/// Names that published files use, in the order they are looked for.
const KNOWN_ARRAYS: &[&str] = &["features", "last_hidden_state", "pooler_output"];

pub(super) fn open(folder: &Utf8Path, options: &OpenOptions) -> Result<Files> {
    Files::open(folder, &["npz"], options, read)
}

fn read(path: &Utf8Path, options: &OpenOptions) -> Result<Features> {
    let file = File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    read_archive(file, path, options)
}

/// The array of an archive that the options name, or the first published name that is there.
pub(super) fn read_archive(archive: impl Read + Seek, path: &Utf8Path, options: &OpenOptions) -> Result<Features> {
    let fault = |problem: String| ReadError::file(path, problem);
    let damaged = |error: zip::result::ZipError| fault(format!("no `.npz` archive: {error}"));
    let mut archive = ZipArchive::new(archive).map_err(damaged)?;
    let wanted = options.array.as_deref();
    let mut candidates = wanted.map_or(KNOWN_ARRAYS.to_vec(), |name| vec![name]).into_iter();
    let Some((name, index)) = candidates.find_map(|name| Some((name, archive.index_for_name(&format!("{name}.npy"))?)))
    else {
        let names: Vec<String> = archive.file_names().flatten().take(8).map(|name| format!("`{name}`")).collect();
        let wanted = wanted.map_or_else(|| KNOWN_ARRAYS.join("`, `"), str::to_owned);
        let problem = format!("holds no array `{wanted}`; it holds {}", names.join(", "));
        return Err(fault(problem).with_hint(Advice::say("name the array with ").setting("array")).into());
    };
    let mut entry = archive.by_index(index).map_err(damaged)?;
    let meter = options.meter();
    let features = npy::parse(&mut entry, &files::room(&meter, options)).and_then(|features| {
        files::finish(&mut entry, options)?;
        Ok(features)
    });
    features.map_err(|fault| fault.of(name).at(path, &format!("`{name}`")).into())
}
