//! How well a span of a film answers a meaning, known from the event log.
//!
//! | level | when |
//! |---|---|
//! | 4 | all actions and details match, and the span covers the action without excess (IoU ≥ 0.7) |
//! | 3 | the action matches and one detail does not, or the span is somewhat off (IoU ≥ 0.5) |
//! | 2 | part of the action (less than half of it, or one of two actions); or a large gap in content (two details, or everything said about the actor) or in time (IoU ≥ 0.2) |
//! | 1 | the actor matches in everything said and does something else |
//! | 0 | nothing does: an actor who merely stands there counts for nothing |
//!
//! A meeting has two sides and is read either way round. The best event in the film counts.

use cuemark_core::Span;

use crate::meaning::Compared;
use crate::{Also, Event, Film, Meaning, Verb, Who};

/// The highest level.
pub const FULL: u8 = 4;

/// Seconds that may pass between two actions of *and then*.
const THEN_GAP: f64 = 1.0;

/// The level (0 to 4) of `span` of `film` for `meaning`.
pub fn grade(meaning: &Meaning, film: &Film, span: Span) -> u8 {
    actions(meaning, film).map(|action| action.level.min(action.timing(span))).max().unwrap_or(0)
}

/// The spans of `film` that answer `meaning` in full, by start: what a perfect annotator would mark.
pub fn answers(meaning: &Meaning, film: &Film) -> Vec<Span> {
    let full = actions(meaning, film).filter(|action| action.level == FULL);
    let mut spans: Vec<Span> = full.map(|action| action.span).collect();
    spans.sort_by(|a, b| a.start().total_cmp(&b.start()).then(a.end().total_cmp(&b.end())));
    spans.dedup();
    spans
}

/// The events that full answers are made of: one, or two where the meaning asks for one *and then* the other.
pub(crate) fn answering<'a>(meaning: &Meaning, film: &'a Film) -> Vec<&'a Event> {
    let alone = film.events.iter().filter(|event| single(meaning, film, event).level == FULL);
    let both = film.events.iter().filter_map(|first| {
        let second = second_of(meaning, film, first)?;
        (content(meaning, film, first) == FULL).then_some([first, second])
    });
    alone.chain(both.flatten()).collect()
}

/// Every moment of a film that somebody might have marked: each event, and any two of one actor in a row.
pub fn moments(film: &Film) -> Vec<Span> {
    let pairs = film.events.iter().flat_map(|first| {
        let second = film.events.iter().filter(move |second| follows(first, second));
        second.filter_map(move |second| hull(first.span, second.span))
    });
    film.events.iter().map(|event| event.span).chain(pairs).collect()
}

/// Something in the film that might be meant.
struct Action {
    /// From its first to its last second.
    span: Span,
    /// Its two halves, when it is two events.
    halves: Option<[Span; 2]>,
    /// The level its content deserves.
    level: u8,
}

impl Action {
    /// The most that a span can get, given where the action lies.
    fn timing(&self, span: Span) -> u8 {
        let level = match span.iou(self.span) {
            iou if iou >= 0.7 => 4,
            iou if iou >= 0.5 => 3,
            iou if iou >= 0.2 => 2,
            _ => 0,
        };
        let [first, second] = self.halves.unwrap_or([self.span; 2]);
        let complete = half_covered(span, first) && half_covered(span, second);
        if complete { level } else { level.min(2) }
    }
}

fn half_covered(span: Span, part: Span) -> bool {
    let shared = span.end().min(part.end()) - span.start().max(part.start());
    shared >= 0.5 * part.len()
}

/// Every reading of the film as the meaning's action.
fn actions<'a>(meaning: &'a Meaning, film: &'a Film) -> impl Iterator<Item = Action> + 'a {
    let singles = film.events.iter().map(move |event| single(meaning, film, event));
    let doubles = film.events.iter().filter_map(move |first| double(meaning, film, first));
    singles.chain(doubles)
}

/// One event as an answer.
fn single(meaning: &Meaning, film: &Film, event: &Event) -> Action {
    let content = content(meaning, film, event);
    let level = match meaning.also {
        // One of two actions is part of the action.
        Some(Also::Then(second)) => {
            let other = Meaning { verb: second, with: None, way: None, tempo: None, topic: None, ..*meaning };
            content.max(self::content(&other, film, event)).min(2)
        }
        _ => content,
    };
    Action { span: event.span, halves: None, level }
}

/// `first` and what follows it as an answer to *and then*.
fn double(meaning: &Meaning, film: &Film, first: &Event) -> Option<Action> {
    let second = second_of(meaning, film, first)?;
    let span = hull(first.span, second.span)?;
    Some(Action { span, halves: Some([first.span, second.span]), level: content(meaning, film, first) })
}

/// What *and then* asks for after `first`, where the film has it.
fn second_of<'a>(meaning: &Meaning, film: &'a Film, first: &Event) -> Option<&'a Event> {
    let Some(Also::Then(second)) = meaning.also else { return None };
    let is_second = |event: &&Event| event.verb == second && follows(first, event);
    film.events.iter().find(is_second).filter(|_| first.verb == meaning.verb)
}

/// Whether `second` is what the actor of `first` does next, without much of a pause.
fn follows(first: &Event, second: &Event) -> bool {
    let gap = second.span.start() - first.span.end();
    second.actor == first.actor && (0.0..=THEN_GAP).contains(&gap)
}

fn hull(first: Span, second: Span) -> Option<Span> {
    Span::new(first.start().min(second.start()), first.end().max(second.end())).ok()
}

/// The level of one event for the main action, time apart.
fn content(meaning: &Meaning, film: &Film, event: &Event) -> u8 {
    let straight = content_from(meaning, film, event, event.actor, event.partner);
    match event.partner {
        Some(partner) => straight.max(content_from(meaning, film, event, partner, Some(event.actor))),
        None => straight,
    }
}

fn content_from(meaning: &Meaning, film: &Film, event: &Event, actor: usize, partner: Option<usize>) -> u8 {
    let compared = |who: Who, actor: usize| film.actors.get(actor).map(|look| who.compare(*look));
    let Some(who) = compared(meaning.who, actor) else { return 0 };
    if event.verb != meaning.verb {
        return u8::from(who.stated > 0 && who.wrong == 0);
    }
    let with = match (meaning.with, partner) {
        (Some(with), Some(partner)) => compared(with, partner).unwrap_or_default(),
        _ => Compared::default(),
    };
    let mut rest = Compared::default();
    rest.note(meaning.way, event.way);
    rest.note(meaning.tempo, event.tempo);
    rest.note(meaning.topic, event.topic);
    let out_of_order = !in_order(meaning, film, event, actor);
    let wrong = who.wrong + with.wrong + rest.wrong + usize::from(out_of_order);
    let stranger = who.stated > 0 && who.wrong == who.stated;
    match wrong {
        0 => FULL,
        1 if !stranger => 3,
        _ => 2,
    }
}

/// Whether the same actor does the other thing on the stated side of `event`.
fn in_order(meaning: &Meaning, film: &Film, event: &Event, actor: usize) -> bool {
    let does = |verb: Verb, beyond: &dyn Fn(&Event) -> bool| {
        film.events.iter().any(|other| other.actor == actor && other.verb == verb && beyond(other))
    };
    match meaning.also {
        Some(Also::Before(verb)) => does(verb, &|other| other.span.start() >= event.span.end()),
        Some(Also::After(verb)) => does(verb, &|other| other.span.end() <= event.span.start()),
        Some(Also::Then(_)) | None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Place;
    use crate::{Colour, Look, Shape, Size, Tempo, Topic, Way};
    use cuemark_core::VideoId;

    const RED_BALL: Look = Look { colour: Colour::Red, shape: Shape::Ball, size: Size::Small };
    const BLUE_STAR: Look = Look { colour: Colour::Blue, shape: Shape::Star, size: Size::Large };

    fn span(start: f64, end: f64) -> Span {
        Span::new(start, end).unwrap()
    }

    fn event(verb: Verb, actor: usize, start: f64, end: f64) -> Event {
        let nowhere = Place { x: 0.0, y: 0.0 };
        let span = span(start, end);
        Event { verb, actor, partner: None, span, way: None, tempo: None, topic: None, from: nowhere, to: nowhere }
    }

    /// The red ball spins (2 to 6), jumps (6 to 10) and leaves (14 to 18); the blue star spins (20 to 24) and meets it.
    fn film() -> Film {
        let mut meeting = event(Verb::Meet, 1, 11.0, 13.0);
        meeting.partner = Some(0);
        Film {
            video: VideoId::new("v"),
            duration: 30.0,
            actors: vec![RED_BALL, BLUE_STAR],
            homes: vec![Place { x: 0.0, y: 0.0 }; 2],
            events: vec![
                event(Verb::Spin, 0, 2.0, 6.0),
                event(Verb::Jump, 0, 6.0, 10.0),
                meeting,
                event(Verb::Leave, 0, 14.0, 18.0),
                event(Verb::Spin, 1, 20.0, 24.0),
            ],
            lines: Vec::new(),
        }
    }

    fn asks(look: Look, verb: Verb) -> Meaning {
        Meaning { who: Who::exactly(look), verb, with: None, way: None, tempo: None, topic: None, also: None }
    }

    #[test]
    fn the_levels_are_those_of_the_design() {
        let (film, spins) = (film(), asks(RED_BALL, Verb::Spin));
        assert_eq!(grade(&spins, &film, span(2.0, 6.0)), 4);
        let small_star = Meaning { who: Who { size: Some(Size::Small), ..Who::exactly(BLUE_STAR) }, ..spins };
        assert_eq!(grade(&small_star, &film, span(20.0, 24.0)), 3, "one detail is wrong");
        assert_eq!(grade(&spins, &film, span(20.0, 24.0)), 2, "somebody else does it");
        assert_eq!(grade(&spins, &film, span(14.0, 18.0)), 1, "the right actor does something else");
        assert_eq!(grade(&spins, &film, span(25.0, 29.0)), 0, "the right actor does nothing");
        assert_eq!(grade(&asks(RED_BALL, Verb::Grow), &film, span(20.0, 24.0)), 0);
    }

    #[test]
    fn excess_and_missing_time_cost_levels() {
        let (film, leaves) = (film(), asks(RED_BALL, Verb::Leave));
        assert_eq!(grade(&leaves, &film, span(14.0, 17.0)), 4, "3 of 4 seconds");
        assert_eq!(grade(&leaves, &film, span(14.0, 22.0)), 3, "4 of 8");
        assert_eq!(grade(&leaves, &film, span(14.0, 30.0)), 2, "4 of 16");
        assert_eq!(grade(&leaves, &film, span(18.0, 19.0)), 0, "none");
    }

    #[test]
    fn everything_wrong_about_the_actor_is_a_large_gap_even_if_it_is_one_thing() {
        let ball = Meaning { who: Who { shape: Some(Shape::Ball), ..Who::default() }, ..asks(RED_BALL, Verb::Spin) };
        assert_eq!(grade(&ball, &film(), span(20.0, 24.0)), 2);
    }

    #[test]
    fn an_actor_that_is_not_described_earns_nothing() {
        let anybody = Meaning { who: Who::default(), ..asks(RED_BALL, Verb::Spin) };
        assert_eq!(grade(&anybody, &film(), span(14.0, 18.0)), 0);
        assert_eq!(answers(&anybody, &film()).len(), 2);
    }

    #[test]
    fn two_actions_need_both_and_one_is_part() {
        let both = Meaning { also: Some(Also::Then(Verb::Jump)), ..asks(RED_BALL, Verb::Spin) };
        assert_eq!(answers(&both, &film()), [span(2.0, 10.0)]);
        assert_eq!(grade(&both, &film(), span(2.0, 10.0)), 4);
        assert_eq!(grade(&both, &film(), span(2.0, 6.0)), 2, "one of two actions is part of it");
        assert_eq!(grade(&both, &film(), span(6.0, 10.0)), 2);
        assert_eq!(grade(&both, &film(), span(3.5, 8.5)), 3, "most of both");
        let far = Meaning { also: Some(Also::Then(Verb::Leave)), ..asks(RED_BALL, Verb::Jump) };
        assert!(answers(&far, &film()).is_empty(), "four seconds later is not and then");
        assert_eq!(grade(&far, &film(), span(6.0, 10.0)), 2);
    }

    #[test]
    fn order_is_a_detail() {
        let before = Meaning { also: Some(Also::Before(Verb::Leave)), ..asks(RED_BALL, Verb::Spin) };
        let after = Meaning { also: Some(Also::After(Verb::Leave)), ..asks(RED_BALL, Verb::Spin) };
        assert_eq!(grade(&before, &film(), span(2.0, 6.0)), 4);
        assert_eq!(grade(&after, &film(), span(2.0, 6.0)), 3);
    }

    #[test]
    fn a_way_a_tempo_or_a_topic_that_is_not_so_is_one_wrong_detail() {
        let mut film = film();
        film.events[3].way = Some(Way::Left);
        film.events[0].tempo = Some(Tempo::Slow);
        film.events[0].topic = Some(Topic::Moon);
        let (leaves, spins) = (asks(RED_BALL, Verb::Leave), asks(RED_BALL, Verb::Spin));
        for (way, level) in [(Way::Left, 4), (Way::Right, 3)] {
            assert_eq!(grade(&Meaning { way: Some(way), ..leaves }, &film, span(14.0, 18.0)), level);
        }
        for (tempo, topic, level) in
            [(Tempo::Slow, Topic::Moon, 4), (Tempo::Quick, Topic::Moon, 3), (Tempo::Quick, Topic::Lunch, 2)]
        {
            let meaning = Meaning { tempo: Some(tempo), topic: Some(topic), ..spins };
            assert_eq!(grade(&meaning, &film, span(2.0, 6.0)), level);
        }
    }

    #[test]
    fn a_meeting_is_read_either_way_round() {
        for (one, other) in [(RED_BALL, BLUE_STAR), (BLUE_STAR, RED_BALL)] {
            let meets = Meaning { with: Some(Who::exactly(other)), ..asks(one, Verb::Meet) };
            assert_eq!(answers(&meets, &film()), [span(11.0, 13.0)]);
        }
    }
}
