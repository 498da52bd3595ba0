//! People's names in a sentence: a list, and rules for names that no list holds.
//!
//! Ranked retrieval with imprecise queries replaces the names of characters by descriptions ("Sheldon" → "a man") and
//! must then be sure that none is left. [`NameList::score`] says of every token how sure we are that it is one.

use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::FxHashSet;

use crate::lexicon::{Kind, Lexicon};
use crate::{Pos, Tagger, Token, tokenize};

/// Above this score a token is taken for a name: a query whose names were all replaced must stay below it.
pub const NAME_THRESHOLD: f64 = 0.8;

/// One token that may be a name.
#[derive(Debug, Clone, PartialEq)]
pub struct NameScore {
    /// Where it stands in the sentence, in **bytes**; a possessive mark is not part of it.
    pub bytes: Range<usize>,
    /// How sure we are that it is a person's name, 0 to 1.
    pub score: f64,
}

/// Known names.
#[derive(Debug, Clone, Default)]
pub struct NameList {
    /// In lower case.
    names: FxHashSet<String>,
}

/// Words after which a capital means a name.
const TITLES: [&str; 15] = [
    "dr",
    "dr.",
    "mr",
    "mr.",
    "mrs",
    "mrs.",
    "ms",
    "ms.",
    "miss",
    "detective",
    "captain",
    "professor",
    "officer",
    "nurse",
    "agent",
];

impl NameList {
    /// Given names, and the characters of the series that TVR draws on.
    pub fn embedded() -> &'static Self {
        static NAMES: OnceLock<NameList> = OnceLock::new();
        NAMES.get_or_init(|| {
            let lines = include_str!("../data/names.txt").lines().filter(|line| !line.starts_with('#'));
            Self::new(lines.flat_map(str::split_whitespace))
        })
    }

    /// A list of single-word names; their case does not matter.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { names: names.into_iter().map(str::to_lowercase).collect() }
    }

    /// Whether the list holds `word`, in any case.
    pub fn contains(&self, word: &str) -> bool {
        self.names.contains(&word.to_lowercase())
    }

    /// Every token that could be a person's name, in sentence order, with a score above 0.
    ///
    /// | what is seen | score |
    /// |---|---|
    /// | a listed name with a capital that is no common word | 1.0 |
    /// | a capital behind a title (*Dr. House*), or the title itself | 0.95 |
    /// | a listed name that is also a word (*House*), with a capital and tagged as a name | 0.9 |
    /// | a capital inside the sentence, tagged as a name, on no list | 0.85 |
    /// | a capital with *'s* behind it, tagged as a name | 0.85 |
    /// | a listed name without a capital that is no common word | 0.6 |
    /// | a capital at the start of the sentence, tagged as a name, on no list | 0.5 |
    ///
    /// ```
    /// use cuemark_text::names::{NAME_THRESHOLD, NameList};
    /// let sentence = "Sheldon gives the woman a cup of tea";
    /// let found = NameList::embedded().score(sentence);
    /// assert_eq!(&sentence[found[0].bytes.clone()], "Sheldon");
    /// assert!(found[0].score > NAME_THRESHOLD);
    /// assert_eq!(found.len(), 1);
    /// ```
    pub fn score(&self, sentence: &str) -> Vec<NameScore> {
        let tokens = tokenize(sentence);
        let tags = Tagger::embedded().tag(&tokens);
        let scored = (0..tokens.len()).map(|index| (index, self.score_token(&tokens, &tags, index)));
        let named = scored.filter(|(_, score)| *score > 0.0);
        named.map(|(index, score)| NameScore { bytes: tokens[index].bytes(), score }).collect()
    }

    /// The highest score of any token; 0 when nothing looks like a name.
    pub fn highest(&self, sentence: &str) -> f64 {
        self.score(sentence).iter().map(|name| name.score).fold(0.0, f64::max)
    }

    fn score_token(&self, tokens: &[Token<'_>], tags: &[Pos], index: usize) -> f64 {
        let (text, tag) = (tokens[index].text, tags[index]);
        let lower = text.to_lowercase();
        let capital = text.starts_with(char::is_uppercase);
        let is_title =
            |at: Option<&Token<'_>>| at.is_some_and(|token| TITLES.contains(&token.text.to_lowercase().as_str()));
        let before = index.checked_sub(1).and_then(|at| tokens.get(at));
        let after = tokens.get(index + 1);
        let follows_title = capital && is_title(before);
        let opens_name = text.ends_with('.') && is_title(Some(&tokens[index]));
        if follows_title || opens_name && capital {
            return 0.95;
        }
        let listed = self.names.contains(&lower);
        let common = is_common(&lower);
        let possessive = after.is_some_and(|token| matches!(token.text, "'s" | "\u{2019}s"));
        match (listed, capital, tag == Pos::Propn) {
            (true, true, _) if !common => 1.0,
            (true, true, true) => 0.9,
            (true, false, _) if !common => 0.6,
            (false, true, true) if is_place_or_time(&lower) => 0.3,
            (false, true, true) if index > 0 || possessive => 0.85,
            (false, true, true) => 0.5,
            _ => 0.0,
        }
    }
}

/// Whether the lexicon knows `word` as something other than a name.
fn is_common(word: &str) -> bool {
    Lexicon::embedded().look_up(word).kinds & !Kind::Name.bit() != 0
}

/// Whether WordNet lists `word` with a capital: countries, cities, days, months and the like, hardly ever given names.
fn is_place_or_time(word: &str) -> bool {
    Lexicon::embedded().look_up(word).has(Kind::Name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sentence: &str) -> Vec<&str> {
        let scored = NameList::embedded().score(sentence);
        scored.into_iter().filter(|name| name.score >= NAME_THRESHOLD).map(|name| &sentence[name.bytes]).collect()
    }

    #[test]
    fn listed_names_are_found_also_where_they_are_words() {
        assert_eq!(names("Phoebe puts one of her ponytails in her mouth."), ["Phoebe"]);
        assert_eq!(names("House takes the mask off Wilson's face."), ["House", "Wilson"]);
    }

    #[test]
    fn words_that_could_be_names_are_left_alone_where_they_are_words() {
        assert!(names("The man walks to the house and the castle.").is_empty());
        assert!(names("Woman with red nails applies face cream.").is_empty());
    }

    #[test]
    fn titles_and_capitals_inside_the_sentence_give_names_away() {
        assert_eq!(names("The nurse greets Mrs. Xyzzy at the door."), ["Mrs.", "Xyzzy"]);
        assert_eq!(names("A man tells Quuxley a joke."), ["Quuxley"]);
    }

    #[test]
    fn another_list_finds_other_names() {
        let list = NameList::new(["Blorp"]);
        assert!(list.highest("Blorp opens the door") >= NAME_THRESHOLD);
        assert!(list.highest("the man opens the door") < 0.1);
    }
}
