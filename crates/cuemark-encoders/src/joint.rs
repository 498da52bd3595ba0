//! Encoders of clips and of sentences whose vectors lie in one space.

use crate::concepts::Concepts;
use crate::text::{self, TextEncoder};
use crate::visual::{self, ClipEncoder, EncoderOptions};
use crate::{EncodeError, Names, Result, weights};

/// The names that [`joint`] takes.
pub const JOINT: [&str; 3] = [Concepts::NAME, "clip", "clip-b16"];

/// What stands for the best of them whose weights are on this machine.
pub const AUTO: &str = "auto";

/// The best of [`JOINT`] whose weights are on this machine, by the names and sizes of their files: CLIP with small patches, with large
/// ones, and otherwise `concepts`, whose weights anybody can pull.
pub fn best_joint(options: &EncoderOptions) -> &'static str {
    let is_here = |name: &&&str| clip_weights(name).is_some_and(|weights| options.find(weights).is_ok());
    ["clip-b16", "clip"].iter().find(is_here).copied().unwrap_or(Concepts::NAME)
}

/// The weights of a CLIP by the name of the encoder.
fn clip_weights(name: &str) -> Option<&'static str> {
    match name {
        "clip" => Some("clip-vit-base-patch32"),
        "clip-b16" => Some("clip-vit-base-patch16"),
        _ => None,
    }
}

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
    let folder = match (name, &options.weights, clip_weights(name)) {
        (Concepts::NAME, ..) => options.locate("minilm")?,
        (_, Some(path), Some(_)) => weights::open(path.as_str())?,
        (_, None, Some(weights)) => options.locate(weights)?,
        _ => return Err(EncodeError::NoEncoder { name: name.to_owned(), present: JOINT.join(", ") }),
    };
    text::from_folder(&folder, &options.device)
}

/// The names that rows of the space `name` are made of: `kept`, as [`Names::to_bytes`] wrote them, where they are the same; or those that
/// lie beside the weights of sentences since they were last encoded; or else as `text` encodes them, which takes seconds.
///
/// # Errors
/// When a name cannot be encoded.
pub fn joint_names(name: &str, text: &dyn TextEncoder, kept: Option<&[u8]>, options: &EncoderOptions) -> Result<Names> {
    if name == Concepts::NAME { Concepts::names(text, kept, options) } else { Ok(Names::default()) }
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

/// The side of clips alone, in the space of `text` and made of [its names](joint_names).
///
/// # Errors
/// As [`joint`].
pub fn joint_clips(
    name: &str,
    text: &dyn TextEncoder,
    names: &Names,
    options: &EncoderOptions,
) -> Result<Box<dyn ClipEncoder>> {
    match name {
        Concepts::NAME => {
            check_pulled(name, options)?;
            Ok(Box::new(Concepts::new(text, names, options)?))
        }
        _ if clip_weights(name).is_some() => visual::open(name, options),
        _ => Err(EncodeError::NoEncoder { name: name.to_owned(), present: JOINT.join(", ") }),
    }
}

/// Both sides of a space by name: `concepts` needs no network that was trained to share one, `clip` is CLIP ViT-B/32, `clip-b16` ViT-B/16.
///
/// # Errors
/// When there is none of that name, or weights are not here or damaged.
pub fn joint(name: &str, options: &EncoderOptions) -> Result<Joint> {
    check_pulled(name, options)?;
    let text = joint_text(name, options)?;
    let names = joint_names(name, text.as_ref(), None, options)?;
    let clips = joint_clips(name, text.as_ref(), &names, options)?;
    Ok(Joint { text, clips, names })
}
