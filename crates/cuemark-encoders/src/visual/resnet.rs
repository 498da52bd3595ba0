//! ResNet before its classifier, through `candle-transformers`.
//! He et al., "Deep Residual Learning for Image Recognition", CVPR 2016. Reads torchvision's names.

use candle_core::Result;
use candle_nn::{Func, Module as _};
use candle_transformers::models::resnet;
use cuemark_tensor::{Tensor, VarBuilder};

use super::{AnyNetwork, Network};

/// One of the published depths.
#[derive(Debug)]
pub struct ResNet {
    network: Func<'static>,
    width: usize,
}

impl ResNet {
    /// 18 layers, 512 numbers a row.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn of_18(vb: &VarBuilder<'static>) -> Result<Self> {
        Ok(Self { network: resnet::resnet18_no_final_layer(vb.clone())?, width: 512 })
    }

    /// 50 layers, 2048 numbers a row.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn of_50(vb: &VarBuilder<'static>) -> Result<Self> {
        Ok(Self { network: resnet::resnet50_no_final_layer(vb.clone())?, width: 2048 })
    }

    /// 152 layers, 2048 numbers a row.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn of_152(vb: &VarBuilder<'static>) -> Result<Self> {
        Ok(Self { network: resnet::resnet152_no_final_layer(vb.clone())?, width: 2048 })
    }

    pub(super) fn network_50(vb: &VarBuilder<'static>) -> Result<AnyNetwork> {
        Ok(Box::new(Self::of_50(vb)?))
    }

    pub(super) fn network_152(vb: &VarBuilder<'static>) -> Result<AnyNetwork> {
        Ok(Box::new(Self::of_152(vb)?))
    }
}

impl Network for ResNet {
    fn width(&self) -> usize {
        self.width
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // The library wants channels first.
        self.network.forward(&x.squeeze(1)?.permute((0, 3, 1, 2))?.contiguous()?)
    }
}
