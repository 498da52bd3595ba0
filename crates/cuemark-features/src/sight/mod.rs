//! Clip features from pixels: the eyes of the built-in world.
//!
//! Nothing in this module can see the world's event log: everything here is a function of pictures. Colours are read off a wheel
//! of twelve hues that knows nothing of the actors' palette; a *blob* is what one frame shows of one hue.

mod blobs;
mod motion;
mod shape;
mod weak;

use serde::{Deserialize, Serialize};

use crate::Features;
use blobs::Blobs;

/// How much a feature extractor sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// Colour statistics of the whole picture.
    Weak,
    /// Those, and for each hue where it is, how large and of what shape.
    Shape,
    /// Those, and how each hue moves, grows and turns.
    Motion,
}

impl Strength {
    /// Every strength, weakest first.
    pub const ALL: [Self; 3] = [Self::Weak, Self::Shape, Self::Motion];

    /// Its name in files and folders.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Shape => "shape",
            Self::Motion => "motion",
        }
    }

    /// Numbers per clip.
    pub fn width(self) -> usize {
        match self {
            Self::Weak => weak::WIDTH,
            Self::Shape => weak::WIDTH + shape::WIDTH,
            Self::Motion => weak::WIDTH + shape::WIDTH + motion::WIDTH,
        }
    }
}

/// One picture, where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Red, green and blue of each pixel, row after row.
    pub rgb: &'a [u8],
}

/// What was seen in one clip, at every strength: a stronger extractor sees all that a weaker one does, and more.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipView(Vec<f32>);

impl ClipView {
    /// Looks at the pictures of one clip, in order. A clip without pictures is all zeros.
    pub fn of(pictures: &[Picture]) -> Self {
        let blobs: Vec<Blobs> = pictures.iter().map(Blobs::find).collect();
        let mut row = Vec::with_capacity(Strength::Motion.width());
        weak::describe(pictures, &blobs, &mut row);
        shape::describe(&blobs, &mut row);
        motion::describe(&blobs, &mut row);
        Self(row)
    }

    /// The part that an extractor of that strength sees.
    pub fn seen(&self, strength: Strength) -> &[f32] {
        self.0.get(..strength.width()).unwrap_or(&self.0)
    }
}

/// The clips of one video as features of one strength, a row per clip.
pub fn features(clips: &[ClipView], strength: Strength) -> Features {
    let data: Vec<f32> = clips.iter().flat_map(|clip| clip.seen(strength)).copied().collect();
    Features::new(clips.len(), strength.width(), data).unwrap_or_else(|| unreachable!("every clip has the same width"))
}

/// The mean of `values`, 0 of none.
fn mean(values: impl IntoIterator<Item = f32>) -> f32 {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value;
        count += 1;
    }
    if count == 0 { 0.0 } else { sum / count as f32 }
}
