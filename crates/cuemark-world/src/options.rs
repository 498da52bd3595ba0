//! The knobs of the studio.

use cuemark_features::sight::Strength;
use cuemark_formats::Overwrite;
use serde::{Deserialize, Serialize};

use crate::prior::Shares;
use crate::{Result, WorldError, WorldSize, world_size};

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
    /// Number of videos over all splits, 8 to 200 000, or a [`WorldSize`] by its name. Default: 2000
    #[serde(deserialize_with = "world_size::films_or_name")]
    pub videos: usize,
    /// Every random choice hangs on it. Default: 0
    pub seed: u64,
    /// Mean length of a video in seconds, 10 to 600; lengths lie within a quarter of it. Default: 32
    pub length: f64,
    /// Events per video, 1 to 20; half of them are asked for, at most four. Default: 6
    pub events: usize,
    /// How strongly the place of a moment can be guessed, 0 (not at all) to 1. Default: 0.8
    pub bias: f64,
    /// How much of that guess hangs on the verb, 0 to 1. What neither the verb nor the actor has is the same for all
    /// queries. Default: 0.75
    #[serde(default = "verb_share", skip_serializing_if = "is_usual_verb_share")]
    pub verb_share: f64,
    /// How much of that guess hangs on the actor, 0 to 1; both shares together at most 1. Default: 0
    #[serde(skip_serializing_if = "is_zero")]
    pub actor_share: f64,
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
    /// The extractors whose features are stored; what a study does not read need not be there. Default: all
    #[serde(default = "every_strength", skip_serializing)]
    pub strengths: Vec<Strength>,
    /// What to do when a finished world is there already; an unfinished one of the same options is always resumed.
    #[serde(skip)]
    pub overwrite: Overwrite,
}

fn disagreement() -> f64 {
    0.7
}

fn every_strength() -> Vec<Strength> {
    Strength::ALL.to_vec()
}

fn verb_share() -> f64 {
    Shares::default().verb
}

/// The usual one is not written: recipes of features hold the options, and those of worlds that were made before there were raters
/// must stay what they are.
fn is_usual_disagreement(value: &f64) -> bool {
    *value == disagreement()
}

fn is_usual_verb_share(value: &f64) -> bool {
    *value == verb_share()
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            videos: WorldSize::Small.films(),
            seed: 0,
            length: 32.0,
            events: 6,
            bias: 0.8,
            verb_share: verb_share(),
            actor_share: 0.0,
            overlong: 0.1,
            vocabulary: 3,
            noise: 0.03,
            disagreement: disagreement(),
            reels: Reels::None,
            strengths: every_strength(),
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
        within("verb_share", self.verb_share, 0.0, 1.0)?;
        within("actor_share", self.actor_share, 0.0, 1.0 - self.verb_share)?;
        within("overlong", self.overlong, 0.0, 1.0)?;
        within("vocabulary", self.vocabulary as f64, 1.0, 4.0)?;
        within("noise", self.noise, 0.0, 0.3)?;
        within("disagreement", self.disagreement, 0.0, 4.0)?;
        if self.strengths.is_empty() {
            return Err(WorldError::Knob {
                knob: "strengths",
                problem: "no features, nothing to learn from".to_owned(),
            });
        }
        Ok(())
    }

    /// What the guess of a moment's place hangs on.
    pub(crate) fn shares(&self) -> Shares {
        Shares { verb: self.verb_share, actor: self.actor_share }
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
        assert!(WorldOptions { actor_share: 0.3, ..WorldOptions::default() }.check().is_err(), "0.75 is the verb's");
        assert!(WorldOptions { strengths: Vec::new(), ..WorldOptions::default() }.check().is_err());
    }

    /// The options stand in the recipe of every world's features; a new knob must not make old ones foreign.
    #[test]
    fn a_usual_world_is_written_as_it_was_before_there_were_raters() {
        let usual = serde_json::to_string(&WorldOptions::default()).unwrap();
        let before = "{\"videos\":2000,\"seed\":0,\"length\":32.0,\"events\":6,\"bias\":0.8,\"overlong\":0.1,\
                      \"vocabulary\":3,\"noise\":0.03,\"reels\":\"none\"}";
        assert_eq!(usual, before);
        assert_eq!(serde_json::from_str::<WorldOptions>(before).unwrap(), WorldOptions::default());
        let apart = WorldOptions { disagreement: 1.5, actor_share: 0.5, verb_share: 0.25, ..WorldOptions::default() };
        assert_eq!(serde_json::from_str::<WorldOptions>(&serde_json::to_string(&apart).unwrap()).unwrap(), apart);
    }
}
