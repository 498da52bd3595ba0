//! Optimiser steps.
//!
//! [`Adam`] changes parameters where they lie, in two passes over memory, without a temporary per operation; [`Sgd`] is
//! plain descent with momentum. Gradients are kept within bounds first: [`Clip`] says how.

mod adam;
mod clip;
mod sgd;

use std::collections::HashMap;

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};

pub use adam::{Adam, AdamConfig};
#[cfg(feature = "cuda")]
pub(crate) use adam::{MoveParameter, UpdateMeans};
pub use clip::{Clip, clip_factor, gradient_norm};
pub use sgd::Sgd;

/// What pulls parameters towards 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WeightDecay {
    /// Part of the gradient (Adam, descent).
    InGradient(f64),
    /// A part of the parameter per step, times the learning rate (`AdamW`).
    Decoupled(f64),
}

/// Parameters that learn at another rate or decay otherwise. The longest prefix that fits a name decides.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// How the names begin.
    pub prefix: String,
    /// What the learning rate is multiplied by.
    pub rate: f64,
    /// Instead of the optimiser's own.
    pub weight_decay: WeightDecay,
}

/// The factor on the rate and the decay of one parameter.
fn share_of(name: &str, groups: &[Group], weight_decay: WeightDecay) -> (f64, WeightDecay) {
    let fits = groups.iter().filter(|group| name.starts_with(&group.prefix));
    let group = fits.max_by_key(|group| group.prefix.len());
    group.map_or((1.0, weight_decay), |group| (group.rate, group.weight_decay))
}

/// What changes parameters by their gradients.
pub trait Optimise: std::fmt::Debug + Send {
    /// The parameters it changes.
    fn parameters(&self) -> Vec<&Var>;

    /// From now on the learning rate of each parameter is multiplied by what `factor` says for its name.
    fn set_rates(&mut self, factor: &dyn Fn(&str) -> f64);

    /// One step at `learning_rate` with every gradient multiplied by `factor` (see [`Clip::apply`]; 1 for none).
    /// Parameters without a gradient stay as they are.
    ///
    /// # Errors
    /// When a gradient has another shape or type than its parameter.
    fn step(&mut self, gradients: &GradStore, learning_rate: f64, factor: f64) -> Result<()>;

    /// Everything that the next step depends on besides the parameters, by name.
    ///
    /// # Errors
    /// When memory runs out.
    fn state(&self) -> Result<Vec<(String, Tensor)>>;

    /// Puts back what [`Optimise::state`] gave.
    ///
    /// # Errors
    /// When a tensor is missing, misshaped or of the wrong type; nothing is changed then.
    fn load_state(&mut self, state: &HashMap<String, Tensor>) -> Result<()>;
}

impl Optimise for Adam {
    fn parameters(&self) -> Vec<&Var> {
        Self::parameters(self).collect()
    }

    fn set_rates(&mut self, factor: &dyn Fn(&str) -> f64) {
        Self::set_rates(self, factor);
    }

    fn step(&mut self, gradients: &GradStore, learning_rate: f64, factor: f64) -> Result<()> {
        Self::step(self, gradients, learning_rate, factor)
    }

    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        Self::state(self)
    }

    fn load_state(&mut self, state: &HashMap<String, Tensor>) -> Result<()> {
        Self::load_state(self, state)
    }
}
