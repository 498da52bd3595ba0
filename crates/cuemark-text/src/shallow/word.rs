//! Words as the parser sees them, and the few it knows by name.

use crate::Pos;
use crate::lexicon::{Kind, Lexicon};

/// A token as the parser sees it.
pub(super) struct Word {
    pub(super) lower: String,
    pub(super) tag: Pos,
    pub(super) form: Form,
}

/// The form of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Present or base: *opens*, *open*.
    Finite,
    Ing,
    /// Past or participle: *opened*, *taken*.
    Past,
}

impl Word {
    pub(super) fn new(text: &str, tag: Pos) -> Self {
        let lower = text.to_lowercase().replace('\u{2019}', "'");
        let form = if tag == Pos::Verb { Form::of(&lower) } else { Form::Finite };
        Self { lower, tag, form }
    }

    pub(super) fn is(&self, word: &str) -> bool {
        self.lower == word
    }

    pub(super) fn is_any(&self, words: &[&str]) -> bool {
        words.contains(&self.lower.as_str())
    }

    pub(super) fn is_possessive_mark(&self) -> bool {
        self.tag == Pos::Part && self.lower.starts_with('\'')
    }

    pub(super) fn is_be(&self) -> bool {
        self.is_any(&["is", "are", "was", "were", "be", "been", "being", "am", "'s", "'re", "'m"])
    }
}

impl Form {
    fn of(word: &str) -> Self {
        let reading = Lexicon::embedded().look_up(word);
        if word.ends_with("ing") && (reading.has(Kind::Ing) || !reading.has(Kind::Base)) {
            Self::Ing
        } else if reading.has(Kind::Past) && !reading.has(Kind::Base) || reading.kinds == 0 && word.ends_with("ed") {
            Self::Past
        } else {
            Self::Finite
        }
    }
}

/// Verbs whose particle is not a preposition even when a noun phrase follows.
pub(super) const PHRASAL: &[(&str, &[&str])] = &[
    ("pick", &["up", "out"]),
    ("put", &["on", "down"]),
    ("take", &["off", "out"]),
    ("turn", &["on", "off"]),
    ("hold", &["up", "out"]),
    ("set", &["up", "down"]),
    ("lay", &["down", "out"]),
    ("clean", &["up", "off", "out"]),
    ("cut", &["up", "off", "out"]),
    ("chop", &["up", "off"]),
    ("pull", &["out", "off", "up"]),
    ("throw", &["out", "up", "down"]),
    ("lift", &["up"]),
    ("fold", &["up"]),
    ("roll", &["up", "out"]),
    ("wrap", &["up"]),
    ("wipe", &["off", "down"]),
    ("wash", &["off"]),
    ("rinse", &["off"]),
    ("slice", &["off"]),
    ("peel", &["off"]),
    ("scrape", &["off"]),
    ("shake", &["off"]),
    ("fill", &["up"]),
    ("get", &["out"]),
    ("hand", &["out", "over"]),
    ("give", &["out"]),
    ("show", &["off"]),
    ("try", &["on", "out"]),
    ("tie", &["up"]),
    ("hang", &["up"]),
    ("mix", &["in"]),
    ("stir", &["in"]),
    ("squeeze", &["out"]),
    ("scoop", &["out"]),
    ("open", &["up"]),
    ("blow", &["out", "up"]),
    ("knock", &["over", "down"]),
];

/// Verbs after which *a man walking* says what the man does.
pub(super) const PERCEIVING: [&str; 9] = ["see", "watch", "hear", "show", "film", "find", "catch", "notice", "feature"];
/// Verbs that take a bare verb after their object: *lets the oil heat*.
pub(super) const CAUSING: [&str; 7] = ["let", "make", "help", "have", "see", "watch", "hear"];
/// Nouns that say when or how often.
pub(super) const TIMES: [&str; 8] = ["time", "times", "minutes", "hours", "seconds", "day", "night", "morning"];
