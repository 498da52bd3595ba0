//! What the words before a time say that it is.

use super::lex::Kind;
use super::times::{Element, What};
use super::words::{APPEARS, AT, END, END_FAR, FILLER, FIRST, LAST, LASTING, START, START_FAR};

/// What a time is, by the words before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    None,
    Start,
    End,
    Lasting,
    Between,
    /// The first so many seconds.
    First,
    /// The last so many.
    Last,
}

/// How many elements are looked at.
const BACK: usize = 16;

/// The cue of the time at `place`.
pub(super) fn cue(text: &str, elements: &[Element], place: usize) -> Cue {
    let (mut far, mut at, mut adjacent) = (false, false, true);
    let before = elements.get(..place).unwrap_or_default();
    for (back, element) in before.iter().rev().take(BACK).enumerate() {
        match element.what {
            What::Mark(Kind::Colon | Kind::Open | Kind::Close | Kind::TagOpen | Kind::TagClose) => {}
            What::Mark(Kind::Dash) if back == 0 => {}
            What::Word => {
                let word = text.get(element.at.clone()).unwrap_or_default();
                let any = |list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
                if far {
                    if any(START_FAR) {
                        return Cue::Start;
                    }
                    if any(END_FAR) {
                        return Cue::End;
                    }
                    continue;
                }
                if any(&["between", "betwixt"]) {
                    return Cue::Between;
                }
                if adjacent && any(FIRST) {
                    return Cue::First;
                }
                if adjacent && any(LAST) && (!any(&["last"]) || is_adjective(text, before, back)) {
                    return Cue::Last;
                }
                if any(START) || element.tag && any(&["s"]) {
                    return Cue::Start;
                }
                if any(END) || element.tag && any(&["e"]) {
                    return if is_late_start(text, before, before.len() - 1 - back) { Cue::Start } else { Cue::End };
                }
                if any(LASTING) || any(&["last"]) {
                    return Cue::Lasting;
                }
                at |= any(AT);
                if !any(FILLER) && !element.tag {
                    // `starts pouring the milk at 14 s`: the verb may stand further back.
                    if !at {
                        return Cue::None;
                    }
                    far = true;
                }
                adjacent = false;
            }
            _ => return Cue::None,
        }
    }
    Cue::None
}

/// Whether the word at `place` is the `until` of `does not start until 30 s`, which names a start.
pub(super) fn is_late_start(text: &str, elements: &[Element], place: usize) -> bool {
    let word = |place: usize| {
        let element = elements.get(place).filter(|element| element.what == What::Word)?;
        text.get(element.at.clone())
    };
    let is = |place: usize, list: &[&str]| {
        word(place).is_some_and(|word| list.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    let denies = |place: usize| {
        is(place, &["not", "never", "cannot"])
            || word(place).is_some_and(|word| word.ends_with("n't") || word.ends_with("n’t"))
    };
    is(place, &["until", "till"])
        && (1..=2).filter_map(|back| place.checked_sub(back)).any(|place| is(place, START_FAR) || is(place, APPEARS))
        && (1..=5).filter_map(|back| place.checked_sub(back)).any(denies)
}

/// Whether `last`, `back` elements before the end, is the last one of something rather than a verb.
fn is_adjective(text: &str, before: &[Element], back: usize) -> bool {
    let word = before.len().checked_sub(back + 2).and_then(|place| before.get(place));
    word.is_none_or(|element| match element.what {
        What::Word => text.get(element.at.clone()).is_some_and(|word| {
            let known = ["the", "its", "very", "of", "or", "nor", "only", "in", "during", "these"];
            word.ends_with("'s") || known.iter().any(|known| word.eq_ignore_ascii_case(known))
        }),
        _ => true,
    })
}
