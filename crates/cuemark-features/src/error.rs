//! What can be wrong with a feature store.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Advise, Stopped, VideoId};
use cuemark_formats::ReadError;

use crate::Layout;

/// The result of reading or writing features.
pub type Result<T, E = FeatureError> = std::result::Result<T, E>;

/// What is wrong, where, and (through [`Advise`]) what to do about it.
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
    /// A shard that is there already was made in another way than those to be written beside it.
    #[error("`{path}` was made by another recipe")]
    OtherRecipe {
        /// The shard.
        path: Utf8PathBuf,
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
        /// Videos that are there and have a like name, likest first.
        near: Vec<VideoId>,
    },
    /// The layout does not say what one row stands for, and nobody else did.
    #[error("`{path}` does not say how long a clip of its `{stream}` rows is")]
    NoClipLen {
        /// The store.
        path: Utf8PathBuf,
        /// The stream.
        stream: String,
    },
    /// One length was asked for where every video has its own.
    #[error("the `{stream}` rows of `{path}` span each video's duration: there is no one length of a clip")]
    ClipLenByVideo {
        /// The store.
        path: Utf8PathBuf,
        /// The stream.
        stream: String,
    },
    /// Two sources that are to be read as one have a stream of the same name.
    #[error("two sources have a stream `{stream}`")]
    StreamTwice {
        /// The name.
        stream: String,
    },
    /// Rows span a duration that nobody stated.
    #[error("no duration of video `{video}`, which its rows are said to span")]
    NoDuration {
        /// The video.
        video: VideoId,
    },
    /// This program was built without the library that reads a layout.
    #[error("`{path}` is {layout}, which this build of cuemark cannot read")]
    NotBuilt {
        /// The store.
        path: Utf8PathBuf,
        /// The layout.
        layout: Layout,
        /// The cargo feature that brings the library.
        feature: &'static str,
    },
    /// No published archive of features is called so.
    #[error("no archive of features is called `{name}`")]
    NoArchive {
        /// What was asked for.
        name: String,
        /// The likest name there is.
        nearest: Option<String>,
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
    /// It was stopped through [`cuemark_core::Progress`].
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// What was handed to the writer does not fit its recipe.
    #[error("video `{video}`: {problem}")]
    Unfit {
        /// The video.
        video: VideoId,
        /// What is wrong with its features.
        problem: String,
    },
}

impl Advise for FeatureError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::File(error) => error.advice(),
            Self::Shard { .. } | Self::Tensor { .. } => {
                Some("the file is damaged or was not written by cuemark: make the features again".into())
            }
            Self::MixedRecipes { .. } | Self::OtherRecipe { .. } => {
                let write = Advice::say("one store, one recipe: write to an empty folder, or pass ");
                Some(write.set("force").and(" to start over"))
            }
            Self::Missing { near, .. } => {
                let advice = "extract the features of this video, or leave its queries out";
                let names: Vec<String> = near.iter().map(|video| format!("`{video}`")).collect();
                Some(match names.as_slice() {
                    [] => advice.into(),
                    names => format!("{advice}; like it are {}", names.join(", ")).into(),
                })
            }
            Self::NoClipLen { .. } => {
                let pass = Advice::say("pass ").set_any("clip_length", "S").and(", or ");
                let spanned = pass.set("rows_span_duration").set_any("truth", "FILE");
                Some(spanned.and(" when the rows share each video's duration evenly"))
            }
            Self::StreamTwice { .. } => Some("give them names of their own: `visual=PATH subtitle=PATH`".into()),
            Self::NoDuration { .. } => {
                let name = Advice::say("name a truth file that states it, or one with ");
                Some(name.setting("durations").and(" beside it"))
            }
            Self::NotBuilt { feature, .. } => {
                let build = format!(
                    "build it with `cargo build --release --features cuemark-cli/{feature}`; the library behind it is C \
                     code that trusts the files it reads"
                );
                Some(build.into())
            }
            Self::NoArchive { nearest, .. } => Some(match nearest {
                Some(name) => Advice::nearest(name),
                None => Advice::say("").run("features list").and(" names those there are"),
            }),
            Self::NotFinite { .. } => Some("extract this video's features again".into()),
            Self::ClipLenByVideo { .. } | Self::NoStream { .. } | Self::Stopped(_) | Self::Unfit { .. } => None,
        }
    }
}
