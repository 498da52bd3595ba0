//! Where everybody is at every moment.
//!
//! The stage is 64 units wide and 48 high. [`block`] fixes where each event begins and ends and which way it goes;
//! [`pose`] is then a plain function of the film and the time.

use std::f64::consts::TAU;

use cuemark_core::Rng;

use crate::events::Place;
use crate::script::any_tempo;
use crate::{Event, Film, Size, Tempo, Verb, Way};

/// Stage units from left to right.
pub(crate) const WIDTH: f64 = 64.0;
/// Stage units from top to bottom.
pub(crate) const HEIGHT: f64 = 48.0;

/// How one actor stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pose {
    pub(crate) place: Place,
    pub(crate) radius: f64,
    /// Radians, clockwise.
    pub(crate) angle: f64,
}

/// A place for each actor, spread over lanes and columns.
pub(crate) fn homes(actors: usize, rng: &mut Rng) -> Vec<Place> {
    let mut columns: Vec<usize> = (0..actors).collect();
    rng.shuffle(&mut columns);
    let share = |index: usize| (index as f64 + 0.5) / actors as f64;
    let columns = columns.into_iter().enumerate();
    columns
        .map(|(lane, column)| Place {
            x: 8.0 + (WIDTH - 16.0) * share(column) + rng.between(-2.0, 2.0),
            y: 14.0 + (HEIGHT - 22.0) * share(lane) + rng.between(-1.5, 1.5),
        })
        .collect()
}

/// Walks through the events by start and decides where each begins and ends, which way and how fast.
pub(crate) fn block(film: &mut Film, rng: &mut Rng) {
    let mut places = film.homes.clone();
    let looks = film.actors.clone();
    for event in &mut film.events {
        let (Some(&here), Some(look)) = (places.get(event.actor), looks.get(event.actor)) else { continue };
        (event.from, event.to) = (here, here);
        match event.verb {
            Verb::Enter => {
                let way = any_way(rng);
                event.way = Some(way);
                event.from = Place { x: wings(way, look.size), ..here };
            }
            Verb::Leave => {
                let way = any_way(rng);
                event.way = Some(way);
                event.to = Place { x: wings(way, look.size), ..here };
            }
            Verb::Slide => {
                let way = if here.x > WIDTH / 2.0 { Way::Left } else { Way::Right };
                event.way = Some(way);
                let x = match way {
                    Way::Left => rng.between(6.0, here.x - 20.0),
                    Way::Right => rng.between(here.x + 20.0, WIDTH - 6.0),
                };
                event.to = Place { x, ..here };
            }
            Verb::Meet => {
                if let Some((&there, other)) = event.partner.and_then(|p| Some((places.get(p)?, looks.get(p)?))) {
                    let apart = look.size.radius() + other.size.radius() + 0.5;
                    let side = if there.x > WIDTH / 2.0 { -apart } else { apart };
                    event.to = Place { x: there.x + side, y: there.y };
                }
            }
            Verb::Spin | Verb::Jump => event.tempo = Some(any_tempo(rng)),
            Verb::Grow => {}
        }
        if let Some(place) = places.get_mut(event.actor) {
            *place = event.to;
        }
    }
}

fn any_way(rng: &mut Rng) -> Way {
    if rng.chance(0.5) { Way::Left } else { Way::Right }
}

/// Just outside the picture, so that nobody is on the way without being seen.
fn wings(way: Way, size: Size) -> f64 {
    match way {
        Way::Left => -size.radius(),
        Way::Right => WIDTH + size.radius(),
    }
}

/// How `actor` stands at `time` seconds; `None` while it is behind the scenes.
pub(crate) fn pose(film: &Film, actor: usize, time: f64) -> Option<Pose> {
    let radius = film.actors.get(actor)?.size.radius();
    let mut pose = Pose { place: *film.homes.get(actor)?, radius, angle: 0.0 };
    for event in film.events_of(actor) {
        let done = (time - event.span.start()) / event.span.len().max(1e-9);
        if done < 0.0 {
            return (event.verb != Verb::Enter).then_some(pose);
        }
        if event.actor == actor {
            pose = perform(event, pose, done.min(1.0), (time.min(event.span.end())) - event.span.start());
        } else if done < 1.0 {
            pose.place.x += sway(done, time);
        }
        if done >= 1.0 && event.verb == Verb::Leave {
            return None;
        }
    }
    Some(pose)
}

/// The pose after `done` (0 to 1) of `event`, `seconds` into it.
fn perform(event: &Event, before: Pose, done: f64, seconds: f64) -> Pose {
    let mut pose = before;
    match event.verb {
        Verb::Enter | Verb::Leave | Verb::Slide => pose.place = between(event.from, event.to, done),
        Verb::Meet => {
            pose.place = between(event.from, event.to, (done / 0.6).min(1.0));
            if done < 1.0 {
                pose.place.x += sway(done, event.span.start() + seconds);
            }
        }
        Verb::Spin => pose.angle += TAU * seconds * if event.tempo == Some(Tempo::Quick) { 1.0 } else { 0.4 },
        Verb::Jump => {
            let period = if event.tempo == Some(Tempo::Quick) { 0.6 } else { 1.2 };
            // Whole hops, so that nobody ends in the air.
            let hops = (event.span.len() / period).round().max(1.0);
            let phase = (done * hops).fract();
            pose.place.y -= 9.0 * 4.0 * phase * (1.0 - phase);
        }
        Verb::Grow => {
            pose.radius *= 1.0 + 0.8 * swell(done);
        }
    }
    pose
}

/// How far somebody has grown after `done` (0 to 1) of it, 0 to 1: up for most of the time, then back to its own size.
pub(crate) fn swell(done: f64) -> f64 {
    let swell = if done < 0.8 { done / 0.8 } else { (1.0 - done) / 0.2 };
    swell.max(0.0)
}

/// Whether the two of a meeting stand side by side after `done` (0 to 1) of it.
pub(crate) fn have_met(done: f64) -> bool {
    done >= 0.6
}

/// Both sides of a meeting rock sideways once they have met.
fn sway(done: f64, time: f64) -> f64 {
    if have_met(done) { 1.6 * (TAU * 0.8 * time).sin() } else { 0.0 }
}

fn between(from: Place, to: Place, done: f64) -> Place {
    Place { x: from.x + (to.x - from.x) * done, y: from.y + (to.y - from.y) * done }
}
