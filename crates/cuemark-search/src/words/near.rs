//! Words that differ by one slip of a recogniser.

/// Letters that a word has at least before one may be wrong: most short words are one letter from another word.
const LONG: usize = 5;

/// Whether two different words are one slip apart: a letter too many, too few or another, in words of five letters and more.
pub(super) fn is_near(a: &str, b: &str) -> bool {
    // Bytes first: most words are ruled out by their lengths alone.
    if a.len().abs_diff(b.len()) > 4 || a.len().max(b.len()) < LONG {
        return false;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if short.len() + 1 < long.len() || short.len() < LONG - 1 || long.len() < LONG {
        return false;
    }
    let same = short.iter().zip(&long).take_while(|(a, b)| a == b).count();
    match (short.len() == long.len(), same == short.len()) {
        (true, true) => false,
        (true, false) => short.len() >= LONG && short[same + 1..] == long[same + 1..],
        (false, _) => short[same..] == long[same + 1..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_letter_of_a_long_word_may_be_wrong() {
        for (a, b) in
            [("tigar", "tiger"), ("tigger", "tiger"), ("tige", "tiger"), ("xbudget", "budget"), ("grün5", "grüns")]
        {
            assert!(is_near(a, b) && is_near(b, a), "{a} {b}");
        }
        for (a, b) in
            [("tiger", "tiger"), ("cat", "cut"), ("tiger", "tigress"), ("tgire", "tiger"), ("cats", "cat"), ("", "")]
        {
            assert!(!is_near(a, b) && !is_near(b, a), "{a} {b}");
        }
    }
}
