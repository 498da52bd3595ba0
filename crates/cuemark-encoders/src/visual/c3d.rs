//! C3D, up to fc6.
//! Tran et al., "Learning Spatiotemporal Features with 3D Convolutional Networks", ICCV 2015.
//!
//! Reads the names of the usual PyTorch port of the Sports-1M weights (`conv1.weight` … `fc6.weight`). The last pool is padded by
//! one pixel, as published.

use candle_core::Result;
use cuemark_tensor::volume::{Activation, Padding, VolumeConv, Window, max_pool};
use cuemark_tensor::{Tensor, VarBuilder};

use super::{AnyNetwork, Network, fold};

/// Sizes; the published ones by default.
#[derive(Debug, Clone)]
pub struct C3dConfig {
    /// Channels of the eight convolutions.
    pub channels: [usize; 8],
    /// Frames of a clip and pixels of a side of its pictures.
    pub extent: [usize; 2],
    /// Width of fc6.
    pub hidden: usize,
}

impl Default for C3dConfig {
    fn default() -> Self {
        Self { channels: [64, 128, 256, 256, 512, 512, 512, 512], extent: [16, 112], hidden: 4096 }
    }
}

/// Convolutions, and whether a pool follows.
const LAYERS: [(&str, bool); 8] = [
    ("conv1", true),
    ("conv2", true),
    ("conv3a", false),
    ("conv3b", true),
    ("conv4a", false),
    ("conv4b", true),
    ("conv5a", false),
    ("conv5b", true),
];

/// The network up to fc6, after its rectifier.
#[derive(Debug)]
pub struct C3d {
    layers: Vec<(VolumeConv, Option<Window>)>,
    /// `[inputs, hidden]`
    wide: Tensor,
    bias: Tensor,
}

impl C3d {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(cfg: &C3dConfig, vb: &VarBuilder) -> Result<Self> {
        let around = Window { kernel: [3; 3], stride: [1; 3], padding: Padding::Each([1; 3]) };
        let mut layers = Vec::new();
        let ([mut times, mut side], mut channels) = (cfg.extent, 3);
        for ((name, pooled), out) in LAYERS.into_iter().zip(cfg.channels) {
            let kernel = fold::channels_last(&vb.pp(name).get((out, channels, 3, 3, 3), "weight")?)?;
            let conv = VolumeConv::new(&kernel, &vb.pp(name).get(out, "bias")?, around, Activation::Relu)?;
            let pool = pooled.then_some(match name {
                "conv1" => Window { kernel: [1, 2, 2], stride: [1, 2, 2], padding: Padding::Each([0; 3]) },
                "conv5b" => Window { kernel: [2; 3], stride: [2; 3], padding: Padding::Each([0, 1, 1]) },
                _ => Window { kernel: [2; 3], stride: [2; 3], padding: Padding::Each([0; 3]) },
            });
            if pooled {
                times = if name == "conv1" { times } else { times / 2 };
                side = if name == "conv5b" { (side + 2) / 2 } else { side / 2 };
            }
            layers.push((conv, pool));
            channels = out;
        }
        let rest = times * side * side;
        let wide = vb.get((cfg.hidden, channels * rest), "fc6.weight")?;
        let bias = vb.get(cfg.hidden, "fc6.bias")?.detach();
        Ok(Self { layers, wide: fold::after_volume(&wide, channels, rest)?.detach(), bias })
    }

    pub(super) fn network(vb: &VarBuilder) -> Result<AnyNetwork> {
        Ok(Box::new(Self::new(&C3dConfig::default(), vb)?))
    }
}

impl Network for C3d {
    fn width(&self) -> usize {
        self.bias.elem_count()
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for (conv, pool) in &self.layers {
            x = conv.forward(&x)?;
            if let Some(window) = pool {
                x = max_pool(&x, *window)?;
            }
        }
        x.flatten_from(1)?.matmul(&self.wide)?.broadcast_add(&self.bias)?.relu()
    }
}
