//! Cutting a sentence into tokens, with the place of each kept.

use std::ops::Range;

/// One token of a sentence, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// The token as written.
    pub text: &'a str,
    /// Its first **byte** in the sentence.
    pub start: usize,
}

impl Token<'_> {
    /// The **bytes** it takes in the sentence.
    pub fn bytes(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// Cuts a sentence into words, numbers and single marks, in order; white space belongs to none.
///
/// Much as the treebank tokenisers do: a clitic is a token of its own (`Ross|'s`, `do|n't`), hyphenated words stay whole, and
/// so do numbers (`3.5`, `1/2`) and titles (`Dr.`). Nothing is changed: the tokens' bytes are the sentence's bytes.
///
/// ```
/// let texts: Vec<_> = cuemark_text::tokenize("Ross's dog doesn't bark.").iter().map(|token| token.text).collect();
/// assert_eq!(texts, ["Ross", "'s", "dog", "does", "n't", "bark", "."]);
/// ```
pub fn tokenize(sentence: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::with_capacity(sentence.len() / 5 + 1);
    let mut rest = sentence;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return tokens };
        let start = sentence.len() - rest.len();
        let length = if first.is_alphanumeric() { word_length(rest) } else { mark_length(rest, first) };
        let (text, after) = rest.split_at(length);
        push_with_clitics(text, start, &mut tokens);
        rest = after;
    }
}

/// Bytes of the word at the front of `rest`: letters and digits, and marks that stand between two of them.
fn word_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().peekable();
    let mut length = 0;
    while let Some((at, c)) = chars.next() {
        let inside = match c {
            _ if c.is_alphanumeric() => true,
            '\'' | '\u{2019}' | '-' => chars.peek().is_some_and(|(_, next)| next.is_alphanumeric()),
            '.' | ',' | '/' | ':' => {
                let between_digits = rest[..at].ends_with(|before: char| before.is_ascii_digit());
                between_digits && chars.peek().is_some_and(|(_, next)| next.is_ascii_digit())
            }
            _ => false,
        };
        if !inside {
            break;
        }
        length = at + c.len_utf8();
    }
    if rest[length..].starts_with('.') && TITLES.contains(&&rest[..length]) { length + 1 } else { length }
}

/// Titles that keep their full stop.
const TITLES: [&str; 8] = ["Dr", "Mr", "Mrs", "Ms", "St", "dr", "mr", "mrs"];

/// Bytes of the mark at the front of `rest`: an apostrophe that opens a clitic takes its letters, dots stay together.
fn mark_length(rest: &str, first: char) -> usize {
    if matches!(first, '\'' | '\u{2019}') {
        let tail = &rest[first.len_utf8()..];
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_alphabetic()).len();
        if is_clitic(&tail[..letters]) {
            return first.len_utf8() + letters;
        }
    }
    if first == '.' {
        return rest.len() - rest.trim_start_matches('.').len();
    }
    first.len_utf8()
}

fn is_clitic(letters: &str) -> bool {
    ["s", "re", "m", "ve", "ll", "d"].iter().any(|clitic| letters.eq_ignore_ascii_case(clitic))
}

fn push_with_clitics<'a>(text: &'a str, start: usize, tokens: &mut Vec<Token<'a>>) {
    let cut = clitic_start(text);
    let (stem, clitic) = text.split_at(cut);
    tokens.push(Token { text: stem, start });
    if !clitic.is_empty() {
        tokens.push(Token { text: clitic, start: start + cut });
    }
}

/// Where the clitic of a word begins; the word's length when it has none.
fn clitic_start(word: &str) -> usize {
    let Some((at, apostrophe)) = word.char_indices().rev().find(|(_, c)| matches!(c, '\'' | '\u{2019}')) else {
        return word.len();
    };
    let letters = &word[at + apostrophe.len_utf8()..];
    if at == 0 {
        return word.len();
    }
    if letters.eq_ignore_ascii_case("t") && word[..at].ends_with(['n', 'N']) && at > 1 {
        return at - 1;
    }
    if is_clitic(letters) { at } else { word.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(sentence: &str) -> Vec<&str> {
        tokenize(sentence).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn clitics_are_tokens_of_their_own() {
        assert_eq!(texts("She's at Ross’s door"), ["She", "'s", "at", "Ross", "’s", "door"]);
        assert_eq!(texts("he can't, won't"), ["he", "ca", "n't", ",", "wo", "n't"]);
        assert_eq!(texts("the boys' ball"), ["the", "boys", "'", "ball"]);
        assert_eq!(texts("a vehicle 's cap"), ["a", "vehicle", "'s", "cap"]);
        assert_eq!(texts("o'clock"), ["o'clock"]);
    }

    #[test]
    fn hyphens_numbers_and_titles_stay_whole() {
        assert_eq!(texts("a t-shirt, 3.5 cups (1/2)."), ["a", "t-shirt", ",", "3.5", "cups", "(", "1/2", ")", "."]);
        assert_eq!(texts("Dr. House sits..."), ["Dr.", "House", "sits", "..."]);
        assert_eq!(texts("After,the host"), ["After", ",", "the", "host"]);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert!(tokenize("").is_empty());
        assert!(tokenize(" \t\u{a0}\n").is_empty());
    }

    proptest! {
        #[test]
        fn tokens_lie_in_order_where_they_say_and_cover_all_but_white_space(sentence in "\\PC{0,60}") {
            let mut end = 0;
            for token in tokenize(&sentence) {
                prop_assert!(!token.text.is_empty());
                prop_assert_eq!(&sentence[token.bytes()], token.text);
                prop_assert!(sentence[end..token.start].chars().all(char::is_whitespace));
                end = token.bytes().end;
            }
            prop_assert!(sentence[end..].trim().is_empty());
        }
    }
}
