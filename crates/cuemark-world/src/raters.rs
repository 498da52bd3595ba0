//! Highlights: three simulated people rate the clips of a film for a query, as QVHighlights' annotators did.
//!
//! What can be seen of the asked event is known frame by frame ([`visible`]). A rater who is never wrong gives a clip 4 when it
//! shows more than three quarters of what a clip can show, 3 above a half, 2 above a quarter, 1 when it shows anything. Ours
//! differ from that by as much as [`WorldOptions::disagreement`] says.

use cuemark_core::Rng;
use serde::Serialize;

use crate::films::SplitFilms;
use crate::queries::Asked;
use crate::render::FPS;
use crate::{Event, Film, Meaning, Verb, WorldOptions, relevance, stage};

/// Seconds of a rated clip: QVHighlights' layout has two and does not say so.
pub(crate) const CLIP_SECONDS: f64 = 2.0;
/// People who rate.
pub(crate) const RATERS: usize = 3;
/// The best grade.
const BEST: f64 = 4.0;

/// One line of `highlights/SPLIT.jsonl`, in QVHighlights' layout.
#[derive(Debug, Serialize)]
pub(crate) struct RatedQuery<'a> {
    qid: &'a str,
    query: &'a str,
    duration: f64,
    vid: &'a str,
    relevant_windows: Vec<[f64; 2]>,
    relevant_clip_ids: Vec<usize>,
    saliency_scores: Vec<[u8; RATERS]>,
}

impl RatedQuery<'_> {
    /// How many clips were rated.
    pub(crate) fn clips(&self) -> usize {
        self.relevant_clip_ids.len()
    }
}

/// The ratings of a split, query by query. Every query has a random stream of its own, which nothing else draws from.
pub(crate) fn rate<'a>(split: &'a SplitFilms, options: &WorldOptions) -> Vec<RatedQuery<'a>> {
    let pairs = split.films.iter().flat_map(|(film, asked)| asked.iter().map(move |asked| (film, asked)));
    pairs.map(|(film, asked)| rated(film, asked, options)).collect()
}

fn rated<'a>(film: &'a Film, asked: &'a Asked, options: &WorldOptions) -> RatedQuery<'a> {
    let query = &asked.truth.query;
    let mut rng = Rng::stream(options.seed, &format!("raters of {}", query.id));
    // Half of the variance is how strict a person is with this query, half is the mood at a clip.
    let spread = options.disagreement * 0.5f64.sqrt();
    let leniency: [f64; RATERS] = std::array::from_fn(|_| spread * rng.normal());
    let shown = visible(&asked.meaning, film).into_iter().enumerate().filter(|(_, seen)| *seen > 0.0);
    let (clips, grades) = shown
        .map(|(clip, seen)| (clip, leniency.map(|leniency| grade(seen, leniency + spread * rng.normal()))))
        .unzip();
    RatedQuery {
        qid: query.id.as_str(),
        query: &query.text,
        duration: film.duration,
        vid: film.video.as_str(),
        relevant_windows: asked.truth.right().map(|moment| [moment.span.start(), moment.span.end()]).collect(),
        relevant_clip_ids: clips,
        saliency_scores: grades,
    }
}

/// The grade of a clip that shows `seen` of what it could, by somebody who is off by `off` grades.
pub(crate) fn grade(seen: f64, off: f64) -> u8 {
    (BEST * seen + off).ceil().clamp(0.0, BEST) as u8
}

/// How much every whole clip of `film` shows of what `meaning` asks for, 0 to 1: the mean over its frames.
pub(crate) fn visible(meaning: &Meaning, film: &Film) -> Vec<f64> {
    let events = relevance::answering(meaning, film);
    let frames = CLIP_SECONDS as usize * FPS;
    let clip = |clip: usize| {
        let at = |frame: usize| (frame as f64 + 0.5) / FPS as f64;
        let seen = |frame: usize| events.iter().map(|event| seen(film, event, at(frame))).fold(0.0, f64::max);
        (clip * frames..(clip + 1) * frames).map(seen).sum::<f64>() / frames as f64
    };
    (0..(film.duration / CLIP_SECONDS) as usize).map(clip).collect()
}

/// How much of an event can be seen at `time`, 0 to 1.
fn seen(film: &Film, event: &Event, time: f64) -> f64 {
    if time < event.span.start() || time >= event.span.end() {
        return 0.0;
    }
    let done = (time - event.span.start()) / event.span.len().max(1e-9);
    match event.verb {
        Verb::Slide | Verb::Spin | Verb::Jump => 1.0,
        // As much as is inside the picture.
        Verb::Enter | Verb::Leave => stage::pose(film, event.actor, time).map_or(0.0, |pose| {
            let (left, right) = (pose.place.x - pose.radius, pose.place.x + pose.radius);
            (right.min(stage::WIDTH) - left.max(0.0)).max(0.0) / (right - left).max(1e-9)
        }),
        Verb::Grow => stage::swell(done),
        // On the way there somebody merely walks.
        Verb::Meet => {
            if stage::have_met(done) {
                1.0
            } else {
                0.5
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::films;

    fn world(disagreement: f64) -> (WorldOptions, [SplitFilms; 4]) {
        let options = WorldOptions { videos: 60, disagreement, ..WorldOptions::default() };
        let splits = films::write_all(&options);
        (options, splits)
    }

    #[test]
    fn grades_are_quarters_of_what_a_clip_shows() {
        assert_eq!([0.01, 0.25, 0.26, 0.5, 0.51, 0.76, 1.0].map(|seen| grade(seen, 0.0)), [1, 1, 2, 2, 3, 4, 4]);
        assert_eq!((grade(1.0, 9.0), grade(0.1, -9.0)), (4, 0));
    }

    #[test]
    fn raters_without_disagreement_say_what_is_visible_and_only_of_the_moment() {
        let (options, splits) = world(0.0);
        let (mut clips, mut best) = (0, 0);
        for (film, asked) in splits.iter().flat_map(|split| &split.films) {
            for asked in asked {
                let rated = rated(film, asked, &options);
                let span = asked.truth.right().next().unwrap().span;
                let shown = visible(&asked.meaning, film);
                for (clip, grades) in rated.relevant_clip_ids.iter().zip(&rated.saliency_scores) {
                    assert_eq!(*grades, [grade(shown[*clip], 0.0); RATERS]);
                    let (start, end) = (*clip as f64 * CLIP_SECONDS, (*clip + 1) as f64 * CLIP_SECONDS);
                    assert!(start < span.end() && span.start() < end && end <= film.duration, "{}", rated.query);
                    clips += 1;
                    best += usize::from(grades[0] == 4);
                }
                assert_eq!(shown.iter().filter(|seen| **seen > 0.0).count(), rated.clips());
            }
        }
        assert!(clips > 500 && best * 3 > clips && best < clips, "{best} of {clips}");
    }

    #[test]
    fn the_knob_moves_raters_apart_and_films_stay_as_they_are() {
        let apart = |disagreement: f64| {
            let (options, splits) = world(disagreement);
            let (mut sum, mut count) = (0.0, 0.0);
            for grades in splits.iter().flat_map(|split| rate(split, &options)).flat_map(|rated| rated.saliency_scores)
            {
                sum += f64::from(grades[0].abs_diff(grades[1]));
                count += 1.0;
            }
            (sum / count, splits.iter().flat_map(SplitFilms::only_films).cloned().collect::<Vec<_>>())
        };
        let [(none, films), (some, same), (much, again)] = [0.0, 0.5, 1.5].map(apart);
        assert!(none == 0.0 && some > 0.2 && much > some + 0.3, "{some}, {much}");
        assert!(films == same && films == again);
    }
}
