//! Which words an answer hangs on.

use cuemark_text::words_of;

use crate::engine::Hit;
use crate::{Embedding, Index, Result};

/// The most words of a question that are looked at.
const MOST_WORDS: usize = 12;

/// Words that a sentence needs and that describe nothing.
const FILLERS: [&str; 24] = [
    "a", "an", "the", "is", "are", "was", "and", "or", "of", "to", "in", "on", "at", "it", "its", "by", "for", "with",
    "that", "this", "there", "then", "while", "as",
];

/// A word of the question and what it does for one answer.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchedWord {
    /// As the encoder reads it: lower case.
    pub word: String,
    /// Its share in what the words together do for the answer, in 0..1: how far the score falls without it.
    pub share: f64,
}

/// The question without each of its words in turn.
#[derive(Default)]
pub(crate) struct Explainer {
    whole: Option<Embedding>,
    without: Vec<(String, Embedding)>,
    pub(crate) unknown: Vec<String>,
    /// Whether no word is left that could tell one moment from another.
    pub(crate) means_nothing: bool,
}

impl Explainer {
    pub(crate) fn new(index: &Index, text: &str) -> Result<Self> {
        let words = words_of(text);
        let unknown: Vec<String> = words.iter().filter(|word| !index.encoder().knows(word)).cloned().collect();
        let mut without = Vec::new();
        let telling = |word: &String| !FILLERS.contains(&word.as_str()) && !unknown.contains(word);
        let means_nothing = !words.iter().any(telling);
        if words.len() > 1 {
            for (place, word) in words.iter().enumerate().filter(|(_, word)| telling(word)).take(MOST_WORDS) {
                let rest: Vec<&str> = words
                    .iter()
                    .enumerate()
                    .filter(|(other, _)| *other != place)
                    .map(|(_, word)| word.as_str())
                    .collect();
                without.push((word.clone(), index.sentence(&rest.join(" "))?));
            }
        }
        Ok(Self { whole: Some(index.sentence(text)?), without, unknown, means_nothing })
    }

    /// The words that speak for a moment, the weightiest first.
    pub(crate) fn words(&self, index: &Index, hit: &Hit) -> Result<Vec<MatchedWord>> {
        let Some(whole) = &self.whole else { return Ok(Vec::new()) };
        if self.without.is_empty() {
            return Ok(Vec::new());
        }
        let embedding = index.embedding_of(&cuemark_core::Moment { video: hit.video.clone(), span: hit.span })?;
        let full = whole.cosine(&embedding);
        let falls: Vec<f64> =
            self.without.iter().map(|(_, rest)| f64::from(full - rest.cosine(&embedding)).max(0.0)).collect();
        let total: f64 = falls.iter().sum();
        if total <= 0.0 {
            return Ok(Vec::new());
        }
        let mut words: Vec<MatchedWord> = self
            .without
            .iter()
            .zip(falls)
            .filter(|(_, fall)| *fall > 0.0)
            .map(|((word, _), fall)| MatchedWord { word: word.clone(), share: fall / total })
            .collect();
        words.sort_by(|a, b| b.share.total_cmp(&a.share));
        Ok(words)
    }
}
