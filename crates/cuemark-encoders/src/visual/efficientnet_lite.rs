//! EfficientNet-Lite0: EfficientNet-B0 without squeeze-and-excitation and with ReLU6, for small machines.
//! Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML 2019; the Lite variants are
//! Google's, 2020. Reads the names of the usual PyTorch port (`_conv_stem.weight`, `_blocks.0._depthwise_conv.weight`).

use candle_core::{D, Result};
use cuemark_tensor::volume::{Activation, DepthwiseConv, VolumeConv, Window};
use cuemark_tensor::{Tensor, VarBuilder};

use super::fold::{self, Norm};
use super::{AnyNetwork, Network};

const EPS: f64 = 1e-3;
/// Numbers before the classifier.
const WIDTH: usize = 1280;
const CLASSES: usize = 1000;

/// Stages: blocks, kernel, stride of the first, growth inside a block, channels.
const STAGES: [(usize, usize, usize, usize, usize); 7] = [
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
];

/// The network, with its classifier.
#[derive(Debug)]
pub struct EfficientNetLite {
    stem: VolumeConv,
    blocks: Vec<Block>,
    head: VolumeConv,
    /// `[1280, 1000]`
    classifier: Tensor,
    bias: Tensor,
}

/// One inverted bottleneck: widen, look around, narrow, add what came in where it fits.
#[derive(Debug)]
struct Block {
    widen: Option<VolumeConv>,
    around: DepthwiseConv,
    narrow: VolumeConv,
    adds_input: bool,
}

impl EfficientNetLite {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(vb: &VarBuilder) -> Result<Self> {
        let same = |kernel: usize, stride: usize| Window::same([1, kernel, kernel], [1, stride, stride]);
        let mut blocks = Vec::new();
        let mut channels = 32;
        for (count, kernel, first_stride, growth, out) in STAGES {
            for n in 0..count {
                let stride = if n == 0 { first_stride } else { 1 };
                let vb = vb.pp(format!("_blocks.{}", blocks.len()));
                let wide = channels * growth;
                let widen =
                    (growth > 1).then(|| point(&vb, ["_expand_conv", "_bn0"], [channels, wide], Activation::Relu6));
                let around = vb.get((wide, 1, kernel, kernel), "_depthwise_conv.weight")?;
                let norm = Norm::named(wide, EPS, &vb.pp("_bn1"))?;
                blocks.push(Block {
                    widen: widen.transpose()?,
                    around: fold::depthwise(&around, &norm, same(kernel, stride), Activation::Relu6)?,
                    narrow: point(&vb, ["_project_conv", "_bn2"], [wide, out], Activation::None)?,
                    adds_input: stride == 1 && channels == out,
                });
                channels = out;
            }
        }
        let stem = fold::channels_last(&vb.get((32, 3, 3, 3), "_conv_stem.weight")?)?;
        Ok(Self {
            stem: fold::conv(&stem, &Norm::named(32, EPS, &vb.pp("_bn0"))?, same(3, 2), Activation::Relu6)?,
            blocks,
            head: point(vb, ["_conv_head", "_bn1"], [channels, WIDTH], Activation::Relu6)?,
            classifier: vb.get((CLASSES, WIDTH), "_fc.weight")?.t()?.contiguous()?.detach(),
            bias: vb.get(CLASSES, "_fc.bias")?.detach(),
        })
    }

    /// What it sees in each picture, and what it takes it for.
    ///
    /// # Shapes
    /// - x `[batch, 1, 224, 224, 3]`
    /// - returns features `[batch, 1280]` and logits `[batch, 1000]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn features_and_logits(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let mut x = self.stem.forward(x)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        let features = self.head.forward(&x)?.mean((1, 2, 3))?;
        let logits = features.matmul(&self.classifier)?.broadcast_add(&self.bias)?;
        Ok((features, logits))
    }

    /// Probabilities of the classes: `[batch, 1000]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn probabilities(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax(&self.features_and_logits(x)?.1, D::Minus1)
    }

    pub(super) fn network(vb: &VarBuilder) -> Result<AnyNetwork> {
        Ok(Box::new(Self::new(vb)?))
    }
}

impl Network for EfficientNetLite {
    fn width(&self) -> usize {
        WIDTH
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.features_and_logits(x)?.0)
    }
}

impl Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let wide = match &self.widen {
            Some(widen) => widen.forward(x)?,
            None => x.clone(),
        };
        let y = self.narrow.forward(&self.around.forward(&wide)?)?;
        if self.adds_input { y + x } else { Ok(y) }
    }
}

/// A convolution of single places with its normalisation.
fn point(vb: &VarBuilder, [conv, norm]: [&str; 2], [c_in, c_out]: [usize; 2], then: Activation) -> Result<VolumeConv> {
    let kernel = fold::channels_last(&vb.pp(conv).get((c_out, c_in, 1, 1), "weight")?)?;
    fold::conv(&kernel, &Norm::named(c_out, EPS, &vb.pp(norm))?, Window::POINT, then)
}
