//! Words as vectors: published ones that stay as they are, or trained ones when there are none.

use candle_core::{Result, Tensor};
use candle_nn::{Init, VarBuilder};
use cuemark_tensor::look_up;

/// A vector for every word of a vocabulary; word 0 is padding and always zero.
#[derive(Debug, Clone)]
pub struct WordTable {
    vectors: Tensor,
}

impl WordTable {
    /// Trained with the model, from small random vectors, stored as `weight [words, width]`.
    ///
    /// # Errors
    /// When the parameter is missing or misshaped.
    pub fn trained(words: usize, width: usize, vb: VarBuilder) -> Result<Self> {
        let init = Init::Randn { mean: 0.0, stdev: 0.4 };
        Ok(Self { vectors: vb.get_with_hints((words, width), "weight", init)? })
    }

    /// `vectors [words, width]` as they are.
    pub fn frozen(vectors: &Tensor) -> Self {
        Self { vectors: vectors.detach() }
    }

    /// All vectors, `[words, width]`.
    pub fn vectors(&self) -> &Tensor {
        &self.vectors
    }

    /// # Shapes
    /// - ids `[queries, words]`, 0 where there is no word; mask `[queries, words]`, 1 where there is one
    /// - returns `[queries, words, width]`, zero where there is no word
    ///
    /// # Errors
    /// When an id is outside the vocabulary.
    pub fn look_up(&self, ids: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let (queries, words) = ids.dims2()?;
        let rows = look_up(&self.vectors, ids)?;
        rows.reshape((queries, words, ()))?.broadcast_mul(&mask.unsqueeze(2)?)
    }
}
