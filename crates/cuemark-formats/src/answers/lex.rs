//! Cuts an answer into words, numbers and marks. Numbers that cannot be times (`720p`, `clip_0012`, dates) are no numbers here.

use std::ops::Range;

/// One piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Bytes of the answer.
    pub(super) at: Range<usize>,
    /// Whether it stands inside `<…>`.
    pub(super) tag: bool,
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// A word; apostrophes belong to it, underscores do not.
    Word,
    /// `12`, `12.5`, `12,5`.
    Number(f64),
    /// `12th`.
    Ordinal(f64),
    /// `1:05`, `01:02:03.5`, in seconds.
    Clock(f64),
    /// Dashes of all kinds, arrows, tildes, ellipses.
    Dash,
    /// `%`
    Percent,
    /// `'`, `′` right behind a number.
    Minutes,
    /// `"`, `″` right behind a number that has minutes in front, or `″` behind any.
    Seconds,
    /// `(`, `[`, `{`
    Open,
    /// `)`, `]`, `}`
    Close,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `:` and `=`
    Colon,
    /// `/`
    Slash,
    /// `|`
    Pipe,
    /// `&`
    And,
    /// `<` that opens a tag.
    TagOpen,
    /// `>` that closes one.
    TagClose,
    /// `.`, `!` at the end of a sentence.
    Stop,
    /// `?`
    Question,
    /// A line end.
    Line,
    /// Digits that are no time: a date, a version, part of a name.
    Opaque,
}

/// Letters that may follow a number without a space.
const SUFFIXES: [&str; 25] = [
    "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h", "hr", "hrs", "hour",
    "hours", "ms", "msec", "fps", "hz", "st", "nd", "rd", "th", "frames", "percent",
];

/// No time in a video is larger, in any unit.
const LARGEST: f64 = 1e9;

/// How far around a number its neighbours are looked for, in bytes.
const NEAR: usize = 8;

/// The longest tag whose end is looked for, in bytes.
const LONGEST_TAG: usize = 96;

pub(super) fn lex(text: &str) -> Vec<Token> {
    Lexer { text, bytes: text.as_bytes(), at: 0, tokens: Vec::new(), tag_end: 0, glued: false }.run()
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    tokens: Vec<Token>,
    /// Where the tag that stands here ends.
    tag_end: usize,
    /// Whether the digits that follow belong to a time such as `1m05s`, although a letter stands before them.
    glued: bool,
}

impl Lexer<'_> {
    fn run(mut self) -> Vec<Token> {
        while let Some(byte) = self.byte(0) {
            let glued = std::mem::take(&mut self.glued);
            match byte {
                b'0'..=b'9' => self.number(glued, false),
                b'.' if self.byte(1).is_some_and(|next| next.is_ascii_digit()) && !self.after_digit() => {
                    self.number(glued, false);
                }
                b'a'..=b'z' | b'A'..=b'Z' => self.word(),
                b'\n' => self.push(Kind::Line, 1),
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'<' => self.tag(),
                b'>' if self.at + 1 == self.tag_end => self.push(Kind::TagClose, 1),
                b'-' => self.minus(),
                b'=' if self.byte(1) == Some(b'>') => self.push(Kind::Dash, 2),
                b'~' => self.push(Kind::Dash, 1),
                b'.' | b'!' => self.stop(),
                b'?' => self.push(Kind::Question, 1),
                b'%' => self.push(Kind::Percent, 1),
                b'(' | b'[' | b'{' => self.push(Kind::Open, 1),
                b')' | b']' | b'}' => self.push(Kind::Close, 1),
                b',' => self.push(Kind::Comma, 1),
                b';' => self.push(Kind::Semicolon, 1),
                b':' | b'=' => self.push(Kind::Colon, 1),
                b'/' => self.push(Kind::Slash, 1),
                b'|' => self.push(Kind::Pipe, 1),
                b'&' => self.push(Kind::And, 1),
                b'\'' if self.behind_number() => self.push(Kind::Minutes, 1),
                b'"' if self.behind_minutes() => self.push(Kind::Seconds, 1),
                0..=0x7f => self.at += 1,
                _ => self.letter_or_mark(),
            }
        }
        self.tokens
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn push(&mut self, kind: Kind, length: usize) {
        let tag = self.at < self.tag_end;
        self.tokens.push(Token { kind, at: self.at..self.at + length, tag });
        self.at += length;
    }

    fn after_digit(&self) -> bool {
        self.at > 0 && self.bytes.get(self.at - 1).is_some_and(u8::is_ascii_digit)
    }

    fn behind_number(&self) -> bool {
        let last = self.tokens.last();
        self.after_digit() && last.is_some_and(|token| matches!(token.kind, Kind::Number(_)) && token.at.end == self.at)
    }

    /// Whether a number stands here that follows minutes: `1'05"`.
    fn behind_minutes(&self) -> bool {
        let before = self.tokens.len().checked_sub(2).and_then(|place| self.tokens.get(place));
        self.behind_number() && before.is_some_and(|token| token.kind == Kind::Minutes)
    }

    /// The character that stands here, when it is not ASCII.
    fn letter_or_mark(&mut self) {
        let Some(c) = self.text.get(self.at..).and_then(|rest| rest.chars().next()) else {
            self.at += 1;
            return;
        };
        let length = c.len_utf8();
        match c {
            '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' | '﹣' | '-' | '~' | '〜' | '∼' | '→' | '⟶' | '⇒' | '➔' | '➜'
            | '…' => {
                self.push(Kind::Dash, length);
            }
            '′' | '’' if self.behind_number() => self.push(Kind::Minutes, length),
            '″' | '”' if self.behind_number() && (c == '″' || self.behind_minutes()) => {
                self.push(Kind::Seconds, length);
            }
            ',' | '、' => self.push(Kind::Comma, length),
            ':' => self.push(Kind::Colon, length),
            '(' | '【' | '[' | '「' => self.push(Kind::Open, length),
            ')' | '】' | ']' | '」' => self.push(Kind::Close, length),
            '。' => self.push(Kind::Stop, length),
            c if c.is_alphabetic() => self.word(),
            _ => self.at += length,
        }
    }

    fn word(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut end = 0;
        let mut letters = rest.char_indices().peekable();
        while let Some((place, c)) = letters.next() {
            let inside = matches!(c, '\'' | '’') && letters.peek().is_some_and(|(_, next)| next.is_alphabetic());
            if !(c.is_alphabetic() || inside) {
                break;
            }
            end = place + c.len_utf8();
        }
        self.push(Kind::Word, end.max(1));
        // `mp4`, `x2`, `v_12`: digits that belong to a name.
        let name = rest.as_bytes().get(end..).unwrap_or_default();
        let digits = |bytes: &[u8]| bytes.first().is_some_and(u8::is_ascii_digit);
        let underscore = usize::from(name.first() == Some(&b'_'));
        if digits(name.get(underscore..).unwrap_or_default()) {
            // `<t12.5>`, `<time_12>`, `Frame_30`: here the name says what the number is.
            let word = rest.get(..end).unwrap_or_default();
            let timed = ["t", "ts", "time", "timestamp", "s", "e", "start", "end", "sec"];
            let inside = self.at < self.tag_end && timed.iter().any(|known| word.eq_ignore_ascii_case(known));
            if inside || word.eq_ignore_ascii_case("frame") {
                self.at += underscore;
                self.glued = true;
                return;
            }
            let joined = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            self.push(Kind::Opaque, name.iter().take_while(|byte| joined(byte)).count());
        }
    }

    fn tag(&mut self) {
        let inside = self.bytes.get(self.at + 1..).unwrap_or_default();
        let opens = inside.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'|'));
        let end = inside.iter().take(LONGEST_TAG).position(|byte| matches!(byte, b'>' | b'<' | b'\n'));
        match end {
            Some(end) if opens && inside.get(end) == Some(&b'>') => {
                let end = self.at + 1 + end + 1;
                if inside.first() == Some(&b'/') {
                    // What a closing tag is called has been said by the opening one.
                    self.tag_end = end;
                    self.push(Kind::TagOpen, 1);
                    self.at = end - 1;
                } else {
                    self.tag_end = end;
                    self.push(Kind::TagOpen, 1);
                }
            }
            _ => self.at += 1,
        }
    }

    fn minus(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let dashes = rest.iter().take_while(|byte| **byte == b'-').count();
        let arrow = rest.get(dashes) == Some(&b'>');
        let alone = self.tokens.last().is_none_or(|token| {
            matches!(token.kind, Kind::Open | Kind::Comma | Kind::Colon | Kind::Semicolon | Kind::TagOpen)
        });
        let digit = rest.get(1).is_some_and(u8::is_ascii_digit);
        if dashes == 1 && alone && digit {
            self.at += 1;
            return self.number(false, true);
        }
        self.push(Kind::Dash, dashes + usize::from(arrow));
    }

    /// Points: an ellipsis links two numbers, one point ends a sentence unless the next word goes on in small letters.
    fn stop(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let points = rest.bytes().take_while(|byte| *byte == b'.').count();
        if points > 1 {
            return self.push(Kind::Dash, points);
        }
        let after = rest.get(1..).unwrap_or_default();
        let next = after.trim_start_matches([' ', '*', '"', '\'', ')', ']', '}', '`', '_']).chars().next();
        let ends = !rest.starts_with('.')
            || next.is_none_or(|c| !c.is_lowercase() && !c.is_ascii_digit())
            || after.starts_with(' ') && next.is_some_and(|c| c.is_ascii_digit()) && !self.after_abbreviation();
        if ends { self.push(Kind::Stop, 1) } else { self.at += 1 }
    }

    fn after_abbreviation(&self) -> bool {
        let last = self.tokens.last().and_then(|token| self.text.get(token.at.clone()));
        last.is_some_and(|word| {
            ["approx", "sec", "secs", "min", "mins", "ca", "no", "s"]
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known))
        })
    }

    fn digits(&self, from: usize) -> usize {
        self.bytes.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    fn at_byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn number(&mut self, glued: bool, negative: bool) {
        let from = self.at;
        let named = from > 0 && !glued && !negative && matches!(self.at_byte(from - 1), Some(b'_' | b'$'));
        let whole = self.digits(from);
        if let Some((seconds, end)) = self.clock(from, whole) {
            return match seconds {
                Some(seconds) if !named => self.push(Kind::Clock(seconds), end - from),
                _ => self.push(Kind::Opaque, end - from),
            };
        }
        let mut end = from + whole;
        let mut literal = String::new();
        literal.push_str(self.text.get(from..end).unwrap_or_default());
        if self.at_byte(end) == Some(b'.') && self.digits(end + 1) > 0 {
            let more = end + 1 + self.digits(end + 1);
            literal.push_str(self.text.get(end..more).unwrap_or_default());
            end = more;
            // `1.2.3` is no number.
            if self.at_byte(end) == Some(b'.') && self.digits(end + 1) > 0 {
                while self.at_byte(end) == Some(b'.') && self.digits(end + 1) > 0 {
                    end += 1 + self.digits(end + 1);
                }
                return self.push(Kind::Opaque, end - from);
            }
        } else {
            end = self.comma(from, end, &mut literal);
        }
        if let Some(end) = self.date(end) {
            return self.push(Kind::Opaque, end - from);
        }
        let value = literal.parse::<f64>().ok().filter(|value| *value <= LARGEST);
        let rest = self.text.get(end..).unwrap_or_default();
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let suffix = rest.get(..letters).unwrap_or_default().to_ascii_lowercase();
        let (Some(value), false) = (value, named) else { return self.push(Kind::Opaque, end - from) };
        let value = if negative { -value } else { value };
        if letters == 0 {
            return self.push(Kind::Number(value), end - from);
        }
        match suffix.as_str() {
            "st" | "nd" | "rd" | "th" => self.push(Kind::Ordinal(value), end - from + 2),
            known if SUFFIXES.contains(&known) => {
                self.push(Kind::Number(value), end - from);
                self.push(Kind::Word, letters);
                self.glued = true;
            }
            _ => {
                let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let length = rest.bytes().take_while(|byte| name(byte)).count();
                self.push(Kind::Opaque, end - from + length);
            }
        }
    }

    /// `mm:ss`, `hh:mm:ss`, with a fraction behind a point, or behind a comma when it has three digits. `None` inside when
    /// it looks like a clock and is none: `16:9`, `3:2`.
    fn clock(&self, from: usize, whole: usize) -> Option<(Option<f64>, usize)> {
        if whole == 0 || whole > 4 {
            return None;
        }
        let mut parts = vec![self.text.get(from..from + whole)?.parse::<f64>().ok()?];
        let mut end = from + whole;
        let mut sound = true;
        while self.at_byte(end) == Some(b':') && parts.len() < 5 {
            let digits = self.digits(end + 1);
            if digits == 0 {
                break;
            }
            let part = self.text.get(end + 1..end + 1 + digits)?.parse::<f64>().ok()?;
            sound &= digits == 2 && part < 60.0;
            parts.push(part);
            end += 1 + digits;
        }
        if parts.len() < 2 {
            return None;
        }
        let mark = self.at_byte(end);
        let digits = self.digits(end + 1);
        let fraction = match mark {
            Some(b'.') if digits > 0 => true,
            Some(b',') => digits == 3 && self.at_byte(end + 1 + digits) != Some(b':'),
            _ => false,
        };
        let mut seconds = parts.iter().take(3).fold(0.0, |sum, part| sum * 60.0 + part);
        if fraction {
            let literal = format!("0.{}", self.text.get(end + 1..end + 1 + digits)?);
            seconds += literal.parse::<f64>().ok()?;
            end += 1 + digits;
        }
        let rest = self.text.get(end..).unwrap_or_default().trim_start();
        let other = ["am", "pm", "a.m", "p.m", "o'clock", "aspect", "ratio"];
        let is_other = other.iter().any(|word| {
            rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
                && !rest.get(word.len()..).is_some_and(|after| after.starts_with(|c: char| c.is_alphanumeric()))
        });
        let sound = sound && parts.len() <= 4 && !is_other;
        Some((sound.then_some(seconds), end))
    }

    /// A comma behind digits: a decimal point, a mark between thousands, or the end of the number.
    fn comma(&self, from: usize, end: usize, literal: &mut String) -> usize {
        let digits = self.digits(end + 1);
        if self.at_byte(end) != Some(b',') || digits == 0 || end == from {
            return end;
        }
        let after = end + 1 + digits;
        let next = self.at_byte(after);
        let goes_on = matches!(next, Some(b',' | b'.')) && self.digits(after + 1) > 0;
        let leading_zero = self.at_byte(from) == Some(b'0') && end - from > 1;
        if digits == 3 && end - from <= 3 && self.at_byte(from) != Some(b'0') && next != Some(b',') {
            literal.push_str(self.text.get(end + 1..after).unwrap_or_default());
            return after;
        }
        // Only the nearest bytes are looked at: a line may be a megabyte long.
        let near = |bytes: &u8| !matches!(bytes, b' ' | b'"' | b'\'' | b'`');
        let before = self.bytes.get(from.saturating_sub(NEAR)..from).unwrap_or_default().iter().rev().find(|b| near(b));
        let behind =
            self.bytes.get(after..self.bytes.len().min(after + NEAR)).unwrap_or_default().iter().find(|b| near(b));
        let opened = matches!(before, Some(b'[' | b'(' | b'{'));
        let closed = matches!(behind, Some(b']' | b')' | b'}'));
        let alone = matches!(before, None | Some(b'\n')) && matches!(behind, None | Some(b'\n' | b'\r'));
        if goes_on || leading_zero || (opened && closed) || alone {
            return end;
        }
        literal.push('.');
        literal.push_str(self.text.get(end + 1..after).unwrap_or_default());
        after
    }

    /// The end of `2024-05-12` or `12/05/2024`, whose first part ends at `end`.
    fn date(&self, end: usize) -> Option<usize> {
        let mark = self.at_byte(end).filter(|mark| matches!(mark, b'-' | b'/'))?;
        let second = self.digits(end + 1);
        let middle = end + 1 + second;
        let third = self.digits(middle + 1);
        (second > 0 && self.at_byte(middle) == Some(mark) && third > 0).then_some(middle + 1 + third)
    }
}
