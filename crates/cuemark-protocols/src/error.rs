//! What can go wrong while a protocol works, said so that a person can act on it.

use cuemark_core::{Advice, Advise, QueryId, Stopped, VideoId};
use cuemark_formats::ReadError;
use cuemark_text::similarity::SimilarityError;

/// The result of a protocol.
pub type Result<T, E = ProtocolError> = std::result::Result<T, E>;

/// What is wrong and (through [`Advise`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] ReadError),
    /// Things could not be compared.
    #[error(transparent)]
    Similarity(#[from] SimilarityError),
    /// Similarities of other things than those at hand.
    #[error("`{provider}` compares {rows} × {columns} where {left} × {right} are given")]
    Sides {
        /// Whose similarities.
        provider: String,
        /// Rows it has.
        rows: usize,
        /// Columns it has.
        columns: usize,
        /// Things on the left.
        left: usize,
        /// Things on the right.
        right: usize,
    },
    /// A query-moment pair whose ratings cannot be used.
    #[error("pair `{pair}`: {problem}")]
    Ratings {
        /// The pair.
        pair: u64,
        /// What is wrong.
        problem: String,
    },
    /// An external program that did not do its part.
    #[error("`{program}`: {problem}")]
    Program {
        /// The program.
        program: String,
        /// What is wrong.
        problem: String,
    },
    /// A language model behind HTTP that will not talk to us.
    #[error("{url}: {problem}")]
    Endpoint {
        /// Its address.
        url: String,
        /// What it says.
        problem: String,
    },
    /// Nothing to work on.
    #[error("{what}: there are no moments")]
    NoMoments {
        /// What needed some: `the training file`, `the split`.
        what: String,
    },
    /// Numbers so far apart that no density can be fitted to them.
    #[error("the spread of the {points} normalised moments is not a finite number")]
    Spread {
        /// How many moments there were.
        points: usize,
    },
    /// A moment cannot be put in relation to its video.
    #[error("query `{query}`: the duration of video `{video}` is not known")]
    NoDuration {
        /// The query.
        query: QueryId,
        /// Its video.
        video: VideoId,
    },
    /// A query that is about several videos, or none, where a protocol needs one.
    #[error("query `{query}` names no single video")]
    NoVideo {
        /// The query.
        query: QueryId,
    },
    /// Not enough to make something of.
    #[error("{what} needs {needed} videos, {found} are left")]
    TooFew {
        /// What needs them: `test-ood`.
        what: &'static str,
        /// How many it needs.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// A split that a protocol starts from is not there.
    #[error("there is no split called `{split}`")]
    NoSplit {
        /// Its name.
        split: &'static str,
        /// The splits there are.
        known: Vec<String>,
    },
    /// A setting outside what it can be.
    #[error("`{option}`: {value} {problem}")]
    Option {
        /// The setting, in `snake_case`.
        option: &'static str,
        /// What was given.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A name that nothing is called.
    #[error("there is no {kind} called `{name}`")]
    Unknown {
        /// What kind of thing was asked for.
        kind: &'static str,
        /// The name as given.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// Called off through [`cuemark_core::Progress`].
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Advise for ProtocolError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::File(error) => error.advice(),
            Self::Similarity(error) => error.advice(),
            Self::Sides { .. } => Some("similarities must be made from the same files, in the same order".into()),
            Self::NoMoments { .. } => {
                Some("check that the file is the one you meant; test releases often carry no moments".into())
            }
            Self::Spread { .. } => {
                let look = Advice::say("look for absurd times with ").run("data check");
                Some(look.and(", or read with ").set_to("bad_rows", "clamp"))
            }
            Self::NoDuration { .. } => {
                Some("this works on fractions of a video: give a truth file that states durations".into())
            }
            Self::NoVideo { .. } => {
                Some("this works on one video a query: pools and graded sets have protocols of their own".into())
            }
            Self::Unknown { known, .. } => Some(format!("known: {}", known.join(", ")).into()),
            Self::Endpoint { .. } => {
                let advice = Advice::say("check ").setting("endpoint").and(", ").setting("model");
                Some(advice.and(" and the key in the environment; what was answered is kept"))
            }
            Self::TooFew { .. } => Some("give more videos, or another share".into()),
            Self::NoSplit { known, .. } if known.is_empty() => None,
            Self::NoSplit { known, .. } => Some(format!("found: {}", known.join(", ")).into()),
            Self::Option { .. } | Self::Ratings { .. } | Self::Program { .. } | Self::Stopped(_) => None,
        }
    }
}
