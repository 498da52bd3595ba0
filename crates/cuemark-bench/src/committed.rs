//! Files of results: those of a folder, and those that came with the program.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{ReadError, Source};

use crate::leaderboard::RunsFile;
use crate::{Result, doubles};

/// Every `runs-*.json` of a folder, in the order of their names.
///
/// # Errors
/// When the folder or one of them cannot be read.
pub fn read_folder(folder: &Utf8Path) -> Result<Vec<RunsFile>> {
    let paths = named(folder, "runs-")?;
    let files = paths.iter().map(|path| RunsFile::read(path)).collect::<Result<Vec<_>>>()?;
    let stems = paths.iter().map(|path| path.file_stem().unwrap_or_default());
    doubles::refuse(&stems.zip(&files).collect::<Vec<_>>())?;
    Ok(files)
}

/// The JSON files of a folder whose names begin so, sorted.
pub(crate) fn named(folder: &Utf8Path, begins: &str) -> Result<Vec<Utf8PathBuf>> {
    let refused = |source| ReadError::Io { path: folder.to_owned(), source };
    let mut paths: Vec<Utf8PathBuf> = Vec::new();
    for entry in folder.read_dir_utf8().map_err(refused)? {
        let path = entry.map_err(refused)?.into_path();
        let name = path.file_name().unwrap_or_default();
        if name.starts_with(begins) && name.ends_with(".json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The results that came with the program: those of this repository when it was built.
///
/// # Errors
/// When one of them is no file of results.
pub fn carried() -> Result<Vec<RunsFile>> {
    let runs = crate::matrix::results().filter(|(name, _)| name.starts_with("runs-"));
    runs.map(|(name, text)| RunsFile::from_source(&Source::in_memory(format!("{name}.json"), text.as_bytes())))
        .collect()
}
