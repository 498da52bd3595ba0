//! The knobs of the studio.

use cuemark_formats::Overwrite;
use serde::{Deserialize, Serialize};

use crate::{Result, WorldError};

/// Whether real video files are written beside the features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reels {
    /// Frames are rendered for the features and thrown away. Default.
    #[default]
    None,
    /// One H.264 file per video, through the `ffmpeg` program.
    Mp4,
}

/// What kind of world to make. The same options always give the same world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorldOptions {
    /// Number of videos over all splits, 8 to 200 000. Default: 2000
    pub videos: usize,
    /// Every random choice hangs on it. Default: 0
    pub seed: u64,
    /// Mean length of a video in seconds, 10 to 600; lengths lie within a quarter of it. Default: 32
    pub length: f64,
    /// Events per video, 1 to 20; half of them are asked for, at most four. Default: 6
    pub events: usize,
    /// How strongly the place of a moment can be guessed, 0 (not at all) to 1. Default: 0.8
    pub bias: f64,
    /// Share of moments that fill half of their video or more, 0 to 1. Default: 0.1
    pub overlong: f64,
    /// How many words each meaning may be said with, 1 (no synonyms) to 4. Default: 3
    pub vocabulary: usize,
    /// Standard deviation of the camera's noise, as a fraction of white, 0 to 0.3. Default: 0.03
    pub noise: f64,
    /// How far raters of clips are from what a clip shows, as a standard deviation in grades, 0 (never) to 4. Default: 0.7
    #[serde(default = "disagreement", skip_serializing_if = "is_usual_disagreement")]
    pub disagreement: f64,
    /// Whether video files are written. Default: none
    pub reels: Reels,
    /// What to do when a finished world is there already; an unfinished one of the same options is always resumed.
    #[serde(skip)]
    pub overwrite: Overwrite,
}

fn disagreement() -> f64 {
    0.7
}

/// The usual one is not written: recipes of features hold the options, and those of worlds that were made before there were raters
/// must stay what they are.
fn is_usual_disagreement(value: &f64) -> bool {
    *value == disagreement()
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            videos: 2000,
            seed: 0,
            length: 32.0,
            events: 6,
            bias: 0.8,
            overlong: 0.1,
            vocabulary: 3,
            noise: 0.03,
            disagreement: disagreement(),
            reels: Reels::None,
            overwrite: Overwrite::Never,
        }
    }
}

impl WorldOptions {
    /// Checks every knob.
    ///
    /// # Errors
    /// The first knob out of its range.
    pub fn check(&self) -> Result<()> {
        let within = |knob: &'static str, value: f64, low: f64, high: f64| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(WorldError::Knob { knob, problem: format!("{value} is not between {low} and {high}") })
        };
        within("videos", self.videos as f64, 8.0, 200_000.0)?;
        within("length", self.length, 10.0, 600.0)?;
        within("events", self.events as f64, 1.0, 20.0)?;
        within("bias", self.bias, 0.0, 1.0)?;
        within("overlong", self.overlong, 0.0, 1.0)?;
        within("vocabulary", self.vocabulary as f64, 1.0, 4.0)?;
        within("noise", self.noise, 0.0, 0.3)?;
        within("disagreement", self.disagreement, 0.0, 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_out_of_range_are_named() {
        assert!(WorldOptions::default().check().is_ok());
        let bad = WorldOptions { bias: 1.5, ..WorldOptions::default() };
        assert_eq!(bad.check().unwrap_err().to_string(), "`bias`: 1.5 is not between 0 and 1");
        assert!(WorldOptions { noise: f64::NAN, ..WorldOptions::default() }.check().is_err());
        assert!(WorldOptions { disagreement: -0.1, ..WorldOptions::default() }.check().is_err());
        assert!(WorldOptions { videos: 0, ..WorldOptions::default() }.check().is_err());
    }

    /// The options stand in the recipe of every world's features; a new knob must not make old ones foreign.
    #[test]
    fn a_usual_world_is_written_as_it_was_before_there_were_raters() {
        let usual = serde_json::to_string(&WorldOptions::default()).unwrap();
        let before = "{\"videos\":2000,\"seed\":0,\"length\":32.0,\"events\":6,\"bias\":0.8,\"overlong\":0.1,\
                      \"vocabulary\":3,\"noise\":0.03,\"reels\":\"none\"}";
        assert_eq!(usual, before);
        assert_eq!(serde_json::from_str::<WorldOptions>(before).unwrap(), WorldOptions::default());
        let apart = WorldOptions { disagreement: 1.5, ..WorldOptions::default() };
        assert_eq!(serde_json::from_str::<WorldOptions>(&serde_json::to_string(&apart).unwrap()).unwrap(), apart);
    }
}
