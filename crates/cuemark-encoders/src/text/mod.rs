//! Sentences as vectors.
//!
//! [`load`] makes an encoder of weights by name or path: a transformer of the BERT family ([`Transformer`]: MiniLM, SimCSE,
//! RoBERTa, DistilBERT), CLIP's text side ([`ClipText`]) or the mean of word vectors ([`Glove`]). Sentences are sorted by length
//! and never padded, so a vector does not depend on what else was encoded with it. [`Reference`] holds an encoder to vectors
//! that another implementation made. [`Pretrained`] takes such weights apart for whoever trains with them.

mod batches;
mod clip;
mod config;
mod glove;
mod named;
mod network;
mod pooling;
mod pretrained;
mod ragged;
mod reference;
mod rows;
mod tokenizer;
mod transformer;

use candle_core::Device;

pub use clip::ClipText;
pub use glove::Glove;
pub use pooling::{Length, Pooling, Recipe};
pub use pretrained::{NetworkSizes, Pretrained, PretrainedFamily, TokenStates};
pub use reference::{Agreement, Reference};
pub use tokenizer::check_tokenizer;
pub use transformer::Transformer;

use crate::Result;
use crate::weights::{self, WeightsFolder};

/// Turns sentences into vectors of one width.
pub trait TextEncoder: Send + Sync {
    /// What it is called in manifests, recipes and `--encoder`.
    fn name(&self) -> &str;

    /// The length of every vector.
    fn width(&self) -> usize;

    /// One vector per sentence, in the given order, of length 1 wherever the encoder's own recipe normalises.
    ///
    /// A sentence's vector does not depend on what else is in the call.
    fn encode(&self, sentences: &[&str]) -> Result<Vec<Vec<f32>>>;
}

/// The encoder whose weights `what` names: in the registry, or a folder or file of the user's.
///
/// A folder is what its `config.json` says it is; one with `words.parquet`, and a text file, hold word vectors.
///
/// # Errors
/// When the weights are not there, are damaged, or are not those of a text encoder that cuemark knows.
pub fn load(what: &str, device: &Device) -> Result<Box<dyn TextEncoder>> {
    from_folder(&weights::open(what)?, device)
}

/// Whether the weights in `folder` are those of a text encoder, by the files beside them. Nothing is loaded.
pub fn is_text_encoder(folder: &WeightsFolder) -> bool {
    glove::is_one(folder) || folder.find(&["config.json"]).is_some()
}

/// The encoder whose weights lie in `folder`.
///
/// # Errors
/// As [`load`].
pub fn from_folder(folder: &WeightsFolder, device: &Device) -> Result<Box<dyn TextEncoder>> {
    if glove::is_one(folder) {
        return Ok(Box::new(Glove::load(folder)?));
    }
    Ok(match config::Config::read(folder)? {
        config::Config::Transformer(config) => Box::new(Transformer::load(folder, &config, device)?),
        config::Config::Clip(config) => Box::new(ClipText::load(folder, &config, device)?),
    })
}
