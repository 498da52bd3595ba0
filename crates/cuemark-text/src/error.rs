//! What can go wrong with words from outside.

use cuemark_core::{Advice, Advise, QueryId};
use cuemark_formats::ReadError;

/// The result of anything in this crate that reads a file or looks up a query.
pub type Result<T, E = TextError> = std::result::Result<T, E>;

/// What went wrong, and (through [`Advise`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A file could not be read or written, or says something that cannot be.
    #[error(transparent)]
    File(#[from] ReadError),
    /// A file of parses does not cover a query.
    #[error("{path}: no parse for query `{qid}`")]
    MissingParse {
        /// The file of parses.
        path: camino::Utf8PathBuf,
        /// The query that is not in it.
        qid: QueryId,
    },
    /// A tagger model is not one of ours.
    #[error("tagger model: {0}")]
    Model(&'static str),
    /// The query of another video was asked for where there is no other video.
    #[error("every query is about the same video, so no query of another video can be taken")]
    OneVideo,
    /// A query names no video, so which others are about another video cannot be told.
    #[error("query `{0}` names no video, so the query of another video cannot be taken for it")]
    NoVideo(QueryId),
}

impl Advise for TextError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::File(error) => error.advice(),
            Self::MissingParse { .. } => {
                Some("parse every query of the split, or use the built-in parser for all of them".into())
            }
            Self::Model(_) => None,
            Self::OneVideo | Self::NoVideo(_) => {
                Some("give a file whose queries are about several named videos".into())
            }
        }
    }
}
