//! Numbers that only name or count something: labels and the numbers of lists.

use super::lex::Kind;
use super::times::{Reader, What};
use super::words::LABEL;

impl Reader<'_> {
    /// Whether the number that stands here is written without a point; `12.0` names nothing.
    fn is_whole(&self, value: f64) -> bool {
        let literal = self.tokens.get(self.place).and_then(|token| self.text.get(token.at.clone()));
        (0.0..10_000.0).contains(&value) && literal.is_some_and(|literal| !literal.contains(['.', ',']))
    }

    fn links(&self, place: usize) -> bool {
        (self.kind(place) == Some(Kind::Dash) || self.is(place, &["to", "until", "and", "through"]))
            && matches!(self.kind(place + 1), Some(Kind::Number(_) | Kind::Clock(_)))
    }

    /// `Segment 1: …`, `player 23`, `#4`: a number that names, unless it begins a range of its own.
    pub(super) fn is_label(&self, value: f64, after: usize) -> bool {
        if !self.is_whole(value) {
            return false;
        }
        let hash = self.tokens.get(self.place).is_some_and(|token| {
            token.at.start.checked_sub(1).and_then(|before| self.text.as_bytes().get(before)) == Some(&b'#')
        });
        let word = self.elements.last().filter(|element| element.what == What::Word);
        let named = word
            .and_then(|element| self.text.get(element.at.clone()))
            .is_some_and(|word| LABEL.iter().any(|known| word.eq_ignore_ascii_case(known)));
        // `Segment 1 - 5s to 9s` names, `window 5 - 9` does not.
        hash || named && (!self.links(after) || self.links(after + 2) || self.links(after + 3))
    }

    /// `1.`, `2)`, `3:` at the head of a line; `2)` inside one; `(1)` anywhere.
    pub(super) fn is_list_number(&self, value: f64, after: usize) -> bool {
        if !self.is_whole(value) || value >= 100.0 {
            return false;
        }
        let Some(token) = self.tokens.get(self.place) else { return false };
        let bytes = self.text.as_bytes();
        let next = bytes.get(token.at.end).copied();
        let spaced = bytes.get(token.at.end + 1).is_none_or(|byte| byte.is_ascii_whitespace() || *byte == b'*');
        let more = self.tokens.get(after..).is_some_and(|rest| {
            rest.iter()
                .take(24)
                .any(|token| matches!(token.kind, Kind::Number(_) | Kind::Clock(_) | Kind::Word | Kind::Ordinal(_)))
        });
        let last = self.elements.last().map(|element| element.what);
        let heads_line = self
            .elements
            .iter()
            .rev()
            .take_while(|element| element.what != What::Mark(Kind::Line))
            .all(|element| matches!(element.what, What::Mark(Kind::Dash | Kind::Pipe | Kind::Open)));
        if heads_line && self.links(after) && (self.links(after + 2) || self.links(after + 3)) {
            // `1 - 5s to 9s`
            return true;
        }
        if heads_line && more && spaced && matches!(next, Some(b'.' | b')' | b':' | b']')) {
            return true;
        }
        let opened = last == Some(What::Mark(Kind::Open));
        let closed = self.kind(after) == Some(Kind::Close);
        (opened && closed && more && next == Some(b')'))
            || (next == Some(b')') && !opened && more && spaced && !self.in_brackets())
    }

    /// Whether a bracket that opened a little before is still open here.
    fn in_brackets(&self) -> bool {
        let mut depth = 0i32;
        for element in self.elements.iter().rev().take(32) {
            match element.what {
                What::Mark(Kind::Open) if depth == 0 => return true,
                What::Mark(Kind::Open) => depth -= 1,
                What::Mark(Kind::Close) => depth += 1,
                What::Mark(Kind::Line) => return false,
                _ => {}
            }
        }
        false
    }
}
