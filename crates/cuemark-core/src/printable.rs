//! Names from outside on a terminal or in a log.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with control characters written out (`\\u{1b}`), and those that turn the direction of what follows or end a line: a file
/// can have any name, and a name must not move the cursor, colour the screen or pass for two lines.
///
/// ```
/// use cuemark_core::printable;
/// assert_eq!(printable("\u{1b}[31mred\nrow"), "\\u{1b}[31mred\\u{a}row");
/// assert_eq!(printable("日本語 – ça"), "日本語 – ça");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unruly) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_unruly(character) {
            // Writing to a string does not fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

fn is_unruly(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
        || ('\u{202a}'..='\u{202e}').contains(&character)
        || ('\u{2066}'..='\u{2069}').contains(&character)
}
