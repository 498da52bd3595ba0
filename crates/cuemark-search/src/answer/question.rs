//! What is asked of an index.

use cuemark_core::{Moment, Track};

use super::ANSWER_NMS;
use super::syntax::Typed;
use crate::{Effort, Filter};

/// What is asked of an index: a sentence, a moment to find more like, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The sentence.
    pub text: Option<String>,
    /// A moment of the index to find more like.
    pub like: Option<Moment>,
    /// Words that must be said or written in an answer, in this order.
    pub phrases: Vec<String>,
    /// Sentences or words that the answers should have nothing of.
    pub not: Vec<String>,
    /// Words that must not be said or written in an answer, in this order.
    pub unsaid: Vec<String>,
    /// The tracks that may answer; empty for all of them.
    pub tracks: Vec<Track>,
    /// Where to look.
    pub filter: Filter,
    /// Answers, at most. Default: 10
    pub limit: usize,
    /// How hard to look.
    pub effort: Effort,
    /// Whether to choose videos first. Default: one stage
    pub stages: Stages,
    /// Answers below this probability are not good enough. Default: 0.1
    pub least: f64,
    /// The overlap above which the worse of two answers of one video is dropped. Default: 0.5
    pub nms: f64,
}

/// Whether moments are ranked over all videos, or videos are chosen first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stages {
    /// All moments against each other. Default.
    #[default]
    One,
    /// So many videos first, by the mean of their best moments; then their moments.
    Two {
        /// Videos that are looked into.
        videos: usize,
    },
}

impl Default for Question {
    fn default() -> Self {
        Self {
            text: None,
            like: None,
            phrases: Vec::new(),
            not: Vec::new(),
            unsaid: Vec::new(),
            tracks: Vec::new(),
            filter: Filter::default(),
            limit: 10,
            effort: Effort::default(),
            stages: Stages::default(),
            least: Self::LEAST,
            nms: ANSWER_NMS,
        }
    }
}

impl Question {
    /// The least probability of an answer that is good enough, unless a question says otherwise.
    pub const LEAST: f64 = 0.1;

    /// A question as people type it, everything else as usual: words that begin with `-` are not wanted, words between quotation
    /// marks must be said or written there as they are, `said:`, `written:` and `seen:` say where to look.
    ///
    /// ```
    /// use cuemark_search::Question;
    /// let question = Question::new(r#"a ball spins -red "good morning""#);
    /// assert_eq!(question.text.as_deref(), Some("a ball spins"));
    /// assert_eq!(question.not, ["red"]);
    /// assert_eq!(question.phrases, ["good morning"]);
    /// ```
    pub fn new(typed: &str) -> Self {
        let Typed { text, phrases, not, unsaid, tracks } = Typed::read(typed);
        Self { text, phrases, not, unsaid, tracks, ..Self::default() }
    }

    /// A sentence in which no mark means anything, everything else as usual: for sentences that somebody else wrote, such as a
    /// dataset's.
    pub fn sentence(text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..Self::default() }
    }

    /// Whether it is to be answered by a track.
    pub fn asks(&self, track: Track) -> bool {
        self.tracks.is_empty() || self.tracks.contains(&track)
    }
}
