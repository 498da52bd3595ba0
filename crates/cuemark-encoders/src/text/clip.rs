//! CLIP's text side (Radford et al., ICML 2021): the last token's state, projected into the space of images.

use candle_core::{Device, IndexOp as _, Tensor};
use candle_nn::Linear;
use candle_nn::Module as _;
use candle_transformers::models::clip::text_model::{ClipTextConfig, ClipTextTransformer};
use cuemark_tensor::Params;

use super::TextEncoder;
use super::batches::batches;
use super::pooling::to_length_one;
use super::tokenizer::{Expected, Tokenizer};
use crate::weights::WeightsFolder;
use crate::{EncodeError, Result};

/// Tokens that are computed together.
const BATCH_TOKENS: usize = 1024;

/// CLIP's text encoder. Vectors have length 1 and lie in the space of its image encoder.
pub struct ClipText {
    name: String,
    width: usize,
    tokenizer: Tokenizer,
    network: ClipTextTransformer,
    projection: Linear,
    device: Device,
}

impl ClipText {
    pub(super) fn load(folder: &WeightsFolder, config: &ClipTextConfig, device: &Device) -> Result<Self> {
        let expected = Expected {
            words: config.vocab_size,
            longest: config.max_position_embeddings,
            first_token: "<|startoftext|>",
        };
        Self::with_tokenizer(folder, config, Tokenizer::load(folder, expected)?, device)
    }

    /// The network of `folder` with a tokenizer that may have come from elsewhere.
    pub(super) fn with_tokenizer(
        folder: &WeightsFolder,
        config: &ClipTextConfig,
        tokenizer: Tokenizer,
        device: &Device,
    ) -> Result<Self> {
        let path = folder.weight_file()?;
        let params = Params::loaded(folder.tensors()?, device);
        let unfit = |error: candle_core::Error| EncodeError::Unfit {
            path: path.clone(),
            network: "CLIP's text encoder",
            problem: first_line(&error),
        };
        let vb = params.builder();
        let network = ClipTextTransformer::new(vb.pp("text_model"), config).map_err(unfit)?;
        let (width, inner) = (config.projection_dim, config.embed_dim);
        let projection = candle_nn::linear_no_bias(inner, width, vb.pp("text_projection")).map_err(unfit)?;
        let more = params.unused().into_iter().find(|name| name.starts_with("text_model.encoder.layers."));
        if let Some(name) = more {
            let problem = format!("parameter `{name}` is in the file and `config.json` knows nothing of it");
            return Err(EncodeError::Unfit { path, network: "CLIP's text encoder", problem });
        }
        Ok(Self { name: folder.name().to_owned(), width, tokenizer, network, projection, device: device.clone() })
    }

    /// The last hidden state of every token of every sentence, `[tokens, width]` each, in the given order; the last row of each
    /// is what the reference calls the pooler's output. Not projected.
    ///
    /// # Errors
    /// When a sentence cannot be split into tokens, or a tensor operation fails.
    pub fn token_states(&self, sentences: &[&str]) -> Result<Vec<Tensor>> {
        self.states_of(&self.tokenizer.ids(sentences)?)
    }

    /// As [`ClipText::token_states`], of sentences whose tokens are known.
    pub(super) fn states_of(&self, ids: &[Vec<u32>]) -> Result<Vec<Tensor>> {
        let lengths: Vec<usize> = ids.iter().map(Vec::len).collect();
        let mut states = vec![None; ids.len()];
        for batch in batches(&lengths, BATCH_TOKENS) {
            // Equal lengths together: nothing is padded.
            for run in batch.chunk_by(|a, b| lengths[*a] == lengths[*b]) {
                let tokens: Vec<u32> = run.iter().flat_map(|place| ids[*place].iter().copied()).collect();
                let tokens = Tensor::from_vec(tokens, (run.len(), lengths[run[0]]), &self.device)?;
                let rows = self.network.forward_with_mask(&tokens, usize::MAX)?;
                for (row, place) in run.iter().enumerate() {
                    states[*place] = Some(rows.i(row)?);
                }
            }
        }
        Ok(states.into_iter().flatten().collect())
    }
}

impl TextEncoder for ClipText {
    fn name(&self) -> &str {
        &self.name
    }

    fn width(&self) -> usize {
        self.width
    }

    fn encode(&self, sentences: &[&str]) -> Result<Vec<Vec<f32>>> {
        let states = self.token_states(sentences)?;
        let last = |state: &Tensor| state.narrow(0, state.dim(0)? - 1, 1);
        let last: Vec<Tensor> = states.iter().map(last).collect::<candle_core::Result<_>>()?;
        if last.is_empty() {
            return Ok(Vec::new());
        }
        let mut vectors = self.projection.forward(&Tensor::cat(&last, 0)?)?.to_vec2::<f32>()?;
        vectors.iter_mut().for_each(|vector| to_length_one(vector));
        Ok(vectors)
    }
}

/// Without the backtrace that candle may add.
fn first_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
