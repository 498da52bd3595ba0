//! The file of a video, opened as the one that was indexed or not at all.
//!
//! Whoever may write the folder of the videos can put something else in a video's place: a link to a file of the server's, a
//! pipe that never says anything, another film. So no link is followed on the way, only regular files count, and what is open
//! is compared with what was indexed. Everything later (bytes, pictures) comes from the open file and not from its name.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::time::UNIX_EPOCH;

use axum::http::StatusCode;
use camino::Utf8Path;
use cuemark_core::Advice;
use cuemark_search::VideoEntry;

use crate::problem::Problem;

/// An open video that is the one that was indexed.
pub(crate) struct Film {
    pub(crate) file: File,
    /// Its length; what is appended later is not served.
    pub(crate) bytes: u64,
    /// When it was last changed, in milliseconds since 1970.
    pub(crate) modified: i64,
}

impl Film {
    /// Opens the file of a video. Never waits, whatever lies at the path.
    pub(crate) fn open(entry: &VideoEntry) -> Result<Self, Problem> {
        let Some(path) = &entry.path else {
            return Err(
                Problem::new(StatusCode::NOT_FOUND, "this video has no file").hint("it was indexed by its features")
            );
        };
        let file = open_plainly(path).map_err(|error| not_opened(&error))?;
        let data = file.metadata().map_err(|error| not_opened(&error))?;
        if !data.is_file() {
            return Err(replaced("something that is no file lies in the place of the video"));
        }
        let modified = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |since| since.as_millis() as i64);
        if (data.len(), modified) != (entry.bytes, entry.modified) {
            return Err(replaced("the file of the video is not the one that was indexed"));
        }
        Ok(Self { file, bytes: data.len(), modified })
    }

    /// What tells this version of the file from others (`ETag`).
    pub(crate) fn tag(&self) -> String {
        format!("\"{:x}-{:x}\"", self.bytes, self.modified)
    }
}

fn replaced(detail: &str) -> Problem {
    let advice = Advice::say("add the video again: ").run("index add INDEX FILE");
    Problem::new(StatusCode::GONE, detail).of_kind("video-replaced").advise(&advice)
}

fn not_opened(error: &Error) -> Problem {
    match error.kind() {
        ErrorKind::NotFound => Problem::new(StatusCode::NOT_FOUND, "the file has vanished")
            .advise(&Advice::command("index verify INDEX").and(" marks it")),
        ErrorKind::NotADirectory => replaced("a link lies in the place of the video"),
        _ if is_too_many(error) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many files are open").hint("try again in a moment")
        }
        _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the file of the video cannot be opened"),
    }
}

/// Whether the process or the system has no room for another open file.
fn is_too_many(error: &Error) -> bool {
    #[cfg(unix)]
    return rustix::io::Errno::from_io_error(error)
        .is_some_and(|error| matches!(error, rustix::io::Errno::MFILE | rustix::io::Errno::NFILE));
    #[cfg(not(unix))]
    return error.kind() == ErrorKind::QuotaExceeded;
}

/// Opens a file for reading. Where a link lies in its place, or in the place of any folder above it, that is
/// [`ErrorKind::NotADirectory`]; a pipe does not wait for its other end.
#[cfg(unix)]
fn open_plainly(path: &Utf8Path) -> std::io::Result<File> {
    use camino::Utf8Component;
    use rustix::fs::{Mode, OFlags, open, openat};
    use rustix::io::Errno;

    // To pass through a folder one need not be able to list it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const FOLDER: OFlags = OFlags::PATH;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const FOLDER: OFlags = OFlags::RDONLY;

    let through = FOLDER.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let last = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Utf8Component::RootDir => {}
            Utf8Component::Normal(name) => names.push(name),
            // Stored paths come from the root and have no steps back.
            _ => return Err(ErrorKind::InvalidInput.into()),
        }
    }
    let Some((name, folders)) = names.split_last() else { return Err(ErrorKind::InvalidInput.into()) };
    let mut folder = open("/", through, Mode::empty())?;
    for name in folders {
        folder = openat(&folder, *name, through, Mode::empty())?;
    }
    match openat(&folder, *name, last, Mode::empty()) {
        // Links, and sockets, which cannot be opened at all.
        Err(Errno::LOOP | Errno::NXIO) => Err(ErrorKind::NotADirectory.into()),
        opened => Ok(opened?.into()),
    }
}

/// Opens a file for reading when neither it nor a folder above it is a link.
#[cfg(not(unix))]
fn open_plainly(path: &Utf8Path) -> std::io::Result<File> {
    for part in path.ancestors().filter(|part| part.parent().is_some()) {
        if part.symlink_metadata()?.is_symlink() {
            return Err(ErrorKind::NotADirectory.into());
        }
    }
    File::open(path)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    struct Case {
        entry: VideoEntry,
        folder: Utf8PathBuf,
        _guard: tempfile::TempDir,
    }

    /// A film in `videos/`, as it was indexed, and a secret beside the folder.
    fn case() -> Case {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir(folder.join("videos")).unwrap();
        let path = folder.join("videos/one.mp4");
        std::fs::write(&path, "film").unwrap();
        std::fs::write(folder.join("secret"), "none").unwrap();
        let data = std::fs::metadata(&path).unwrap();
        let modified = data.modified().unwrap().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        let entry =
            VideoEntry { path: Some(path), bytes: data.len(), modified, ..VideoEntry::without_file("one", 1.0) };
        Case { entry, folder, _guard: guard }
    }

    fn refused(case: &Case) -> u16 {
        Film::open(&case.entry).map(drop).unwrap_err().status()
    }

    /// Both files say they are from the same moment, so that the stamp does not tell.
    fn same_age(case: &Case) {
        let at = UNIX_EPOCH + std::time::Duration::from_millis(case.entry.modified as u64);
        File::options().write(true).open(case.folder.join("secret")).unwrap().set_modified(at).unwrap();
    }

    #[test]
    fn the_indexed_file_is_opened() {
        let case = case();
        assert_eq!(Film::open(&case.entry).unwrap().bytes, 4);
    }

    #[test]
    fn a_link_in_place_of_the_file_is_not_followed_even_to_one_of_the_same_stamp() {
        let case = case();
        same_age(&case);
        let path = case.entry.path.clone().unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(case.folder.join("secret"), &path).unwrap();
        assert_eq!(refused(&case), 410);
    }

    #[test]
    fn a_link_in_place_of_a_folder_is_not_followed_either() {
        let case = case();
        std::fs::rename(case.folder.join("videos"), case.folder.join("moved")).unwrap();
        std::os::unix::fs::symlink(case.folder.join("moved"), case.folder.join("videos")).unwrap();
        assert_eq!(refused(&case), 410);
    }

    #[test]
    fn pipes_folders_and_other_films_are_refused_at_once() {
        let case = case();
        let path = case.entry.path.clone().unwrap();
        std::fs::write(&path, "another film").unwrap();
        assert_eq!(refused(&case), 410);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(refused(&case), 404);
        std::fs::create_dir(&path).unwrap();
        assert_eq!(refused(&case), 410);
        std::fs::remove_dir(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // Without O_NONBLOCK this would wait for a writer for ever.
        assert_eq!(refused(&case), 410);
    }

    #[test]
    fn paths_with_steps_back_are_not_walked() {
        let mut case = case();
        case.entry.path = Some(case.folder.join("videos/../secret"));
        assert_eq!(refused(&case), 500);
    }
}
