//! Regular English inflection, for writing sentences (the library only goes the other way).

/// The third person: *washes*, *carries*, *opens*. Also the plural of nouns.
pub(crate) fn with_s(base: &str) -> String {
    if ends_in_consonant_y(base) {
        return format!("{}ies", &base[..base.len() - 1]);
    }
    let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|ending| base.ends_with(ending));
    if hisses || base.ends_with('o') && !base.ends_with("oo") && base.len() <= 4 {
        return format!("{base}es");
    }
    format!("{base}s")
}

/// The past: *washed*, *carried*, *stopped*.
pub(crate) fn with_ed(base: &str) -> String {
    if ends_in_consonant_y(base) {
        return format!("{}ied", &base[..base.len() - 1]);
    }
    if base.ends_with('e') {
        return format!("{base}d");
    }
    format!("{}ed", doubled(base))
}

/// The present participle: *washing*, *taking*, *stopping*, *lying*.
pub(crate) fn with_ing(base: &str) -> String {
    if let Some(stem) = base.strip_suffix("ie") {
        return format!("{stem}ying");
    }
    if base.ends_with('e') && !base.ends_with("ee") && !base.ends_with("ye") && !base.ends_with("oe") {
        return format!("{}ing", &base[..base.len() - 1]);
    }
    format!("{}ing", doubled(base))
}

fn ends_in_consonant_y(base: &str) -> bool {
    let mut letters = base.chars().rev();
    letters.next() == Some('y') && letters.next().is_some_and(|before| !is_vowel(before))
}

/// The base with its last consonant doubled where spelling asks for it: one syllable, one vowel, one consonant.
fn doubled(base: &str) -> String {
    let letters: Vec<char> = base.chars().collect();
    let mut syllables = 0;
    for (index, &letter) in letters.iter().enumerate() {
        let after_vowel = index > 0 && letters.get(index - 1).is_some_and(|before| is_vowel(*before));
        syllables += usize::from(is_vowel(letter) && !after_vowel);
    }
    let known =
        ["begin", "forget", "admit", "refer", "regret", "permit", "occur", "submit", "commit", "unzip"].contains(&base);
    match letters.as_slice() {
        [.., before, vowel, last]
            if (syllables == 1 || known) && !is_vowel(*before) && is_vowel(*vowel) && !"aeiouwxy".contains(*last) =>
        {
            format!("{base}{last}")
        }
        ['q', 'u', 'i', last] | [_, 'q', 'u', 'i', last] => format!("{base}{last}"),
        _ => base.to_owned(),
    }
}

fn is_vowel(letter: char) -> bool {
    "aeiou".contains(letter)
}
