//! Base forms of verbs and nouns: a table of irregular forms, then spelling rules checked against the lexicon.

use crate::lexicon::{Kind, Lexicon};

/// Plurals that are words of their own, and words that only look like plurals.
const PLURAL_ONLY: [&str; 22] = [
    "clothes",
    "glasses",
    "goggles",
    "gymnastics",
    "headphones",
    "jeans",
    "news",
    "pajamas",
    "pants",
    "politics",
    "scissors",
    "series",
    "shorts",
    "species",
    "sunglasses",
    "tongs",
    "trousers",
    "tweezers",
    "karaoke",
    "binoculars",
    "darts",
    "ruins",
];

/// The base form of a verb, in lower case.
///
/// Of words that are two verbs (*found*, *saw*, *felt*) the irregular form of the commoner one is taken: *find*, *see*,
/// *feel*; *lay* stays *lay*. Unknown words follow the spelling rules.
///
/// ```
/// use cuemark_text::verb_lemma;
/// assert_eq!(["opens", "Took", "putting", "vlogged"].map(verb_lemma), ["open", "take", "put", "vlog"]);
/// ```
pub fn verb_lemma(word: &str) -> String {
    let word = word.to_lowercase();
    match word.as_str() {
        "is" | "are" | "was" | "were" | "am" | "been" | "being" | "'s" | "'re" | "'m" => return "be".to_owned(),
        "has" | "had" | "having" | "'ve" => return "have".to_owned(),
        "does" | "did" | "done" | "doing" => return "do".to_owned(),
        "lay" | "wound" | "bound" => return word,
        _ => {}
    }
    let lexicon = Lexicon::embedded();
    lexicon.base_of(&word, Kind::Base).unwrap_or_else(|| {
        if lexicon.lists(&word, Kind::Base) { word.clone() } else { by_spelling(&word, &["ing", "ed"]) }
    })
}

/// The singular of a noun, in lower case; words that are plural by nature (*scissors*) stay as they are.
///
/// ```
/// use cuemark_text::noun_lemma;
/// assert_eq!(["doors", "Women", "knives", "glass", "news"].map(noun_lemma), ["door", "woman", "knife", "glass", "news"]);
/// ```
pub fn noun_lemma(word: &str) -> String {
    let word = word.to_lowercase();
    let no_plural = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    if no_plural || word.len() <= 3 && word.ends_with('s') || PLURAL_ONLY.contains(&word.as_str()) {
        return word;
    }
    let lexicon = Lexicon::embedded();
    lexicon
        .base_of(&word, Kind::Noun)
        .unwrap_or_else(|| if lexicon.lists(&word, Kind::Noun) { word.clone() } else { by_spelling(&word, &[]) })
}

/// The base of a word that no list knows: its ending is taken off, as the commonest spelling would have it.
fn by_spelling(word: &str, endings: &[&str]) -> String {
    for ending in endings {
        let Some(stem) = word.strip_suffix(ending).filter(|stem| stem.len() >= 3) else { continue };
        let mut letters = stem.chars().rev();
        let (last, before) = (letters.next(), letters.next());
        let doubled = last == before && !last.is_some_and(|letter| "lsz".contains(letter));
        let silent_e = last.is_some_and(|letter| "cuvz".contains(letter));
        return match (doubled, silent_e, last) {
            (true, _, Some(letter)) => stem[..stem.len() - letter.len_utf8()].to_owned(),
            (false, true, _) => format!("{stem}e"),
            _ => stem.to_owned(),
        };
    }
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() >= 2) {
        return format!("{stem}y");
    }
    for hiss in ["ches", "shes", "sses", "xes", "zes"] {
        if word.ends_with(hiss) {
            return word[..word.len() - 2].to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(stem) if stem.len() >= 3 && !stem.ends_with('s') => stem.to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_go_back_to_the_form_a_dictionary_lists() {
        for (form, base) in [
            ("sits", "sit"),
            ("washes", "wash"),
            ("carries", "carry"),
            ("lies", "lie"),
            ("leaves", "leave"),
            ("goes", "go"),
            ("running", "run"),
            ("putting", "put"),
            ("hopping", "hop"),
            ("hoping", "hope"),
            ("riding", "ride"),
            ("singing", "sing"),
            ("calling", "call"),
            ("lying", "lie"),
            ("opened", "open"),
            ("closed", "close"),
            ("stopped", "stop"),
            ("tried", "try"),
            ("agreed", "agree"),
            ("threw", "throw"),
            ("taken", "take"),
            ("saw", "see"),
            ("found", "find"),
            ("cut", "cut"),
            ("is", "be"),
            ("unboxes", "unbox"),
            ("blorping", "blorp"),
        ] {
            assert_eq!(verb_lemma(form), base, "{form}");
        }
    }

    #[test]
    fn nouns_go_back_to_the_singular() {
        for (form, base) in [
            ("men", "man"),
            ("children", "child"),
            ("boxes", "box"),
            ("dishes", "dish"),
            ("ladies", "lady"),
            ("leaves", "leaf"),
            ("shelves", "shelf"),
            ("gas", "gas"),
            ("bus", "bus"),
            ("buses", "bus"),
            ("dress", "dress"),
            ("tomatoes", "tomato"),
            ("shoes", "shoe"),
            ("blorps", "blorp"),
        ] {
            assert_eq!(noun_lemma(form), base, "{form}");
        }
    }

    #[test]
    fn any_text_has_a_base_form() {
        for word in ["", "s", "é", "ééing", "ßes", "🎉ed", "ing", "ies"] {
            let _ = (verb_lemma(word), noun_lemma(word));
        }
    }
}
