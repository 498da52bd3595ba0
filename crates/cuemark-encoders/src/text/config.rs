//! `config.json`: which network the weights are of, and its sizes.

use candle_transformers::models::clip::text_model::{Activation as ClipActivation, ClipTextConfig};
use cuemark_formats::ReadError;
use serde::Deserialize;

use crate::weights::WeightsFolder;
use crate::{EncodeError, Result};

const FILE: &str = "config.json";

/// What a folder's `config.json` describes.
pub(super) enum Config {
    Transformer(TransformerConfig),
    Clip(ClipTextConfig),
}

/// Whose parameter names and positions a network of the BERT family has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Bert,
    /// Positions are counted from the padding token's id onwards.
    Roberta {
        first_position: usize,
    },
    /// No token types, no pooler, names of its own.
    DistilBert,
}

impl Family {
    /// What an error calls such a network.
    pub(super) fn network(self) -> &'static str {
        match self {
            Self::Bert => "a BERT encoder",
            Self::Roberta { .. } => "a RoBERTa encoder",
            Self::DistilBert => "a DistilBERT encoder",
        }
    }

    /// The token that every sentence begins with.
    pub(super) fn first_token(self) -> &'static str {
        match self {
            Self::Bert | Self::DistilBert => "[CLS]",
            Self::Roberta { .. } => "<s>",
        }
    }
}

/// The function between the two products of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Activation {
    /// `x Φ(x)`, exactly.
    Gelu,
    /// `max(x, 0)`.
    Relu,
}

/// Sizes of a network of the BERT family.
#[derive(Debug, Clone)]
pub(super) struct TransformerConfig {
    pub(super) family: Family,
    pub(super) words: usize,
    pub(super) positions: usize,
    pub(super) token_types: usize,
    pub(super) width: usize,
    pub(super) heads: usize,
    pub(super) layers: usize,
    pub(super) inner: usize,
    pub(super) activation: Activation,
    pub(super) epsilon: f64,
}

impl TransformerConfig {
    /// The most tokens that have a position.
    pub(super) fn longest(&self) -> usize {
        match self.family {
            Family::Roberta { first_position } => self.positions.saturating_sub(first_position),
            Family::Bert | Family::DistilBert => self.positions,
        }
    }
}

#[derive(Deserialize)]
struct Kind {
    model_type: String,
}

#[derive(Deserialize)]
struct BertFile {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    hidden_act: Activation,
    max_position_embeddings: usize,
    #[serde(default = "one")]
    type_vocab_size: usize,
    #[serde(default = "bert_epsilon")]
    layer_norm_eps: f64,
    /// Only RoBERTa counts from it. Default: 1
    pad_token_id: Option<usize>,
    #[serde(default = "absolute")]
    position_embedding_type: String,
}

#[derive(Deserialize)]
struct DistilBertFile {
    vocab_size: usize,
    dim: usize,
    n_layers: usize,
    n_heads: usize,
    hidden_dim: usize,
    activation: Activation,
    max_position_embeddings: usize,
}

/// CLIP's own sizes stand for what a file leaves out, as in the reference.
#[derive(Deserialize)]
#[serde(default)]
struct ClipTextFile {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    max_position_embeddings: usize,
    hidden_act: String,
    projection_dim: usize,
}

impl Default for ClipTextFile {
    fn default() -> Self {
        Self {
            vocab_size: 49_408,
            hidden_size: 512,
            intermediate_size: 2048,
            num_hidden_layers: 12,
            num_attention_heads: 8,
            max_position_embeddings: 77,
            hidden_act: "quick_gelu".to_owned(),
            projection_dim: 512,
        }
    }
}

#[derive(Deserialize)]
struct ClipFile {
    #[serde(default)]
    text_config: ClipTextFile,
    projection_dim: Option<usize>,
}

fn one() -> usize {
    1
}

fn bert_epsilon() -> f64 {
    1e-12
}

fn absolute() -> String {
    "absolute".to_owned()
}

impl Config {
    /// # Errors
    /// When the file is not there, is of a network that is no text encoder we know, or states sizes that cannot be.
    pub(super) fn read(folder: &WeightsFolder) -> Result<Self> {
        let kind: Kind = folder.json(FILE)?;
        let fault = |field: &str, problem: String| -> EncodeError {
            let path = folder.path().join(FILE);
            ReadError::record(&path, 1, field, problem)
                .with_hint("text encoders are of type bert, roberta, distilbert or clip")
                .into()
        };
        let config = match kind.model_type.as_str() {
            "bert" => Self::Transformer(folder.json::<BertFile>(FILE)?.config(Family::Bert)),
            "roberta" | "xlm-roberta" => {
                let file: BertFile = folder.json(FILE)?;
                let first_position = file.pad_token_id.unwrap_or(1).saturating_add(1);
                Self::Transformer(file.config(Family::Roberta { first_position }))
            }
            "distilbert" => Self::Transformer(folder.json::<DistilBertFile>(FILE)?.config()),
            "clip" => {
                let file: ClipFile = folder.json(FILE)?;
                let projection = file.projection_dim.unwrap_or(file.text_config.projection_dim);
                Self::Clip(file.text_config.config(projection).map_err(|problem| fault("hidden_act", problem))?)
            }
            "clip_text_model" => {
                let file: ClipTextFile = folder.json(FILE)?;
                let projection = file.projection_dim;
                Self::Clip(file.config(projection).map_err(|problem| fault("hidden_act", problem))?)
            }
            other => return Err(fault("model_type", format!("`{other}` is no text encoder that cuemark knows"))),
        };
        let (width, heads) = match &config {
            Self::Transformer(config) => (config.width, config.heads),
            Self::Clip(config) => (config.embed_dim, config.num_attention_heads),
        };
        if width == 0 || heads == 0 || width % heads != 0 {
            return Err(fault("num_attention_heads", format!("{heads} heads do not share a width of {width}")));
        }
        if let Ok(BertFile { position_embedding_type, .. }) = folder.json(FILE)
            && position_embedding_type != "absolute"
        {
            return Err(fault("position_embedding_type", format!("`{position_embedding_type}` is not supported")));
        }
        Ok(config)
    }
}

impl BertFile {
    fn config(self, family: Family) -> TransformerConfig {
        TransformerConfig {
            family,
            words: self.vocab_size,
            positions: self.max_position_embeddings,
            token_types: self.type_vocab_size,
            width: self.hidden_size,
            heads: self.num_attention_heads,
            layers: self.num_hidden_layers,
            inner: self.intermediate_size,
            activation: self.hidden_act,
            epsilon: self.layer_norm_eps,
        }
    }
}

impl DistilBertFile {
    fn config(self) -> TransformerConfig {
        TransformerConfig {
            family: Family::DistilBert,
            words: self.vocab_size,
            positions: self.max_position_embeddings,
            token_types: 0,
            width: self.dim,
            heads: self.n_heads,
            layers: self.n_layers,
            inner: self.hidden_dim,
            activation: self.activation,
            epsilon: bert_epsilon(),
        }
    }
}

impl ClipTextFile {
    fn config(self, projection_dim: usize) -> Result<ClipTextConfig, String> {
        if self.hidden_act != "quick_gelu" {
            return Err(format!("`{}` is not supported, `quick_gelu` is", self.hidden_act));
        }
        Ok(ClipTextConfig {
            vocab_size: self.vocab_size,
            embed_dim: self.hidden_size,
            activation: ClipActivation::QuickGelu,
            intermediate_size: self.intermediate_size,
            max_position_embeddings: self.max_position_embeddings,
            pad_with: None,
            num_hidden_layers: self.num_hidden_layers,
            num_attention_heads: self.num_attention_heads,
            projection_dim,
        })
    }
}
