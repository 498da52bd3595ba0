//! Published text and image encoders, their weights, and what they make of sentences and videos.
//!
//! [`weights`] knows which weights exist, where they lie on this machine and how to get them. [`text`] turns sentences into
//! vectors, [`visual`] turns frames into one row per clip. Two encoders whose rows lie in one space ([`joint`](joint())) can be
//! compared by cosine: that is what search and the pool protocol stand on. [`extract`] makes rows of video files.

pub mod classes;
pub mod concepts;
mod error;
pub mod extract;
mod joint;
mod matching;
mod names;
pub mod text;
pub mod visual;
pub mod weights;

pub use concepts::Concepts;
pub use error::{EncodeError, Result};
pub use joint::{AUTO, JOINT, Joint, best_joint, check_pulled, joint, joint_clips, joint_names, joint_text};
pub use matching::VideoMatching;
pub use names::{Names, Part};
pub use text::TextEncoder;
pub use visual::ClipEncoder;
