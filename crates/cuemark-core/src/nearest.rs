//! What somebody may have meant by a name that nothing has.

/// How alike two names must be for one to be offered for the other: a slip or two, not another word.
const ALIKE: f64 = 0.75;

/// The known name that is most like `name`, whatever its case; `None` when none is alike. Of equally alike ones the last.
///
/// ```
/// use cuemark_core::nearest::nearest;
/// assert_eq!(nearest("charade-sta", ["tacos", "charades-sta"]), Some("charades-sta"));
/// assert_eq!(nearest("zebra", ["tacos", "charades-sta"]), None);
/// ```
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (likeness(name, candidate), candidate))
        .filter(|(alike, _)| *alike > ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The known name that `name` is a slip of the pen for: a letter too many, too few, wrong, or two swapped, in a name of at
/// least five; `None` when it is known itself or no such slip.
///
/// Stricter than [`nearest`], for names that may well be meant: `duratoin` is a slip for `duration`, `source` is none.
///
/// ```
/// use cuemark_core::nearest::slip;
/// assert_eq!(slip("duratoin", ["duration", "spans"]), Some("duration"));
/// assert_eq!(slip("source", ["score", "spans"]), None);
/// ```
pub fn slip<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    if known.clone().into_iter().any(|candidate| candidate == name) {
        return None;
    }
    let lower = name.to_lowercase();
    let allowed = |candidate: &str| if candidate.len() >= 12 { 2 } else { 1 };
    known
        .into_iter()
        .filter(|candidate| candidate.len() >= 5)
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= allowed(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How alike two names are, from 0 to 1 for names that are the same but for their case (Jaro and Winkler).
pub fn likeness(one: &str, other: &str) -> f64 {
    strsim::jaro_winkler(&one.to_lowercase(), &other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_whatever_their_case_and_strangers_are_not() {
        let known = ["train", "val", "test-iid", "test-ood"];
        assert_eq!(nearest("TRIAN", known), Some("train"));
        assert_eq!(nearest("test-odd", known), Some("test-ood"));
        assert_eq!(nearest("x", known), None);
        assert_eq!(nearest("", known), None);
    }
}
