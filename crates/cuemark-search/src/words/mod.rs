//! What is said and written: lines with times, an index of their words, and the stretches that have the words of a question.
//!
//! Lines come from [`Lines`]: subtitle files, a recogniser of speech, a reader of pictures. An engine keeps them in the record of
//! their video; [`Inverted`] is derived from them, in memory, and follows the log.

mod inverted;
mod meanings;
mod near;
mod passages;
mod phrases;
mod source;
mod tokens;

use cuemark_core::{Line, Span, Track, VideoId};

pub(crate) use inverted::{Inverted, Shelved};
pub(crate) use meanings::{MeaningFile, Meanings, Utterance, utterances};
pub use source::{Lines, LinesError};
pub(crate) use tokens::{is_filler, lemma, tokens};

/// Words to look for. Everything is in lower case, as `tokens` makes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WordsAsked {
    /// Words that speak for a stretch, in the order of the question.
    pub words: Vec<AskedWord>,
    /// Words that must stand there in this order.
    pub phrases: Vec<Phrase>,
    /// What must not stand there.
    pub without: Vec<Phrase>,
    /// Where to look; empty for everywhere.
    pub tracks: Vec<Track>,
    /// Stretches, at most.
    pub limit: usize,
}

/// One word of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedWord {
    /// In lower case.
    pub word: String,
    /// What it counts beside its rarity; 1 for most.
    pub weight: f64,
}

/// Words in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// In lower case.
    pub words: Vec<String>,
    /// Whether other forms of a word will do.
    pub forms: Forms,
}

/// Whether other forms of a word will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forms {
    /// These words as they are: what stands between quotation marks.
    AsTheyAre,
    /// Other forms too: `balls` for `ball`.
    Any,
}

/// Stretches in which words of a question stand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Passages {
    /// The best first.
    pub passages: Vec<Passage>,
    /// Words of the question that stand somewhere in the index, with or without a slip.
    pub known: Vec<String>,
}

/// A stretch in which words of a question stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// The video.
    pub video: VideoId,
    /// Whether they are said or written.
    pub track: Track,
    /// Where, in **seconds**: the lines below from the first to the last.
    pub span: Span,
    /// The share of the question that is there, 0 to 1: each word counts by its rarity, and every line beyond the first costs
    /// something.
    pub share: f64,
    /// How telling the words are that are there: the sum of what each is worth, `-ln` of how frequent it is, in nats.
    pub information: f64,
    /// The share of neighbouring words of the question that are near each other here, in order; 1 for a single word.
    pub order: f64,
    /// How sure the lines' reader is of them, 0 to 1.
    pub confidence: f64,
    /// The lines, in the order of time.
    pub lines: Vec<Line>,
}
