//! Frames as rows: one feature row per clip.
//!
//! [`ENCODERS`] lists what there is, [`open`] makes one of it by name. Each published network has a file of its own; what they
//! share is how pictures reach them ([`Clips`], [`Pixels`]) and how their recipe is written down ([`Sampling`]).

mod c3d;
mod clip;
mod clips;
mod efficientnet_lite;
mod encoder;
mod fold;
mod i3d;
mod pixels;
mod registry;
mod resnet;
mod sampling;
mod slowfast;
mod vgg;
mod world_eyes;

pub use c3d::{C3d, C3dConfig};
pub use clip::ClipVision;
pub use clips::{Clips, Part};
pub use efficientnet_lite::EfficientNetLite;
pub use encoder::{EncoderOptions, NetworkEncoder, fingerprint, open};
pub(crate) use encoder::{check, recipe, unfit};
pub use i3d::I3d;
pub use pixels::Pixels;
pub use registry::{ENCODERS, EncoderCard, Looks, Pool};
pub use resnet::ResNet;
pub use sampling::Sampling;
pub use slowfast::SlowFast;
pub use vgg::{Vgg, VggConfig};
pub use world_eyes::WorldEyes;

use cuemark_features::Recipe;
use cuemark_tensor::Tensor;

use crate::Result;

/// Pictures that an encoder is given in one call where it does not say otherwise.
const PICTURES_AT_ONCE: usize = 64;

/// Turns clips of a video into rows of one width.
pub trait ClipEncoder: Send + Sync {
    /// What it is called in recipes and `--encoder`.
    fn name(&self) -> &str;

    /// Numbers per row.
    fn width(&self) -> usize;

    /// Which frames make a clip, and what size their pictures have.
    fn sampling(&self) -> Sampling;

    /// How its rows are made: what a store's header says.
    fn recipe(&self) -> Recipe;

    /// So many pictures are best given to it in one call: enough to keep what it runs on busy. Default: 64
    fn pictures_at_once(&self) -> usize {
        PICTURES_AT_ONCE
    }

    /// One row per clip, in the given order. A clip's row does not depend on what else is in the call.
    ///
    /// # Errors
    /// When the clips are not as [`ClipEncoder::sampling`] says, or a tensor operation fails.
    fn encode(&self, clips: &Clips) -> Result<Vec<Vec<f32>>>;
}

/// A network that makes rows of volumes.
pub trait Network: Send + Sync {
    /// Numbers per row.
    fn width(&self) -> usize;

    /// # Shapes
    /// - x `[batch, frames, height, width, 3]`, as the network's [`Pixels`] say
    /// - returns `[batch, width]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn forward(&self, x: &Tensor) -> candle_core::Result<Tensor>;
}

/// A network behind a pointer, as registry cards make them.
pub type AnyNetwork = Box<dyn Network>;
