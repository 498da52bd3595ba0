//! Words with a time: what is said in a video and what is written in its pictures.

use serde::{Deserialize, Serialize};

use crate::Span;

/// How a video tells something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Track {
    /// What the pictures show.
    Seen,
    /// What somebody says: speech or subtitles.
    Said,
    /// What stands in the pictures (OCR).
    Written,
}

impl Track {
    /// Every track, in the order in which answers name them.
    pub const ALL: [Self; 3] = [Self::Seen, Self::Said, Self::Written];

    /// `seen`, `said` or `written`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Said => "said",
            Self::Written => "written",
        }
    }
}

/// One line of words in a video: a stretch of speech, or text that stands in the pictures for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// From when to when it is heard or seen, in **seconds**.
    pub span: Span,
    /// The words.
    pub text: String,
    /// When each word is said, in order; empty where only the line has a time.
    pub words: Vec<Word>,
    /// How sure its reader is, between 0 and 1; 1 for what somebody wrote down.
    pub confidence: f32,
}

/// One word of a [`Line`].
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// When it is said, in **seconds**.
    pub span: Span,
    /// The word, without the spaces around it.
    pub text: String,
}
