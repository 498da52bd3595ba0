//! Addresses of engines.

use std::fmt;
use std::str::FromStr;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

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
        /// What a new collection gets; one that is there keeps what it has.
        layout: CollectionLayout,
    },
}

/// How a new collection on a Milvus server is laid out: `?index=flat&shards=4` behind its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionLayout {
    /// How the nearest are found. Default: `hnsw`
    pub index: VectorIndex,
    /// Channels over which what is written is spread, 1 to 16. Default: 1
    pub shards: u8,
}

impl Default for CollectionLayout {
    fn default() -> Self {
        Self { index: VectorIndex::Hnsw, shards: 1 }
    }
}

impl CollectionLayout {
    /// What stands behind the `?`; `None` when it is something else.
    fn read(text: &str) -> Option<Self> {
        let mut layout = Self::default();
        for part in text.split('&') {
            match part.split_once('=')? {
                ("index", "hnsw") => layout.index = VectorIndex::Hnsw,
                ("index", "flat") => layout.index = VectorIndex::Flat,
                ("shards", shards) => layout.shards = shards.parse().ok().filter(|shards| (1..=16).contains(shards))?,
                _ => return None,
            }
        }
        Some(layout)
    }

    /// What differs from the default, as it is read.
    fn written(self) -> String {
        let index = (self.index == VectorIndex::Flat).then(|| "index=flat".to_owned());
        let shards = (self.shards != 1).then(|| format!("shards={}", self.shards));
        let parts: Vec<String> = index.into_iter().chain(shards).collect();
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }
}

/// How a Milvus server finds the nearest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VectorIndex {
    /// Through a graph, which may miss a few. Default.
    #[default]
    Hnsw,
    /// At every moment: exact, and slower the more there are.
    Flat,
}

impl FromStr for EngineUrl {
    type Err = SearchError;

    fn from_str(url: &str) -> Result<Self, SearchError> {
        let wrong = |problem: &str| SearchError::Url { url: url.to_owned(), problem: problem.to_owned() };
        if let Some(rest) = url.strip_prefix("milvus://") {
            let Some((host, collection)) = rest.split_once('/') else {
                return Err(wrong("names no collection"));
            };
            let (collection, layout) = match collection.split_once('?') {
                None => (collection, Some(CollectionLayout::default())),
                Some((collection, text)) => (collection, CollectionLayout::read(text)),
            };
            let Some(layout) = layout else {
                return Err(wrong("behind `?` there is `index=hnsw` or `index=flat`, and `shards=1` to `shards=16`"));
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
            let host = if host.rsplit(']').next().is_some_and(|rest| rest.contains(':')) {
                host.to_owned()
            } else {
                format!("{host}:19530")
            };
            return Ok(Self::Milvus { host, collection: collection.to_owned(), layout });
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
            Self::Milvus { host, collection, layout } => write!(f, "milvus://{host}/{collection}{}", layout.written()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_they_are_written() {
        for url in ["file:some/dir", "milvus://localhost:19530/films", "milvus://[::1]:19530/films?index=flat&shards=4"]
        {
            assert_eq!(url.parse::<EngineUrl>().unwrap().to_string(), url);
        }
        assert_eq!("some/dir".parse::<EngineUrl>().unwrap(), EngineUrl::File("some/dir".into()));
        assert_eq!("milvus://db/films".parse::<EngineUrl>().unwrap().to_string(), "milvus://db:19530/films");
    }

    #[test]
    fn addresses_that_are_none_are_refused() {
        let files = ["", "file:", "http://x/y"];
        let servers = [
            "h:1",
            "/c",
            "h/a-b",
            "h/1a",
            "h/",
            "h/a?index=ivf",
            "h/a?",
            "h/a?shards=17",
            "h/a?shards=0",
            "h/?index=flat",
            "a b/c",
        ];
        let servers = servers.map(|rest| format!("milvus://{rest}"));
        for url in files.into_iter().map(str::to_owned).chain(servers) {
            assert!(url.parse::<EngineUrl>().is_err(), "{url}");
        }
    }
}
