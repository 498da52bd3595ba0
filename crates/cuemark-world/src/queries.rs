//! Asking about a film: one query per lead, saying just enough to leave no doubt.

use cuemark_core::{Query, QueryId, Rng, Truth, Video};
use cuemark_text::Parse;

use crate::grammar::{self, Article};
use crate::script::{Lead, Script};
use crate::{Event, Film, Look, Meaning, Who, relevance};

/// A query, what it means and how it is built.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) truth: Truth,
    pub(crate) meaning: Meaning,
    pub(crate) parse: Parse,
}

/// One query for each lead of the script.
pub(crate) fn ask(script: &Script, vocabulary: usize, rng: &mut Rng) -> Vec<Asked> {
    let film = &script.film;
    let numbered = script.leads.iter().enumerate();
    numbered
        .filter_map(|(number, lead)| {
            let meaning = describe(film, lead, rng)?;
            let sentence = grammar::say(&meaning, Article::The, vocabulary, rng);
            let query = Query { id: QueryId::new(format!("{}-{number}", film.video)), text: sentence.text };
            let video = Video::new(film.video.clone(), film.duration);
            let kind = if meaning.topic.is_some() { "vt" } else { "v" };
            let truth = Truth { kind: Some(kind.to_owned()), ..Truth::single(query, video, [lead.span]) };
            Some(Asked { truth, meaning, parse: sentence.parse })
        })
        .collect()
}

/// Says as little as chance would have it, and more until only the lead answers.
///
/// The script sees to it that saying everything is always enough, so this is `None` for no film of its making.
fn describe(film: &Film, lead: &Lead, rng: &mut Rng) -> Option<Meaning> {
    let event = film.events.get(lead.event)?;
    let moods = Moods::draw(rng);
    let unique = |meaning: &Meaning| relevance::answers(meaning, film) == [lead.span];
    EFFORTS.iter().filter_map(|effort| moods.meaning(film, lead, event, effort)).find(unique)
}

/// How likely each detail is to be said.
struct Effort {
    colour: f64,
    shape: f64,
    size: f64,
    rest: f64,
}

/// From casual to pedantic.
const EFFORTS: [Effort; 4] = [
    Effort { colour: 0.8, shape: 0.8, size: 0.25, rest: 0.3 },
    Effort { colour: 1.0, shape: 1.0, size: 0.25, rest: 0.3 },
    Effort { colour: 1.0, shape: 1.0, size: 1.0, rest: 0.3 },
    Effort { colour: 1.0, shape: 1.0, size: 1.0, rest: 1.0 },
];

/// One draw per detail, kept while the effort rises, so that more effort only ever adds.
struct Moods([f64; 9]);

impl Moods {
    fn draw(rng: &mut Rng) -> Self {
        Self(std::array::from_fn(|_| rng.uniform()))
    }

    fn meaning(&self, film: &Film, lead: &Lead, event: &Event, effort: &Effort) -> Option<Meaning> {
        let [colour, shape, size, with_colour, with_shape, with_size, way, tempo, topic] = self.0;
        let who = |look: Look, [colour, shape, size]: [f64; 3]| Who {
            colour: Some(look.colour).filter(|_| colour < effort.colour),
            shape: Some(look.shape).filter(|_| shape < effort.shape),
            size: Some(look.size).filter(|_| size < effort.size),
        };
        let partner = event.partner.and_then(|partner| film.actors.get(partner));
        Some(Meaning {
            who: who(*film.actors.get(event.actor)?, [colour, shape, size]),
            verb: event.verb,
            with: partner.map(|look| who(*look, [with_colour, with_shape, with_size])),
            way: event.way.filter(|_| way < effort.rest),
            tempo: event.tempo.filter(|_| tempo < effort.rest),
            topic: event.topic.filter(|_| topic < effort.rest),
            also: lead.also,
        })
    }
}
