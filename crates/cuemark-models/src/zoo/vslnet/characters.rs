//! Words read by their characters.

use candle_core::Tensor;
use candle_nn::{Init, VarBuilder};
use cuemark_tensor::Pass;

use super::blocks::times;
use super::{CARD, VslNetConfig};
use crate::layers::uniform;
use crate::{QueryBatch, Result};

/// Characters by number: 0 is padding, 1 any other character, then these.
pub(super) const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz0123456789'-.,!?&\":;()/$%";

/// The most characters of a word that are read.
const WORD_LENGTH: usize = 16;

/// Numbers of the characters of every word, `[queries, words, characters]`, 0 padded.
pub(super) fn spell(queries: &QueryBatch, words: usize) -> Result<Tensor> {
    let parses = queries.parses(CARD.name)?;
    let mut ids = vec![0u32; parses.len() * words * WORD_LENGTH];
    for (query, parse) in parses.iter().enumerate() {
        for (word, token) in parse.tokens.iter().take(words).enumerate() {
            let row = (query * words + word) * WORD_LENGTH;
            let number = |letter: char| ALPHABET.find(letter).map_or(1, |place| place as u32 + 2);
            let letters = token.text.chars().flat_map(char::to_lowercase).map(number);
            letters.take(WORD_LENGTH).enumerate().for_each(|(place, id)| ids[row + place] = id);
        }
    }
    Ok(Tensor::from_vec(ids, (parses.len(), words, WORD_LENGTH), queries.words.device())?)
}

/// A vector for every word from the characters it is spelt with.
#[derive(Debug)]
pub(super) struct Characters {
    table: Tensor,
    filters: Vec<(Tensor, Tensor)>,
}

impl Characters {
    pub(super) fn new(config: &VslNetConfig, alphabet: usize, vb: &VarBuilder) -> Result<Self> {
        let width = config.character_width;
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        let filter = |(number, outputs): (usize, &usize)| -> Result<(Tensor, Tensor)> {
            let (kernel, vb) = (number + 1, vb.pp(format!("char_convs.{number}.0")));
            let weight = vb.get_with_hints((*outputs, width, 1, kernel), "weight", uniform(width * kernel))?;
            let weight = weight.squeeze(2)?.permute((2, 1, 0))?.reshape((kernel * width, *outputs))?;
            Ok((weight, vb.get_with_hints(*outputs, "bias", uniform(width * kernel))?))
        };
        Ok(Self {
            table: vb.pp("char_emb").get_with_hints((alphabet, width), "weight", normal)?,
            filters: config.character_filters.iter().enumerate().map(filter).collect::<Result<_>>()?,
        })
    }

    /// `ids [batch, words, characters]` to `[batch, words, filters]`.
    pub(super) fn forward(&self, ids: &Tensor, dropout: f64, pass: &Pass) -> Result<Tensor> {
        let (batch, words, letters) = ids.dims3()?;
        let width = self.table.dim(1)?;
        // Padding is zero, whatever its row in the table holds.
        let real = ids.clamp(0u32, 1u32)?.to_dtype(self.table.dtype())?.reshape((batch * words, letters, 1))?;
        let x = self.table.index_select(&ids.flatten_all()?, 0)?.reshape((batch * words, letters, width))?;
        let x = pass.dropout(&x.broadcast_mul(&real)?, dropout)?;
        let x = match self.filters.len().checked_sub(letters) {
            Some(missing) => x.pad_with_zeros(1, 0, missing)?,
            None => x,
        };
        let apply = |(weight, bias): &(Tensor, Tensor)| -> Result<Tensor> {
            let kernel = weight.dim(0)? / width;
            let length = x.dim(1)? + 1 - kernel;
            let pieces =
                (0..kernel).map(|place| x.narrow(1, place, length)).collect::<candle_core::Result<Vec<_>>>()?;
            let windows = Tensor::cat(&pieces, 2)?;
            Ok(times(&windows, weight)?.broadcast_add(bias)?.relu()?.max(1)?)
        };
        let found = self.filters.iter().map(apply).collect::<Result<Vec<_>>>()?;
        Ok(Tensor::cat(&found, 1)?.reshape((batch, words, ()))?)
    }
}
