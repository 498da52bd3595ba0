//! Whether attention sees the padding of a query.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

/// What attention over words does with padding, as run files name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaddedWords {
    /// Padding is never attended to: answers do not depend on the other queries of a batch. Default.
    #[default]
    Masked,
    /// As the published code has it: padding takes part.
    Published,
}

impl PaddedWords {
    /// What attention is to take for the mask of `real [batch, words]`: itself, or ones.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn seen(self, real: &Tensor) -> Result<Tensor> {
        match self {
            Self::Masked => Ok(real.clone()),
            Self::Published => real.ones_like(),
        }
    }
}
