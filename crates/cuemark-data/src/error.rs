//! What can go wrong between a dataset's name and its rows.

use camino::Utf8PathBuf;
use cuemark_core::nearest::nearest;
use cuemark_core::{Advice, Advise};
use cuemark_formats::{ReadError, StrangeKey};

/// The result of looking up or loading a dataset.
pub type Result<T, E = DataError> = std::result::Result<T, E>;

/// What is wrong, and (through [`Advise`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Nothing is known by that name.
    #[error("there is no {what} called `{name}`")]
    UnknownName {
        /// What was looked for: `dataset`, `truth format`, `split`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A folder holds nothing that belongs to the dataset.
    #[error("{root}: none of the files of `{dataset}` is here")]
    NothingThere {
        /// The folder.
        root: Utf8PathBuf,
        /// The dataset's name.
        dataset: &'static str,
        /// One of the files that were looked for.
        example: &'static str,
    },
    /// The file's layout could not be told from its beginning.
    #[error("{path}: this is no truth file in a layout that cuemark knows")]
    UnknownLayout {
        /// The file.
        path: Utf8PathBuf,
        /// A field that may be a slip of the pen for the one which is missing.
        strange: Option<StrangeKey>,
    },
    /// A truth file without a single query in it.
    #[error("{path}: the file holds no query")]
    NoQueries {
        /// The file.
        path: Utf8PathBuf,
    },
}

impl Advise for DataError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::Read(error) => error.advice(),
            Self::UnknownName { name, known, .. } => {
                // Whoever gives the beginning of several names may mean any of them.
                let begun: Vec<String> = known
                    .iter()
                    .filter(|known| !name.is_empty() && known.starts_with(&format!("{}-", name.to_lowercase())))
                    .map(|known| format!("`{known}`"))
                    .collect();
                Some(match (begun.as_slice(), nearest(name, known.iter().map(String::as_str))) {
                    ([_, _, ..], _) => Advice::say(format!("did you mean {}?", begun.join(" or "))),
                    (_, Some(near)) => Advice::nearest(near),
                    _ => format!("known names: {}", known.join(", ")).into(),
                })
            }
            Self::NothingThere { example, .. } => {
                let folder =
                    format!(" (in a run file `data.root`) is the dataset's own folder, the one that holds `{example}`");
                Some(Advice::say("").setting("root").and(folder))
            }
            Self::UnknownLayout { strange: Some(StrangeKey { key, meant, count, line }), .. } => {
                let lines = cuemark_core::text::counted(*count, "line has", "lines have");
                let slip = format!("{lines} a field `{key}` (first: line {line}): did you mean `{meant}`?");
                Some(slip.into())
            }
            Self::UnknownLayout { .. } => {
                let names: Vec<_> = crate::TruthFormat::ALL.iter().map(|format| format.name()).collect();
                Some(
                    Advice::say("name the layout with ").setting("truth_format").and(format!(": {}", names.join(", "))),
                )
            }
            Self::NoQueries { .. } => Some("check that this is the file you meant".into()),
        }
    }
}
