//! What a run tells whoever watches it.

use indexmap::IndexMap;
use serde::Serialize;

use crate::OutOfReach;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The data is read and the network built.
    Started {
        /// Trainable parameters.
        parameters: usize,
        /// Training examples.
        examples: usize,
        /// Training moments that the model cannot meet.
        out_of_reach: OutOfReach,
        /// Steps of the whole run.
        steps: usize,
        /// Steps that were done before.
        done: usize,
    },
    /// A step was made.
    Step {
        /// Its number, from 1.
        step: usize,
        /// Its loss.
        loss: f64,
        /// Queries per second of the last steps.
        throughput: f64,
    },
    /// The validation split was answered and scored.
    Evaluated(Evaluated),
    /// Asked to stop: everything is saved.
    Stopped {
        /// The last step.
        step: usize,
    },
}

/// The score of the validation split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluated {
    /// Steps done.
    pub step: usize,
    /// Passes over the training split, of this stage.
    pub epoch: f64,
    /// The split.
    pub split: String,
    /// Its metrics, fractions.
    pub metrics: IndexMap<String, f64>,
    /// Their mean.
    pub score: f64,
    /// Whether it is the best so far.
    pub best: bool,
}

/// Whoever watches a run.
pub type Watch<'a> = &'a mut dyn FnMut(&Event);
