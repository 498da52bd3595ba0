//! Which numbers of an answer are times, and in which unit.

mod named;

use std::ops::Range;

use super::lex::{Kind, Token};
use super::number_words::spelt;
use super::words::{COUNTED, MARK, NOT_TIMES, SURE, VIDEO};

/// One element of an answer: a time, a word, or a mark.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) what: What,
    /// Bytes of the answer.
    pub(super) at: Range<usize>,
    /// Whether it stands inside `<…>`.
    pub(super) tag: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum What {
    Time(Time),
    Word,
    Mark(Kind),
}

/// A number that may be a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Time {
    pub(super) value: f64,
    pub(super) unit: Unit,
    pub(super) role: Role,
    /// Whether it only counts beside a time with a unit: `ten` in `ten to twenty seconds`.
    pub(super) leans: bool,
}

/// What a number is counted in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit {
    /// Nothing says.
    Bare,
    /// So many seconds each.
    Seconds(f64),
    /// `mm:ss`, already in seconds.
    Clock,
    /// Hundredths of the video.
    Percent,
    /// Frame numbers.
    Frame,
    /// Parts of the video, 0 to 1.
    Fraction,
    /// The first frame, by a word.
    VideoStart,
    /// The end of the video, by a word.
    VideoEnd,
}

/// What a time is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// A place in the video.
    Moment,
    /// How long something takes.
    Length,
    /// How long the whole video is.
    VideoLength,
}

/// The elements of an answer, and the frame rate that it states.
pub(super) struct Read {
    pub(super) elements: Vec<Element>,
    pub(super) rate: Option<f64>,
}

/// Reads tokens as elements.
pub(super) fn read(text: &str, tokens: &[Token]) -> Read {
    let mut reader = Reader { text, tokens, place: 0, elements: Vec::with_capacity(tokens.len()), rate: None };
    while reader.place < tokens.len() {
        reader.step();
    }
    Read { elements: reader.elements, rate: reader.rate }
}

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: &'t [Token],
    pub(super) place: usize,
    pub(super) elements: Vec<Element>,
    rate: Option<f64>,
}

impl Reader<'_> {
    pub(super) fn kind(&self, place: usize) -> Option<Kind> {
        self.tokens.get(place).map(|token| token.kind)
    }

    fn word(&self, place: usize) -> Option<&str> {
        let token = self.tokens.get(place).filter(|token| token.kind == Kind::Word)?;
        self.text.get(token.at.clone())
    }

    pub(super) fn is(&self, place: usize, words: &[&str]) -> bool {
        self.word(place).is_some_and(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known)))
    }

    fn push(&mut self, what: What, tokens: usize) {
        let last = self.place + tokens.max(1) - 1;
        if let (Some(first), Some(last)) = (self.tokens.get(self.place), self.tokens.get(last)) {
            self.elements.push(Element { what, at: first.at.start..last.at.end, tag: first.tag });
        }
        self.place += tokens.max(1);
    }

    fn step(&mut self) {
        match self.kind(self.place) {
            Some(Kind::Clock(seconds)) => {
                let unit = self.unit(self.place + 1).filter(|named| matches!(named.unit, Unit::Seconds(_)));
                let time = self.time(seconds, Unit::Clock, self.place + 1);
                self.push(What::Time(time), 1 + unit.map_or(0, |unit| unit.tokens));
            }
            Some(Kind::Number(value)) => self.number(value, 1, false),
            Some(Kind::Ordinal(value)) => self.number(value, 1, true),
            Some(Kind::Word) => self.spelt_or_word(),
            Some(kind) => self.push(What::Mark(kind), 1),
            None => self.place += 1,
        }
    }

    fn spelt_or_word(&mut self) {
        let rest = self.tokens.get(self.place..).unwrap_or_default();
        let Some(found) = spelt(self.text, rest) else { return self.edge_or_word() };
        let after = self.place + found.tokens;
        let has_unit = self.unit(after).is_some();
        if has_unit || self.leads_to_time(after) || self.follows_time() {
            self.number_with(found.value, found.tokens, found.is_ordinal, true);
        } else {
            self.push(What::Word, 1);
        }
    }

    /// `the beginning of the video`, `the end`: times by words.
    fn edge_or_word(&mut self) {
        let before = self.elements.iter().rev().take(4).filter(|element| element.what == What::Word);
        let before: Vec<&str> = before.filter_map(|element| self.text.get(element.at.clone())).collect();
        let lead = |words: &[&str]| {
            before
                .iter()
                .find(|word| !["the", "very", "right"].iter().any(|skip| word.eq_ignore_ascii_case(skip)))
                .is_some_and(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known)))
        };
        let named =
            self.is(self.place + 1, &["of"]) || before.first().is_some_and(|word| word.eq_ignore_ascii_case("the"));
        // `the beginning and end times are …`, but `at the beginning and stops at 25 s`.
        let listed =
            self.is(self.place + 1, &["and"]) && !self.is(self.place + 2, &["ends", "stops", "finishes", "concludes"]);
        let verb = self.is(self.place + 1, &["at", "from", "time", "times", "around", "about", "in", "by"])
            || listed
            || matches!(self.kind(self.place + 1), Some(Kind::Colon));
        let tagged = self.tokens.get(self.place).is_some_and(|token| token.tag) && lead(&["video"]);
        let until = || {
            self.elements.iter().rev().take(4).any(|element| {
                let word = self.text.get(element.at.clone()).unwrap_or_default();
                element.what == What::Word && ["until", "till"].iter().any(|known| word.eq_ignore_ascii_case(known))
            })
        };
        let starts = (named && !verb && lead(&["from", "at", "since"])) || tagged || (!verb && lead(&["from"]));
        let film_ends = self.is(self.place, &["ends", "finishes", "stops", "end"]) && lead(VIDEO) && until();
        let ends = (!verb && lead(&["to", "until", "till", "through", "towards"])) || tagged;
        let unit = if self.is(self.place, &["beginning", "start", "outset"]) && starts {
            Unit::VideoStart
        } else if film_ends || self.is(self.place, &["end"]) && ends {
            Unit::VideoEnd
        } else {
            return self.push(What::Word, 1);
        };
        let words = if self.is(self.place + 1, &["of"])
            && self.is(self.place + 2, &["the", "this"])
            && self.is(self.place + 3, VIDEO)
        {
            4
        } else {
            1
        };
        self.push(What::Time(Time { value: 0.0, unit, role: Role::Moment, leans: false }), words);
    }

    /// Whether a link and a number with a unit follow: `five to nine seconds`.
    fn leads_to_time(&self, place: usize) -> bool {
        let link =
            self.is(place, &["to", "and", "until", "till", "through", "or"]) || self.kind(place) == Some(Kind::Dash);
        let mut next = place + 1;
        if self.is(next, &["the", "about", "around"]) {
            next += 1;
        }
        let after = match self.kind(next) {
            Some(Kind::Number(_) | Kind::Ordinal(_)) => next + 1,
            Some(Kind::Word) => match spelt(self.text, self.tokens.get(next..).unwrap_or_default()) {
                Some(found) => next + found.tokens,
                None => return false,
            },
            _ => return false,
        };
        link && self.unit(after).is_some()
    }

    /// Whether a time with a unit and a link stand before: `ten seconds to twenty`.
    fn follows_time(&self) -> bool {
        let mut before = self.elements.iter().rev().take(4);
        let link = before.next().is_some_and(|element| match element.what {
            What::Mark(Kind::Dash) => true,
            What::Word => self.text.get(element.at.clone()).is_some_and(|word| {
                ["to", "until", "till", "through"].iter().any(|known| word.eq_ignore_ascii_case(known))
            }),
            _ => false,
        });
        link && before.next().is_some_and(|element| matches!(element.what, What::Time(time) if time.unit != Unit::Bare))
    }

    fn number(&mut self, value: f64, tokens: usize, is_ordinal: bool) {
        self.number_with(value, tokens, is_ordinal, is_ordinal);
    }

    fn number_with(&mut self, value: f64, mut tokens: usize, is_ordinal: bool, leans: bool) {
        let from = self.place;
        // `1'05"`
        if self.kind(from + tokens) == Some(Kind::Minutes)
            && let Some(Kind::Number(seconds)) = self.kind(from + tokens + 1)
        {
            let closed = usize::from(self.kind(from + tokens + 2) == Some(Kind::Seconds));
            let time = self.time(value * 60.0 + seconds, Unit::Clock, from + tokens + 2 + closed);
            return self.push(What::Time(time), tokens + 2 + closed);
        }
        if self.kind(from + tokens) == Some(Kind::Seconds) {
            let time = self.time(value, Unit::Seconds(1.0), from + tokens + 1);
            return self.push(What::Time(time), tokens + 1);
        }
        if let Some((seconds, taken)) = self.minutes_then_seconds(from + tokens) {
            let time = self.time(value * 60.0 + seconds, Unit::Clock, from + tokens + taken);
            return self.push(What::Time(time), tokens + taken);
        }
        if let Some(words) = self.rate_words(from + tokens) {
            self.rate = self.rate.or(Some(value).filter(|rate| *rate > 0.0));
            return self.push(What::Mark(Kind::Opaque), tokens + words);
        }
        let Some(named) = self.unit(from + tokens) else { return self.without_unit(value, tokens, leans) };
        if named.unit == Unit::Frame && !is_ordinal {
            // `16 frames` counts them.
            return self.without_unit(value, tokens, leans);
        }
        tokens += named.tokens;
        let mut total = (value, named.unit);
        if let Unit::Seconds(scale) = named.unit {
            // Minutes that seconds follow, hours that minutes follow; `m` alone could be metres.
            let mut scale = scale;
            while scale >= 60.0 {
                let Some((more, smaller, taken)) = self.smaller(from + tokens, scale) else { break };
                total = (
                    total.0 * if let Unit::Seconds(s) = total.1 { s } else { 1.0 } + more * smaller,
                    Unit::Seconds(1.0),
                );
                tokens += taken;
                scale = smaller;
            }
            let glued =
                self.tokens.get(from + 1).zip(self.tokens.get(from)).is_some_and(|(u, n)| u.at.start == n.at.end);
            if total.1 == named.unit && self.is(from + tokens - 1, &["m", "h"]) && !glued {
                return self.push(What::Mark(Kind::Opaque), tokens);
            }
            if self.is(from + tokens, &["and"])
                && self.is(from + tokens + 1, &["a"])
                && self.is(from + tokens + 2, &["half"])
            {
                // `a minute and a half`
                total.0 += 0.5;
                tokens += 3;
            }
        }
        if total.1 == Unit::Percent
            && (self.is(from + tokens, SURE) || self.word_before(&["confidence", "probability", "certainty"]))
        {
            return self.push(What::Mark(Kind::Opaque), tokens);
        }
        let mut time = self.time(total.0, total.1, from + tokens);
        if named.is_hyphenated
            && !is_ordinal
            && !self.is(from + tokens, MARK)
            && self.word(from + tokens).is_some()
            && time.role == Role::Moment
        {
            time.role = Role::Length;
        }
        if self.is(from + tokens, &["later", "afterwards", "afterward"]) {
            time.role = Role::Length;
        }
        self.push(What::Time(time), tokens);
    }

    /// Whether one of `words` stands before this place, with at most a colon, `is`, `of` or a unit of a key between.
    fn word_before(&self, words: &[&str]) -> bool {
        for element in self.elements.iter().rev().take(4) {
            match element.what {
                What::Word => {
                    let Some(word) = self.text.get(element.at.clone()) else { return false };
                    let any = |list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
                    if any(words) {
                        return true;
                    }
                    if !any(&["is", "of", "was"]) {
                        return false;
                    }
                }
                What::Mark(Kind::Colon) => {}
                _ => return false,
            }
        }
        false
    }

    fn time(&self, value: f64, unit: Unit, after: usize) -> Time {
        let long = self.is(after, VIDEO)
            || self.is(after, &["in"]) && self.is(after + 1, &["length", "duration", "total"])
            || self.is(after, &["total", "overall"]);
        let whole = unit != Unit::Bare && self.video_is_before();
        let role = if long || whole { Role::VideoLength } else { Role::Moment };
        Time { value, unit, role, leans: false }
    }

    /// `the video is`, `the whole video has`, `total length is`, `out of`: what follows is the video's length.
    fn video_is_before(&self) -> bool {
        let mut words = Vec::new();
        for element in self.elements.iter().rev().take(5) {
            match element.what {
                What::Word => words.extend(self.text.get(element.at.clone())),
                What::Mark(Kind::Colon | Kind::Open) => {}
                _ => break,
            }
        }
        let is = |place: usize, list: &[&str]| {
            words.get(place).is_some_and(|word| list.iter().any(|known| word.eq_ignore_ascii_case(known)))
        };
        let skip = usize::from(is(0, &["about", "approximately", "around", "roughly", "only", "exactly"]));
        let video = |place: usize| is(place, &["video", "clip", "footage", "recording", "film", "video's"]);
        (is(skip, &["is", "has", "lasts", "was", "runs"]) && video(skip + 1))
            || (is(skip, &["length", "duration"]) && (video(skip + 1) || is(skip + 1, &["total", "whole"])))
            || (is(skip, &["is", "of"])
                && is(skip + 1, &["length", "duration"])
                && (video(skip + 2) || is(skip + 2, &["total"])))
            || (is(skip, &["of"]) && is(skip + 1, &["out"]))
            || (video(skip) && is(skip + 1, &["length", "duration", "total"]))
            || (is(skip, &["for"]) && is(skip + 1, &["lasts"]) && video(skip + 2))
            || (is(skip, &["at"]) && is(skip + 1, &["ends", "stops"]) && video(skip + 2))
    }

    fn without_unit(&mut self, value: f64, tokens: usize, leans: bool) {
        let from = self.place;
        let after = from + tokens;
        let unit = self.unit_before();
        if unit == Unit::Bare {
            let counted = self.is(after, COUNTED)
                && !(self.is(after, &["or"]) || self.is(after, &["frames"]) && self.linked_back());
            let named = self.word_before(NOT_TIMES);
            if self.word_before(&["fps", "rate", "framerate"]) {
                self.rate = self.rate.or(Some(value).filter(|rate| *rate > 0.0));
                return self.push(What::Mark(Kind::Opaque), tokens);
            }
            if counted && self.linked_back() {
                // `10 to 20 dollars`
                let place = self.elements.len() - 2;
                self.elements[place].what = What::Mark(Kind::Opaque);
            }
            if counted || named || (self.is_label(value, after) || self.is_list_number(value, after)) && !leans {
                return self.push(What::Mark(Kind::Opaque), tokens);
            }
        }
        let unit = if unit == Unit::Bare && self.is(after, &["frames"]) { Unit::Frame } else { unit };
        let time = Time { leans, ..self.time(value, unit, after) };
        self.push(What::Time(time), tokens);
    }

    /// Whether a time and a link stand right before.
    fn linked_back(&self) -> bool {
        let mut before = self.elements.iter().rev();
        let link = before.next().is_some_and(|element| match element.what {
            What::Mark(Kind::Dash) => true,
            What::Word => {
                self.text.get(element.at.clone()).is_some_and(|word| matches!(word, "to" | "and" | "until" | "through"))
            }
            _ => false,
        });
        link && before.next().is_some_and(|element| matches!(element.what, What::Time(_)))
    }

    /// `second 12`, `frame 30`, `frame indices [60`, `start_ms: 7000`.
    fn unit_before(&self) -> Unit {
        for (back, element) in self.elements.iter().rev().take(6).enumerate() {
            match element.what {
                What::Mark(Kind::Colon | Kind::Open | Kind::TagOpen | Kind::TagClose) => {}
                What::Word => {
                    let Some(word) = self.text.get(element.at.clone()) else { return Unit::Bare };
                    let any = |list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
                    if any(&["frame", "frames", "startframe", "endframe"]) {
                        return Unit::Frame;
                    }
                    if any(&["second", "seconds", "sec", "secs", "startsec", "endsec"])
                        && (back == 0 || any(&["sec", "seconds"]))
                    {
                        return Unit::Seconds(1.0);
                    }
                    if any(&["ms", "milliseconds", "startms", "endms"]) {
                        return Unit::Seconds(0.001);
                    }
                    if any(&["minute", "minutes"]) && back == 0 {
                        return Unit::Seconds(60.0);
                    }
                    if !any(&["index", "indices", "number", "numbers", "no", "id", "ids", "start", "end"]) {
                        return Unit::Bare;
                    }
                }
                _ => return Unit::Bare,
            }
        }
        Unit::Bare
    }
}
