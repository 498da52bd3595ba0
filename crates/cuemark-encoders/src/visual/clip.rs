//! The picture side of CLIP, through `candle-transformers`.
//! Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", ICML 2021. Reads the names of the
//! `transformers` library (`vision_model.…`, `visual_projection.weight`).

use candle_core::Result;
use candle_nn::{Linear, Module as _};
use candle_transformers::models::clip::vision_model::{ClipVisionConfig, ClipVisionTransformer};
use cuemark_tensor::{Tensor, VarBuilder};

use super::{AnyNetwork, Network};

/// A vision transformer and its projection into the space that it shares with sentences.
#[derive(Debug)]
pub struct ClipVision {
    network: ClipVisionTransformer,
    projection: Linear,
    width: usize,
}

impl ClipVision {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(cfg: &ClipVisionConfig, vb: &VarBuilder) -> Result<Self> {
        let projection = candle_nn::linear_no_bias(cfg.embed_dim, cfg.projection_dim, vb.pp("visual_projection"))?;
        let network = ClipVisionTransformer::new(vb.pp("vision_model"), cfg)?;
        Ok(Self { network, projection, width: cfg.projection_dim })
    }

    /// ViT-B, whose patches are as large as the weights say: 32 pixels or 16.
    pub(super) fn base(vb: &VarBuilder) -> Result<AnyNetwork> {
        let large = ClipVisionConfig::vit_base_patch32();
        let small = ClipVisionConfig { patch_size: 16, ..ClipVisionConfig::vit_base_patch32() };
        let patches = vb.get_unchecked("vision_model.embeddings.patch_embedding.weight")?;
        let config = if patches.dims().last() == Some(&small.patch_size) { small } else { large };
        Ok(Box::new(Self::new(&config, vb)?))
    }
}

impl Network for ClipVision {
    fn width(&self) -> usize {
        self.width
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.squeeze(1)?.permute((0, 3, 1, 2))?.contiguous()?;
        self.projection.forward(&self.network.forward(&x)?)
    }
}
