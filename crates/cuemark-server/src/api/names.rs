//! Several names in one field of a query.

/// Names separated by commas, without the spaces around them. A backslash before a comma or another backslash makes it part of the
/// name: films are called after files, and those may have commas.
pub(super) fn names(text: &str) -> Vec<String> {
    let (mut names, mut letters) = (vec![String::new()], text.chars().peekable());
    while let Some(letter) = letters.next() {
        let escaped = if letter == '\\' { letters.next_if(|next| matches!(next, ',' | '\\')) } else { None };
        match (letter, escaped, names.last_mut()) {
            (',', None, _) => names.push(String::new()),
            (letter, escaped, Some(name)) => name.push(escaped.unwrap_or(letter)),
            (_, _, None) => {}
        }
    }
    names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_names_unless_they_are_part_of_one() {
        assert_eq!(names(" a, b ,,c"), ["a", "b", "c"]);
        assert_eq!(names(r"one\, two,three\\,C:\x"), ["one, two", r"three\", r"C:\x"]);
        assert_eq!(names(r"\"), [r"\"]);
        assert!(names("").is_empty() && names(" , ").is_empty());
    }
}
