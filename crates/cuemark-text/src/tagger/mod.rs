//! Part-of-speech tags by an averaged perceptron of our own.
//!
//! The tagger goes from left to right and, for each word that can be more than one thing, adds up the weights of what
//! it sees: what the word and its neighbours *can* be by the [lexicon](crate#data-and-licences), the tags already
//! given, endings, capitals, and whether the clause has its verb yet. It was trained on sentences generated from a
//! grammar of ours (`training/`), never on a published corpus; its accuracy on 300 sentences tagged by hand is printed
//! by the test `the_tagger_is_as_good_as_we_say`.

mod features;
mod model;
mod train;

use std::sync::OnceLock;

pub use train::Trainer;

use self::features::Sentence;
use self::model::Model;
use crate::{Pos, Result, Token};

/// Gives every token its part of speech.
pub struct Tagger {
    model: Model,
}

impl Tagger {
    /// The tagger that comes with the crate, loaded at first use (a few milliseconds).
    pub fn embedded() -> &'static Self {
        static TAGGER: OnceLock<Tagger> = OnceLock::new();
        TAGGER.get_or_init(|| {
            let model = include_bytes!("../../data/tagger.bin");
            Self::from_bytes(model).expect("the embedded model is whole: a test reads it")
        })
    }

    /// A tagger from the bytes that [`Trainer::finish`] gave.
    ///
    /// # Errors
    /// [`TextError::Model`](crate::TextError::Model) when the bytes are no such model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Ok(Self { model: Model::from_bytes(bytes)? })
    }

    /// One tag per token, in order.
    pub fn tag(&self, tokens: &[Token<'_>]) -> Vec<Pos> {
        let mut sentence = Sentence::new(tokens);
        for index in 0..tokens.len() {
            let tag = self.choose(&sentence, index);
            sentence.assign(index, tag);
        }
        sentence.into_tags()
    }

    fn choose(&self, sentence: &Sentence, index: usize) -> Pos {
        let allowed = sentence.allowed(index);
        if let Some(only) = sole(allowed) {
            return only;
        }
        let mut scores = [0i32; Pos::ALL.len()];
        sentence.for_each_feature(index, |feature| self.model.add(feature, &mut scores));
        best(allowed, &scores)
    }
}

/// The only tag of a set, when there is just one.
fn sole(allowed: u32) -> Option<Pos> {
    let first = Pos::ALL.get(allowed.trailing_zeros() as usize)?;
    allowed.is_power_of_two().then_some(*first)
}

/// The allowed tag with the highest score; ties go to the earlier tag.
fn best<S: PartialOrd + Copy>(allowed: u32, scores: &[S; Pos::ALL.len()]) -> Pos {
    let candidates = Pos::ALL.into_iter().zip(scores).filter(|(tag, _)| allowed & (1 << *tag as u32) != 0);
    let better = |a: (Pos, S), b: (Pos, S)| if b.1 > a.1 { b } else { a };
    candidates.map(|(tag, score)| (tag, *score)).reduce(better).map_or(Pos::X, |(tag, _)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenize;

    fn tagged(sentence: &str) -> Vec<Pos> {
        Tagger::embedded().tag(&tokenize(sentence))
    }

    #[test]
    fn a_noun_that_looks_like_a_verb_is_told_from_a_verb_that_looks_like_a_noun() {
        use Pos::{Adp, Det, Noun, Verb};
        assert_eq!(tagged("the man waves at the waves"), [Det, Noun, Verb, Adp, Det, Noun]);
        assert_eq!(tagged("season the steak"), [Verb, Det, Noun]);
    }

    #[test]
    fn nothing_and_oddities_are_tagged_without_complaint() {
        assert!(tagged("").is_empty());
        assert_eq!(tagged("..."), [Pos::Punct]);
        assert_eq!(tagged("%"), [Pos::Sym]);
        assert_eq!(tagged("42"), [Pos::Num]);
        assert_eq!(tagged("ありがとう 🎉").len(), 2);
    }

    #[test]
    fn bytes_that_are_no_model_are_refused() {
        for bytes in [&b""[..], b"nonsense", b"CMTG\x01\0\0\0\x05\0\0\0"] {
            assert!(Tagger::from_bytes(bytes).is_err());
        }
    }
}
