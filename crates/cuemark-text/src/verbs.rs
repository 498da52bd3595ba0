//! The verbs of a sentence.

use std::ops::Range;

use crate::lemma::verb_lemma;
use crate::{Pos, Tagger, tokenize};

/// The first main verb of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstVerb {
    /// Its base form, in lower case.
    pub lemma: String,
    /// Where it stands in the sentence, in **bytes**.
    pub bytes: Range<usize>,
}

/// Base forms of the main verbs, in sentence order, repeats included. Auxiliaries (*is*, *can*) are left out, so a
/// sentence such as "the door is red" has none.
///
/// ```
/// assert_eq!(cuemark_text::verbs("the man opened the door and is walking out"), ["open", "walk"]);
/// ```
pub fn verbs(sentence: &str) -> Vec<String> {
    let tokens = tokenize(sentence);
    let tags = Tagger::embedded().tag(&tokens);
    let found = tokens.iter().zip(tags).filter(|(_, tag)| *tag == Pos::Verb);
    found.map(|(token, _)| verb_lemma(token.text)).collect()
}

/// The base form of the first main verb, which groups, statistics and baselines are made by; `None` when there is none.
///
/// ```
/// assert_eq!(cuemark_text::first_verb_lemma("person is putting a cup down").as_deref(), Some("put"));
/// ```
pub fn first_verb_lemma(sentence: &str) -> Option<String> {
    first_verb(sentence).map(|verb| verb.lemma)
}

/// The first main verb; `None` when the sentence has none.
///
/// ```
/// let verb = cuemark_text::first_verb("person is putting a cup down").unwrap();
/// assert_eq!((verb.lemma.as_str(), verb.bytes), ("put", 10..17));
/// ```
pub fn first_verb(sentence: &str) -> Option<FirstVerb> {
    let tokens = tokenize(sentence);
    let place = Tagger::embedded().tag(&tokens).iter().position(|tag| *tag == Pos::Verb)?;
    let token = tokens.get(place)?;
    Some(FirstVerb { lemma: verb_lemma(token.text), bytes: token.bytes() })
}
