//! Words of lines and questions, as the index of words knows them.

use cuemark_text::{noun_lemma, verb_lemma};

/// Words that every sentence needs: they tell no line from another, unless somebody puts them between quotation marks.
const FILLERS: [&str; 109] = [
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been", "being", "but",
    "by", "can", "could", "did", "do", "does", "doing", "done", "for", "from", "had", "has", "have", "having", "he",
    "her", "here", "hers", "him", "his", "how", "i", "if", "im", "in", "into", "is", "it", "its", "just", "me", "my",
    "no", "nor", "not", "of", "off", "on", "or", "our", "ours", "out", "over", "own", "she", "should", "so", "some",
    "such", "than", "that", "thats", "the", "their", "theirs", "them", "then", "there", "these", "they", "this",
    "those", "to", "too", "under", "up", "us", "very", "was", "we", "were", "what", "when", "where", "which", "while",
    "who", "whom", "whose", "why", "will", "with", "would", "you", "your", "yours", "dont", "didnt", "isnt", "wasnt",
    "ill", "youre", "theyre",
];

/// Whether a word tells nothing.
pub(crate) fn is_filler(word: &str) -> bool {
    FILLERS.contains(&word)
}

/// The words of a text in lower case, in order: runs of letters and digits. An apostrophe inside a word is left out with what it
/// marks as another's (`Ross's` is `ross`, `don't` is `dont`: speech recognisers write either), and a sign of a script without
/// spaces is a word.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    let mut apostrophe = None;
    let mut close = |word: &mut String, apostrophe: &mut Option<usize>| {
        if let Some(at) = apostrophe.take()
            && word.get(at..) == Some("s")
        {
            word.truncate(at);
        }
        if !word.is_empty() {
            tokens.push(std::mem::take(word));
        }
    };
    for c in text.chars() {
        if is_unspaced(c) {
            close(&mut word, &mut apostrophe);
            word.push(c);
            close(&mut word, &mut apostrophe);
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        } else if matches!(c, '\'' | '’') && !word.is_empty() {
            apostrophe = Some(word.len());
        } else {
            close(&mut word, &mut apostrophe);
        }
    }
    close(&mut word, &mut apostrophe);
    tokens
}

/// Kana, and ideographs of Chinese and Japanese.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{3134f}')
}

/// The base form under which all forms of a word are found: `balls` and `ball`, `ran` and `running`.
pub(crate) fn lemma(word: &str) -> String {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let noun = noun_lemma(word);
    if noun == word { verb_lemma(word) } else { noun }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_case_and_apostrophes_do_not_count() {
        assert_eq!(tokens("Don't touch Ross’s T-shirt, 3.5!"), ["dont", "touch", "ross", "t", "shirt", "3", "5"]);
        assert_eq!(tokens("出口 EXIT"), ["出", "口", "exit"]);
        assert!(tokens(" '… ").is_empty());
    }

    #[test]
    fn forms_of_a_word_are_one() {
        for (form, base) in
            [("balls", "ball"), ("running", "run"), ("opened", "open"), ("houses", "house"), ("zqx", "zqx")]
        {
            assert_eq!(lemma(form), base);
        }
        assert_eq!(lemma("kafé"), "kafé");
    }
}
