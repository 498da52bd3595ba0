//! Reading back what only the makers of a world know.

use std::collections::HashMap;

use camino::Utf8Path;
use cuemark_core::{Moment, QueryId, Truth, VideoId};
use cuemark_formats::Source;
use cuemark_formats::json::decode_line;
use serde::Deserialize;

use crate::{Film, Meaning, Result, WorldError, graded, layout, relevance};

/// The event log of a world and the meaning of its queries.
#[derive(Debug, Clone)]
pub struct WorldLog {
    films: HashMap<VideoId, Film>,
    meanings: HashMap<QueryId, Meaning>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MeaningLine {
    qid: QueryId,
    meaning: Meaning,
}

impl WorldLog {
    /// Reads the log of the world in folder `world`.
    ///
    /// # Errors
    /// When a file is missing or says something that cannot be.
    pub fn open(world: &Utf8Path) -> Result<Self> {
        let mut films = HashMap::new();
        let events = Source::new(world.join(layout::EVENTS));
        events.for_each_line(|line, text| {
            let film: Film = decode_line(&events, line, text)?;
            film.check().map_err(|problem| events.record(line, "events", problem))?;
            films.insert(film.video.clone(), film);
            Ok(())
        })?;
        let mut meanings = HashMap::new();
        let source = Source::new(world.join(layout::MEANINGS));
        source.for_each_line(|line, text| {
            let MeaningLine { qid, meaning } = decode_line(&source, line, text)?;
            meanings.insert(qid, meaning);
            Ok(())
        })?;
        Ok(Self { films, meanings })
    }

    /// Every film, sorted by video.
    pub fn films(&self) -> Vec<&Film> {
        let mut films: Vec<_> = self.films.values().collect();
        films.sort_unstable_by(|a, b| a.video.cmp(&b.video));
        films
    }

    /// The film called so.
    pub(crate) fn film_of(&self, video: &VideoId) -> Option<&Film> {
        self.films.get(video)
    }

    /// The film that `query` is searched in.
    ///
    /// # Errors
    /// When the log knows no such video.
    pub fn film(&self, query: &QueryId, video: &VideoId) -> Result<&Film> {
        let unknown = || WorldError::UnknownVideo { query: query.clone(), video: video.clone() };
        self.films.get(video).ok_or_else(unknown)
    }

    /// What a query means.
    ///
    /// # Errors
    /// When the log knows no such query.
    pub fn meaning(&self, query: &QueryId) -> Result<&Meaning> {
        self.meanings.get(query).ok_or_else(|| WorldError::UnknownQuery { query: query.clone() })
    }

    /// The same query with the graded moments of every film, not of its pool alone.
    ///
    /// # Errors
    /// When the log knows no such query.
    pub fn graded_everywhere(&self, truth: &Truth) -> Result<Truth> {
        let meaning = self.meaning(&truth.query.id)?;
        let moments = self.films().into_iter().flat_map(|film| graded::graded_moments(meaning, film)).collect();
        Ok(Truth { moments, pool: None, ..truth.clone() })
    }

    /// Whether a film shows all that a query asks for: then it is no negative example, whatever film the query was written for.
    ///
    /// # Errors
    /// When the log knows no such query or video.
    pub fn shows(&self, query: &QueryId, video: &VideoId) -> Result<bool> {
        Ok(!relevance::answers(self.meaning(query)?, self.film(query, video)?).is_empty())
    }

    /// The level (0 to 4) of any moment for any query.
    ///
    /// # Errors
    /// When the log knows no such query or video.
    pub fn grade(&self, query: &QueryId, moment: &Moment) -> Result<u8> {
        Ok(relevance::grade(self.meaning(query)?, self.film(query, &moment.video)?, moment.span))
    }
}
