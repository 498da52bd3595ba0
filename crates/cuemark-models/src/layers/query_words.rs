//! Where the word vectors of a query come from, for methods whose published code trains a table of its own.

use candle_core::{Result, Tensor};
use candle_nn::{Init, VarBuilder};
use serde::{Deserialize, Serialize};

use crate::{Given, QueryBatch};

/// Where word vectors come from, as run files name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WordSource {
    /// The vectors that batches carry: published ones, or the table that the run trains. Default.
    #[default]
    Given,
    /// A table inside the model, trained from random vectors, under the reference's name.
    Own,
    /// As `own`, for a vocabulary of this many words: that of a published checkpoint.
    OwnOf(usize),
}

/// Word vectors of a query.
#[derive(Debug, Clone)]
pub struct QueryWords {
    table: Option<Tensor>,
}

impl QueryWords {
    /// A table, when there is one, is the parameter `name`, `[vocabulary, given.words]`.
    ///
    /// # Errors
    /// When the parameter is missing or misshaped.
    pub fn new(source: WordSource, given: &Given, name: &str, vb: &VarBuilder) -> Result<Self> {
        let vocabulary = match source {
            WordSource::Given => return Ok(Self { table: None }),
            WordSource::Own => given.vocabulary,
            WordSource::OwnOf(words) => words,
        };
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        Ok(Self { table: Some(vb.get_with_hints((vocabulary, given.words), name, normal)?) })
    }

    /// Vectors of every word of a batch, `[queries, words, width]`; what stands at padding means nothing.
    ///
    /// # Errors
    /// When a word is outside the vocabulary.
    pub fn forward(&self, queries: &QueryBatch) -> Result<Tensor> {
        self.look_up(&queries.word_ids, &queries.words)
    }

    /// Rows of the table at `ids [queries, words]`; without a table `vectors` as they are.
    ///
    /// # Errors
    /// When an id is outside the table.
    pub fn look_up(&self, ids: &Tensor, vectors: &Tensor) -> Result<Tensor> {
        let Some(table) = &self.table else { return Ok(vectors.clone()) };
        let (queries, words) = ids.dims2()?;
        table.index_select(&ids.flatten_all()?, 0)?.reshape((queries, words, ()))
    }
}
