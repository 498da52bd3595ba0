//! What can be wrong with a feature store.

use camino::Utf8PathBuf;
use cuemark_core::VideoId;
use cuemark_formats::ReadError;

/// The result of reading or writing features.
pub type Result<T, E = FeatureError> = std::result::Result<T, E>;

/// What is wrong, where, and (through [`FeatureError::hint`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum FeatureError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] ReadError),
    /// A shard as a whole is not what it should be.
    #[error("{path}: {problem}")]
    Shard {
        /// The shard.
        path: Utf8PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// One tensor of a shard is not what it should be.
    #[error("{path}: `{tensor}`: {problem}")]
    Tensor {
        /// The shard.
        path: Utf8PathBuf,
        /// The tensor's name, `STREAM/VIDEO`.
        tensor: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Two shards of one store were made in different ways.
    #[error("{first} and {second} were made by different recipes")]
    MixedRecipes {
        /// One shard.
        first: Utf8PathBuf,
        /// The other.
        second: Utf8PathBuf,
    },
    /// The store has no such features.
    #[error("`{folder}` has no `{stream}` features of video `{video}`")]
    Missing {
        /// The store.
        folder: Utf8PathBuf,
        /// The video asked for.
        video: VideoId,
        /// The stream asked for.
        stream: String,
    },
    /// The store has no such stream at all.
    #[error("`{folder}` has no stream `{stream}`; it has {present}")]
    NoStream {
        /// The store.
        folder: Utf8PathBuf,
        /// The stream asked for.
        stream: String,
        /// The streams that are there, quoted and joined.
        present: String,
    },
    /// A row holds NaN or an infinity.
    #[error("{path}: `{tensor}`: row {row} holds a number that is not finite")]
    NotFinite {
        /// The shard.
        path: Utf8PathBuf,
        /// The tensor's name, `STREAM/VIDEO`.
        tensor: String,
        /// The first such row.
        row: usize,
    },
    /// What was handed to the writer does not fit its recipe.
    #[error("video `{video}`: {problem}")]
    Unfit {
        /// The video.
        video: VideoId,
        /// What is wrong with its features.
        problem: String,
    },
}

impl FeatureError {
    /// What to do about it, when there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File(error) => error.hint(),
            Self::Shard { .. } | Self::Tensor { .. } => {
                Some("the file is damaged or was not written by cuemark: make the features again".to_owned())
            }
            Self::MixedRecipes { .. } => {
                Some("one store, one recipe: write to an empty folder, or pass `--force` to start over".to_owned())
            }
            Self::Missing { .. } => Some("extract the features of this video, or leave its queries out".to_owned()),
            Self::NotFinite { .. } => Some("extract this video's features again".to_owned()),
            Self::NoStream { .. } | Self::Unfit { .. } => None,
        }
    }
}
