//! Comparing our networks with their references, tensor by tensor.
//!
//! A fixture holds a reference's weights, inputs, outputs, losses and gradients at small size (`docs/models.md` has the layout).
//! A model's `check` loads the weights by the reference's names, runs the inputs and returns a [`Trace`]; [`check`]
//! compares it with the fixture at the fixture's own tolerance.

mod compare;
mod fixture;
mod joint;
mod trace;

pub use compare::{ParityReport, TensorCheck, check};
pub use fixture::{Fixture, Tolerance};
pub(crate) use joint::Cut;
pub use trace::Trace;
