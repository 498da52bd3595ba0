//! A network of the BERT family with its tokenizer and its pooling: MiniLM, SimCSE, RoBERTa, DistilBERT, BERT.

use candle_core::{Device, Tensor};

use super::TextEncoder;
use super::batches::batches;
use super::config::TransformerConfig;
use super::named::Named;
use super::network::{ANCHOR, Network, layers_of};
use super::pooling::{Pool, Recipe};
use super::tokenizer::{Expected, Tokenizer};
use crate::Result;
use crate::weights::WeightsFolder;

/// Tokens that are computed together: enough for the products to run at full speed, few enough for the caches.
const BATCH_TOKENS: usize = 1024;
/// Sentences that are split into tokens at a time, so that a long list does not lie in memory twice.
const BATCH_SENTENCES: usize = 8192;

/// A sentence encoder of the BERT family.
pub struct Transformer {
    name: String,
    width: usize,
    recipe: Recipe,
    tokenizer: Tokenizer,
    network: Network,
    pool: Pool,
}

impl Transformer {
    pub(super) fn load(folder: &WeightsFolder, config: &TransformerConfig, device: &Device) -> Result<Self> {
        let recipe = Recipe::of(folder)?;
        let longest = recipe.longest.unwrap_or(usize::MAX).min(config.longest());
        let first_token = config.family.first_token();
        let tokenizer = Tokenizer::load(folder, Expected { words: config.words, longest, first_token })?;
        Self::with_tokenizer(folder, config, recipe, tokenizer, device)
    }

    /// The network of `folder` with a tokenizer that may have come from elsewhere.
    pub(super) fn with_tokenizer(
        folder: &WeightsFolder,
        config: &TransformerConfig,
        recipe: Recipe,
        tokenizer: Tokenizer,
        device: &Device,
    ) -> Result<Self> {
        let named = Named::open(folder, config.family.network(), ANCHOR, device)?;
        let network = Network::load(&named, config)?;
        let pool = Pool::load(recipe, &named, config.width)?;
        named.finish(layers_of(config.family))?;
        Ok(Self { name: folder.name().to_owned(), width: config.width, recipe, tokenizer, network, pool })
    }

    /// How rows of tokens become a vector.
    pub fn recipe(&self) -> Recipe {
        self.recipe
    }

    /// The last hidden state of every token of every sentence, `[tokens, width]` each, special tokens included, in the given
    /// order: what models that read word features are given.
    ///
    /// # Errors
    /// When a sentence cannot be split into tokens, or a tensor operation fails.
    pub fn token_states(&self, sentences: &[&str]) -> Result<Vec<Tensor>> {
        let mut states = Vec::with_capacity(sentences.len());
        for sentences in sentences.chunks(BATCH_SENTENCES) {
            states.extend(self.states_of(&self.tokenizer.ids(sentences)?)?);
        }
        Ok(states)
    }

    /// As [`Transformer::token_states`], of sentences whose tokens are known.
    pub(super) fn states_of(&self, ids: &[Vec<u32>]) -> Result<Vec<Tensor>> {
        let mut states = vec![None; ids.len()];
        self.each_of(ids, |places, rows, lengths| {
            let mut start = 0;
            for (place, length) in places.iter().zip(lengths) {
                states[*place] = Some(rows.narrow(0, start, *length)?);
                start += length;
            }
            Ok(())
        })?;
        Ok(states.into_iter().flatten().collect())
    }

    /// Hands over the places of sentences that were computed together, all their rows, and their lengths.
    fn each_batch(
        &self,
        sentences: &[&str],
        mut each: impl FnMut(&[usize], &Tensor, &[usize]) -> Result<()>,
    ) -> Result<()> {
        for (part, sentences) in sentences.chunks(BATCH_SENTENCES).enumerate() {
            self.each_of(&self.tokenizer.ids(sentences)?, |places, rows, lengths| {
                let places: Vec<usize> = places.iter().map(|place| part * BATCH_SENTENCES + place).collect();
                each(&places, rows, lengths)
            })?;
        }
        Ok(())
    }

    /// As [`Transformer::each_batch`], of sentences whose tokens are known.
    fn each_of(&self, ids: &[Vec<u32>], mut each: impl FnMut(&[usize], &Tensor, &[usize]) -> Result<()>) -> Result<()> {
        let lengths: Vec<usize> = ids.iter().map(Vec::len).collect();
        for batch in batches(&lengths, BATCH_TOKENS) {
            let tokens: Vec<&[u32]> = batch.iter().map(|place| ids[*place].as_slice()).collect();
            let lengths: Vec<usize> = tokens.iter().map(|tokens| tokens.len()).collect();
            each(&batch, &self.network.forward(&tokens)?, &lengths)?;
        }
        Ok(())
    }
}

impl TextEncoder for Transformer {
    fn name(&self) -> &str {
        &self.name
    }

    fn width(&self) -> usize {
        self.width
    }

    fn encode(&self, sentences: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = vec![Vec::new(); sentences.len()];
        self.each_batch(sentences, |places, rows, lengths| {
            for (place, vector) in places.iter().zip(self.pool.apply(rows, lengths)?) {
                vectors[*place] = vector;
            }
            Ok(())
        })?;
        Ok(vectors)
    }
}
