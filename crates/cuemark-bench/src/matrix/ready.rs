//! The run files, matrices and results of runs that the program carries with it.

use camino::Utf8Path;
use cuemark_formats::Source;

use crate::{BenchError, Result};

include!(concat!(env!("OUT_DIR"), "/ready.rs"));

/// Names of the ready matrices, in alphabetical order.
pub fn matrices() -> impl Iterator<Item = (&'static str, &'static str)> {
    MATRICES.iter().copied()
}

/// Names and texts of the run files, `2d-tan/world` and so on, in alphabetical order.
pub fn run_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    RUN_FILES.iter().copied()
}

/// Names and texts of the files of results, `runs-world-2026-11-16` and so on, in alphabetical order.
pub(crate) fn results() -> impl Iterator<Item = (&'static str, &'static str)> {
    RESULTS.iter().copied()
}

/// The text of a matrix: a file when there is one, else a ready matrix of that name.
///
/// # Errors
/// When there is neither.
pub(super) fn matrix_text(name: &Utf8Path) -> Result<String> {
    if name.is_file() {
        return Ok(Source::new(name).text()?);
    }
    let stem = name.as_str().strip_suffix(".toml").unwrap_or(name.as_str());
    let stem = stem.strip_prefix("matrices/").unwrap_or(stem);
    let ready = MATRICES.iter().find(|(ready, _)| *ready == stem).map(|(_, text)| (*text).to_owned());
    ready.ok_or_else(|| BenchError::NoMatrix { name: name.to_owned() })
}

/// The text of a run file and what to call it in errors: `runs/NAME.toml` here, else the one that came with the program.
///
/// # Errors
/// When the file is there and cannot be read.
pub(super) fn run_text(name: &str) -> Result<Option<(String, String)>> {
    let here = if name.ends_with(".toml") { name.to_owned() } else { format!("runs/{name}.toml") };
    if Utf8Path::new(&here).is_file() {
        return Ok(Some((here.clone(), Source::new(&here).text()?)));
    }
    let stem = here.strip_suffix(".toml").unwrap_or(&here);
    let stem = stem.strip_prefix("runs/").unwrap_or(stem);
    Ok(RUN_FILES.iter().find(|(ready, _)| *ready == stem).map(|(_, text)| (here.clone(), (*text).to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_files_matrices_and_results_of_the_repository_are_carried() {
        let root = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let lists = [("runs", "toml", RUN_FILES), ("matrices", "toml", MATRICES), ("results/runs", "json", RESULTS)];
        for (folder, ending, carried) in lists {
            assert!(!carried.is_empty(), "{folder}");
            for (stem, text) in carried {
                let path = root.join(folder).join(format!("{stem}.{ending}"));
                assert_eq!(std::fs::read_to_string(&path).unwrap(), *text, "{path}");
            }
        }
        assert!(run_text("2d-tan/world").unwrap().is_some());
        assert!(run_text("2d-tan/nowhere").unwrap().is_none());
        assert!(matrix_text(Utf8Path::new("overall")).is_ok());
        assert!(matrix_text(Utf8Path::new("matrices/overall.toml")).is_ok());
        assert!(matrix_text(Utf8Path::new("no-such")).is_err());
    }
}
