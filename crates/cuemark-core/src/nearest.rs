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
