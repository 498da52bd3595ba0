//! A question as people type it: words, `"these words"`, `-not`, `-"not these words"`, `said:`, `written:`, `seen:`.

use cuemark_core::Track;

/// What a typed question says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Typed {
    /// Words outside of quotation marks.
    pub(super) text: Option<String>,
    /// What stands between quotation marks.
    pub(super) phrases: Vec<String>,
    /// Words that begin with `-`.
    pub(super) not: Vec<String>,
    /// What stands between quotation marks behind a `-`.
    pub(super) unsaid: Vec<String>,
    /// Tracks that were named; none for all.
    pub(super) tracks: Vec<Track>,
}

impl Typed {
    /// Reads a question. A quotation mark that is never closed is none, and neither is one inside a word (`a 5" nail`).
    pub(super) fn read(question: &str) -> Self {
        let mut typed = Self::default();
        let mut words: Vec<&str> = Vec::new();
        let mut left = question.trim_start();
        while !left.is_empty() {
            if let Some((track, rest)) = track(left) {
                if !typed.tracks.contains(&track) {
                    typed.tracks.push(track);
                }
                left = rest;
            } else if let Some((phrase, rest)) = left.strip_prefix('-').and_then(quoted) {
                typed.unsaid.push(phrase.to_owned());
                left = rest;
            } else if let Some((phrase, rest)) = quoted(left) {
                typed.phrases.push(phrase.to_owned());
                left = rest;
            } else {
                let (word, rest) = left.split_at(left.find(char::is_whitespace).unwrap_or(left.len()));
                let bare = word.trim_start_matches('-');
                if word.len() > bare.len() && !bare.is_empty() {
                    typed.not.push(bare.to_owned());
                } else if !bare.is_empty() {
                    words.push(word);
                }
                left = rest;
            }
            left = left.trim_start();
        }
        typed.text = (!words.is_empty()).then(|| words.join(" "));
        typed
    }
}

/// The track that is named at the beginning, and what stands behind its colon.
fn track(text: &str) -> Option<(Track, &str)> {
    Track::ALL.into_iter().find_map(|track| {
        let (name, rest) = text.split_at_checked(track.name().len())?;
        Some((track, rest.strip_prefix(':').filter(|_| name.eq_ignore_ascii_case(track.name()))?))
    })
}

/// What stands between the quotation marks at the beginning, and what stands behind them; `None` when there are none, or nothing
/// between them.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let open = text.chars().next().filter(|c| matches!(c, '"' | '“' | '”' | '„' | '«'))?;
    let inside = text.get(open.len_utf8()..)?;
    let end = inside.find(['"', '”', '“', '»'])?;
    let (phrase, rest) = inside.split_at(end);
    let rest = rest.get(rest.chars().next()?.len_utf8()..)?;
    phrase.chars().any(char::is_alphanumeric).then(|| (phrase.trim(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_every_kind_are_read() {
        let typed = Typed::read(r#"a man -red said:"the budget" speaks -“not this” Written: --blue -"#);
        assert_eq!(typed.text.as_deref(), Some("a man speaks"));
        assert_eq!(
            (typed.phrases, typed.not),
            (vec!["the budget".to_owned()], vec!["red".to_owned(), "blue".to_owned()])
        );
        assert_eq!((typed.unsaid, typed.tracks), (vec!["not this".to_owned()], vec![Track::Said, Track::Written]));
    }

    #[test]
    fn a_mark_that_is_never_closed_is_part_of_a_word() {
        let typed = Typed::read(r#"a 5" nail"#);
        assert_eq!((typed.text.as_deref(), typed.phrases.len()), (Some(r#"a 5" nail"#), 0));
        assert_eq!(Typed::read(r#""never closed"#).phrases.len(), 0);
        assert_eq!(Typed::read(r#""" "…""#).phrases.len(), 0);
        assert_eq!(Typed::read(" \t "), Typed::default());
        assert_eq!(Typed::read("saidé: x").tracks, []);
    }
}
