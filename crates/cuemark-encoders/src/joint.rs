//! Encoders of clips and of sentences whose vectors lie in one space.

use crate::concepts::Concepts;
use crate::text::{self, TextEncoder};
use crate::visual::{self, ClipEncoder, EncoderOptions};
use crate::{EncodeError, Names, Result, weights};

/// The names that [`joint`] takes.
pub const JOINT: [&str; 2] = [Concepts::NAME, "clip"];

/// Two encoders of one space: compare their vectors by cosine.
pub struct Joint {
    /// Sentences.
    pub text: Box<dyn TextEncoder>,
    /// Clips.
    pub clips: Box<dyn ClipEncoder>,
    /// The names that rows of clips are made of; none where they are not made of names.
    pub names: Names,
}

/// The side of sentences alone: what rows in a store are compared with.
///
/// # Errors
/// As [`joint`].
pub fn joint_text(name: &str, options: &EncoderOptions) -> Result<Box<dyn TextEncoder>> {
    let folder = match (name, &options.weights) {
        (Concepts::NAME, _) => options.locate("minilm")?,
        ("clip", Some(path)) => weights::open(path.as_str())?,
        ("clip", None) => options.locate("clip-vit-base-patch32")?,
        _ => return Err(EncodeError::NoEncoder { name: name.to_owned(), present: JOINT.join(", ") }),
    };
    text::from_folder(&folder, &options.device)
}

/// Both sides of a space by name: `concepts` needs no network that was trained to share one, `clip` is CLIP ViT-B/32.
///
/// # Errors
/// When there is none of that name, or weights are not here or damaged.
pub fn joint(name: &str, options: &EncoderOptions) -> Result<Joint> {
    match name {
        Concepts::NAME => {
            let needed = ["i3d", "efficientnet-lite0", "minilm"];
            let absent = |name: &&str| matches!(options.locate(name), Err(EncodeError::NotPulled { .. }));
            let names: Vec<&'static str> = needed.into_iter().filter(absent).collect();
            if !names.is_empty() {
                return Err(EncodeError::NotAllPulled { encoder: Concepts::NAME, names });
            }
            let text = joint_text(name, options)?;
            let clips = Concepts::new(text.as_ref(), options)?;
            let names = clips.names()?;
            Ok(Joint { text, clips: Box::new(clips), names })
        }
        "clip" => {
            let text = joint_text(name, options)?;
            Ok(Joint { text, clips: visual::open("clip", options)?, names: Names::default() })
        }
        _ => Err(EncodeError::NoEncoder { name: name.to_owned(), present: JOINT.join(", ") }),
    }
}
