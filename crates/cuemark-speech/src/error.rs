//! What can go wrong between a film and its words.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Advise, Stopped};
use cuemark_formats::ReadError;
use cuemark_media::MediaError;

/// The crate's result.
pub type Result<T, E = SpeechError> = std::result::Result<T, E>;

/// What is wrong, and (through [`Advise`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum SpeechError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] ReadError),
    /// The film cannot be read.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// A tensor operation failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
    /// The weights do not fit the network that is to be built of them.
    #[error("`{path}` does not hold {network}: {problem}")]
    Unfit {
        /// The weight file or the folder.
        path: Utf8PathBuf,
        /// What was to be built: `a Whisper network`.
        network: &'static str,
        /// The parameter or setting that is missing or has another shape.
        problem: String,
    },
}

impl SpeechError {
    pub(crate) fn unfit(path: &Utf8Path, network: &'static str, problem: impl Into<String>) -> Self {
        Self::Unfit { path: path.to_owned(), network, problem: problem.into() }
    }

    /// Whether another film may well succeed.
    pub fn is_about_one_video(&self) -> bool {
        match self {
            Self::Media(error) => error.is_about_one_video(),
            Self::File(_) | Self::Tensor(_) | Self::Unfit { .. } => false,
        }
    }
}

impl From<Stopped> for SpeechError {
    fn from(stopped: Stopped) -> Self {
        Self::Media(stopped.into())
    }
}

impl Advise for SpeechError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::File(error) => error.advice(),
            Self::Media(error) => error.advice(),
            Self::Tensor(_) => None,
            Self::Unfit { .. } => {
                let pull = Advice::say("run ").run("weights pull whisper-tiny-en silero-vad");
                Some(pull.and(", or name a folder with `config.json`, `tokenizer.json` and the weights of one release"))
            }
        }
    }
}
