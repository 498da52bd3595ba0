//! VGG-16, up to one of its two wide layers.
//! Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015.
//!
//! A file of our own because moment retrieval uses the inner layers fc6 and fc7 (after the rectifier), which libraries hide.
//! Reads torchvision's names (`features.0.weight`, `classifier.0.weight`).

use candle_core::Result;
use cuemark_tensor::volume::{Activation, VolumeConv, Window, max_pool};
use cuemark_tensor::{Tensor, VarBuilder};

use super::{AnyNetwork, Network, fold};

/// Sizes; the published ones by default.
#[derive(Debug, Clone)]
pub struct VggConfig {
    /// Channels of each convolution, by stage; a pool follows each stage.
    pub stages: Vec<Vec<usize>>,
    /// Pixels of a side of the picture.
    pub side: usize,
    /// Width of the wide layers.
    pub hidden: usize,
    /// Wide layers to go through: 1 gives fc6, 2 gives fc7.
    pub wide_layers: usize,
}

impl Default for VggConfig {
    fn default() -> Self {
        let stages = vec![vec![64; 2], vec![128; 2], vec![256; 3], vec![512; 3], vec![512; 3]];
        Self { stages, side: 224, hidden: 4096, wide_layers: 2 }
    }
}

/// The network up to fc6 or fc7.
#[derive(Debug)]
pub struct Vgg {
    stages: Vec<Vec<VolumeConv>>,
    /// Weight `[inputs, hidden]` and bias of each wide layer.
    wide: Vec<(Tensor, Tensor)>,
}

impl Vgg {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(cfg: &VggConfig, vb: &VarBuilder) -> Result<Self> {
        // torchvision numbers convolutions, rectifiers and pools in one row.
        let (mut number, mut channels, mut side) = (0, 3, cfg.side);
        let mut stages = Vec::new();
        for stage in &cfg.stages {
            let mut convs = Vec::new();
            for out in stage {
                let vb = vb.pp(format!("features.{number}"));
                let kernel = fold::channels_last(&vb.get((*out, channels, 3, 3), "weight")?)?;
                convs.push(VolumeConv::new(
                    &kernel,
                    &vb.get(*out, "bias")?,
                    Window::square(3, 1, 1),
                    Activation::Relu,
                )?);
                (number, channels) = (number + 2, *out);
            }
            (number, side) = (number + 1, side / 2);
            stages.push(convs);
        }
        let mut wide = Vec::new();
        for layer in 0..cfg.wide_layers {
            let vb = vb.pp(format!("classifier.{}", 3 * layer));
            let inputs = if layer == 0 { channels * side * side } else { cfg.hidden };
            let weight = vb.get((cfg.hidden, inputs), "weight")?;
            let weight = if layer == 0 {
                fold::after_volume(&weight, channels, side * side)?
            } else {
                weight.t()?.contiguous()?
            };
            wide.push((weight.detach(), vb.get(cfg.hidden, "bias")?.detach()));
        }
        Ok(Self { stages, wide })
    }

    pub(super) fn fc6(vb: &VarBuilder) -> Result<AnyNetwork> {
        Ok(Box::new(Self::new(&VggConfig { wide_layers: 1, ..VggConfig::default() }, vb)?))
    }

    pub(super) fn fc7(vb: &VarBuilder) -> Result<AnyNetwork> {
        Ok(Box::new(Self::new(&VggConfig::default(), vb)?))
    }
}

impl Network for Vgg {
    fn width(&self) -> usize {
        self.wide.last().map_or(0, |(_, bias)| bias.elem_count())
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for stage in &self.stages {
            for conv in stage {
                x = conv.forward(&x)?;
            }
            x = max_pool(&x, Window::square(2, 2, 0))?;
        }
        let mut x = x.flatten_from(1)?;
        for (weight, bias) in &self.wide {
            x = x.matmul(weight)?.broadcast_add(bias)?.relu()?;
        }
        Ok(x)
    }
}
