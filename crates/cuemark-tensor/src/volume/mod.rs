//! Convolutions and pooling over stacks of pictures, for networks that only answer: nothing here has a gradient.
//!
//! A volume is `[batch, times, height, width, channels]`, a picture the case of one time. With the channels last, what
//! a row of the kernel reads lies side by side in memory, so a convolution is a few matrix products on its input as it
//! is, and nothing has to be gathered first. The most common ones, of three by three places, are turned so that they take a
//! quarter of the products.

mod conv;
#[cfg(feature = "cuda")]
mod cuda;
mod depthwise;
mod lines;
mod pool;
mod window;
mod winograd;

pub use conv::VolumeConv;
pub use depthwise::DepthwiseConv;
pub use pool::max_pool;
pub use window::{Padding, Window};

/// What becomes of a number at the end of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// It stays.
    None,
    /// `max(x, 0)`
    Relu,
    /// `min(max(x, 0), 6)`
    Relu6,
}

impl Activation {
    /// The smallest and the largest number that can come out.
    fn range(self) -> (f32, f32) {
        match self {
            Self::None => (f32::NEG_INFINITY, f32::INFINITY),
            Self::Relu => (0.0, f32::INFINITY),
            Self::Relu6 => (0.0, 6.0),
        }
    }
}

#[cfg(test)]
mod against_loops;
