//! What can go wrong between a folder of videos and an answer.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Advise, VideoId};
#[cfg(feature = "models")]
use cuemark_encoders::EncodeError;
#[cfg(feature = "models")]
use cuemark_features::FeatureError;
use cuemark_formats::ReadError;
#[cfg(feature = "models")]
use cuemark_train::TrainError;

/// The crate's result.
pub type Result<T, E = SearchError> = std::result::Result<T, E>;

/// What is wrong, and (through [`Advise`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// A file of the index or a video cannot be read or written.
    #[error("cannot {what} `{path}`")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: Utf8PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// There is no index here.
    #[error("`{path}` is no index: {problem}")]
    NoIndex {
        /// The folder.
        path: Utf8PathBuf,
        /// Why not.
        problem: String,
    },
    /// A file of the index is not as it was written.
    #[error("{path}: damaged at byte {offset}: {problem}")]
    Damaged {
        /// The file.
        path: Utf8PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        problem: String,
    },
    /// Somebody else is writing.
    #[error("`{path}` is being written by another process")]
    Locked {
        /// The index.
        path: Utf8PathBuf,
    },
    /// The address of an engine that is none.
    #[error("`{url}`: {problem}")]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A vector that does not belong here.
    #[error("an embedding of {found} numbers where the index holds {expected}")]
    Width {
        /// What the index holds.
        expected: usize,
        /// What came.
        found: usize,
    },
    /// A video that is not in the index.
    #[error("video `{video}` is not in the index")]
    UnknownVideo {
        /// Its name.
        video: VideoId,
    },
    /// A question that cannot be answered.
    #[error("{problem}")]
    Question {
        /// Why not.
        problem: String,
        /// What to ask instead.
        hint: &'static str,
    },
    /// The encoder cannot be used.
    #[error("encoder `{encoder}`: {problem}")]
    Encoder {
        /// Its name.
        encoder: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: &'static str,
    },
    /// A video that cannot be decoded, or a program that is missing.
    #[error("{path}: {problem}")]
    Media {
        /// The video.
        path: Utf8PathBuf,
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: &'static str,
    },
    /// A database server refused something or cannot be reached.
    #[error("{url}: {problem}")]
    Server {
        /// The engine's address.
        url: String,
        /// What it said.
        problem: String,
        /// What to do.
        hint: &'static str,
    },
    /// From trained models.
    #[cfg(feature = "models")]
    #[error(transparent)]
    Train(#[from] TrainError),
    /// From published encoders.
    #[cfg(feature = "models")]
    #[error(transparent)]
    Encode(Box<EncodeError>),
    /// From feature stores.
    #[cfg(feature = "models")]
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// From reading and writing files.
    #[error(transparent)]
    Read(#[from] ReadError),
}

#[cfg(feature = "models")]
impl From<EncodeError> for SearchError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(Box::new(error))
    }
}

impl SearchError {
    /// For `map_err` on file operations.
    pub(crate) fn io(what: &'static str, path: &Utf8Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

impl Advise for SearchError {
    fn advice(&self) -> Option<Advice> {
        let text = match self {
            Self::Io { .. } | Self::Width { .. } => return None,
            Self::NoIndex { .. } => "make one with `cuemark index create DIR --encoder NAME_OR_RUN`",
            Self::Damaged { .. } => {
                "`cuemark index verify` lists what is damaged; make the index anew with `cuemark index create --force`"
            }
            Self::Locked { .. } => "wait until it has finished; searching goes on meanwhile",
            Self::Url { .. } => {
                "an index is a folder, `file:DIR`, or `milvus://HOST:PORT/COLLECTION`, there also with `?index=flat&shards=N`"
            }
            Self::UnknownVideo { .. } => "`cuemark index status --videos` lists those that are",
            Self::Question { hint, .. }
            | Self::Encoder { hint, .. }
            | Self::Media { hint, .. }
            | Self::Server { hint, .. } => hint,
            #[cfg(feature = "models")]
            Self::Train(error) => return error.advice(),
            #[cfg(feature = "models")]
            Self::Encode(error) => return error.advice(),
            #[cfg(feature = "models")]
            Self::Features(error) => return error.advice(),
            Self::Read(error) => return error.advice(),
        };
        Some(Advice::say(text))
    }
}
