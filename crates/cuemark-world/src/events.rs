//! The event log: what happens in a film, exactly.

use cuemark_core::{Span, VideoId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Look, Topic};

/// What an actor does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each name is a word that films and sentences are made of
pub enum Verb {
    Enter,
    Slide,
    Spin,
    Grow,
    Jump,
    Meet,
    Leave,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 7] = [Self::Enter, Self::Slide, Self::Spin, Self::Grow, Self::Jump, Self::Meet, Self::Leave];
}

/// Where to (slide, leave) or where from (enter), as the viewer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each name is a word that films and sentences are made of
pub enum Way {
    Left,
    Right,
}

/// How fast something is done (spin, jump).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each name is a word that films and sentences are made of
pub enum Tempo {
    Slow,
    Quick,
}

/// A place on the stage in stage units: 64 wide, 48 high, from the upper left corner. May lie outside.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// To the right.
    pub x: f64,
    /// Downwards.
    pub y: f64,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// What is done.
    pub verb: Verb,
    /// Who does it: an index into the film's actors.
    pub actor: usize,
    /// Who is met; meetings only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partner: Option<usize>,
    /// When, in seconds.
    #[serde(with = "span_pair")]
    pub span: Span,
    /// Which way; slides, entrances and exits only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// How fast; spins and jumps only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tempo: Option<Tempo>,
    /// What the actor talks about meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<Topic>,
    /// Where the actor is when it begins.
    pub from: Place,
    /// Where the actor is when it ends.
    pub to: Place,
}

/// One spoken line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Who speaks: an index into the film's actors.
    pub actor: usize,
    /// When, in seconds.
    #[serde(with = "span_pair")]
    pub span: Span,
    /// The words.
    pub text: String,
}

/// One video as its makers know it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Film {
    /// The video's name.
    pub video: VideoId,
    /// How long it lasts, in seconds.
    pub duration: f64,
    /// Who plays in it; no two look the same.
    pub actors: Vec<Look>,
    /// Where each actor stands before anything happens.
    pub homes: Vec<Place>,
    /// What happens, by start.
    pub events: Vec<Event>,
    /// What is said, by start.
    pub lines: Vec<Line>,
}

impl Film {
    /// What one actor takes part in, as doer or partner, by start.
    pub fn events_of(&self, actor: usize) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.actor == actor || event.partner == Some(actor))
    }

    /// Whether every index points into the film and every span lies inside it; the first fault in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !(self.duration > 0.0 && self.duration.is_finite()) {
            return Err(format!("a duration of {} s", self.duration));
        }
        if self.homes.len() != self.actors.len() {
            return Err(format!("{} homes for {} actors", self.homes.len(), self.actors.len()));
        }
        let known = |actor: usize| actor < self.actors.len();
        for (index, event) in self.events.iter().enumerate() {
            if !known(event.actor) || event.partner.is_some_and(|partner| !known(partner)) {
                return Err(format!("event {index} is about an actor that is not in the film"));
            }
            if event.span.end() > self.duration + 1e-6 {
                return Err(format!("event {index} ends after the film"));
            }
        }
        if self.lines.iter().any(|line| !known(line.actor)) {
            return Err("a line is spoken by an actor that is not in the film".to_owned());
        }
        Ok(())
    }
}

/// Spans as `[start, end]` in JSON.
mod span_pair {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Span};

    pub(super) fn serialize<S: Serializer>(span: &Span, out: S) -> Result<S::Ok, S::Error> {
        [span.start(), span.end()].serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
        let [start, end] = <[f64; 2]>::deserialize(from)?;
        Span::new(start, end).map_err(serde::de::Error::custom)
    }
}
