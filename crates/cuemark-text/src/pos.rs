//! Parts of speech: the universal tag set.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The part of speech of one token, in the universal tag set.
///
/// Where the published guidelines leave a choice, we take the one that serves moment retrieval:
/// - every form of *be*, and *have*, *do* and the modals before a verb, are [`Pos::Aux`], so that [`Pos::Verb`] is
///   always an action or a state with content;
/// - the particle of a phrasal verb (*picks **up***) is [`Pos::Adp`];
/// - a participle in front of its noun (*the **chopped** onions*) is [`Pos::Adj`], a gerund that is part of a name for
///   a thing (*a **cutting** board*) is [`Pos::Noun`];
/// - *when*, *while*, *as*, *before* and the like in front of a clause are [`Pos::Sconj`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Pos {
    /// Adjective: *red*, *chopped*.
    Adj,
    /// Preposition or verb particle: *in*, *up*.
    Adp,
    /// Adverb: *slowly*, *then*, *away*.
    Adv,
    /// Auxiliary, copula or modal: *is*, *has* (taken), *can*.
    Aux,
    /// Coordinating conjunction: *and*.
    Cconj,
    /// Determiner: *the*, *some*, *both*.
    Det,
    /// Interjection: *oh*, *please*.
    Intj,
    /// Common noun: *door*, *(cutting) board*.
    Noun,
    /// Number: *two*, *3*.
    Num,
    /// Particle: *to* (open), *not*, *'s*.
    Part,
    /// Pronoun: *she*, *his*, *who*, *there* (is).
    Pron,
    /// Proper noun: *Phoebe*.
    Propn,
    /// Punctuation.
    Punct,
    /// Subordinating conjunction: *while*, *that*.
    Sconj,
    /// Symbol: *&*, *%*.
    Sym,
    /// Main verb in any form.
    Verb,
    /// Anything else.
    X,
}

impl Pos {
    /// Every tag, in the order of their names; a tag's place here is its index in model files.
    pub const ALL: [Self; 17] = [
        Self::Adj,
        Self::Adp,
        Self::Adv,
        Self::Aux,
        Self::Cconj,
        Self::Det,
        Self::Intj,
        Self::Noun,
        Self::Num,
        Self::Part,
        Self::Pron,
        Self::Propn,
        Self::Punct,
        Self::Sconj,
        Self::Sym,
        Self::Verb,
        Self::X,
    ];

    /// The tag's published name: `NOUN`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adj => "ADJ",
            Self::Adp => "ADP",
            Self::Adv => "ADV",
            Self::Aux => "AUX",
            Self::Cconj => "CCONJ",
            Self::Det => "DET",
            Self::Intj => "INTJ",
            Self::Noun => "NOUN",
            Self::Num => "NUM",
            Self::Part => "PART",
            Self::Pron => "PRON",
            Self::Propn => "PROPN",
            Self::Punct => "PUNCT",
            Self::Sconj => "SCONJ",
            Self::Sym => "SYM",
            Self::Verb => "VERB",
            Self::X => "X",
        }
    }

    /// The tag with that published name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| tag.name() == name)
    }

    /// Whether it names a thing or a person: a common or a proper noun.
    pub fn is_noun(self) -> bool {
        matches!(self, Self::Noun | Self::Propn)
    }
}

impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_files_are_the_published_ones() {
        for tag in Pos::ALL {
            assert_eq!(serde_json::to_string(&tag).unwrap(), format!("\"{tag}\""));
            assert_eq!(Pos::from_name(tag.name()), Some(tag));
        }
        assert!(serde_json::from_str::<Pos>("\"NN\"").is_err());
    }
}
