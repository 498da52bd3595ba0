//! Stands where the Milvus engine would be in a program that was built without it.

use cuemark_core::Advice;
use cuemark_formats::Overwrite;

use super::{Embedded, EngineUrl};
use crate::{Manifest, Result, SearchError};

/// Says how to get the engine.
pub(super) struct Milvus;

impl Milvus {
    pub(super) fn check_free(url: &EngineUrl, _: Overwrite) -> Result<()> {
        Err(without(url))
    }

    pub(super) fn create(url: &EngineUrl, _: &Manifest, _: Overwrite) -> Result<Embedded> {
        Err(without(url))
    }

    pub(super) fn open(url: &EngineUrl) -> Result<Embedded> {
        Err(without(url))
    }

    pub(super) fn manifest(url: &EngineUrl) -> Result<Manifest> {
        Err(without(url))
    }
}

fn without(url: &EngineUrl) -> SearchError {
    SearchError::Server {
        url: url.to_string(),
        problem: "this program was built without the Milvus engine".to_owned(),
        advice: Advice::say(
            "build it with `cargo install --path crates/cuemark-cli --features milvus`, or use a folder",
        ),
    }
}
