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

/// The names that rows of the space `name` are made of: `kept`, as [`Names::to_bytes`] wrote them, where they are the same, or else
/// as `text` encodes them, which takes a second or two.
///
/// # Errors
/// When a name cannot be encoded.
pub fn joint_names(name: &str, text: &dyn TextEncoder, kept: Option<&[u8]>) -> Result<Names> {
    if name != Concepts::NAME {
        return Ok(Names::default());
    }
    let all = Concepts::classes();
    match kept.and_then(|bytes| Names::from_bytes(&all, text.width(), bytes)) {
        Some(kept) => Ok(kept),
        None => Ok(Names::new(all.iter().copied().zip(text.encode(&all)?))),
    }
}

/// Whether all weights that both sides of the space `name` need have been pulled, by the names and sizes of their files.
///
/// # Errors
/// Naming those that have not.
pub fn check_pulled(name: &str, options: &EncoderOptions) -> Result<()> {
    if name != Concepts::NAME {
        return Ok(());
    }
    let needed = ["i3d", "efficientnet-lite0", "minilm"];
    let absent = |name: &&str| matches!(options.find(name), Err(EncodeError::NotPulled { .. }));
    let names: Vec<&'static str> = needed.into_iter().filter(absent).collect();
    if names.is_empty() { Ok(()) } else { Err(EncodeError::NotAllPulled { encoder: Concepts::NAME, names }) }
}

/// The side of clips alone, in the space of `text`.
///
/// # Errors
/// As [`joint`].
pub fn joint_clips(name: &str, text: &dyn TextEncoder, options: &EncoderOptions) -> Result<Box<dyn ClipEncoder>> {
    match name {
        Concepts::NAME => {
            check_pulled(name, options)?;
            Ok(Box::new(Concepts::new(text, options)?))
        }
        "clip" => visual::open("clip", options),
        _ => Err(EncodeError::NoEncoder { name: name.to_owned(), present: JOINT.join(", ") }),
    }
}

/// Both sides of a space by name: `concepts` needs no network that was trained to share one, `clip` is CLIP ViT-B/32.
///
/// # Errors
/// When there is none of that name, or weights are not here or damaged.
pub fn joint(name: &str, options: &EncoderOptions) -> Result<Joint> {
    check_pulled(name, options)?;
    let text = joint_text(name, options)?;
    let clips = joint_clips(name, text.as_ref(), options)?;
    let names = joint_names(name, text.as_ref(), None)?;
    Ok(Joint { text, clips, names })
}
