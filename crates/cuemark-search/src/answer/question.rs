//! What is asked of an index.

use cuemark_core::Moment;

use super::ANSWER_NMS;
use crate::{Effort, Filter};

/// What is asked of an index: a sentence, a moment to find more like, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The sentence.
    pub text: Option<String>,
    /// A moment of the index to find more like.
    pub like: Option<Moment>,
    /// Sentences or words that the answers should have nothing of.
    pub not: Vec<String>,
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
            not: Vec::new(),
            filter: Filter::default(),
            limit: 10,
            effort: Effort::default(),
            stages: Stages::default(),
            least: 0.1,
            nms: ANSWER_NMS,
        }
    }
}

impl Question {
    /// A sentence, everything else as usual. Words that begin with `-` are not wanted, as in search engines.
    ///
    /// ```
    /// use cuemark_search::Question;
    /// let question = Question::new("a ball spins -red");
    /// assert_eq!(question.text.as_deref(), Some("a ball spins"));
    /// assert_eq!(question.not, ["red"]);
    /// ```
    pub fn new(sentence: &str) -> Self {
        let unwanted = |word: &&str| word.len() > 1 && word.starts_with('-');
        let not = sentence.split_whitespace().filter(unwanted).map(|word| word.trim_start_matches('-').to_owned());
        let not = not.filter(|word| !word.is_empty()).collect();
        let text: Vec<&str> = sentence.split_whitespace().filter(|word| !unwanted(word)).collect();
        let text = (!text.is_empty()).then(|| text.join(" "));
        Self { text, not, ..Self::default() }
    }
}
