//! Which words an answer hangs on.

use cuemark_text::words_of;

use crate::{Embedding, Index, Result};

/// The most words of a question that are looked at.
pub(super) const MOST_WORDS: usize = 12;

/// Words that a sentence needs and that describe nothing.
const FILLERS: [&str; 24] = [
    "a", "an", "the", "is", "are", "was", "and", "or", "of", "to", "in", "on", "at", "it", "its", "by", "for", "with",
    "that", "this", "there", "then", "while", "as",
];

/// Whether a word describes nothing.
pub(super) fn is_filler(word: &str) -> bool {
    FILLERS.contains(&word)
}

/// A word of the question and what it does for one answer.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchedWord {
    /// As the encoder reads it: lower case.
    pub word: String,
    /// Its share in what the words together do for the answer, in 0..1: how far the score falls without it.
    pub share: f64,
}

/// Something that the encoder recognised in a moment, and what it does for the moment as an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchedConcept {
    /// Its name.
    pub concept: String,
    /// Its share in the score, in 0..1: how much of it there is in the moment times how near it is to the question.
    pub share: f64,
}

/// The question without each of its words in turn.
pub(crate) struct Explainer {
    whole: Option<Embedding>,
    without: Vec<(String, Embedding)>,
    pub(crate) unknown: Vec<String>,
    /// Whether no word is left that could tell one moment from another.
    pub(crate) means_nothing: bool,
    /// The share of the telling words that the encoder knows: what an answer can be right about at the most.
    pub(crate) understood: f64,
}

impl Explainer {
    /// For questions without words.
    pub(crate) fn wordless() -> Self {
        Self { whole: None, without: Vec::new(), unknown: Vec::new(), means_nothing: false, understood: 1.0 }
    }

    pub(crate) fn new(index: &Index, text: &str) -> Result<Self> {
        let words = words_of(text);
        let mut unknown: Vec<String> = Vec::new();
        for word in words.iter().filter(|word| !index.encoder().knows(word)) {
            // A word that describes nothing is not missed, and one that is said twice is missed once.
            if !is_filler(word) && !unknown.contains(word) {
                unknown.push(word.clone());
            }
        }
        let telling = |word: &String| !is_filler(word) && !unknown.contains(word);
        let known = words.iter().filter(|word| telling(word)).count();
        let means_nothing = known == 0;
        let understood = known as f64 / (known + unknown.len()).max(1) as f64;
        let mut taken_out: Vec<(String, String)> = Vec::new();
        if words.len() > 1 {
            for (place, word) in words.iter().enumerate().filter(|(_, word)| telling(word)).take(MOST_WORDS) {
                let others = words.iter().enumerate().filter(|(other, _)| *other != place);
                let rest: Vec<&str> = others.map(|(_, word)| word.as_str()).collect();
                taken_out.push((word.clone(), rest.join(" ")));
            }
        }
        // All at once: several sentences take an encoder little longer than one.
        let rests = taken_out.iter().map(|(_, rest)| rest.as_str());
        let mut embeddings = index.sentences(&std::iter::once(text).chain(rests).collect::<Vec<_>>())?.into_iter();
        let whole = embeddings.next();
        let without = taken_out.iter().map(|(word, _)| word.clone()).zip(embeddings).collect();
        Ok(Self { whole, without, unknown, means_nothing, understood })
    }

    /// The words that speak for a moment, the weightiest first.
    pub(crate) fn words(&self, moment: &Embedding) -> Vec<MatchedWord> {
        let Some(whole) = &self.whole else { return Vec::new() };
        let full = whole.cosine(moment);
        let falls: Vec<f64> =
            self.without.iter().map(|(_, rest)| f64::from(full - rest.cosine(moment)).max(0.0)).collect();
        let total: f64 = falls.iter().sum();
        if total <= 0.0 {
            return Vec::new();
        }
        let mut words: Vec<MatchedWord> = self
            .without
            .iter()
            .zip(falls)
            .filter(|(_, fall)| *fall > 0.0)
            .map(|((word, _), fall)| MatchedWord { word: word.clone(), share: fall / total })
            .collect();
        words.sort_by(|a, b| b.share.total_cmp(&a.share));
        words
    }
}
