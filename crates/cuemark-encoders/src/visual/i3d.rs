//! I3D: an Inception network inflated to three dimensions.
//! Carreira and Zisserman, "Quo Vadis, Action Recognition? A New Model and the Kinetics Dataset", CVPR 2017.
//!
//! The RGB stream, as published with Sonnet (batch normalisation without scale, padding as TensorFlow does). Reads the names of the
//! Flax port (`params/Conv3d_1a_7x7/Conv_0/kernel`) and of the usual PyTorch port (`Conv3d_1a_7x7.conv3d.weight`).

use candle_core::{D, Result};
use cuemark_tensor::volume::{Activation, VolumeConv, Window, max_pool};
use cuemark_tensor::{Tensor, VarBuilder};

use super::fold::{self, Norm};
use super::{AnyNetwork, Network};

/// Numbers before the classifier.
const WIDTH: usize = 1024;
const EPS: f64 = 1e-3;

/// The network, with its classifier.
#[derive(Debug)]
pub struct I3d {
    steps: Vec<Step>,
    /// `[1024, classes]`
    classifier: Tensor,
    bias: Tensor,
}

#[derive(Debug)]
enum Step {
    Conv(VolumeConv),
    Pool(Window),
    Mixed(Box<Mixed>),
}

/// One Inception block: four branches side by side.
#[derive(Debug)]
struct Mixed {
    point: VolumeConv,
    first: [VolumeConv; 2],
    second: [VolumeConv; 2],
    pooled: VolumeConv,
}

/// Channels of a block's six convolutions, in the order of the branches.
type Channels = [usize; 6];

/// The blocks and the pools between them, in order.
const BLOCKS: [(&str, Channels); 9] = [
    ("Mixed_3b", [64, 96, 128, 16, 32, 32]),
    ("Mixed_3c", [128, 128, 192, 32, 96, 64]),
    ("Mixed_4b", [192, 96, 208, 16, 48, 64]),
    ("Mixed_4c", [160, 112, 224, 24, 64, 64]),
    ("Mixed_4d", [128, 128, 256, 24, 64, 64]),
    ("Mixed_4e", [112, 144, 288, 32, 64, 64]),
    ("Mixed_4f", [256, 160, 320, 32, 128, 128]),
    ("Mixed_5b", [256, 160, 320, 32, 128, 128]),
    ("Mixed_5c", [384, 192, 384, 48, 128, 128]),
];

/// Whose names the weights have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Flax,
    PyTorch,
}

/// The convolutions of a block: Flax's name, PyTorch's.
const BRANCHES: [(&str, &str); 6] = [
    ("Branch_0/Conv3d_0a_1x1", "b0"),
    ("Branch_1/Conv3d_0a_1x1", "b1a"),
    ("Branch_1/Conv3d_0b_3x3", "b1b"),
    ("Branch_2/Conv3d_0a_1x1", "b2a"),
    ("Branch_2/Conv3d_0b_3x3", "b2b"),
    ("Branch_3/Conv3d_0b_1x1", "b3b"),
];

impl I3d {
    /// For `classes` classes.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(classes: usize, vb: &VarBuilder) -> Result<Self> {
        let names = if vb.contains_tensor("Conv3d_1a_7x7.conv3d.weight") { Names::PyTorch } else { Names::Flax };
        let build = Build { vb, names };
        let conv = |name: &str, channels, kernel, stride| {
            build.conv((name, name), channels, Window::same(kernel, stride)).map(Step::Conv)
        };
        let mut steps = vec![
            conv("Conv3d_1a_7x7", [3, 64], [7; 3], [2; 3])?,
            Step::Pool(Window::same([1, 3, 3], [1, 2, 2])),
            conv("Conv3d_2b_1x1", [64, 64], [1; 3], [1; 3])?,
            conv("Conv3d_2c_3x3", [64, 192], [3; 3], [1; 3])?,
            Step::Pool(Window::same([1, 3, 3], [1, 2, 2])),
        ];
        let mut channels = 192;
        for (name, [a, b, c, d, e, f]) in BLOCKS {
            match name {
                "Mixed_4b" => steps.push(Step::Pool(Window::same([3; 3], [2; 3]))),
                "Mixed_5b" => steps.push(Step::Pool(Window::same([2; 3], [2; 3]))),
                _ => {}
            }
            let unit = |branch: usize, channels: [usize; 2], kernel: usize| {
                let (flax, torch) = BRANCHES[branch];
                let named = (format!("{name}/{flax}"), format!("{name}.{torch}"));
                build.conv((&named.0, &named.1), channels, Window::same([kernel; 3], [1; 3]))
            };
            steps.push(Step::Mixed(Box::new(Mixed {
                point: unit(0, [channels, a], 1)?,
                first: [unit(1, [channels, b], 1)?, unit(2, [b, c], 3)?],
                second: [unit(3, [channels, d], 1)?, unit(4, [d, e], 3)?],
                pooled: unit(5, [channels, f], 1)?,
            })));
            channels = a + c + e + f;
        }
        let (classifier, bias) = match names {
            Names::Flax => {
                let of = |last: &str| format!("params/Logits/Conv3d_0c_1x1/Conv_0/{last}");
                (vb.get((1, 1, 1, WIDTH, classes), &of("kernel"))?, vb.get(classes, &of("bias"))?)
            }
            Names::PyTorch => {
                let kernel = vb.get((classes, WIDTH, 1, 1, 1), "logits.conv3d.weight")?;
                (fold::channels_last(&kernel)?, vb.get(classes, "logits.conv3d.bias")?)
            }
        };
        Ok(Self { steps, classifier: classifier.reshape((WIDTH, classes))?.detach(), bias: bias.detach() })
    }

    /// What it sees in each clip, and what it takes it for.
    ///
    /// # Shapes
    /// - x `[batch, frames, 224, 224, 3]`, -1 to 1
    /// - returns features `[batch, 1024]` and logits `[batch, classes]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn features_and_logits(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let mut x = x.clone();
        for step in &self.steps {
            x = match step {
                Step::Conv(conv) => conv.forward(&x)?,
                Step::Pool(window) => max_pool(&x, *window)?,
                Step::Mixed(mixed) => mixed.forward(&x)?,
            };
        }
        // The published pool averages two times at once before everything is averaged: the first and the last time count half.
        let times = x.dim(1)?;
        let x = x.mean((2, 3))?; // [batch, times, 1024]
        let x = if times > 1 { ((x.narrow(1, 0, times - 1)? + x.narrow(1, 1, times - 1)?)? / 2.0)? } else { x };
        let features = x.mean(1)?;
        let logits = features.matmul(&self.classifier)?.broadcast_add(&self.bias)?;
        Ok((features, logits))
    }

    /// Probabilities of the classes: `[batch, classes]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn probabilities(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax(&self.features_and_logits(x)?.1, D::Minus1)
    }

    pub(super) fn features(vb: &VarBuilder) -> Result<AnyNetwork> {
        Ok(Box::new(Features(Self::new(classes(vb)?, vb)?)))
    }

    pub(super) fn logits(vb: &VarBuilder) -> Result<AnyNetwork> {
        Ok(Box::new(Logits(Self::new(classes(vb)?, vb)?)))
    }
}

/// Kinetics-400 has 400; ports that were trained further have as many as their classifier.
fn classes(vb: &VarBuilder) -> Result<usize> {
    if vb.contains_tensor("logits.conv3d.bias") { vb.get_unchecked("logits.conv3d.bias")?.dim(0) } else { Ok(400) }
}

struct Features(I3d);

impl Network for Features {
    fn width(&self) -> usize {
        WIDTH
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.0.features_and_logits(x)?.0)
    }
}

struct Logits(I3d);

impl Network for Logits {
    fn width(&self) -> usize {
        self.0.bias.elem_count()
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.0.features_and_logits(x)?.1)
    }
}

impl Mixed {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let chain = |convs: &[VolumeConv; 2]| convs[1].forward(&convs[0].forward(x)?);
        let pooled = max_pool(x, Window::same([3; 3], [1; 3]))?;
        let branches =
            [self.point.forward(x)?, chain(&self.first)?, chain(&self.second)?, self.pooled.forward(&pooled)?];
        Tensor::cat(&branches, D::Minus1)
    }
}

struct Build<'a> {
    vb: &'a VarBuilder<'a>,
    names: Names,
}

impl Build<'_> {
    /// A convolution with its normalisation and a rectifier, by its name in either port.
    fn conv(&self, (flax, torch): (&str, &str), [c_in, c_out]: [usize; 2], window: Window) -> Result<VolumeConv> {
        let [t, h, w] = window.kernel;
        let (kernel, norm) = match self.names {
            Names::Flax => {
                let kernel = self.vb.get((t, h, w, c_in, c_out), &format!("params/{flax}/Conv_0/kernel"))?;
                let bias = self.vb.get(c_out, &format!("params/{flax}/BatchNorm_0/bias"))?;
                // Statistics were kept as volumes of one place.
                let of = |last: &str| {
                    let name = format!("batch_stats/{flax}/BatchNorm_0/{last}");
                    self.vb.get((1, 1, 1, 1, c_out), &name)?.flatten_all()
                };
                (kernel, Norm::new(None, &bias, &of("mean")?, &of("var")?, EPS)?)
            }
            Names::PyTorch => {
                let kernel = self.vb.get((c_out, c_in, t, h, w), &format!("{torch}.conv3d.weight"))?;
                (fold::channels_last(&kernel)?, Norm::named(c_out, EPS, &self.vb.pp(torch).pp("bn"))?)
            }
        };
        fold::conv(&kernel, &norm, window, Activation::Relu)
    }
}
