//! Which sentences say that there is nothing to be found, or that nothing is known.

use super::lex::Kind;
use super::times::{Element, What};

/// One negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Negation {
    /// Its element.
    at: usize,
    kind: Denial,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Denial {
    /// It does not happen.
    Occurrence,
    /// The event that was asked for does not happen, whatever else the answer tells.
    Event,
    /// One does not know.
    Knowledge,
    /// `not from 12 to 15`: this span is not the one.
    This,
}

/// What an answer denies.
pub(super) struct Denials<'t> {
    text: &'t str,
    negations: Vec<Negation>,
    /// Places of words that turn a sentence round.
    contrasts: Vec<usize>,
    /// Places of commas and dashes.
    breaks: Vec<usize>,
    /// Places where sentences end.
    ends: Vec<usize>,
    /// Of those, where a question ends.
    questions: Vec<usize>,
    /// `the video only shows …`: what follows is something else.
    only: bool,
    /// `the video shows …`: what follows may be something else too.
    other: bool,
}

const OCCURS: &[&str] = &[
    "show",
    "shows",
    "shown",
    "showing",
    "contain",
    "contains",
    "contained",
    "depict",
    "depicts",
    "depicted",
    "include",
    "includes",
    "included",
    "occur",
    "occurs",
    "occurring",
    "happen",
    "happens",
    "happening",
    "appear",
    "appears",
    "appearing",
    "present",
    "visible",
    "seen",
    "see",
    "feature",
    "features",
    "featured",
    "exist",
    "exists",
    "found",
    "find",
    "match",
    "matches",
    "take",
    "takes",
    "captured",
    "capture",
    "have",
    "any",
    "mentioned",
    "mention",
    "mentions",
    "displayed",
    "display",
    "observed",
    "observe",
    "in",
    "there",
    "possible",
    "correspond",
    "identify",
    "locate",
    "detected",
    "detect",
    "place",
    "a",
    "performed",
];
const KNOWS: &[&str] = &[
    "determine",
    "determined",
    "sure",
    "certain",
    "clear",
    "tell",
    "say",
    "know",
    "provide",
    "pinpoint",
    "specify",
    "answer",
    "answered",
    "confirm",
    "precise",
    "exact",
    "exactly",
    "specified",
    "view",
    "watch",
    "analyze",
    "analyse",
    "access",
    "help",
    "assist",
    "enough",
    "be",
    "able",
    "entirely",
    "completely",
    "fully",
    "totally",
    "identify",
    "possible",
    "give",
    "given",
    "directly",
    "process",
    "precisely",
    "definitive",
    "definitively",
    "accurately",
    "reliably",
    "know",
    "explicitly",
];
const NOT: &[&str] = &[
    "not",
    "never",
    "cannot",
    "neither",
    "nor",
    "without",
    "absent",
    "unable",
    "impossible",
    "no",
    "nothing",
    "none",
    "nobody",
    "lacks",
    "lack",
];
const EVENT: &[&str] =
    &["event", "action", "moment", "scene", "activity", "query", "described", "description", "sentence", "such"];

impl<'t> Denials<'t> {
    pub(super) fn of(text: &'t str, elements: &[Element]) -> Self {
        let mut found = Self {
            text,
            negations: vec![],
            contrasts: vec![],
            breaks: vec![],
            ends: vec![],
            questions: vec![],
            only: false,
            other: false,
        };
        for (place, element) in elements.iter().enumerate() {
            match element.what {
                What::Mark(Kind::Stop | Kind::Semicolon | Kind::Line) => found.ends.push(place),
                What::Mark(Kind::Question) => {
                    found.ends.push(place);
                    found.questions.push(place);
                }
                What::Mark(Kind::Comma | Kind::Dash) => found.breaks.push(place),
                What::Word if !element.tag => found.word(elements, place),
                _ => {}
            }
        }
        found
    }

    fn word(&mut self, elements: &[Element], place: usize) {
        let at = |place: usize| {
            let element = elements.get(place).filter(|element| element.what == What::Word)?;
            self.text.get(element.at.clone()).map(|word| word.replace('’', "'").to_ascii_lowercase())
        };
        let Some(word) = at(place) else { return };
        if ["video", "clip", "footage"].contains(&word.as_str()) && place <= 3 {
            self.other |= at(place + 1)
                .is_some_and(|next| ["shows", "contains", "features", "depicts", "includes"].contains(&next.as_str()));
        }
        if word == "only" {
            self.only |= at(place + 1).is_some_and(|next| {
                ["shows", "contains", "features", "depicts", "includes", "show"].contains(&next.as_str())
            });
        }
        let contrast =
            ["but", "however", "instead", "rather", "although", "though", "except", "still", "nevertheless", "yet"];
        if contrast.contains(&word.as_str()) {
            self.contrasts.push(place);
            return;
        }
        if !(NOT.contains(&word.as_str()) || word.ends_with("n't")) {
            return;
        }
        let follows = |list: &[&str], within: usize| {
            (1..=within).any(|ahead| at(place + ahead).is_some_and(|next| list.contains(&next.as_str())))
        };
        let next = at(place + 1);
        let next_is_time = matches!(elements.get(place + 1).map(|element| element.what), Some(What::Time(_)));
        let at_all = (2..=5)
            .any(|ahead| at(place + ahead).as_deref() == Some("at") && at(place + ahead + 1).as_deref() == Some("all"));
        let kind = match word.as_str() {
            "not"
                if next_is_time
                    || matches!(next.as_deref(), Some("from" | "between" | "at" | "during" | "until" | "the")) =>
            {
                Denial::This
            }
            "no" if next.is_none() => return,
            "no" if matches!(next.as_deref(), Some("doubt" | "matter" | "longer")) => return,
            "no" if follows(&["exact", "precise", "specific", "explicit"], 1) => Denial::Knowledge,
            "without" if !follows(&["any", "showing", "a"], 1) => return,
            "without" if follows(&["a"], 1) => return,
            "no" | "nothing" | "none" | "nobody" | "neither" | "nor" | "absent" | "never" | "without" => {
                Denial::Occurrence
            }
            "lack" | "lacks" => Denial::Occurrence,
            "unable" | "cannot" | "can't" | "not"
                if follows(&["watch", "view", "access", "analyze", "analyse", "process"], 3) =>
            {
                Denial::Event
            }
            "unable" | "impossible" => Denial::Knowledge,
            "cannot" | "can't" | "couldn't" | "won't" if follows(&["find", "see", "locate", "identify"], 3) => {
                Denial::Occurrence
            }
            "cannot" | "can't" | "couldn't" => Denial::Knowledge,
            "not" if self.other && next.as_ref().is_some_and(|next| next.ends_with("ing")) => Denial::Event,
            _ if follows(KNOWS, 1) => Denial::Knowledge,
            _ if follows(OCCURS, 3) => Denial::Occurrence,
            _ if follows(KNOWS, 3) => Denial::Knowledge,
            // `he does not laugh at all`
            _ if at_all => Denial::Event,
            _ => return,
        };
        let about_event = kind == Denial::Occurrence && {
            let before = (1..=8).map_while(|back| place.checked_sub(back)).take_while(|place| {
                !matches!(
                    elements.get(*place).map(|e| e.what),
                    Some(What::Mark(Kind::Stop | Kind::Semicolon | Kind::Line | Kind::Question))
                )
            });
            let mut around = before.chain(place + 1..place + 4);
            around.any(|place| at(place).is_some_and(|word| EVENT.contains(&word.as_str())))
        };
        let kind = if about_event { Denial::Event } else { kind };
        self.negations.push(Negation { at: place, kind });
    }

    /// Whether nothing in the answer can be a span: the event is denied and nothing turns that round.
    pub(super) fn deny_everything(&self) -> bool {
        if self.other
            && self.negations.iter().any(|negation| {
                let turned = self.contrasts.partition_point(|place| *place < negation.at);
                let after_but = turned
                    .checked_sub(1)
                    .and_then(|last| self.contrasts.get(last))
                    .is_some_and(|but| negation.at - but <= 3);
                after_but && matches!(negation.kind, Denial::Occurrence | Denial::Event)
            })
        {
            return true;
        }
        if self.only
            && self.negations.iter().any(|negation| matches!(negation.kind, Denial::Occurrence | Denial::Event))
        {
            return true;
        }
        let event = self.negations.iter().find(|negation| negation.kind == Denial::Event);
        event.is_some_and(|event| !self.contrasts.iter().any(|contrast| *contrast > event.at))
    }

    /// Whether there is a negation or a word of regret at all.
    pub(super) fn any(&self) -> bool {
        !self.negations.is_empty()
    }

    /// Whether the span from element `first` to `last` is denied, or only asked about.
    pub(super) fn deny(&self, first: usize, last: usize) -> bool {
        let begin = sorted_before(&self.ends, first);
        let end = sorted_after(&self.ends, last);
        let start = self.negations.partition_point(|negation| begin.is_some_and(|begin| negation.at < begin));
        let inside = self.negations.iter().skip(start).take_while(|negation| end.is_none_or(|end| negation.at < end));
        let between = |places: &[usize], a: usize, b: usize| {
            let (low, high) = (a.min(b), a.max(b));
            sorted_after(places, low).is_some_and(|place| place < high)
        };
        { inside }.take(64).any(|negation| {
            let turned = between(&self.contrasts, negation.at, if negation.at < first { first } else { last });
            match negation.kind {
                Denial::This => negation.at < first && first - negation.at <= 5,
                Denial::Occurrence | Denial::Event => !turned,
                Denial::Knowledge => negation.at < first && !turned && !between(&self.breaks, negation.at, first),
            }
        })
    }

    /// Whether the span stands in a question.
    pub(super) fn is_asked(&self, last: usize) -> bool {
        let end = sorted_after(&self.ends, last);
        end.is_some_and(|end| self.questions.binary_search(&end).is_ok())
    }
}

fn sorted_before(places: &[usize], at: usize) -> Option<usize> {
    let upto = places.partition_point(|place| *place < at);
    upto.checked_sub(1).and_then(|last| places.get(last)).copied()
}

fn sorted_after(places: &[usize], at: usize) -> Option<usize> {
    places.get(places.partition_point(|place| *place <= at)).copied()
}
