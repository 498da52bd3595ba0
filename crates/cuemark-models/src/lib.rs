//! Published moment-retrieval methods: one file or folder each in `zoo/`, one line each in [`registry`], and every one checked
//! against its reference by [`check`]. Layers and losses are the crate's own; what a trainer needs of them is named below.
//!
//! A [`Model`] reads a [`Batch`] and gives a [`Loss`] to train on or ranked [`Proposal`]s to answer with. It knows no
//! files, no seconds and no metrics: the trainer brings the features, and evaluators read what it predicted.

// candle's constructors take the `VarBuilder` by value, and so do all of ours: a caller writes `vb.pp("name")` for either.
#![allow(clippy::needless_pass_by_value)]
// `zoo`, `layers` and `losses` are private, so that `pub` in them means "for the crate": a `pub(crate)` on each of their
// thousand names would say so again and again.
#![allow(unreachable_pub)]

mod apart;
mod batch;
mod card;
pub mod check;
mod error;
mod joint;
mod layers;
mod losses;
mod model;
pub mod registry;
#[cfg(test)]
pub(crate) mod testing;
mod towers;
pub mod weights;
mod zoo;

pub use apart::{Apart, Sharing, differentiate};
pub use batch::{Batch, Negatives, Phrases, QueryBatch, Targets, VideoBatch};
pub use card::{Family, FullSize, ModelCard, ModelSettings, Supervision, Task};
pub use error::{ModelError, Result};
pub use joint::{ClipLabels, ClipPairs, ClipStretch, JointTargets, JointTruth, RatedClip};
pub use layers::{Bert, BertFamily, BertSize, EndClip, TokenVectors, WordTable, real_steps};
pub use losses::Sampling;
pub use model::{
    BatchAnswers, BatchBy, BiEncoder, Code, Corpus, Given, Grid, HardNegatives, Input, Loss, Model, Moments, Proposal,
    Text, VideoAnswer, suppress,
};
pub use towers::Towers;
