//! Spans whose bounds are said in words: first and last, starts and ends, lengths, parts of the video.

use super::super::Rule;
use super::super::cue::{Cue, cue, is_late_start};
use super::super::lex::Kind;
use super::super::times::{Element, Role, Time, Unit, What};
use super::super::words::{END_FAR, FILLER, START_FAR, VIDEO};
use super::{Bound, Linker, Pair, Strength};

/// Elements that may stand between a start and an end which say so.
const FAR: usize = 48;
/// A part of the video by words: `the first half`, from here to there.
type Part = (&'static [&'static str], &'static str, f64, f64);

/// Parts by words.
const PARTS: [Part; 9] = [
    (&["first"], "half", 0.0, 0.5),
    (&["second", "last", "latter"], "half", 0.5, 1.0),
    (&["first"], "third", 0.0, 1.0 / 3.0),
    (&["middle", "second"], "third", 1.0 / 3.0, 2.0 / 3.0),
    (&["last", "final"], "third", 2.0 / 3.0, 1.0),
    (&["first"], "quarter", 0.0, 0.25),
    (&["second"], "quarter", 0.25, 0.5),
    (&["third"], "quarter", 0.5, 0.75),
    (&["last", "final", "fourth"], "quarter", 0.75, 1.0),
];
/// What can be whole.
const WHOLE: &[&str] = &["video", "clip", "time", "duration", "footage", "length", "recording"];

impl Linker<'_> {
    /// `the first 10 seconds`, `the last 5`, `until 12 s`, `from 42 s onwards`.
    pub(super) fn edges(&mut self) {
        for k in 0..self.times.len() {
            let place = self.times[k];
            let Some(time) = self.time(place).filter(|_| !self.used[place]) else { continue };
            let is_part = matches!(time.unit, Unit::Seconds(_) | Unit::Percent) && time.role != Role::VideoLength;
            let (start, end) = match cue(self.text, &self.elements, place) {
                Cue::First if is_part => (Bound::edge(Unit::VideoStart), self.bound(place)),
                Cue::Last if is_part => (Bound { from_end: true, ..self.bound(place) }, Bound::edge(Unit::VideoEnd)),
                Cue::Start if self.is_open_ended(place) => (self.bound(place), Bound::edge(Unit::VideoEnd)),
                _ => continue,
            };
            self.used[place] = true;
            self.pairs.push(Pair {
                start,
                end,
                rule: Rule::Edge,
                elements: (place, place),
                strength: Strength::Strong,
            });
        }
        self.list_times();
    }

    fn is_open_ended(&self, place: usize) -> bool {
        let skip = usize::from(self.is(place + 1, &["mark", "point"]));
        self.is(place + 1 + skip, &["onwards", "onward", "forward"])
            || self.is(place + 1 + skip, &["on"])
                && !matches!(self.elements.get(place + 2 + skip).map(|e| e.what), Some(What::Word))
    }

    /// Starts and ends that say so, and starts with a length.
    pub(super) fn keyed(&mut self) {
        let cues: Vec<Cue> = self.times.iter().map(|place| cue(self.text, &self.elements, *place)).collect();
        let mut k = 0;
        while k < self.times.len() {
            let a = self.times[k];
            let (Some(first), cue_a) = (self.time(a), cues[k]) else { break };
            let next = self.times.get(k + 1).copied().zip(cues.get(k + 1).copied());
            if let Some((b, cue_b)) = next.filter(|(b, _)| b - a <= FAR && !self.used[a] && !self.used[*b]) {
                let second = self.time(b).unwrap_or(first);
                let moments = first.role == Role::Moment && second.role == Role::Moment;
                let bare = first.unit == Unit::Bare || second.unit == Unit::Bare;
                let is_key = |place: usize| self.is_key(place);
                let lasting_b = cue_b == Cue::Lasting && second.unit != Unit::Bare
                    || second.role == Role::Length
                    || cue_b == Cue::Lasting && self.is_key_or_start(a, b);
                let lasting_a =
                    (cue_a == Cue::Lasting || first.role == Role::Length) && first.role != Role::VideoLength;
                let found = match (cue_a, cue_b) {
                    (_, _) if first.leans && second.unit == Unit::Bare => None,
                    (Cue::Start, Cue::End)
                        if moments
                            && (!bare
                                || is_key(a)
                                || is_key(b)
                                || first.unit != Unit::Bare
                                || (self.is_named(a, START_FAR) && self.is_named(b, END_FAR))) =>
                    {
                        Some((a, b))
                    }
                    (Cue::End, Cue::Start) if moments && (is_key(a) || !bare) && !self.is_connector(a) => Some((b, a)),
                    (Cue::None | Cue::Between, Cue::End) if moments && !bare => Some((a, b)),
                    _ => None,
                };
                if let Some((start, end)) = found {
                    let rule = if self.elements[start].tag { Rule::Tags } else { Rule::StartEnd };
                    self.pair(start, end, rule, Strength::Strong);
                    k += 2;
                    continue;
                }
                let lasting = if lasting_b && first.role == Role::Moment && cue_a != Cue::Lasting {
                    Some((a, b))
                } else if lasting_a && cue_b == Cue::Start && second.role == Role::Moment && first.unit != Unit::Bare {
                    Some((b, a))
                } else {
                    None
                };
                if let Some((start, length)) = lasting {
                    self.lasting(start, length);
                    k += 2;
                    continue;
                }
            }
            let explicit = first.unit != Unit::Bare && !matches!(first.unit, Unit::VideoEnd | Unit::VideoStart);
            if !self.used[a]
                && explicit
                && first.role == Role::Moment
                && self.is_connector(a)
                && k == 0
                && self.pairs.is_empty()
            {
                // `until the 12-second mark`, and no start.
                let (start, end) = (Bound::edge(Unit::VideoStart), self.bound(a));
                self.used[a] = true;
                self.pairs.push(Pair { start, end, rule: Rule::Edge, elements: (a, a), strength: Strength::Strong });
            }
            k += 1;
        }
        self.list_times();
    }

    fn lasting(&mut self, start: usize, length: usize) {
        let from = self.bound(start);
        let Some(Element { what: What::Time(time), at, .. }) = self.elements.get(length).cloned() else { return };
        let end = Bound { plus: Some((time, at)), ..from.clone() };
        self.used[start] = true;
        self.used[length] = true;
        let elements = (start.min(length), start.max(length));
        self.pairs.push(Pair { start: from, end, rule: Rule::Lasting, elements, strength: Strength::Strong });
    }

    /// Whether a colon, an equals sign or a tag stands right before: `start: 12`.
    fn is_key(&self, place: usize) -> bool {
        let before = (1..=4).filter_map(|back| place.checked_sub(back));
        for place in before {
            match self.mark(place) {
                Some(Kind::Colon | Kind::TagClose | Kind::TagOpen | Kind::Close) => return true,
                Some(Kind::Open) => {}
                None if self.elements[place].tag => return true,
                None if self.is(place, &["start", "end", "begin", "finish", "onset", "offset"]) => return true,
                _ => return false,
            }
        }
        false
    }

    /// Whether one of `words` stands a little before.
    pub(super) fn is_named(&self, place: usize, words: &[&str]) -> bool {
        (1..=5).filter_map(|back| place.checked_sub(back)).any(|place| self.is(place, words))
    }

    fn is_key_or_start(&self, a: usize, b: usize) -> bool {
        self.is_key(a) && self.is_key(b) && cue(self.text, &self.elements, a) == Cue::Start
    }

    /// Whether `to`, `until` and the like stand before rather than a verb that ends.
    fn is_connector(&self, place: usize) -> bool {
        let before = (1..=4).filter_map(|back| place.checked_sub(back));
        for place in before {
            if self.is(place, &["until", "till"]) {
                return !is_late_start(self.text, &self.elements, place);
            }
            if self.is(place, &["to"]) {
                return place.checked_sub(1).is_some_and(|before| self.is(before, &["up"]));
            }
            if !self.is(place, FILLER) {
                return false;
            }
        }
        false
    }

    /// `the first half of the video`, `the whole clip`, where no number says more.
    pub(super) fn parts_in_words(&mut self) {
        if !self.pairs.is_empty() || !self.times.is_empty() {
            return;
        }
        for place in 0..self.elements.len() {
            let named = |(first, part, _, _): &&Part| self.is(place, first) && self.is(place + 1, &[part]);
            let whole = self.is(place, &["entire", "whole", "full"]) && self.is(place + 1, WHOLE)
                || self.is(place, &["throughout"])
                || self.is(place, &["all"]) && self.is(place + 1, &["of"]) && self.is(place + 3, VIDEO);
            let part = PARTS.iter().find(named).map(|(_, _, from, to)| (*from, *to)).or(whole.then_some((0.0, 1.0)));
            if let Some((from, to)) = part {
                let bound = |value: f64| {
                    let time = Time { value, unit: Unit::Fraction, role: Role::Moment, leans: false };
                    Bound { time, at: None, plus: None, from_end: false }
                };
                let elements = (place, (place + 1).min(self.elements.len() - 1));
                self.pairs.push(Pair {
                    start: bound(from),
                    end: bound(to),
                    rule: Rule::Words,
                    elements,
                    strength: Strength::Strong,
                });
                return;
            }
        }
    }
}
