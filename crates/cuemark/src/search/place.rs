//! Which index, and what it computes on.

use camino::Utf8Path;
use cuemark_search::{EngineUrl, Index, encoder};
use serde::{Deserialize, Serialize};

use super::words;
use crate::Result;
use crate::device::cpu;

/// Which index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct IndexPlace {
    /// The index: a folder, `file:DIR`, or `milvus://HOST:PORT/COLLECTION`.
    #[cfg_attr(feature = "clap", arg(value_name = "INDEX"))]
    pub index: String,
    /// What to compute embeddings on: cpu, cuda, cuda:N.
    #[serde(default = "cpu")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DEVICE", default_value = "cpu"))]
    pub device: String,
}

impl IndexPlace {
    /// The index at `address`, computed on the CPU.
    pub fn new(address: impl Into<String>) -> Self {
        Self { index: address.into(), device: cpu() }
    }

    /// Its address, understood.
    ///
    /// # Errors
    /// When it is none.
    pub fn url(&self) -> Result<EngineUrl> {
        Ok(self.index.parse()?)
    }

    /// Opens it with the encoder that it names; `features` is a store to look videos up in.
    ///
    /// # Errors
    /// When there is no index, or its encoder cannot be opened.
    pub fn open(&self, features: Option<&Utf8Path>) -> Result<Index> {
        let url = self.url()?;
        let manifest = Index::manifest_of(&url)?;
        let encoder = encoder::open_kept(&url, &manifest, features, &cuemark_tensor::device(&self.device)?)?;
        Ok(Index::open(&url, encoder)?.reading(words::sources(&manifest.encoder)))
    }

    /// Opens it to look after it: no network is loaded, so no weights are needed.
    ///
    /// # Errors
    /// When there is no index, or it is damaged.
    pub fn open_without_encoder(&self) -> Result<Index> {
        Ok(Index::open_without_encoder(&self.url()?)?)
    }
}
