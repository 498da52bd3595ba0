//! The spans that one answer names.

use std::ops::Range;

use regex::Regex;

use super::final_answer::{Part, parts};
use super::lex::lex;
use super::refusal::Denials;
use super::spans::{Bound, Linker, Told};
use super::times::{Unit, What, read};
use super::words::FRACTIONS;
use super::{Failure, How, Parsed, ParsedSpan, Rule};

/// Spans that are kept of one answer; nobody names more, and a hostile file must not fill the memory.
const MOST: usize = 256;

/// Reads one answer.
pub(super) fn parse(how: &How, rate: Option<f64>, text: &str, duration: Option<f64>) -> Parsed {
    if text.trim().is_empty() {
        return Parsed::failed(Failure::Empty);
    }
    let bare = match how {
        How::Pattern(pattern) => return by_pattern(pattern, text),
        How::FirstTwo => return first_two(text),
        How::Auto => Unit::Bare,
        How::Seconds => Unit::Seconds(1.0),
        How::Percent => Unit::Percent,
        How::Frames => Unit::Frame,
        How::Fractions => Unit::Fraction,
    };
    let told = Told { bare, duration, rate };
    let found = parts(text);
    if found.unfinished {
        return Parsed::failed(Failure::Unfinished);
    }
    let mut first = None;
    for Part { bytes, settles } in found.parts {
        let Some(part) = text.get(bytes.clone()) else { continue };
        let mut parsed = within(part, told);
        for span in &mut parsed.spans {
            span.bytes = span.bytes.start + bytes.start..span.bytes.end + bytes.start;
            for number in &mut span.numbers {
                *number = number.start + bytes.start..number.end + bytes.start;
            }
        }
        let sure = !parsed.spans.is_empty() && (settles || parsed.spans.iter().all(|span| span.rule != Rule::OneTime));
        let refused = settles && parsed.failure == Some(Failure::Refusal);
        if sure || refused {
            return parsed;
        }
        // The widest part is the last, and says why nothing was found.
        first = Some(parsed);
    }
    first.unwrap_or_else(|| Parsed::failed(Failure::NoTime))
}

fn within(text: &str, told: Told) -> Parsed {
    let read = read(text, &lex(text));
    let denials = Denials::of(text, &read.elements);
    let fractions = told.bare == Unit::Bare
        && read.elements.iter().any(|element| {
            let word = text.get(element.at.clone()).unwrap_or_default();
            element.what == What::Word && FRACTIONS.iter().any(|known| word.eq_ignore_ascii_case(known))
        });
    let rate = read.rate.filter(|_| told.rate.is_none()).or(told.rate);
    let mut linker = Linker::new(text, read.elements, Told { rate, ..told });
    let mut pairs = linker.link();
    if fractions && pairs.iter().all(|pair| pair.start.time.value <= 1.0 && pair.end.time.value <= 1.0) {
        linker.told.bare = Unit::Fraction;
    }
    let (before, everything) = (pairs.len(), denials.deny_everything());
    pairs.retain(|pair| !everything && !denials.deny(pair.elements.0, pair.elements.1));
    if pairs.iter().any(|pair| !denials.is_asked(pair.elements.1)) {
        pairs.retain(|pair| !denials.is_asked(pair.elements.1));
    }
    let mut denied = pairs.len() < before;
    let mut found = Found { linker: &linker, spans: Vec::new(), failure: None };
    for pair in pairs.iter().take(MOST) {
        found.keep(&pair.start, &pair.end, pair.elements, pair.rule);
    }
    if pairs.is_empty() && !everything && !denied {
        let mut lone = linker.lone(&denials);
        if lone.iter().any(|place| !denials.is_asked(*place)) {
            lone.retain(|place| !denials.is_asked(*place));
        }
        match lone.as_slice() {
            [] => {}
            [a, b] => found.keep(&linker.bound_of(*a), &linker.bound_of(*b), (*a, *b), Rule::TwoTimes),
            several => {
                for place in several.iter().take(MOST) {
                    found.keep(&linker.bound_of(*place), &linker.bound_of(*place), (*place, *place), Rule::OneTime);
                }
            }
        }
    }
    denied |= everything;
    let Found { spans, failure, .. } = found;
    if !spans.is_empty() {
        return Parsed { spans, failure: None };
    }
    let refuses = denied || denials.any() || linker.sentinel || says_nothing(text);
    Parsed::failed(failure.unwrap_or(if refuses { Failure::Refusal } else { Failure::NoTime }))
}

/// Answers that are nothing but a word for nothing.
fn says_nothing(text: &str) -> bool {
    let word = text.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    let nothing = [
        "n/a",
        "na",
        "none",
        "null",
        "nan",
        "no",
        "unknown",
        "not available",
        "not applicable",
        "empty",
        "nil",
        "undefined",
    ];
    let sorry = ["sorry", "apologize", "apologise", "as an ai", "unclear"];
    let head = text.get(..text.len().min(400)).unwrap_or(text).to_ascii_lowercase();
    nothing.contains(&word.as_str())
        || matches!(text.trim(), "[]" | "{}" | "()" | "-" | "[[]]")
        || sorry.iter().any(|known| head.contains(known))
        || (text.contains(['{', '[', '<']) && (text.contains("null") || text.contains("None")))
}

struct Found<'l, 't> {
    linker: &'l Linker<'t>,
    spans: Vec<ParsedSpan>,
    failure: Option<Failure>,
}

impl Found<'_, '_> {
    /// Keeps a span, its ends in order, unless the answer has named it already.
    fn keep(&mut self, start: &Bound, end: &Bound, elements: (usize, usize), rule: Rule) {
        let placed = self.linker.place(start).and_then(|from| Ok((from, self.linker.place(end)?)));
        let (from, to) = match placed {
            Ok((a, b)) => (a.min(b), a.max(b)),
            Err(failure) => {
                self.failure.get_or_insert(failure);
                return;
            }
        };
        let same = |span: &ParsedSpan| (span.start - from).abs() < 1e-6 && (span.end - to).abs() < 1e-6;
        if !from.is_finite() || !to.is_finite() || from < 0.0 || self.spans.iter().any(same) {
            return;
        }
        let at = |place: usize| self.linker.elements.get(place).map_or(0..0, |element| element.at.clone());
        let (first, last) = (at(elements.0), at(elements.1));
        let mut numbers: Vec<Range<usize>> = [start, end].into_iter().filter_map(|bound| bound.at.clone()).collect();
        numbers.extend([start, end].into_iter().filter_map(|bound| Some(bound.plus.as_ref()?.1.clone())));
        numbers.sort_by_key(|number| number.start);
        numbers.dedup();
        let low = numbers.first().map_or(first.start, |number| number.start.min(first.start));
        let high = numbers.iter().map(|number| number.end).max().map_or(last.end, |end| end.max(last.end));
        self.spans.push(ParsedSpan { start: from, end: to, bytes: low..high, numbers, rule });
    }
}

/// The rule that people write first: the two first numbers, whatever they are. Here to be compared with.
fn first_two(text: &str) -> Parsed {
    let bytes = text.as_bytes();
    let mut numbers: Vec<(f64, Range<usize>)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() && numbers.len() < 2 {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let digits =
            |from: usize| bytes.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = at + digits(at);
        if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
            end += 1 + digits(end + 1);
        }
        if let Some(value) = text.get(at..end).and_then(|literal| literal.parse().ok()) {
            numbers.push((value, at..end));
        }
        at = end;
    }
    match numbers.as_slice() {
        [(a, first), (b, second)] if a.is_finite() && b.is_finite() => Parsed::one(ParsedSpan {
            start: a.min(*b),
            end: a.max(*b),
            bytes: first.start..second.end,
            numbers: vec![first.clone(), second.clone()],
            rule: Rule::TwoNumbers,
        }),
        _ => Parsed::failed(Failure::NoTime),
    }
}

/// The groups `start` and `end` of every match, or the first two groups; each a number of seconds or a clock.
fn by_pattern(pattern: &Regex, text: &str) -> Parsed {
    let mut spans: Vec<ParsedSpan> = Vec::new();
    for found in pattern.captures_iter(text).take(MOST) {
        let group = |name: &str, index: usize| found.name(name).or_else(|| found.get(index));
        let (Some(start), Some(end)) = (group("start", 1), group("end", 2)) else { continue };
        let seconds = |literal: &str| {
            read(literal, &lex(literal)).elements.first().and_then(|element| match element.what {
                What::Time(time) => Some(match time.unit {
                    Unit::Seconds(scale) => time.value * scale,
                    _ => time.value,
                }),
                _ => None,
            })
        };
        let (Some(a), Some(b)) = (seconds(start.as_str()), seconds(end.as_str())) else { continue };
        if a < 0.0 || b < 0.0 {
            continue;
        }
        let numbers = vec![start.range(), end.range()];
        spans.push(ParsedSpan {
            start: a.min(b),
            end: a.max(b),
            bytes: found.get(0).map_or(0..0, |all| all.range()),
            numbers,
            rule: Rule::Pattern,
        });
    }
    if spans.is_empty() { Parsed::failed(Failure::NoTime) } else { Parsed { spans, failure: None } }
}
