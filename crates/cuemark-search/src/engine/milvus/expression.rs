//! Conditions in Milvus' own language.

use std::fmt::Write as _;

use cuemark_core::VideoId;

use crate::Filter;

/// `text` as a literal, whatever it holds.
///
/// Milvus reads escapes as C does; everything else, text beyond ASCII too, stands for itself.
pub(super) fn quoted(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                literal.push('\\');
                literal.push(c);
            }
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            c if c.is_ascii_control() => {
                let _ = write!(literal, "\\x{:02x}", c as u32);
            }
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// `["a", "b"]`
pub(super) fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(quoted).collect();
    format!("[{}]", quoted.join(", "))
}

/// The condition that a filter makes on moments; `None` when it lets nothing through.
pub(super) fn of(filter: &Filter) -> Option<String> {
    let mut parts = vec!["present == true".to_owned()];
    if let Some(videos) = &filter.videos {
        let mut names: Vec<&str> = videos.iter().map(VideoId::as_str).collect();
        names.sort_unstable();
        match names.as_slice() {
            [] => return None,
            [one] => parts.push(format!("video == {}", quoted(one))),
            several => parts.push(format!("video in {}", list(several.iter().copied()))),
        }
    }
    parts.extend(filter.tags.iter().map(|tag| format!("json_contains(tags[\"tags\"], {})", quoted(tag))));
    if let Some(within) = filter.within {
        parts.push(format!("start >= {:?} and end <= {:?}", within.start(), within.end()));
    }
    Some(parts.join(" and "))
}

#[cfg(test)]
mod tests {
    use cuemark_core::Span;

    use super::*;

    #[test]
    fn hostile_names_stay_inside_their_quotes() {
        assert_eq!(quoted(r#"a" or id > 0 or ""#), r#""a\" or id > 0 or \"""#);
        assert_eq!(quoted("back\\slash\nline\u{1}"), r#""back\\slash\nline\x01""#);
        assert_eq!(quoted("šílený"), "\"šílený\"");
    }

    #[test]
    fn filters_become_conditions() {
        assert_eq!(of(&Filter::default()).unwrap(), "present == true");
        let filter = Filter {
            videos: Some(["b", "a"].into_iter().map(Into::into).collect()),
            tags: vec!["day".to_owned()],
            within: Some(Span::new(1.0, 2.5).unwrap()),
        };
        assert_eq!(
            of(&filter).unwrap(),
            r#"present == true and video in ["a", "b"] and json_contains(tags["tags"], "day") and start >= 1.0 and end <= 2.5"#
        );
        assert!(of(&Filter { videos: Some(std::iter::empty().collect()), ..Filter::default() }).is_none());
    }
}
