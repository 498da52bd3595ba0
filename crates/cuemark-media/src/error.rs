//! What can go wrong between a video file and its pictures.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Advise, Stopped};
use cuemark_formats::ReadError;

/// The crate's result.
pub type Result<T, E = MediaError> = std::result::Result<T, E>;

/// What is wrong, and (through [`Advise`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// A program cannot be run.
    #[error("cannot run `{program}`: {problem}")]
    Program {
        /// Its name.
        program: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// One video cannot be used; another may well be.
    #[error("{path}: {problem}")]
    Video {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The video is not the file that it was when reading began: replaced, or still growing.
    #[error("{path}: changed while it was read")]
    Changed {
        /// The file.
        path: Utf8PathBuf,
    },
    /// Nothing is on screen at that time.
    #[error("{path}: has no picture at {seconds} s")]
    NoPicture {
        /// The file.
        path: Utf8PathBuf,
        /// The time asked for.
        seconds: f64,
    },
    /// The system refused.
    #[error("cannot {what} `{path}`")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file or folder.
        path: Utf8PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Folders hold more than is looked at.
    #[error("`{path}`: more than {most} {what} below the folders given")]
    TooMany {
        /// Where the count ran over.
        path: Utf8PathBuf,
        /// The bound.
        most: usize,
        /// What was counted.
        what: &'static str,
    },
    /// Somebody stopped the work.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A file of ours cannot be written.
    #[error(transparent)]
    File(#[from] ReadError),
}

impl MediaError {
    /// For `map_err` on file operations.
    pub(crate) fn io(what: &'static str, path: &Utf8Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    pub(crate) fn video(path: &Utf8Path, problem: impl Into<String>) -> Self {
        Self::Video { path: path.to_owned(), problem: problem.into() }
    }

    /// Whether another video may well succeed.
    pub fn is_about_one_video(&self) -> bool {
        matches!(self, Self::Video { .. } | Self::Changed { .. } | Self::NoPicture { .. } | Self::Io { .. })
    }
}

impl Advise for MediaError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::Program { .. } => Some(Advice::say(
                "video is decoded by the `ffmpeg` and `ffprobe` programs: `apt-get install ffmpeg`, `brew install ffmpeg` or \
                 `winget install ffmpeg`, and have them on the search path",
            )),
            Self::Video { .. } => Some(Advice::say("play the file to see whether it is whole, or leave it out")),
            Self::Changed { .. } => Some(Advice::say("is it still being written? add it again when it is whole")),
            Self::TooMany { .. } => Some(Advice::say("name folders further down, some at a time")),
            Self::NoPicture { .. } | Self::Io { .. } | Self::Stopped(_) | Self::File(_) => None,
        }
    }
}
