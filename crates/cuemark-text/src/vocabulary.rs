//! Words by number.

use camino::Utf8Path;
use cuemark_formats::{Overwrite, Result, Source, WholeFile};
use rustc_hash::FxHashMap;

use crate::{Pos, tokenize};

/// The words of a collection of sentences, numbered; four numbers are not words.
///
/// ```
/// use cuemark_text::{Vocabulary, words_of};
/// let sentences = ["The ball spins.", "A ball leaves"].map(words_of);
/// let vocabulary = Vocabulary::of(sentences.iter().flatten(), 1);
/// assert_eq!(vocabulary.word(Vocabulary::FIRST_WORD), Some("ball"));
/// assert_eq!(vocabulary.id("dragon"), Vocabulary::UNKNOWN);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Vocabulary {
    words: Vec<String>,
    ids: FxHashMap<String, u32>,
}

impl Vocabulary {
    /// Where there is no word.
    pub const PADDING: u32 = 0;
    /// A word that is not in the vocabulary.
    pub const UNKNOWN: u32 = 1;
    /// Stands before the first word where a model wants a marker there.
    pub const START: u32 = 2;
    /// Stands after the last word where a model wants a marker there.
    pub const END: u32 = 3;
    /// The number of the first word.
    pub const FIRST_WORD: u32 = 4;

    /// Every word that occurs at least `least` times, the most frequent first, equally frequent ones by the alphabet.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a String>, least: usize) -> Self {
        let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
        let mut counted: Vec<(&str, usize)> = counts.into_iter().filter(|(_, count)| *count >= least).collect();
        counted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        Self::from_words(counted.into_iter().map(|(word, _)| word.to_owned()).collect())
    }

    fn from_words(words: Vec<String>) -> Self {
        let ids = words.iter().zip(Self::FIRST_WORD..).map(|(word, id)| (word.clone(), id)).collect();
        Self { words, ids }
    }

    /// The number of a word, [`Vocabulary::UNKNOWN`] when it has none.
    pub fn id(&self, word: &str) -> u32 {
        self.ids.get(word).copied().unwrap_or(Self::UNKNOWN)
    }

    /// The word of a number; `None` for numbers that are not words.
    pub fn word(&self, id: u32) -> Option<&str> {
        let position = id.checked_sub(Self::FIRST_WORD)?;
        self.words.get(position as usize).map(String::as_str)
    }

    /// The words, in the order of their numbers.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// How many numbers there are, those that are not words included.
    pub fn len(&self) -> usize {
        self.words.len() + Self::FIRST_WORD as usize
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Writes one word a line, in the order of their numbers.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Utf8Path, overwrite: Overwrite) -> Result<()> {
        let mut text = self.words.join("\n");
        text.push('\n');
        WholeFile::write_all_to(path, overwrite, text.as_bytes())
    }

    /// Reads what [`Vocabulary::write`] wrote.
    ///
    /// # Errors
    /// When the file cannot be read or holds a word twice.
    pub fn read(source: &Source) -> Result<Self> {
        let mut words = Vec::new();
        source.for_each_line(|number, line| {
            // In the list, and by its number.
            source.charge(number, 4 * size_of::<String>() + 2 * line.len() + 64)?;
            words.push(line.to_owned());
            Ok(())
        })?;
        let vocabulary = Self::from_words(words);
        if vocabulary.ids.len() != vocabulary.words.len() {
            return Err(source.fault("holds a word twice"));
        }
        Ok(vocabulary)
    }
}

/// The words of a sentence, in lower case and without punctuation.
///
/// ```
/// assert_eq!(cuemark_text::words_of("The red ball, spinning, leaves."), ["the", "red", "ball", "spinning", "leaves"]);
/// ```
pub fn words_of(sentence: &str) -> Vec<String> {
    let is_word = |text: &str| text.chars().any(char::is_alphanumeric);
    tokenize(sentence).iter().filter(|token| is_word(token.text)).map(|token| token.text.to_lowercase()).collect()
}

impl crate::Parse {
    /// The words in lower case and the parse with its positions counted in them: punctuation is left out of both.
    pub fn in_words(&self) -> (Vec<String>, Self) {
        let is_word =
            |token: &crate::TaggedToken| token.tag != Pos::Punct && token.text.chars().any(char::is_alphanumeric);
        let mut position = 0;
        let places: Vec<Option<usize>> = self
            .tokens
            .iter()
            .map(|token| {
                let place = is_word(token).then_some(position);
                position += usize::from(place.is_some());
                place
            })
            .collect();
        let place = |token: usize| places.get(token).copied().flatten();
        let tokens: Vec<_> = self.tokens.iter().filter(|token| is_word(token)).cloned().collect();
        let phrases = self.phrases.iter().filter_map(|phrase| {
            let nouns = phrase.nouns.iter().filter_map(|noun| place(*noun)).collect();
            Some(crate::Phrase { verb: place(phrase.verb)?, nouns })
        });
        let dependencies = self.dependencies.iter().filter_map(|dependency| {
            let (head, dependent) = (place(dependency.head)?, place(dependency.dependent)?);
            Some(crate::Dependency { head, dependent, ..*dependency })
        });
        let words = tokens.iter().map(|token| token.text.to_lowercase()).collect();
        let (phrases, dependencies) = (phrases.collect(), dependencies.collect());
        (words, Self { tokens, phrases, dependencies })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_numbers_through_a_file() {
        let words = words_of("the ball meets the box and the ball leaves");
        let vocabulary = Vocabulary::of(&words, 1);
        assert_eq!(vocabulary.words()[..2], ["the", "ball"]);
        assert_eq!(Vocabulary::of(&words, 2).words(), ["the", "ball"]);
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("words.txt")).unwrap();
        vocabulary.write(&path, Overwrite::Never).unwrap();
        assert_eq!(Vocabulary::read(&Source::new(&path)).unwrap(), vocabulary);
    }

    #[test]
    fn positions_of_a_parse_follow_its_words() {
        let parse = crate::shallow_parse("First, the man opens the door.");
        let (words, parse) = parse.in_words();
        assert_eq!(words, ["first", "the", "man", "opens", "the", "door"]);
        assert_eq!(parse.tokens.len(), words.len());
        let phrase = &parse.phrases[0];
        assert_eq!(words[phrase.verb], "opens");
        assert!(phrase.nouns.iter().any(|noun| words[*noun] == "door"), "{phrase:?}");
        parse.check().unwrap();
    }
}
