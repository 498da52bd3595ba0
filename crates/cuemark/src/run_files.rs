//! Run files: yours, or those that come with the program.

use camino::Utf8Path;
use cuemark_bench::matrix;
use cuemark_train::{Override, RunFile};

use crate::Result;

/// Where run files lie in the repository; `runs/2d-tan/world.toml` means the same wherever the program is.
const FOLDER: &str = "runs";

/// The run that a file describes: the file where there is one, else the one of that name that comes with the program.
pub(crate) fn read(path: &Utf8Path, overrides: &[Override]) -> Result<RunFile> {
    Ok(match carried(path) {
        Some(text) if !path.is_file() => RunFile::parse(path.as_str(), text, overrides)?,
        _ => RunFile::read(path, overrides)?,
    })
}

/// Whether there is such a file, here or in the program.
pub(crate) fn is_there(path: &Utf8Path) -> bool {
    path.is_file() || carried(path).is_some()
}

/// Names of the run files in a folder, here and in the program, without their endings.
pub(crate) fn names_in(folder: &Utf8Path) -> Vec<String> {
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    let here = entries
        .filter(|entry| entry.path().extension() == Some("toml"))
        .filter_map(|entry| entry.path().file_stem().map(str::to_owned));
    let carried = matrix::run_files().filter_map(|(name, _)| {
        let (method, file) = name.split_once('/')?;
        (folder == Utf8Path::new(FOLDER).join(method)).then(|| file.to_owned())
    });
    let mut names: Vec<String> = here.chain(carried).collect();
    names.sort();
    names.dedup();
    names
}

fn carried(path: &Utf8Path) -> Option<&'static str> {
    let name = path.strip_prefix(FOLDER).ok()?.as_str().strip_suffix(".toml")?;
    matrix::run_files().find(|(carried, _)| *carried == name).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_file_of_the_program_is_there_without_its_repository_and_one_of_yours_comes_first() {
        let path = Utf8Path::new("runs/2d-tan/world.toml");
        assert!(!path.exists(), "tests run in the folder of their crate");
        assert_eq!(read(path, &[]).unwrap().model, "2d-tan");
        assert!(names_in(Utf8Path::new("runs/2d-tan")).contains(&"world".to_owned()));

        let folder = tempfile::tempdir().unwrap();
        let own = Utf8Path::from_path(folder.path()).unwrap().join("runs/2d-tan");
        std::fs::create_dir_all(&own).unwrap();
        let mine = own.join("world.toml");
        assert!(!is_there(&mine), "only what begins with `runs` means the program's");
        std::fs::write(&mine, "[model]\nname = \"mmn\"\n[data]\nno_such_key = 1\n").unwrap();
        assert!(read(&mine, &[]).unwrap_err().to_string().contains("no_such_key"));
        assert_eq!(names_in(&own), ["world"]);
    }

    #[test]
    fn a_file_that_is_nowhere_is_told_by_its_name() {
        let gone = read(Utf8Path::new("runs/2d-tan/mars.toml"), &[]).unwrap_err();
        assert!(gone.to_string().contains("runs/2d-tan/mars.toml"), "{gone}");
    }
}
