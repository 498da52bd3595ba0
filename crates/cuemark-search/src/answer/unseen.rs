//! Words of a question that nothing the encoder recognises comes near: what it cannot be asked for by sight.

use cuemark_text::{Pos, Tagger, tokenize, words_of};

use super::explain::{MOST_WORDS, is_filler};
use crate::words::lemma;
use crate::{Index, Result};

/// Who is seen needs no name of their own: nearly every action that is recognised is somebody's.
const PEOPLE: [&str; 20] = [
    "somebody", "someone", "person", "people", "man", "woman", "men", "women", "boy", "girl", "child", "children",
    "kid", "guy", "lady", "he", "she", "they", "him", "her",
];

/// Colours, which no class name tells apart: a sentence encoder takes each for the fruit or the animal that is called by one.
const COLOURS: [&str; 14] = [
    "black", "white", "red", "green", "blue", "yellow", "brown", "grey", "gray", "pink", "purple", "orange", "silver",
    "golden",
];

/// A word that the encoder cannot see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenWord {
    /// As it was asked, in lower case.
    pub word: String,
    /// What comes nearest to it of all that is recognised.
    pub nearest: String,
}

/// The words of a question that no name covers, in their order; none for encoders that recognise nothing by name.
pub(super) fn unseen(index: &Index, text: &str) -> Result<Vec<UnseenWord>> {
    if index.encoder().names_nothing() {
        return Ok(Vec::new());
    }
    // Things and colours: what a class name may say. How something is done, and where, none of them does.
    let mut words: Vec<String> = Vec::new();
    let tokens = tokenize(text);
    for (token, pos) in tokens.iter().zip(Tagger::embedded().tag(&tokens)) {
        let word = token.text.to_lowercase();
        let is_thing = matches!(pos, Pos::Noun) || COLOURS.contains(&word.as_str());
        let is_plain = !is_filler(&word) && !PEOPLE.contains(&word.as_str()) && !words.contains(&word);
        if is_thing && is_plain && word.chars().any(char::is_alphabetic) && index.encoder().knows(&word) {
            words.push(word);
        }
    }
    words.truncate(MOST_WORDS);
    let asked: Vec<&str> = words.iter().map(String::as_str).collect();
    let embeddings = index.sentences(&asked)?;
    let mut unseen = Vec::new();
    for (word, embedding) in words.into_iter().zip(&embeddings) {
        let Some(nearest) = index.encoder().nearest_name(embedding) else { continue };
        let base = lemma(&word);
        let is_in_name = words_of(&nearest.name).iter().any(|part| *part == word || lemma(part) == base);
        let is_colour = COLOURS.contains(&word.as_str());
        if is_colour || !(nearest.covers || is_in_name) {
            unseen.push(UnseenWord { word, nearest: nearest.name });
        }
    }
    Ok(unseen)
}
