//! Where files of weights are fetched from by address, or copied from a folder.

use camino::{Utf8Path, Utf8PathBuf};

use super::https::{self, Client, Expected, Refused, Stated};

/// The variable that names a mirror: an address, or a folder.
const MIRROR: &str = "CUEMARK_MIRROR";
/// The variable that tells the hub's own clients its address.
const HUB: &str = "HF_ENDPOINT";

/// A place with files of weights: a hub, or a mirror of one's own in a network without one.
///
/// Files of a repository lie at `OWNER/NAME/resolve/main/FILE` of an address and at `OWNER/NAME/FILE` of a folder, those that the
/// registry pins at `NAME/FILE` of either: the cache's folder `weights` of another machine will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mirror {
    /// An address, without a `/` at its end.
    Address(String),
    /// A folder.
    Folder(Utf8PathBuf),
}

impl Mirror {
    /// What people write: an address that begins with `http://` or `https://`, or else a folder.
    pub fn new(text: &str) -> Self {
        let is_address = text.starts_with("http://") || text.starts_with("https://");
        if is_address { Self::Address(text.trim_end_matches('/').to_owned()) } else { Self::Folder(text.into()) }
    }

    /// The one that `CUEMARK_MIRROR` names.
    pub(super) fn of_user() -> Option<Self> {
        variable(MIRROR).map(|text| Self::new(&text))
    }

    /// The hub: at the address that its own clients are told, else where it is.
    pub(super) fn hub() -> Self {
        Self::new(&variable(HUB).unwrap_or_else(|| HUB_ADDRESS.to_owned()))
    }

    /// Fetches a file of a repository to `part`.
    pub(super) fn of_repository(
        &self,
        (repo, file): (&str, &str),
        part: &Utf8Path,
        each: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Stated, Refused> {
        match self {
            Self::Address(base) => {
                let url = format!("{base}/{repo}/resolve/main/{file}");
                Client::new().fetch(&url, part, Expected::default(), each)
            }
            Self::Folder(folder) => copy(&folder.join(repo).join(file), part, Expected::default()),
        }
    }

    /// Fetches a file that is pinned to `part`.
    pub(super) fn of_weights(
        &self,
        (name, file): (&str, &str),
        part: &Utf8Path,
        expected: Expected<'_>,
        each: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Stated, Refused> {
        match self {
            Self::Address(base) => Client::new().fetch(&format!("{base}/{name}/{file}"), part, expected, each),
            Self::Folder(folder) => copy(&folder.join(name).join(file), part, expected),
        }
    }
}

impl std::fmt::Display for Mirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(base) => write!(f, "{base}"),
            Self::Folder(folder) => write!(f, "{folder}"),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn copy(from: &Utf8Path, part: &Utf8Path, expected: Expected<'_>) -> Result<Stated, Refused> {
    if !from.is_file() {
        return Err(Refused::NotThere);
    }
    std::fs::copy(from, part).map_err(|error| Refused::Problem(format!("`{from}` cannot be copied: {error}")))?;
    https::check(part, expected.bytes, &[expected.sha256]).map_err(|problem| {
        let _ = std::fs::remove_file(part);
        Refused::Problem(format!("`{from}`: {problem}"))
    })?;
    Ok(Stated::default())
}
