//! Published weights of a text encoder, taken apart for whoever trains with them: tokens by number, the vectors of tokens, sizes
//! and parameters by name.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;

use camino::Utf8Path;
use candle_core::{Device, Tensor};
use cuemark_core::digest::hex;
use cuemark_formats::ReadError;
use sha2::{Digest as _, Sha256};

use super::clip::ClipText;
use super::config::{Activation, Config, Family, TransformerConfig};
use super::glove;
use super::named::Named;
use super::network::ANCHOR;
use super::pooling::Recipe;
use super::tokenizer::{Expected, Tokenizer};
use super::transformer::Transformer;
use crate::weights::{self, WeightsFolder};
use crate::{EncodeError, Result};

/// A text encoder's weights on disk; the tokenizer is read, the weights are not yet.
pub struct Pretrained {
    folder: WeightsFolder,
    config: Config,
    tokenizer: Tokenizer,
    longest: usize,
}

/// Sizes of a network of the BERT family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetworkSizes {
    /// Whose names and parts it has.
    pub family: PretrainedFamily,
    /// Rows of the table of positions.
    pub positions: usize,
    /// Width of a token.
    pub width: usize,
    /// Heads of each attention.
    pub heads: usize,
    /// Number of layers.
    pub layers: usize,
    /// Width between the two products of a layer.
    pub inner: usize,
    /// Added to the variance in its layer norms.
    pub epsilon: f64,
}

/// Whose names and parts a network has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PretrainedFamily {
    /// No token types, names of its own.
    DistilBert,
    /// BERT and RoBERTa.
    Bert {
        /// Rows of the table of token types.
        token_types: usize,
        /// The row of the first token's position.
        first_position: usize,
    },
}

/// Turns tokens into vectors; the weights stay as they are.
pub enum TokenStates {
    /// The BERT family.
    Transformer(Box<Transformer>),
    /// CLIP's text side.
    Clip(Box<ClipText>),
}

impl Pretrained {
    /// The weights `encoder`, in the registry or a folder, with the tokenizer of `tokenizer` where that is another. Sentences are
    /// cut at `longest` tokens, the special ones among them, or where positions end.
    ///
    /// # Errors
    /// When they are not there or damaged, are no text encoder that reads tokens, or the tokenizer is another network's.
    pub fn open(encoder: &str, tokenizer: Option<&str>, longest: Option<usize>) -> Result<Self> {
        let folder = weights::open(encoder)?;
        if glove::is_one(&folder) {
            let problem = "holds vectors of words, which `data.words` of a run file reads";
            return Err(ReadError::file(folder.path(), problem).into());
        }
        let config = Config::read(&folder)?;
        let (words, positions, first_token) = match &config {
            Config::Transformer(config) => (config.words, config.longest(), config.family.first_token()),
            Config::Clip(config) => (config.vocab_size, config.max_position_embeddings, "<|startoftext|>"),
        };
        let longest = longest.unwrap_or(usize::MAX).min(positions);
        let of = tokenizer.map(weights::open).transpose()?;
        let tokenizer = Tokenizer::load(of.as_ref().unwrap_or(&folder), Expected { words, longest, first_token })?;
        Ok(Self { folder, config, tokenizer, longest })
    }

    /// The registry's name, or the last part of the path.
    pub fn name(&self) -> &str {
        self.folder.name()
    }

    /// Where the weights lie.
    pub fn path(&self) -> &Utf8Path {
        self.folder.path()
    }

    /// Tokens that have an embedding.
    pub fn vocabulary(&self) -> usize {
        match &self.config {
            Config::Transformer(config) => config.words,
            Config::Clip(config) => config.vocab_size,
        }
    }

    /// Width of a token's vector.
    pub fn width(&self) -> usize {
        match &self.config {
            Config::Transformer(config) => config.width,
            Config::Clip(config) => config.embed_dim,
        }
    }

    /// The most tokens of a sentence.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The tokens of every sentence by number, special ones at both ends; none is empty.
    ///
    /// # Errors
    /// When a sentence cannot be split, or gives a token that the network does not know.
    pub fn tokens(&self, sentences: &[&str]) -> Result<Vec<Vec<u32>>> {
        self.tokenizer.ids(sentences)
    }

    /// What tells this tokenizer from others: the hash of its file and the length at which it cuts.
    ///
    /// # Errors
    /// When the file cannot be read any more.
    pub fn tokenizer_digest(&self) -> Result<String> {
        Ok(format!("{}-{}", file_digest(self.tokenizer.path())?, self.longest))
    }

    /// What tells these weights from others: the hash of their file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn weights_digest(&self) -> Result<String> {
        file_digest(&self.folder.weight_file()?)
    }

    /// Sizes of a network that can be trained: one of the BERT family.
    ///
    /// # Errors
    /// For CLIP's, and for one that cuts off at zero where BERT bends, of which we have no trainable network.
    pub fn sizes(&self) -> Result<NetworkSizes> {
        let untrainable = |problem: &str| -> EncodeError {
            let hint = "leave it as it is: `training = \"frozen\"`";
            ReadError::file(self.folder.path(), problem).with_hint(hint).into()
        };
        let config = match &self.config {
            Config::Transformer(config) if config.activation == Activation::Gelu => config,
            Config::Transformer(_) => return Err(untrainable("only networks with the activation `gelu` are trained")),
            Config::Clip(_) => return Err(untrainable("CLIP's text encoder is not trained here")),
        };
        Ok(config.sizes())
    }

    /// The parameters by the names of the published code, on the CPU; what stands before every name is dropped.
    ///
    /// # Errors
    /// When the file cannot be read or is no encoder's.
    pub fn parameters(&self) -> Result<HashMap<String, Tensor>> {
        match &self.config {
            Config::Transformer(config) => {
                Ok(Named::open(&self.folder, config.family.network(), ANCHOR, &Device::Cpu)?.by_name())
            }
            Config::Clip(_) => self.folder.tensors(),
        }
    }

    /// The network itself, to compute vectors with.
    ///
    /// # Errors
    /// When the weights are damaged or another network's.
    pub fn states(&self, device: &Device) -> Result<TokenStates> {
        let tokenizer = self.tokenizer.clone();
        Ok(match &self.config {
            Config::Transformer(config) => {
                let recipe = Recipe::of(&self.folder)?;
                let network = Transformer::with_tokenizer(&self.folder, config, recipe, tokenizer, device)?;
                TokenStates::Transformer(Box::new(network))
            }
            Config::Clip(config) => {
                TokenStates::Clip(Box::new(ClipText::with_tokenizer(&self.folder, config, tokenizer, device)?))
            }
        })
    }
}

impl TokenStates {
    /// The last hidden state of every token of every sentence, `[tokens, width]` each, in the given order. What a sentence gives
    /// does not depend on the others.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn of(&self, tokens: &[Vec<u32>]) -> Result<Vec<Tensor>> {
        match self {
            Self::Transformer(network) => network.states_of(tokens),
            Self::Clip(network) => network.states_of(tokens),
        }
    }
}

impl TransformerConfig {
    fn sizes(&self) -> NetworkSizes {
        let family = match self.family {
            Family::DistilBert => PretrainedFamily::DistilBert,
            Family::Bert => PretrainedFamily::Bert { token_types: self.token_types, first_position: 0 },
            Family::Roberta { first_position } => {
                PretrainedFamily::Bert { token_types: self.token_types, first_position }
            }
        };
        NetworkSizes {
            family,
            positions: self.positions,
            width: self.width,
            heads: self.heads,
            layers: self.layers,
            inner: self.inner,
            epsilon: self.epsilon,
        }
    }
}

/// The SHA-256 of a file, in hexadecimal.
fn file_digest(path: &Utf8Path) -> Result<String> {
    let fault = |source| ReadError::Io { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(fault)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0u8; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(fault)? {
            0 => return Ok(hex(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}
