//! In-place optimiser steps.
//!
//! [`Adam`] changes parameters where they lie, in two passes over memory, without a temporary per operation.
//! Gradients are clipped by a factor inside the step: [`gradient_norm`] measures, [`clip_factor`] says how much is too much.

mod adam;
mod clip;

pub use adam::{Adam, AdamConfig, Group, WeightDecay};
#[cfg(feature = "cuda")]
pub(crate) use adam::{MoveParameter, UpdateMeans};
pub use clip::{clip_factor, gradient_norm};
