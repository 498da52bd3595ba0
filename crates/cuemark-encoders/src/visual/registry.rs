//! Every visual encoder by name.

use candle_core::Result;
use cuemark_media::{Filter, Framing};
use cuemark_tensor::VarBuilder;

use super::{AnyNetwork, C3d, ClipVision, EfficientNetLite, I3d, Pixels, ResNet, Sampling, SlowFast, Vgg};

/// How the rows of a clip's pictures become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// Their mean.
    Mean,
    /// The largest of each number.
    Max,
}

/// What a network looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// All frames of a clip together.
    Clip,
    /// Each frame by itself; their rows are pooled.
    Frames(Pool),
}

/// One visual encoder.
pub struct EncoderCard {
    /// What one types.
    pub name: &'static str,
    /// What it is and what its rows are for, in one line.
    pub about: &'static str,
    /// Its weights in the registry of weights; `None` when the user has to name a file.
    pub weights: Option<&'static str>,
    /// Which frames it gets unless told otherwise.
    pub sampling: Sampling,
    /// What it makes of their bytes.
    pub pixels: Pixels,
    /// What it looks at.
    pub looks: Looks,
    /// Makes the network.
    pub make: fn(&VarBuilder<'static>) -> Result<AnyNetwork>,
}

/// The middle 224 of a picture whose shorter side is 256: what most networks were tested on.
const MIDDLE_224: Framing = Framing::CentreCrop { short_side: 256, crop: 224, filter: Filter::Bilinear };

/// Every visual encoder that is one network, in the order the documentation lists them.
pub static ENCODERS: &[EncoderCard] = &[
    EncoderCard {
        name: "i3d",
        about: "actions, Kinetics-400: 1024 numbers before the classifier; 24 frames a row at 24 a second, as for Charades-STA",
        weights: Some("i3d"),
        sampling: Sampling { fps: 24.0, frames: 24, stride: 24, framing: MIDDLE_224 },
        pixels: Pixels::SIGNED,
        looks: Looks::Clip,
        make: I3d::features,
    },
    EncoderCard {
        name: "i3d-logits",
        about: "actions, Kinetics-400: the logits of the 400 classes, before the softmax",
        weights: Some("i3d"),
        sampling: Sampling { fps: 24.0, frames: 24, stride: 24, framing: MIDDLE_224 },
        pixels: Pixels::SIGNED,
        looks: Looks::Clip,
        make: I3d::logits,
    },
    EncoderCard {
        name: "c3d",
        about: "motion, Sports-1M: 4096 numbers of fc6; 16 frames, 8 apart, at 16 a second",
        weights: None,
        sampling: Sampling {
            fps: 16.0,
            frames: 16,
            stride: 8,
            framing: Framing::CentreCrop { short_side: 128, crop: 112, filter: Filter::Bilinear },
        },
        // Bytes less the mean colour of Sports-1M.
        pixels: Pixels { mean: [0.397_7, 0.383, 0.353_9], deviation: [1.0 / 255.0; 3] },
        looks: Looks::Clip,
        make: C3d::network,
    },
    EncoderCard {
        name: "slowfast",
        about: "actions, Kinetics-400, R50 8x8: 2304 numbers; 32 frames at 15 a second, 1 row per 2 s, as for QVHighlights",
        weights: None,
        sampling: Sampling { fps: 15.0, frames: 32, stride: 30, framing: MIDDLE_224 },
        pixels: Pixels { mean: [0.45; 3], deviation: [0.225; 3] },
        looks: Looks::Clip,
        make: SlowFast::network,
    },
    EncoderCard {
        name: "vgg16-fc6",
        about: "objects, ImageNet: 4096 numbers of fc6; 5 rows a second, as for DiDeMo",
        weights: None,
        sampling: Sampling { fps: 5.0, frames: 1, stride: 1, framing: MIDDLE_224 },
        pixels: Pixels::IMAGENET,
        looks: Looks::Frames(Pool::Mean),
        make: Vgg::fc6,
    },
    EncoderCard {
        name: "vgg16-fc7",
        about: "objects, ImageNet: 4096 numbers of fc7; 5 rows a second, as for DiDeMo",
        weights: None,
        sampling: Sampling { fps: 5.0, frames: 1, stride: 1, framing: MIDDLE_224 },
        pixels: Pixels::IMAGENET,
        looks: Looks::Frames(Pool::Mean),
        make: Vgg::fc7,
    },
    EncoderCard {
        name: "resnet50",
        about: "objects, ImageNet: 2048 numbers before the classifier; 1 row a second",
        weights: None,
        sampling: Sampling { fps: 1.0, frames: 1, stride: 1, framing: MIDDLE_224 },
        pixels: Pixels::IMAGENET,
        looks: Looks::Frames(Pool::Max),
        make: ResNet::network_50,
    },
    EncoderCard {
        name: "resnet152",
        about: "objects, ImageNet: 2048 numbers before the classifier; 6 frames at 4 a second, the largest of each, as for TVR",
        weights: None,
        sampling: Sampling { fps: 4.0, frames: 6, stride: 6, framing: MIDDLE_224 },
        pixels: Pixels::IMAGENET,
        looks: Looks::Frames(Pool::Max),
        make: ResNet::network_152,
    },
    EncoderCard {
        name: "efficientnet-lite0",
        about: "objects, ImageNet: 1280 numbers before the classifier; 1 row a second; the fastest",
        weights: Some("efficientnet-lite0"),
        sampling: Sampling {
            fps: 1.0,
            frames: 1,
            stride: 1,
            framing: Framing::CentreCrop { short_side: 256, crop: 224, filter: Filter::Bicubic },
        },
        // Bytes less 127, divided by 128.
        pixels: Pixels { mean: [127.0 / 255.0; 3], deviation: [128.0 / 255.0; 3] },
        looks: Looks::Frames(Pool::Mean),
        make: EfficientNetLite::network,
    },
    EncoderCard {
        name: "clip",
        about: "pictures in one space with sentences, CLIP ViT-B/32: 512 numbers; 1 row per 2 s, as for QVHighlights",
        weights: Some("clip-vit-base-patch32"),
        sampling: Sampling {
            fps: 0.5,
            frames: 1,
            stride: 1,
            framing: Framing::CentreCrop { short_side: 224, crop: 224, filter: Filter::Bicubic },
        },
        pixels: Pixels::CLIP,
        looks: Looks::Frames(Pool::Mean),
        make: ClipVision::base,
    },
    EncoderCard {
        name: "clip-b16",
        about: "pictures in one space with sentences, CLIP ViT-B/16: 512 numbers; 1 row per 2 s; finds more than `clip`, takes longer",
        weights: Some("clip-vit-base-patch16"),
        sampling: Sampling {
            fps: 0.5,
            frames: 1,
            stride: 1,
            framing: Framing::CentreCrop { short_side: 224, crop: 224, filter: Filter::Bicubic },
        },
        pixels: Pixels::CLIP,
        looks: Looks::Frames(Pool::Mean),
        make: ClipVision::base,
    },
];
