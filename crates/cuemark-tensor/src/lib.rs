//! The one place that knows what a tensor runs on.
//!
//! - [`device`] chooses CPU or GPU by name;
//! - [`Params`] holds a network's parameters under the names of its published code: drawn from a seed, loaded from a
//!   checkpoint, or merely counted;
//! - [`attend`], [`linear()`] and [`layer_norm()`] are the parts of a transformer, each as one operation with a gradient, as is
//!   [`batch_norm()`] on the CPU;
//! - [`functional`] has the composed operations that candle lacks or offers without a gradient;
//! - [`known`] is a number that was worked out on the host, with its gradient;
//! - [`map`] computes convolutions on the valid cells of a start × end map alone;
//! - [`MatrixProduct`] multiplies matrices however they lie in memory;
//! - [`on_threads`] runs many small operations without waking threads for each, [`step_on_threads`] a step of training;
//! - [`recurrent`] runs LSTM and GRU layers as one operation;
//! - [`vectorised`] runs a loop with the widest instructions of the machine;
//! - [`volume`] convolves and pools stacks of pictures, for networks that only answer;
//! - [`optim`] steps parameters in place.

#[cfg(test)]
mod against;
mod attention;
mod batch_norm;
mod device;
mod dropout;
pub mod functional;
mod gelu;
mod gradients;
#[cfg(feature = "cuda")]
pub mod kernels;
mod known;
mod layer_norm;
mod linear;
mod look_up;
pub mod map;
mod matrix;
pub mod optim;
mod params;
mod pass;
mod prelu;
mod product;
pub mod recurrent;
mod residual;
mod slices;
mod softmax;
mod sums;
mod threads;
mod unit_rows;
mod vectorised;
pub mod volume;
mod zeros;

pub use attention::{Heads, attend};
pub use batch_norm::{Normalised, Normalising, batch_norm};
pub use candle_core::{DType, Device, Tensor, Var};
pub use candle_nn::{Init, VarBuilder};
pub use device::{Precision, UnknownDevice, device, set_precision};
pub use gradients::gradients;
pub use known::known;
pub use layer_norm::layer_norm;
pub use linear::{Bend, Part, linear};
pub use look_up::look_up;
pub use params::Params;
pub use pass::Pass;
pub use product::MatrixProduct;
pub use threads::{add_gradients, on_threads, step_on_threads};
pub use vectorised::vectorised;
