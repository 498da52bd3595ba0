//! What can go wrong in the studio.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Advise, QueryId, Stopped, VideoId};
use cuemark_features::FeatureError;
use cuemark_formats::ReadError;
use cuemark_text::TextError;

/// The result of making or reading a world.
pub type Result<T, E = WorldError> = std::result::Result<T, E>;

/// What is wrong, where, and (through [`Advise`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// A file cannot be read or written, or says something that cannot be.
    #[error(transparent)]
    File(#[from] ReadError),
    /// A feature store cannot be written.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// The parses cannot be written.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A knob is out of its range.
    #[error("`{knob}`: {problem}")]
    Knob {
        /// The knob, as the command line names it.
        knob: &'static str,
        /// What is wrong with its value.
        problem: String,
    },
    /// The `ffmpeg` program is not there or failed.
    #[error("cannot write `{path}`: {problem}")]
    Ffmpeg {
        /// The film that was to be written.
        path: Utf8PathBuf,
        /// What happened.
        problem: String,
    },
    /// It was stopped through [`cuemark_core::Progress`].
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A query that the world's log does not know.
    #[error("query `{query}` is not in the world's log")]
    UnknownQuery {
        /// The query.
        query: QueryId,
    },
    /// A video that the world's log does not know.
    #[error("query `{query}`: video `{video}` is not in the world's log")]
    UnknownVideo {
        /// The query that names it.
        query: QueryId,
        /// The video.
        video: VideoId,
    },
}

impl Advise for WorldError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::File(error) => error.advice(),
            Self::Features(error) => error.advice(),
            Self::Text(error) => error.advice(),
            Self::Knob { .. } | Self::Stopped(_) => None,
            Self::Ffmpeg { .. } => {
                let install = "install the `ffmpeg` program with H.264 (Debian: `apt-get install ffmpeg`), or leave ";
                Some(Advice::say(install).setting("mp4").and(" out"))
            }
            Self::UnknownQuery { .. } | Self::UnknownVideo { .. } => {
                Some("the file belongs to another world: check the folder and its seed".into())
            }
        }
    }
}
