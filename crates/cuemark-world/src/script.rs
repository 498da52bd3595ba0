//! Writing a film: who plays, what happens, and when.
//!
//! Only *leads* are asked for. Each lead has an actor of its own, so that its span can follow the prior exactly,
//! whatever else happens at the same time; everything else is fitted around the leads. No actor does the same thing
//! twice, except for the twin of an ordered lead, which only the order words tell apart from it; so every lead can be
//! described uniquely.

use cuemark_core::{Rng, Span, VideoId};

use crate::events::Place;
use crate::stage;
use crate::{
    Also, Colour, Event, Film, Line, Look, Prior, Shape, Side, Size, Tempo, Topic, Verb, WorldOptions, speech,
};

/// Seconds that lie between two events of one actor.
const REST: f64 = 0.4;

/// A film and what will be asked about it.
pub(crate) struct Script {
    pub(crate) film: Film,
    pub(crate) leads: Vec<Lead>,
}

/// What a query will be about: an event, or two back to back.
pub(crate) struct Lead {
    /// Index of the (first) event.
    pub(crate) event: usize,
    /// What else the actor does, when the query has to say so.
    pub(crate) also: Option<Also>,
    /// The moment.
    pub(crate) span: Span,
}

/// A lead while its film is still being written; its event is found again by actor and start.
#[derive(Clone, Copy)]
struct Plan {
    actor: usize,
    span: Span,
    also: Option<Also>,
}

/// Writes the film of one video. `rng` belongs to this video alone.
pub(crate) fn write(options: &WorldOptions, video: VideoId, side: Side, rng: &mut Rng) -> Script {
    let duration = hundredths(options.length * rng.between(0.75, 1.25));
    let leads = options.events.div_ceil(2).min(4);
    let bystanders = 1 + rng.below(2);
    let actors = cast(leads + bystanders, rng);
    let homes = stage::homes(actors.len(), rng);
    let mut film = Film { video, duration, actors, homes, events: Vec::new(), lines: Vec::new() };

    let prior = Prior::new(options.bias, options.overlong, options.shares());
    let mut plans: Vec<Plan> = (0..leads).map(|actor| place_lead(&mut film, actor, leads, &prior, side, rng)).collect();
    for plan in &mut plans {
        if plan.also.is_none() && rng.chance(0.3) {
            plan.also = place_order(&mut film, plan, rng);
        }
    }
    for _ in 0..options.events * 8 {
        if film.events.len() >= options.events {
            break;
        }
        place_filler(&mut film, rng);
    }

    film.events.sort_by(|a, b| a.span.start().total_cmp(&b.span.start()).then(a.actor.cmp(&b.actor)));
    stage::block(&mut film, rng);
    speak(&mut film, rng);
    let leads = plans.into_iter().filter_map(|plan| find(&film, plan)).collect();
    Script { film, leads }
}

fn find(film: &Film, plan: Plan) -> Option<Lead> {
    let Plan { actor, span, also } = plan;
    let event = film.events.iter().position(|event| event.actor == actor && event.span.start() == span.start())?;
    Some(Lead { event, also, span })
}

/// Actors of different looks, mostly of different colours.
fn cast(number: usize, rng: &mut Rng) -> Vec<Look> {
    let mut colours = Colour::ALL;
    rng.shuffle(&mut colours);
    let mut actors: Vec<Look> = Vec::with_capacity(number);
    for fresh in colours.into_iter().cycle() {
        if actors.len() == number {
            break;
        }
        // Now and then two share a colour, so that a shape or a size is needed to tell them apart.
        let colour = match rng.pick(&actors) {
            Some(other) if rng.chance(0.15) => other.colour,
            _ => fresh,
        };
        let shape = rng.pick(&Shape::ALL).copied().unwrap_or(Shape::Ball);
        let size = rng.pick(&Size::ALL).copied().unwrap_or(Size::Small);
        let look = Look { colour, shape, size };
        if !actors.contains(&look) {
            actors.push(look);
        }
    }
    actors
}

/// Puts the lead of `actor` where the prior says. Actors below `leads` have a lead of their own.
fn place_lead(film: &mut Film, actor: usize, leads: usize, prior: &Prior, side: Side, rng: &mut Rng) -> Plan {
    let verb = any_verb(rng);
    let colour = film.actors.get(actor).map_or(Colour::Red, |look| look.colour);
    let moment = prior.draw(verb, colour, side, rng).to_span(film.duration);
    let span = span(hundredths(moment.start()), hundredths(moment.end()));
    if verb != Verb::Leave && verb != Verb::Meet && rng.chance(0.2) {
        let second = any_verb(rng);
        let cut = hundredths(span.start() + span.len() * rng.between(0.4, 0.6));
        let parts = [event(verb, actor, until(span, cut)), event(second, actor, since(span, cut))];
        if second != verb && second != Verb::Enter && second != Verb::Meet {
            film.events.extend(parts);
            return Plan { actor, span, also: Some(Also::Then(second)) };
        }
    }
    let mut lead = event(verb, actor, span);
    if verb == Verb::Meet {
        // Only bystanders are met: meeting another lead's actor would move that lead.
        let free: Vec<usize> = (leads..film.actors.len()).filter(|partner| is_free(film, *partner, span)).collect();
        match rng.pick(&free) {
            Some(partner) => lead.partner = Some(*partner),
            None => lead.verb = Verb::Spin,
        }
    }
    film.events.push(lead);
    Plan { actor, span, also: None }
}

/// Lets the lead's actor do something else before or after the lead, and perhaps the same again beyond that.
fn place_order(film: &mut Film, plan: &Plan, rng: &mut Rng) -> Option<Also> {
    let lead = film.events.iter().find(|event| event.actor == plan.actor)?;
    let (actor, verb, span, whole) = (lead.actor, lead.verb, lead.span, film.duration);
    let other = any_verb(rng);
    if other == verb || other == Verb::Meet {
        return None;
    }
    let (length, gap) = (rng.between(1.5, 4.0), REST + rng.uniform());
    let twin_length = rng.between(1.5, 4.0);
    let later = rng.chance(0.5);
    let (anchor, twin) = if later {
        let anchor = stretch(span.end() + gap, length);
        (anchor, stretch(anchor.end() + REST, twin_length))
    } else {
        let anchor = stretch(span.start() - gap - length, length);
        (anchor, stretch(anchor.start() - REST - twin_length, twin_length))
    };
    let fits_film = |stretch: Span| stretch.end() <= whole && stretch.len() > 1.4;
    let candidate = event(other, actor, anchor);
    if !fits_film(anchor) || !fits(film, &candidate) {
        return None;
    }
    film.events.push(candidate);
    let again = event(verb, actor, twin);
    if verb != Verb::Meet && fits_film(twin) && fits(film, &again) && rng.chance(0.6) {
        film.events.push(again);
    }
    Some(if later { Also::Before(other) } else { Also::After(other) })
}

/// Tries once to add something that nobody will ask for.
fn place_filler(film: &mut Film, rng: &mut Rng) {
    let (actor, verb) = (rng.below(film.actors.len()), any_verb(rng));
    let length = rng.between(1.5, 0.25 * film.duration);
    let mut filler = event(verb, actor, stretch(rng.between(0.0, film.duration - length), length));
    if verb == Verb::Meet {
        let partner = rng.below(film.actors.len());
        filler.partner = Some(partner);
        if partner == actor || !is_free(film, partner, filler.span) || has_met(film, partner) {
            return;
        }
    }
    let repeats = film.events_of(actor).any(|event| event.verb == verb);
    if !repeats && filler.span.end() <= film.duration && fits(film, &filler) {
        film.events.push(filler);
    }
}

fn has_met(film: &Film, actor: usize) -> bool {
    film.events_of(actor).any(|event| event.verb == Verb::Meet)
}

/// Whether the actor of `candidate` can do it then: at leisure, after its entrance and before its exit.
fn fits(film: &Film, candidate: &Event) -> bool {
    let span = candidate.span;
    let in_order = film.events_of(candidate.actor).all(|event| match candidate.verb {
        Verb::Enter => span.end() <= event.span.start() && event.verb != Verb::Enter,
        Verb::Leave => event.span.end() <= span.start() && event.verb != Verb::Leave,
        _ => true,
    });
    in_order && is_free(film, candidate.actor, span)
}

/// Whether `actor` is on the stage throughout `span` and has nothing else to do.
fn is_free(film: &Film, actor: usize, span: Span) -> bool {
    film.events_of(actor).all(|event| {
        let (before, after) = (span.end() + REST <= event.span.start(), event.span.end() + REST <= span.start());
        match event.verb {
            Verb::Enter => after,
            Verb::Leave => before,
            _ => before || after,
        }
    })
}

/// Now and then an actor talks while it does something, about something; now and then for no reason.
fn speak(film: &mut Film, rng: &mut Rng) {
    for event in &mut film.events {
        if event.span.len() > 1.2 && rng.chance(0.35) {
            let topic = if rng.chance(0.75) { rng.pick(&Topic::ALL).copied() } else { None };
            let start = hundredths(rng.between(event.span.start(), event.span.end() - 1.0));
            let spoken = span(start, hundredths((start + rng.between(1.0, 2.5)).min(event.span.end())));
            event.topic = topic;
            film.lines.push(Line { actor: event.actor, span: spoken, text: speech::line(topic, rng).to_owned() });
        }
    }
    film.lines.sort_by(|a, b| a.span.start().total_cmp(&b.span.start()));
}

fn event(verb: Verb, actor: usize, span: Span) -> Event {
    let nowhere = Place { x: 0.0, y: 0.0 };
    Event { verb, actor, partner: None, span, way: None, tempo: None, topic: None, from: nowhere, to: nowhere }
}

fn any_verb(rng: &mut Rng) -> Verb {
    rng.pick(&Verb::ALL).copied().unwrap_or(Verb::Spin)
}

/// Either tempo.
pub(crate) fn any_tempo(rng: &mut Rng) -> Tempo {
    if rng.chance(0.5) { Tempo::Slow } else { Tempo::Quick }
}

fn hundredths(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}

/// `length` seconds from `start` on; empty when that would begin before the film.
fn stretch(start: f64, length: f64) -> Span {
    if start < 0.0 { Span::whole(0.0) } else { span(hundredths(start), hundredths(start + length)) }
}

fn until(whole: Span, cut: f64) -> Span {
    span(whole.start(), cut)
}

fn since(whole: Span, cut: f64) -> Span {
    span(cut, whole.end())
}

/// A span whose bounds the script has put in order; empty at 0 if it ever had not.
fn span(start: f64, end: f64) -> Span {
    Span::new(start, end).unwrap_or_else(|_| Span::whole(0.0))
}
