//! The one place that knows what a tensor runs on.
//!
//! - [`device`] chooses CPU or GPU by name;
//! - [`Params`] holds a network's parameters under the names of its published code: drawn from a seed, loaded from a
//!   checkpoint, or merely counted;
//! - [`functional`] has the composed operations that candle lacks or offers without a gradient;
//! - [`map`] computes convolutions on the valid cells of a start × end map alone;
//! - [`MatrixProduct`] multiplies matrices however they lie in memory;
//! - [`recurrent`] runs LSTM and GRU layers as one operation;
//! - [`vectorised`] runs a loop with the widest instructions of the machine;
//! - [`volume`] convolves and pools stacks of pictures, for networks that only answer;
//! - [`optim`] steps parameters in place.

mod device;
mod dropout;
pub mod functional;
#[cfg(feature = "cuda")]
pub mod kernels;
pub mod map;
mod matrix;
pub mod optim;
mod params;
mod pass;
mod product;
pub mod recurrent;
mod softmax;
mod vectorised;
pub mod volume;

pub use candle_core::{DType, Device, Tensor, Var};
pub use candle_nn::{Init, VarBuilder};
pub use device::{Precision, UnknownDevice, device, set_precision};
pub use params::Params;
pub use pass::Pass;
pub use product::MatrixProduct;
pub use vectorised::vectorised;
