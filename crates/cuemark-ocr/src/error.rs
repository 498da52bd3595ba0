//! What can go wrong between a picture and its words.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Advise, Stopped};
use cuemark_media::MediaError;

/// The result of reading.
pub type Result<T, E = OcrError> = std::result::Result<T, E>;

/// What is wrong, and (through [`Advise`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OcrError {
    /// A film cannot be decoded.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// A weight file cannot be read.
    #[error("cannot read `{path}`")]
    Weights {
        /// The file.
        path: Utf8PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A weight file does not hold the network that is wanted.
    #[error("`{path}` does not hold {network}: {problem}")]
    Unfit {
        /// The file.
        path: Utf8PathBuf,
        /// Which network was to be built of it.
        network: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A picture is not what its size says.
    #[error("a picture of {width} x {height} pixels has {wanted} bytes, and {bytes} were given")]
    Picture {
        /// Pixels.
        width: usize,
        /// Pixels.
        height: usize,
        /// What such a picture has.
        wanted: String,
        /// What was given.
        bytes: usize,
    },
}

impl From<Stopped> for OcrError {
    fn from(stopped: Stopped) -> Self {
        Self::Media(stopped.into())
    }
}

impl OcrError {
    /// Whether somebody stopped the work.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Media(MediaError::Stopped(_)))
    }
}

impl Advise for OcrError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::Media(error) => error.advice(),
            Self::Weights { .. } | Self::Unfit { .. } => {
                let run = Advice::say("run ").run("weights pull pp-ocrv4");
                Some(run.and(": it checks the files and replaces what is missing or damaged"))
            }
            Self::Picture { .. } => Some("red, green and blue of each pixel, line by line".into()),
        }
    }
}
