//! Which times of an answer belong together.

mod said;

use std::ops::Range;

use super::Rule;
use super::cue::{Cue, cue};
use super::lex::Kind;
use super::refusal::Denials;
use super::times::{Element, Role, Time, Unit, What};
use super::words::{COUNTED, FILLER, LASTING_FOR};

/// What the parser is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    /// What numbers without a unit are.
    pub(super) bare: Unit,
    /// Length of the video in seconds.
    pub(super) duration: Option<f64>,
    /// Frames per second.
    pub(super) rate: Option<f64>,
}

/// Two bounds that belong together.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) start: Bound,
    pub(super) end: Bound,
    pub(super) rule: Rule,
    /// Elements from the first to the last.
    pub(super) elements: (usize, usize),
    strength: Strength,
}

/// One bound of a span before it is seconds.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) time: Time,
    /// Bytes of the answer; `None` for a bound that a word implies.
    pub(super) at: Option<Range<usize>>,
    /// What to add, for an end that is a start and a length.
    pub(super) plus: Option<(Time, Range<usize>)>,
    /// Whether it counts from the end of the video.
    pub(super) from_end: bool,
}

impl Bound {
    fn edge(unit: Unit) -> Self {
        let time = Time { value: 0.0, unit, role: Role::Moment, leans: false };
        Self { time, at: None, plus: None, from_end: false }
    }
}

/// How sure it is that two numbers are a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    /// `5-9`
    Weak,
    /// `from 5 to 9`
    Medium,
    /// With a unit, a key, a tag or brackets.
    Strong,
}

/// Words beside fillers that do: `from 2:05 onwards until 2:20`.
const BESIDE: &[&str] = &["start", "end", "frame", "minute", "onwards", "onward"];
/// Elements that may stand between two linked times.
const GAP: usize = 14;
/// Elements of a bracket that is looked into.
const BRACKET: usize = 64;

/// Finds the times that belong together.
pub(super) struct Linker<'t> {
    pub(super) text: &'t str,
    pub(super) elements: Vec<Element>,
    pub(super) told: Told,
    /// Elements that are times, in order.
    times: Vec<usize>,
    used: Vec<bool>,
    pairs: Vec<Pair>,
    /// Whether a bracket holds `-1, -1`, as some models refuse.
    pub(super) sentinel: bool,
}

impl<'t> Linker<'t> {
    pub(super) fn new(text: &'t str, elements: Vec<Element>, told: Told) -> Self {
        let used = vec![false; elements.len()];
        Self { text, elements, told, times: Vec::new(), used, pairs: Vec::new(), sentinel: false }
    }

    /// Every pair of the answer, in its order, before denials.
    pub(super) fn link(&mut self) -> Vec<Pair> {
        self.drop_years();
        self.drop_aliases();
        self.list_times();
        self.brackets();
        self.lines();
        self.list_times();
        self.direct();
        self.edges();
        self.keyed();
        self.parts_in_words();
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.sort_by_key(|pair| pair.elements.0);
        self.name_fractions(&mut pairs);
        self.share_units(&mut pairs);
        self.drop_weak(pairs)
    }

    fn time(&self, place: usize) -> Option<Time> {
        match self.elements.get(place)?.what {
            What::Time(time) => Some(time),
            _ => None,
        }
    }

    fn word(&self, place: usize) -> Option<&str> {
        let element = self.elements.get(place).filter(|element| element.what == What::Word)?;
        self.text.get(element.at.clone())
    }

    pub(super) fn is(&self, place: usize, words: &[&str]) -> bool {
        self.word(place).is_some_and(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known)))
    }

    fn mark(&self, place: usize) -> Option<Kind> {
        match self.elements.get(place)?.what {
            What::Mark(kind) => Some(kind),
            _ => None,
        }
    }

    fn strike(&mut self, place: usize, kind: Kind) {
        if let Some(element) = self.elements.get_mut(place) {
            element.what = What::Mark(kind);
        }
    }

    fn list_times(&mut self) {
        let times = (0..self.elements.len()).filter(|place| self.time(*place).is_some() && !self.used[*place]);
        self.times = times.collect();
    }

    /// `1995-1999` on a sign: whole numbers of four digits without a unit, where no video is that long.
    fn drop_years(&mut self) {
        for place in 0..self.elements.len() {
            let Some(time) = self.time(place) else { continue };
            let year = time.unit == Unit::Bare && (1900.0..2100.0).contains(&time.value) && time.value.fract() == 0.0;
            if year && self.told.bare == Unit::Bare && self.told.duration.is_none_or(|duration| duration < time.value) {
                self.strike(place, Kind::Opaque);
            }
        }
    }

    /// `1:05 (65 seconds)`, `frame 120 (4.0 s)`: the same time again in brackets.
    fn drop_aliases(&mut self) {
        for place in 0..self.elements.len() {
            let Some(time) = self.time(place) else { continue };
            if self.mark(place + 1) != Some(Kind::Open) {
                continue;
            }
            let Some(inside) = (place + 2..place + 6).find(|place| self.time(*place).is_some()) else { continue };
            let plain = (place + 2..inside).all(|place| {
                self.is(place, &["i", "e", "ie", "about", "or", "approximately", "equals", "aka", "t"])
                    || matches!(self.mark(place), Some(Kind::Colon | Kind::Comma | Kind::Dash))
            });
            let (Some(other), Some(Kind::Close), true) = (self.time(inside), self.mark(inside + 1), plain) else {
                continue;
            };
            if time.unit == Unit::Bare && other.unit == Unit::Bare {
                continue;
            }
            let same = match (self.seconds(time), self.seconds(other)) {
                (Ok(a), Ok(b)) => (a - b).abs() < 0.51,
                _ => true,
            };
            if !same && time.unit != Unit::Frame {
                continue;
            }
            if time.unit == Unit::Frame && self.seconds(time).is_err() {
                let at = self.elements[inside].at.clone();
                self.elements[place].what = What::Time(other);
                self.elements[place].at = at;
            }
            for place in place + 1..=inside + 1 {
                self.strike(place, Kind::Colon);
            }
        }
    }

    fn bound(&self, place: usize) -> Bound {
        let edge = self.time(place).is_some_and(|time| matches!(time.unit, Unit::VideoStart | Unit::VideoEnd));
        let at = self.elements.get(place).map(|element| element.at.clone()).filter(|_| !edge);
        let nothing = Time { value: 0.0, unit: Unit::Bare, role: Role::Moment, leans: false };
        Bound { time: self.time(place).unwrap_or(nothing), at, plus: None, from_end: false }
    }

    fn pair(&mut self, a: usize, b: usize, rule: Rule, strength: Strength) {
        let (start, end) = (self.bound(a), self.bound(b));
        self.used[a] = true;
        self.used[b] = true;
        self.pairs.push(Pair { start, end, rule, elements: (a.min(b), a.max(b)), strength });
    }

    /// `[5, 9]`, `(5.0; 9.0)`, `[5, 9, 0.87]`, `[5, 9, 12, 15]`.
    fn brackets(&mut self) {
        let mut open = None;
        for place in 0..self.elements.len() {
            match self.mark(place) {
                Some(Kind::Open) => open = Some(place),
                Some(Kind::Close) => {
                    if let Some(open) = open.take().filter(|open| place - open <= BRACKET) {
                        self.bracket(open, place);
                    }
                }
                _ => {}
            }
        }
    }

    fn bracket(&mut self, open: usize, close: usize) {
        let inside = open + 1..close;
        let times: Vec<usize> = inside.clone().filter(|place| self.time(*place).is_some()).collect();
        let plain = inside.clone().all(|place| {
            self.time(place).is_some()
                || matches!(
                    self.mark(place),
                    Some(Kind::Comma | Kind::Semicolon | Kind::TagOpen | Kind::TagClose | Kind::Line)
                )
                || self.elements.get(place).is_some_and(|element| element.tag)
        });
        let separated = inside.clone().any(|place| matches!(self.mark(place), Some(Kind::Comma | Kind::Semicolon)));
        let negative = times.iter().filter(|place| self.time(**place).is_some_and(|time| time.value < 0.0)).count();
        if negative > 0 {
            self.sentinel |= negative == times.len();
            times.into_iter().for_each(|place| self.strike(place, Kind::Opaque));
            return;
        }
        match (times.as_slice(), plain && separated) {
            ([a, b], true) => self.pair(*a, *b, Rule::Brackets, Strength::Strong),
            ([a, b, c], true) if self.time(*c).is_some_and(|time| time.unit == Unit::Bare && time.value <= 1.0) => {
                self.pair(*a, *b, Rule::Brackets, Strength::Strong);
                self.strike(*c, Kind::Opaque);
            }
            (several, true) if several.len() >= 4 && several.len() % 2 == 0 => {
                for two in several.chunks_exact(2) {
                    self.pair(two[0], two[1], Rule::Brackets, Strength::Strong);
                }
            }
            _ => {}
        }
    }

    /// Lines that hold two numbers and nothing else, and rows of tables with a number in front.
    fn lines(&mut self) {
        let mut from = 0;
        for place in 0..=self.elements.len() {
            if place < self.elements.len() && self.mark(place) != Some(Kind::Line) {
                continue;
            }
            let line = from..place;
            from = place + 1;
            if line.len() > BRACKET {
                continue;
            }
            let plain = line.clone().all(|place| {
                matches!(
                    self.mark(place),
                    Some(
                        Kind::Comma
                            | Kind::Semicolon
                            | Kind::Pipe
                            | Kind::Open
                            | Kind::Close
                            | Kind::Stop
                            | Kind::Opaque
                    )
                ) || self.time(place).is_some_and(|time| {
                    !self.used[place] && matches!(time.unit, Unit::Bare | Unit::Clock | Unit::Seconds(_))
                })
            });
            let times: Vec<usize> = line.clone().filter(|place| self.time(*place).is_some()).collect();
            let pipes = line.filter(|place| self.mark(*place) == Some(Kind::Pipe)).count();
            match times.as_slice() {
                [a, b] if plain => self.pair(*a, *b, Rule::TwoNumbers, Strength::Strong),
                [_, a, b] if plain && pipes >= 2 => self.pair(*a, *b, Rule::TwoNumbers, Strength::Strong),
                _ => {}
            }
        }
    }

    /// Times that are linked by a dash, `to`, `until`, `between … and …`, or that stand in tags side by side.
    fn direct(&mut self) {
        let mut k = 0;
        while let (Some(a), Some(b)) = (self.times.get(k).copied(), self.times.get(k + 1).copied()) {
            if self.used[a] || self.used[b] {
                k += 1;
                continue;
            }
            let Some((rule, strength)) = self.is_linked(a, b) else {
                k += 1;
                continue;
            };
            let bare = |place: usize| self.time(place).is_some_and(|time| time.unit == Unit::Bare);
            let counted = bare(a) && bare(b) && self.is(b + 1, COUNTED) && self.told.bare == Unit::Bare;
            let lasting = matches!(cue(self.text, &self.elements, a), Cue::Lasting)
                && !(bare(a) && bare(b))
                && self.is_named(a, LASTING_FOR);
            if counted || lasting {
                self.strike(a, Kind::Opaque);
                self.strike(b, Kind::Opaque);
                k += 2;
                continue;
            }
            self.pair(a, b, rule, strength);
            k += 2;
        }
        self.list_times();
    }

    fn is_linked(&self, a: usize, b: usize) -> Option<(Rule, Strength)> {
        if b - a > GAP {
            return None;
        }
        let (first, second) = (self.time(a)?, self.time(b)?);
        if first.role != Role::Moment
            || second.role != Role::Moment
            || second.unit == Unit::VideoStart
            || first.unit == Unit::VideoEnd
        {
            return None;
        }
        let (mut dash, mut to, mut and, mut comma, mut slash, mut tags, mut words) = (0, 0, 0, 0, 0, 0, 0);
        for place in a + 1..b {
            match self.mark(place) {
                Some(Kind::Dash) => dash += 1,
                Some(Kind::And) => and += 1,
                Some(Kind::Comma) => comma += 1,
                Some(Kind::Slash) => slash += 1,
                Some(Kind::TagOpen) => tags += 1,
                Some(Kind::Colon | Kind::TagClose | Kind::Open | Kind::Close) => {}
                Some(_) => return None,
                None if self.is(place, &["to", "until", "till", "through", "thru", "à", "bis"]) => to += 1,
                None if self.is(place, &["and"]) => and += 1,
                None if self.elements[place].tag => {}
                None if self.is(place, FILLER) || self.is(place, BESIDE) => words += 1,
                None => return None,
            }
        }
        let has_unit = |time: Time| !matches!(time.unit, Unit::Bare);
        let any_unit = has_unit(first) || has_unit(second);
        if first.leans && !any_unit || second.leans && !has_unit(first) && !has_unit(second) {
            return None;
        }
        let strong = any_unit || tags > 0 || self.elements[a].tag;
        let lead = cue(self.text, &self.elements, a);
        let strength = match lead {
            _ if strong => Strength::Strong,
            Cue::Start | Cue::Between => Strength::Medium,
            _ => Strength::Weak,
        };
        let rule = if tags > 0 || self.elements[a].tag { Rule::Tags } else { Rule::Range };
        let linked = match (dash, to, and) {
            (1, 0, 0) => comma == 0,
            (0, 1, 0) => comma <= 1,
            (0, 1, 1) => lead != Cue::None && comma <= 1,
            (0, 0, 1) => lead == Cue::Between && comma == 0,
            (0, 0, 0) => (slash == 1 && has_unit(first) && has_unit(second)) || (tags > 0 && words == 0),
            _ => false,
        };
        linked.then_some((rule, strength))
    }

    /// Numbers such as `2-3` beside spans that are surely some are something else, unless they stand in one list with them.
    fn drop_weak(&self, mut pairs: Vec<Pair>) -> Vec<Pair> {
        for place in 1..pairs.len() {
            let (before, after) = (pairs[place - 1].elements.1, pairs[place].elements.0);
            let joined = after > before
                && after - before <= 5
                && (before + 1..after).all(|place| {
                    matches!(
                        self.mark(place),
                        Some(Kind::Comma | Kind::Semicolon | Kind::Line | Kind::And | Kind::Open | Kind::Close)
                    ) || self.is(place, &["and", "or", "then", "again", "from", "also"])
                });
            if joined {
                let strength = pairs[place - 1].strength.max(pairs[place].strength);
                pairs[place - 1].strength = strength;
                pairs[place].strength = strength;
            }
        }
        for place in (1..pairs.len()).rev() {
            let (before, after) = (pairs[place - 1].elements.1, pairs[place].elements.0);
            if after > before && after - before <= 3 && pairs[place - 1].strength == Strength::Weak {
                pairs[place - 1].strength = pairs[place].strength;
            }
        }
        if pairs.iter().any(|pair| pair.strength > Strength::Weak) {
            pairs.retain(|pair| pair.strength > Strength::Weak);
        }
        pairs
    }

    /// Times with a unit that belong to no pair, and numbers without one where there is hardly anything else.
    pub(super) fn lone(&self, denials: &Denials<'_>) -> Vec<usize> {
        let free = |place: &usize| !self.used[*place] && !denials.deny(*place, *place);
        let edge = |time: Time| matches!(time.unit, Unit::VideoStart | Unit::VideoEnd);
        let explicit: Vec<usize> = self
            .times
            .iter()
            .copied()
            .filter(free)
            .filter(|place| {
                let lasting = matches!(cue(self.text, &self.elements, *place), Cue::Lasting);
                self.time(*place).is_some_and(|time| {
                    (time.unit != Unit::Bare || self.is_listed(*place))
                        && time.role == Role::Moment
                        && !edge(time)
                        && !lasting
                        && !time.leans
                })
            })
            .collect();
        if !explicit.is_empty() {
            return explicit;
        }
        let words = self.elements.iter().filter(|element| element.what == What::Word && !element.tag).take(6).count();
        let bare = self.times.iter().copied().filter(free).filter(|place| {
            self.time(*place)
                .is_some_and(|time| time.role == Role::Moment && !time.leans && time.value >= 0.0 && !edge(time))
        });
        let bare: Vec<usize> = bare.collect();
        if bare.len() <= 2 && words <= 5 { bare } else { Vec::new() }
    }

    /// Whether a number without a unit stands in a list that ends with one: `21, 23, and 25 seconds`.
    fn is_listed(&self, place: usize) -> bool {
        let mut at = place;
        for _ in 0..16 {
            let mut next = at + 1;
            let mut links = 0;
            while self.mark(next) == Some(Kind::Comma) || self.is(next, &["and", "or"]) {
                next += 1;
                links += 1;
            }
            match self.time(next) {
                Some(time) if links > 0 && matches!(time.unit, Unit::Seconds(_)) => return true,
                Some(time) if links > 0 && time.unit == Unit::Bare => at = next,
                _ => return false,
            }
        }
        false
    }

    pub(super) fn bound_of(&self, place: usize) -> Bound {
        self.bound(place)
    }
}
