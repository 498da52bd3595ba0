//! What can go wrong between a dataset's name and its rows.

use camino::Utf8PathBuf;
use cuemark_formats::ReadError;

/// The result of looking up or loading a dataset.
pub type Result<T, E = DataError> = std::result::Result<T, E>;

/// What is wrong, and (through [`DataError::hint`]) what to do about it.
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
    },
    /// A truth file without a single query in it.
    #[error("{path}: the file holds no query")]
    NoQueries {
        /// The file.
        path: Utf8PathBuf,
    },
}

impl DataError {
    /// What to do about it, when there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read(error) => error.hint(),
            Self::UnknownName { name, known, .. } => Some(match nearest(name, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known names: {}", known.join(", ")),
            }),
            Self::NothingThere { example, .. } => {
                Some(format!("`--root` is the dataset's own folder, the one that holds `{example}`"))
            }
            Self::UnknownLayout { .. } => {
                let names: Vec<_> = crate::TruthFormat::ALL.iter().map(|format| format.name()).collect();
                Some(format!("name the layout with `--truth-format`: {}", names.join(", ")))
            }
            Self::NoQueries { .. } => Some("check that this is the file you meant".to_owned()),
        }
    }
}

/// The known name that looks most like `name`, unless none does.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(&name.to_lowercase(), candidate), candidate.as_str()))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
