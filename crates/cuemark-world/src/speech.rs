//! What actors say.

use cuemark_core::Rng;
use serde::{Deserialize, Serialize};

/// What a spoken line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each name is a word that films and sentences are made of
pub enum Topic {
    Weather,
    Music,
    Lunch,
    Moon,
    Holiday,
}

impl Topic {
    /// Every topic.
    pub const ALL: [Self; 5] = [Self::Weather, Self::Music, Self::Lunch, Self::Moon, Self::Holiday];

    fn lines(self) -> [&'static str; 3] {
        match self {
            Self::Weather => ["what a sunny day", "it looks like rain again", "the wind is getting cold"],
            Self::Music => ["I could sing all night", "do you hear that piano", "this song never gets old"],
            Self::Lunch => ["I would love some soup", "who ate my sandwich", "these noodles smell wonderful"],
            Self::Moon => ["the moon is full tonight", "one day I will fly to the moon", "look how bright the moon is"],
            Self::Holiday => ["the beach was so crowded", "we should pack our suitcase", "my plane leaves on Friday"],
        }
    }
}

const CHATTER: [&str; 6] =
    ["hello there", "are you ready", "wait for me", "I know that already", "not so loud please", "all right then"];

/// A line about `topic`, or small talk.
pub(crate) fn line(topic: Option<Topic>, rng: &mut Rng) -> &'static str {
    let lines = topic.map_or(Vec::from(CHATTER), |topic| topic.lines().to_vec());
    rng.pick(&lines).copied().unwrap_or_default()
}
