//! A look at the beginning of a file, enough to tell its layout.

use cuemark_formats::{Result, Source};

/// How many bytes are looked at: the longest first record of a published file fits in several times over.
const HEAD: usize = 1 << 18;
/// How many keys are kept.
const KEYS: usize = 512;

/// What stands at the beginning of a file.
#[derive(Debug, Default)]
pub(crate) struct Peek {
    first_line: String,
    opening: String,
    keys: Vec<(usize, String)>,
}

impl Peek {
    /// Looks at `source`.
    pub(crate) fn at(source: &Source) -> Result<Self> {
        Ok(Self::of(&source.head(HEAD)?))
    }

    fn of(head: &[u8]) -> Self {
        let text = String::from_utf8_lossy(head);
        let text = text.trim_start_matches('\u{feff}');
        let first_line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        let opening = text.chars().filter(|c| !c.is_whitespace()).take(2).collect();
        Self { first_line, opening, keys: json_keys(text.as_bytes()) }
    }

    /// The first line that is not blank.
    pub(crate) fn first_line(&self) -> &str {
        &self.first_line
    }

    /// Whether the first visible characters are these, two at most.
    pub(crate) fn opens_with(&self, opening: &str) -> bool {
        self.opening.starts_with(opening)
    }

    /// Whether an object at `depth` (1 for the outermost brackets, arrays counted too) has `key`.
    pub(crate) fn has(&self, depth: usize, key: &str) -> bool {
        self.keys.iter().any(|(at, name)| *at == depth && name == key)
    }

    /// Whether it has all of `keys` there.
    pub(crate) fn has_all(&self, depth: usize, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.has(depth, key))
    }

    /// The first key of the outermost object: in many files the name of a video.
    pub(crate) fn first_key(&self) -> Option<&str> {
        self.keys.iter().find(|(depth, _)| *depth == 1).map(|(_, key)| key.as_str())
    }
}

/// Distinct keys of the JSON objects in `text` with their depth, in order; the text may break off anywhere or be no JSON.
fn json_keys(text: &[u8]) -> Vec<(usize, String)> {
    let mut keys: Vec<(usize, String)> = Vec::new();
    let (mut depth, mut at) = (0usize, 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let begin = at;
                while let Some(&inner) = text.get(at) {
                    match inner {
                        b'"' => break,
                        b'\\' => at += 2,
                        _ => at += 1,
                    }
                }
                let string = text.get(begin..at).unwrap_or_default();
                at += 1;
                let next = text.get(at..).unwrap_or_default().trim_ascii_start().first();
                let is_new = || !keys.iter().any(|(at, key)| *at == depth && key.as_bytes() == string);
                if next == Some(&b':') && keys.len() < KEYS && depth <= 3 && is_new() {
                    keys.push((depth, String::from_utf8_lossy(string).into_owned()));
                }
            }
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_with_their_depth_even_where_the_file_breaks_off() {
        let peek = Peek::of(br#"{"v_a": {"duration": 3.5, "sentences": ["say \"x\": no", "y"], "times"#);
        assert_eq!(peek.first_key(), Some("v_a"));
        assert!(peek.has_all(2, &["duration", "sentences"]));
        assert!(!peek.has(2, "times") && !peek.has(3, "say \\\"x\\\""));
    }

    #[test]
    fn what_is_no_json_has_no_keys() {
        let peek = Peek::of(b"\n3MSZA 24.3 30.4##person turn a light on.\n");
        assert_eq!(peek.first_line(), "3MSZA 24.3 30.4##person turn a light on.");
        assert!(peek.keys.is_empty());
    }
}
