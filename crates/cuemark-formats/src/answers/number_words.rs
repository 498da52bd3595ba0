//! `twenty-five`, `a hundred and ten`, `two and a half`, `half a`.

use super::lex::{Kind, Token};

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
/// From the fourth on: `first`, `second` and `third` mostly count something else.
const ORDINALS: [&str; 16] = [
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
];
const TENTHS: [&str; 8] =
    ["twentieth", "thirtieth", "fortieth", "fiftieth", "sixtieth", "seventieth", "eightieth", "ninetieth"];
const FEW: [&str; 3] = ["first", "second", "third"];

/// A number in words.
pub(super) struct Spelt {
    pub(super) value: f64,
    /// Tokens that it takes.
    pub(super) tokens: usize,
    pub(super) is_ordinal: bool,
}

/// The number in words that begins at `tokens[0]`.
pub(super) fn spelt(text: &str, tokens: &[Token]) -> Option<Spelt> {
    let word = |place: usize| -> Option<String> {
        let token = tokens.get(place).filter(|token| token.kind == Kind::Word)?;
        text.get(token.at.clone()).map(str::to_ascii_lowercase)
    };
    let first = word(0)?;
    if first == "half" && matches!(word(1).as_deref(), Some("a" | "an")) && is_long_unit(word(2).as_deref()) {
        return Some(Spelt { value: 0.5, tokens: 2, is_ordinal: false });
    }
    if matches!(first.as_str(), "a" | "an" | "one") && word(1).as_deref() == Some("hundred") {
        let skip = if word(2).as_deref() == Some("and") { 3 } else { 2 };
        let rest = tokens.get(skip..).and_then(|rest| below_hundred(text, rest));
        return Some(match rest {
            Some(rest) => Spelt { value: 100.0 + rest.value, tokens: skip + rest.tokens, is_ordinal: rest.is_ordinal },
            None => Spelt { value: 100.0, tokens: 2, is_ordinal: false },
        });
    }
    if matches!(first.as_str(), "a" | "an") && is_long_unit(word(1).as_deref()) {
        return Some(Spelt { value: 1.0, tokens: 1, is_ordinal: false });
    }
    let found = below_hundred(text, tokens)?;
    let next = |ahead: usize| word(found.tokens + ahead);
    if next(0).as_deref() == Some("point") {
        let digit = next(1).and_then(|last| SMALL.iter().position(|known| *known == last)).filter(|digit| *digit < 10);
        if let Some(digit) = digit {
            return Some(Spelt {
                value: found.value + digit as f64 / 10.0,
                tokens: found.tokens + 2,
                is_ordinal: false,
            });
        }
    }
    if next(0).as_deref() == Some("and") && next(1).as_deref() == Some("a") && next(2).as_deref() == Some("half") {
        return Some(Spelt { value: found.value + 0.5, tokens: found.tokens + 3, is_ordinal: false });
    }
    Some(found)
}

/// `a second` is seldom a time, `a minute` mostly is.
fn is_long_unit(word: Option<&str>) -> bool {
    matches!(word, Some("minute" | "min" | "hour"))
}

fn below_hundred(text: &str, tokens: &[Token]) -> Option<Spelt> {
    let word = |place: usize| {
        let token = tokens.get(place).filter(|token| token.kind == Kind::Word)?;
        text.get(token.at.clone()).map(str::to_ascii_lowercase)
    };
    let first = word(0)?;
    let place = |list: &[&str], wanted: &str| list.iter().position(|known| *known == wanted);
    if let Some(value) = place(&SMALL, &first) {
        return Some(Spelt { value: value as f64, tokens: 1, is_ordinal: false });
    }
    if let Some(value) = place(&ORDINALS, &first) {
        return Some(Spelt { value: value as f64 + 4.0, tokens: 1, is_ordinal: true });
    }
    if let Some(tens) = place(&TENTHS, &first) {
        return Some(Spelt { value: 10.0 * (tens as f64 + 2.0), tokens: 1, is_ordinal: true });
    }
    let tens = 10.0 * (place(&TENS, &first)? as f64 + 2.0);
    let hyphen = tokens.get(1).is_some_and(|token| token.kind == Kind::Dash);
    let ahead = if hyphen { 2 } else { 1 };
    if let Some(last) = word(ahead) {
        if let Some(value) = place(&SMALL, &last).filter(|value| (1..10).contains(value)) {
            return Some(Spelt { value: tens + value as f64, tokens: ahead + 1, is_ordinal: false });
        }
        if let Some(value) = place(&ORDINALS, &last).filter(|value| *value < 6) {
            return Some(Spelt { value: tens + value as f64 + 4.0, tokens: ahead + 1, is_ordinal: true });
        }
        // `fifty-second mark` is a length of fifty seconds, `fifty-second second` the 52nd.
        let counts = matches!(word(ahead + 1).as_deref(), Some("second" | "frame"));
        if let Some(value) = place(&FEW, &last).filter(|value| hyphen && (*value != 1 || counts)) {
            return Some(Spelt { value: tens + value as f64 + 1.0, tokens: ahead + 1, is_ordinal: true });
        }
    }
    Some(Spelt { value: tens, tokens: 1, is_ordinal: false })
}
