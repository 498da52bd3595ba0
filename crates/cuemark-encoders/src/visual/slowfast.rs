//! SlowFast R50 8×8: few frames at full width beside many frames at an eighth of it.
//! Feichtenhofer et al., "SlowFast Networks for Video Recognition", ICCV 2019.
//!
//! Up to the pooled row that QVHighlights and CONQUER read: 2048 numbers of the slow pathway, then 256 of the fast one. Reads
//! the names of PyTorchVideo (`blocks.0.multipathway_blocks.0.conv.weight`) and of PySlowFast (`s1.pathway0_stem.conv.weight`).

use candle_core::{D, Result};
use cuemark_tensor::volume::{Activation, Padding, VolumeConv, Window, max_pool};
use cuemark_tensor::{Tensor, VarBuilder};

use super::fold::{self, Norm};
use super::{AnyNetwork, Network};

const EPS: f64 = 1e-5;
/// The fast pathway sees so many times the frames of the slow one.
const FRAMES: usize = 4;
/// The slow pathway has so many times the channels of the fast one.
const CHANNELS: usize = 8;
/// Channels of the slow stem; a stage gives four times as many, the next ones twice that each.
const STEM: usize = 64;
/// Residual blocks of the four stages.
const BLOCKS: [usize; 4] = [3, 4, 6, 3];
/// The slow pathway looks along time only in the last two stages, the fast one in all.
const TIMES: [[usize; 4]; 2] = [[1, 1, 3, 3], [3; 4]];
/// The same of the stems.
const STEM_TIMES: [usize; 2] = [1, 5];
/// What is handed from the fast to the slow pathway looks at so many frames.
const HANDED_TIMES: usize = 7;

/// The network up to its pooled row.
#[derive(Debug)]
pub struct SlowFast {
    /// Slow, fast.
    stems: [VolumeConv; 2],
    /// What the slow pathway is given before each stage.
    handed: Vec<VolumeConv>,
    stages: Vec<[Vec<Block>; 2]>,
}

/// A bottleneck: narrow, look around, widen, add to what came in.
#[derive(Debug)]
struct Block {
    shortcut: Option<VolumeConv>,
    convs: [VolumeConv; 3],
}

impl SlowFast {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(vb: &VarBuilder) -> Result<Self> {
        let names =
            if vb.contains_tensor(&Names::PyTorchVideo.stem(0).conv) { Names::PyTorchVideo } else { Names::PySlowFast };
        let build = Build { vb, names };
        let stem = |pathway: usize| {
            let window = Window {
                kernel: [STEM_TIMES[pathway], 7, 7],
                stride: [1, 2, 2],
                padding: Padding::Each([STEM_TIMES[pathway] / 2, 3, 3]),
            };
            build.conv(&names.stem(pathway), [3, narrow(STEM, pathway)], window, Activation::Relu)
        };
        let stems = [stem(0)?, stem(1)?];
        let (mut handed, mut stages) = (Vec::new(), Vec::new());
        // What leaves the slow pathway before each stage.
        let mut width = STEM;
        for (stage, blocks) in BLOCKS.into_iter().enumerate() {
            let fast = width / CHANNELS;
            let window = Window {
                kernel: [HANDED_TIMES, 1, 1],
                stride: [FRAMES, 1, 1],
                padding: Padding::Each([HANDED_TIMES / 2, 0, 0]),
            };
            handed.push(build.conv(&names.handed(stage), [fast, 2 * fast], window, Activation::Relu)?);
            let inputs = [width + 2 * fast, fast];
            let inner = STEM << stage;
            let pathway = |pathway: usize| {
                let sizes = [narrow(inner, pathway), narrow(4 * inner, pathway)];
                let block = |number: usize| {
                    let input = if number == 0 { inputs[pathway] } else { sizes[1] };
                    build.block(Place { stage, pathway, number }, input, sizes)
                };
                (0..blocks).map(block).collect::<Result<Vec<_>>>()
            };
            stages.push([pathway(0)?, pathway(1)?]);
            width = 4 * inner;
        }
        Ok(Self { stems, handed, stages })
    }

    pub(super) fn network(vb: &VarBuilder) -> Result<AnyNetwork> {
        Ok(Box::new(Self::new(vb)?))
    }
}

/// Channels of a pathway, given those of the slow one.
fn narrow(channels: usize, pathway: usize) -> usize {
    if pathway == 0 { channels } else { channels / CHANNELS }
}

impl Network for SlowFast {
    fn width(&self) -> usize {
        let slow = STEM << (BLOCKS.len() + 1);
        slow + slow / CHANNELS
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let pool = Window::square(3, 2, 1);
        let begun = |stem: &VolumeConv, x: &Tensor| max_pool(&stem.forward(x)?, pool);
        let mut slow = begun(&self.stems[0], &every(x, FRAMES)?)?;
        let mut fast = begun(&self.stems[1], x)?;
        for (handed, [slow_blocks, fast_blocks]) in self.handed.iter().zip(&self.stages) {
            slow = Tensor::cat(&[&slow, &handed.forward(&fast)?], D::Minus1)?;
            slow = slow_blocks.iter().try_fold(slow, |x, block| block.forward(&x))?;
            fast = fast_blocks.iter().try_fold(fast, |x, block| block.forward(&x))?;
        }
        let pooled = |x: &Tensor| x.mean((1, 2, 3));
        Tensor::cat(&[pooled(&slow)?, pooled(&fast)?], 1)
    }
}

/// One frame of every `step`, from the first.
fn every(x: &Tensor, step: usize) -> Result<Tensor> {
    let frames: Vec<u32> = (0..x.dim(1)? as u32).step_by(step).collect();
    x.index_select(&Tensor::new(frames, x.device())?, 1)
}

impl Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let straight = match &self.shortcut {
            Some(shortcut) => shortcut.forward(x)?,
            None => x.clone(),
        };
        let [narrow, around, widen] = &self.convs;
        widen.forward_onto(&around.forward(&narrow.forward(x)?)?, &straight)
    }
}

/// Whose names the weights have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    PyTorchVideo,
    PySlowFast,
}

/// A residual block: stages, pathways and blocks count from 0.
#[derive(Debug, Clone, Copy)]
struct Place {
    stage: usize,
    pathway: usize,
    number: usize,
}

/// Where a kernel and its normalisation lie.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    conv: String,
    norm: String,
}

impl Names {
    fn stem(self, pathway: usize) -> Named {
        match self {
            Self::PyTorchVideo => named(&format!("blocks.0.multipathway_blocks.{pathway}"), "conv", "norm"),
            Self::PySlowFast => named(&format!("s1.pathway{pathway}_stem"), "conv", "bn"),
        }
    }

    /// What is handed over before a stage.
    fn handed(self, stage: usize) -> Named {
        match self {
            Self::PyTorchVideo => named(&format!("blocks.{stage}.multipathway_fusion"), "conv_fast_to_slow", "norm"),
            Self::PySlowFast => named(&format!("s{}_fuse", stage + 1), "conv_f2s", "bn"),
        }
    }

    fn shortcut(self, place: Place) -> Named {
        match self {
            Self::PyTorchVideo => named(&self.block(place), "branch1_conv", "branch1_norm"),
            Self::PySlowFast => named(&self.block(place), "branch1", "branch1_bn"),
        }
    }

    /// The convolution of a block called `a`, `b` or `c`.
    fn branch(self, place: Place, letter: char) -> Named {
        let branch = format!("{}.branch2", self.block(place));
        match self {
            Self::PyTorchVideo => named(&branch, &format!("conv_{letter}"), &format!("norm_{letter}")),
            Self::PySlowFast => named(&branch, &letter.to_string(), &format!("{letter}_bn")),
        }
    }

    fn block(self, Place { stage, pathway, number }: Place) -> String {
        match self {
            Self::PyTorchVideo => format!("blocks.{}.multipathway_blocks.{pathway}.res_blocks.{number}", stage + 1),
            Self::PySlowFast => format!("s{}.pathway{pathway}_res{number}", stage + 2),
        }
    }
}

fn named(prefix: &str, conv: &str, norm: &str) -> Named {
    Named { conv: format!("{prefix}.{conv}.weight"), norm: format!("{prefix}.{norm}") }
}

struct Build<'a> {
    vb: &'a VarBuilder<'a>,
    names: Names,
}

impl Build<'_> {
    /// A convolution with its normalisation.
    fn conv(
        &self,
        named: &Named,
        [c_in, c_out]: [usize; 2],
        window: Window,
        activation: Activation,
    ) -> Result<VolumeConv> {
        let [t, h, w] = window.kernel;
        let kernel = fold::channels_last(&self.vb.get((c_out, c_in, t, h, w), &named.conv)?)?;
        fold::conv(&kernel, &Norm::named(c_out, EPS, &self.vb.pp(&named.norm))?, window, activation)
    }

    /// A block from `input` channels through `inner` to `output`. The first one of every stage but the first halves the
    /// picture, in the convolution that looks around.
    fn block(&self, place: Place, input: usize, [inner, output]: [usize; 2]) -> Result<Block> {
        let stride = if place.number == 0 && place.stage > 0 { 2 } else { 1 };
        let times = TIMES[place.pathway][place.stage];
        let along = Window { kernel: [times, 1, 1], stride: [1; 3], padding: Padding::Each([times / 2, 0, 0]) };
        let conv = |letter, channels, window, activation| {
            self.conv(&self.names.branch(place, letter), channels, window, activation)
        };
        let shortcut = (place.number == 0).then(|| {
            let window = Window::square(1, stride, 0);
            self.conv(&self.names.shortcut(place), [input, output], window, Activation::None)
        });
        Ok(Block {
            shortcut: shortcut.transpose()?,
            convs: [
                conv('a', [input, inner], along, Activation::Relu)?,
                conv('b', [inner, inner], Window::square(3, stride, 1), Activation::Relu)?,
                conv('c', [inner, output], Window::POINT, Activation::Relu)?,
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_publishers_names_are_known() {
        let place = Place { stage: 2, pathway: 1, number: 5 };
        let both = |name: fn(Names, Place) -> Named, place| {
            [Names::PyTorchVideo, Names::PySlowFast].map(|names| name(names, place).conv)
        };
        assert_eq!(
            both(|names, place| names.branch(place, 'b'), place),
            ["blocks.3.multipathway_blocks.1.res_blocks.5.branch2.conv_b.weight", "s4.pathway1_res5.branch2.b.weight"]
        );
        assert_eq!(
            both(Names::shortcut, place),
            ["blocks.3.multipathway_blocks.1.res_blocks.5.branch1_conv.weight", "s4.pathway1_res5.branch1.weight"]
        );
        assert_eq!(Names::PySlowFast.handed(0).norm, "s1_fuse.bn");
        assert_eq!(Names::PyTorchVideo.handed(3).conv, "blocks.3.multipathway_fusion.conv_fast_to_slow.weight");
    }
}
