//! Cross entropy with the scaled overlap of every candidate span (2D-TAN, eq. 5).

use candle_core::{Result, Tensor};
use cuemark_tensor::functional::bce_with_logits;
use serde::{Deserialize, Serialize};

use crate::check::Fixture;

/// Overlaps up to `min_iou` count as 0, from `max_iou` as 1, and grow evenly between.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaledIou {
    /// Overlap that counts as 0. Default: 0.5
    pub min_iou: f64,
    /// Overlap that counts as 1. Default: 1.0
    pub max_iou: f64,
}

impl Default for ScaledIou {
    fn default() -> Self {
        Self { min_iou: 0.5, max_iou: 1.0 }
    }
}

impl ScaledIou {
    /// That of a fixture.
    ///
    /// # Errors
    /// When it does not state it.
    pub fn of_fixture(fixture: &Fixture) -> crate::Result<Self> {
        Ok(Self { min_iou: fixture.real("loss.min_iou")?, max_iou: fixture.real("loss.max_iou")? })
    }

    /// The targets of raw overlaps, any shape.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn targets(&self, ious: &Tensor) -> Result<Tensor> {
        let scale = 1.0 / (self.max_iou - self.min_iou);
        ious.affine(scale, -self.min_iou * scale)?.clamp(0.0, 1.0)
    }

    /// Mean over the valid cells of all queries.
    ///
    /// # Shapes
    /// - logits and raw ious `[queries, cells]`, valid cells only; returns a scalar
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn loss(&self, logits: &Tensor, ious: &Tensor) -> Result<Tensor> {
        bce_with_logits(logits, &self.targets(ious)?)?.mean_all()
    }
}
