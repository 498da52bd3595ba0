//! Words and sentences: tokens, part-of-speech tags, parses, query variants, and similarity that needs no weights.
//!
//! [`shallow_parse`] takes a sentence apart; a [`ParseProvider`] gives the parse of a query from there, from a file or from
//! the built-in world. [`verbs`] and [`first_verb`] answer the questions that statistics and baselines ask, [`variants`]
//! rewrites queries so that a model's dependence on their words can be measured, [`names`] finds people's names.
//!
//! # Data and licences
//! - `data/lexicon.txt` and `data/irregular.txt` are derived from WordNet 3.0 (Princeton University, WordNet licence:
//!   free for any purpose with its notice, kept in `data/WORDNET.txt`) and from word lists of ours.
//! - `data/tagger.bin` was trained on sentences generated from `training/grammar.txt` and `training/vocabulary.txt`,
//!   both ours. No published corpus and no dataset's annotations went into it.

mod error;
mod labelled_roles;
mod lemma;
mod lexicon;
pub mod names;
mod parse;
mod pos;
mod provider;
mod relation;
mod shallow;
pub mod similarity;
mod tagger;
mod token;
pub mod variants;
mod verbs;
mod vocabulary;
mod word_vectors;

pub use error::{Result, TextError};
pub use labelled_roles::{LabelledRoles, RoleReport, read_labelled_roles};
pub use lemma::{noun_lemma, verb_lemma};
pub use parse::{Dependency, Parse, ParseFault, Phrase, Role, TaggedToken};
pub use pos::Pos;
pub use provider::{ParseFile, ParseProvider, ShallowParser, write_parses};
pub use relation::Relation;
pub use shallow::shallow_parse;
pub use tagger::{Tagger, Trainer};
pub use token::{Token, tokenize};
pub use verbs::{FirstVerb, first_verb, first_verb_lemma, verbs};
pub use vocabulary::{Vocabulary, words_of};
pub use word_vectors::WordVectors;
