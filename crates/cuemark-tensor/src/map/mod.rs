//! Convolutions on the valid cells of a start × end map.
//!
//! A map of N × N squares has few cells that stand for a span we score. [`MapLayout`] says which, [`span_max`] fills
//! them from clips, [`StackPlan`] says which cells each layer of a masked convolution stack needs to give exactly what
//! the dense stack gives, and [`map_conv`] and [`map_conv_relu`] compute a layer on those cells, `[batch, cells, width]`.

#[cfg(test)]
mod against_dense;
mod conv;
#[cfg(feature = "cuda")]
mod cuda;
mod error;
mod layout;
mod plan;
mod product;
mod rows;
mod span_max;

pub(crate) use conv::numbers;
pub use conv::{map_conv, map_conv_relu};
pub use error::MapError;
pub use layout::{FillStep, MapLayout};
pub use plan::{CellsComputed, LayerPlan, StackPlan, Support};
pub use span_max::span_max;
