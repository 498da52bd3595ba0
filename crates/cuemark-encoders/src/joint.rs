//! Encoders of clips and of sentences whose vectors lie in one space.

use crate::concepts::Concepts;
use crate::text::{self, TextEncoder};
use crate::visual::{self, ClipEncoder, EncoderOptions};
use crate::{EncodeError, Result, weights};

/// The names that [`joint`] takes.
pub const JOINT: [&str; 2] = [Concepts::NAME, "clip"];

/// Two encoders of one space: compare their vectors by cosine.
pub struct Joint {
    /// Sentences.
    pub text: Box<dyn TextEncoder>,
    /// Clips.
    pub clips: Box<dyn ClipEncoder>,
}

/// Both sides of a space by name: `concepts` needs no network that was trained to share one, `clip` is CLIP ViT-B/32.
///
/// # Errors
/// When there is none of that name, or weights are not here or damaged.
pub fn joint(name: &str, options: &EncoderOptions) -> Result<Joint> {
    match name {
        Concepts::NAME => {
            let text = text::from_folder(&options.locate("minilm")?, &options.device)?;
            let clips = Concepts::new(text.as_ref(), options)?;
            Ok(Joint { text, clips: Box::new(clips) })
        }
        "clip" => {
            let folder = match &options.weights {
                Some(path) => weights::open(path.as_str())?,
                None => options.locate("clip-vit-base-patch32")?,
            };
            Ok(Joint { text: text::from_folder(&folder, &options.device)?, clips: visual::open("clip", options)? })
        }
        _ => Err(EncodeError::NoEncoder { name: name.to_owned(), present: JOINT.join(", ") }),
    }
}
