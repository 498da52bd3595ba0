//! What can go wrong between a folder of videos and an answer.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Advise, Stopped, VideoId};
#[cfg(feature = "models")]
use cuemark_encoders::EncodeError;
#[cfg(feature = "models")]
use cuemark_features::FeatureError;
use cuemark_formats::ReadError;
use cuemark_media::MediaError;
#[cfg(feature = "models")]
use cuemark_train::TrainError;

/// The crate's result.
pub type Result<T, E = SearchError> = std::result::Result<T, E>;

/// What is wrong, and (through [`Advise::advice`]) what to do about it.
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
    /// Another index has come into the place of the one that was open.
    #[error("the index in `{path}` was replaced by another")]
    Replaced {
        /// The index.
        path: Utf8PathBuf,
    },
    /// A log that holds something, without a manifest that says what.
    #[error("`{path}` holds {holds} and no manifest describes it")]
    Undescribed {
        /// The log.
        path: Utf8PathBuf,
        /// What is in it.
        holds: String,
    },
    /// A manifest that does not say what made the embeddings.
    #[error("`{path}` does not say which encoder made the index")]
    NoEncoder {
        /// The manifest.
        path: Utf8PathBuf,
    },
    /// More than an index takes.
    #[error("video `{video}`: {found} {what} are more than the {most} that an index takes")]
    Limit {
        /// Its name, shortened when it is long.
        video: VideoId,
        /// Of what there is too much.
        what: &'static str,
        /// How much.
        found: usize,
        /// How much there may be.
        most: usize,
    },
    /// The work was called off.
    #[error(transparent)]
    Stopped(#[from] Stopped),
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
        advice: Advice,
    },
    /// The encoder cannot be used.
    #[error("encoder `{encoder}`: {problem}")]
    Encoder {
        /// Its name.
        encoder: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        advice: Advice,
    },
    /// A video that cannot be decoded, or a program that is missing.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// A database server refused something or cannot be reached.
    #[error("{url}: {problem}")]
    Server {
        /// The engine's address.
        url: String,
        /// What it said.
        problem: String,
        /// What to do.
        advice: Advice,
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
        match error {
            EncodeError::Media(error) => Self::Media(error),
            other => Self::Encode(Box::new(other)),
        }
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
        Some(match self {
            Self::Io { .. } | Self::Width { .. } | Self::Stopped(_) => return None,
            Self::NoIndex { .. } => Advice::say("make one with ")
                .run("index create INDEX")
                .and(", or get back what is left of a damaged one with ")
                .run("index salvage INDEX"),
            Self::Damaged { .. } => Advice::command("index verify INDEX")
                .and(" lists what is damaged, ")
                .run("index salvage INDEX")
                .and(" writes a sound index from the rest"),
            Self::Replaced { .. } => Advice::say("open it again; what was acknowledged before is where it was"),
            Self::Undescribed { .. } => Advice::command("index salvage INDEX")
                .and(" writes an index from it; pass ")
                .set("force")
                .and(" to replace it by an empty one"),
            Self::NoEncoder { .. } => {
                Advice::say("pass ").set_any("encoder", "NAME").and(" with what it was made with")
            }
            Self::Limit { what: "moments", .. } => Advice::say("cut the video into parts"),
            Self::Limit { .. } => Advice::say("use fewer and shorter ").set_any("tag", "TAG"),
            Self::Locked { .. } => Advice::say("wait until it has finished; searching goes on meanwhile"),
            Self::Url { .. } => Advice::say(
                "an index is a folder, `file:DIR`, or `milvus://HOST:PORT/COLLECTION`, there also with `?index=flat&shards=N`",
            ),
            Self::UnknownVideo { .. } => Advice::command("index status INDEX --videos").and(" lists those that are"),
            Self::Server { advice, .. } | Self::Question { advice, .. } | Self::Encoder { advice, .. } => {
                advice.clone()
            }
            #[cfg(feature = "models")]
            Self::Train(error) => return error.advice(),
            #[cfg(feature = "models")]
            Self::Encode(error) => return error.advice(),
            #[cfg(feature = "models")]
            Self::Features(error) => return error.advice(),
            Self::Media(error) => return error.advice(),
            Self::Read(error) => return error.advice(),
        })
    }
}
