//! The built-in world's eyes: colours, shapes and motion read off pixels, without weights.
//!
//! What a run trained on the world's features needs to index films: the same rows that the world computes of its own frames.

use cuemark_features::sight::{ClipView, Picture, Strength};
use cuemark_features::{Recipe, RowTime};
use cuemark_media::{Filter, Framing};

use super::{ClipEncoder, Clips, EncoderOptions, Sampling, check};
use crate::Result;

/// What the world's camera takes: 64 × 48 pixels, six pictures a second, a clip every second.
const SAMPLING: Sampling = Sampling {
    fps: 6.0,
    frames: 6,
    stride: 6,
    framing: Framing::Stretch { width: 64, height: 48, filter: Filter::Area },
};

/// `world-weak`, `world-shape` or `world-motion`.
pub struct WorldEyes {
    strength: Strength,
    sampling: Sampling,
}

impl WorldEyes {
    /// Every one, weakest first.
    pub const NAMES: [&'static str; 3] = ["world-weak", "world-shape", "world-motion"];

    /// The one called `name`; `None` when it is none.
    ///
    /// # Errors
    /// When the options cannot be.
    pub fn open(name: &str, options: &EncoderOptions) -> Result<Option<Self>> {
        let Some((_, strength)) = Self::NAMES.into_iter().zip(Strength::ALL).find(|(one, _)| *one == name) else {
            return Ok(None);
        };
        Ok(Some(Self { strength, sampling: options.sampling(SAMPLING)? }))
    }
}

impl ClipEncoder for WorldEyes {
    fn name(&self) -> &str {
        match self.strength {
            Strength::Weak => "world-weak",
            Strength::Shape => "world-shape",
            Strength::Motion => "world-motion",
        }
    }

    fn width(&self) -> usize {
        self.strength.width()
    }

    fn sampling(&self) -> Sampling {
        self.sampling
    }

    fn recipe(&self) -> Recipe {
        Recipe {
            extractor: self.name().to_owned(),
            weights: None,
            fps: Some(self.sampling.fps),
            // The sampling was checked when it was opened.
            row_time: self.sampling.clip_len().map_or(RowTime::SpanDuration, RowTime::Clip),
            width: self.width(),
            resize: Some(self.sampling.framing.size()),
            settings: self.sampling.settings(),
        }
    }

    fn encode(&self, clips: &Clips) -> Result<Vec<Vec<f32>>> {
        check(clips, &self.sampling)?;
        let [width, height] = clips.size();
        let row = |rgb: &[u8]| {
            let pictures: Vec<Picture> =
                rgb.chunks(clips.picture_bytes()).map(|rgb| Picture { width, height, rgb }).collect();
            ClipView::of(&pictures).seen(self.strength).to_vec()
        };
        Ok(clips.rgb().chunks(clips.frames() * clips.picture_bytes()).map(row).collect())
    }
}
