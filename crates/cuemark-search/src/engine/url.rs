//! Addresses of engines.

use std::fmt;
use std::str::FromStr;

use camino::Utf8PathBuf;

use crate::SearchError;

/// Where an index lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineUrl {
    /// In a folder: `file:DIR`, or just `DIR`.
    File(Utf8PathBuf),
    /// On a Milvus server: `milvus://HOST:PORT/COLLECTION`.
    Milvus {
        /// `HOST:PORT`.
        host: String,
        /// Letters, digits and underscores.
        collection: String,
    },
}

impl FromStr for EngineUrl {
    type Err = SearchError;

    fn from_str(url: &str) -> Result<Self, SearchError> {
        let wrong = |problem: &str| SearchError::Url { url: url.to_owned(), problem: problem.to_owned() };
        if let Some(rest) = url.strip_prefix("milvus://") {
            let Some((host, collection)) = rest.split_once('/') else {
                return Err(wrong("names no collection"));
            };
            let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if collection.is_empty()
                || !collection.chars().all(good)
                || collection.starts_with(|c: char| c.is_ascii_digit())
            {
                return Err(wrong(
                    "a collection's name has letters, digits and underscores only and begins with no digit",
                ));
            }
            if host.is_empty() || host.contains(char::is_whitespace) {
                return Err(wrong("names no host"));
            }
            let host = if host.contains(':') { host.to_owned() } else { format!("{host}:19530") };
            return Ok(Self::Milvus { host, collection: collection.to_owned() });
        }
        let path = url.strip_prefix("file:").unwrap_or(url);
        if path.contains("://") {
            return Err(wrong("no engine has such addresses"));
        }
        if path.is_empty() {
            return Err(wrong("names no folder"));
        }
        Ok(Self::File(path.into()))
    }
}

impl fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{path}"),
            Self::Milvus { host, collection } => write!(f, "milvus://{host}/{collection}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_they_are_written() {
        for url in ["file:some/dir", "milvus://localhost:19530/films"] {
            assert_eq!(url.parse::<EngineUrl>().unwrap().to_string(), url);
        }
        assert_eq!("some/dir".parse::<EngineUrl>().unwrap(), EngineUrl::File("some/dir".into()));
        assert_eq!("milvus://db/films".parse::<EngineUrl>().unwrap().to_string(), "milvus://db:19530/films");
    }

    #[test]
    fn addresses_that_are_none_are_refused() {
        for url in
            ["", "file:", "http://x/y", "milvus://h:1", "milvus:///c", "milvus://h/a-b", "milvus://h/1a", "milvus://h/"]
        {
            assert!(url.parse::<EngineUrl>().is_err(), "{url}");
        }
    }
}
