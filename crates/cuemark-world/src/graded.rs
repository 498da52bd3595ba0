//! Ranked retrieval: imprecise queries, and the grade of every moment that anybody might return.

use std::cmp::Reverse;
use std::collections::HashSet;

use cuemark_core::{GradedMoment, Moment, Query, QueryId, Relevance, Rng, Span, Truth, VideoId};
use rayon::prelude::*;

use crate::films::SplitFilms;
use crate::grammar::{self, Article};
use crate::queries::Asked;
use crate::{Film, Meaning, Who, WorldOptions, relevance};

/// At most this many graded queries per split.
const QUERIES: usize = 300;

/// Imprecise queries over the videos of one split, each with every moment that is graded above 0.
pub(crate) fn write(split: &SplitFilms, options: &WorldOptions) -> Vec<Asked> {
    let mut rng = Rng::stream(options.seed, &format!("graded {}", split.name));
    let mut asked: Vec<&Asked> = split.asked().collect();
    rng.shuffle(&mut asked);
    let mut seen = HashSet::new();
    let fresh = asked.iter().map(|asked| blur(&asked.meaning, &mut rng)).filter(|meaning| seen.insert(*meaning));
    let meanings: Vec<Meaning> = fresh.take(QUERIES).collect();
    let films: Vec<&Film> = split.only_films().collect();
    let pool: Vec<VideoId> = films.iter().map(|film| film.video.clone()).collect();
    let numbered = meanings.into_par_iter().enumerate();
    numbered
        .map(|(number, meaning)| {
            let mut rng = Rng::stream(options.seed, &format!("graded {} {number}", split.name));
            let sentence = grammar::say(&meaning, Article::A, options.vocabulary, &mut rng);
            let query = Query { id: QueryId::new(format!("graded-{}-{number}", split.name)), text: sentence.text };
            let moments = films.iter().flat_map(|film| graded_moments(&meaning, film)).collect();
            let truth = Truth { moments, pool: Some(pool.clone()), ..Truth::bare(query) };
            Asked { truth, meaning, parse: sentence.parse }
        })
        .collect()
}

/// The same question, asked by somebody who remembers less: not both colour and shape of anybody, few details.
pub(crate) fn blur(meaning: &Meaning, rng: &mut Rng) -> Meaning {
    Meaning {
        who: vague(meaning.who, rng),
        with: meaning.with.map(|with| vague(with, rng)),
        topic: None,
        tempo: meaning.tempo.filter(|_| rng.chance(0.3)),
        way: meaning.way.filter(|_| rng.chance(0.3)),
        ..*meaning
    }
}

fn vague(who: Who, rng: &mut Rng) -> Who {
    match (who.colour, who.shape) {
        (Some(_), Some(_)) if rng.chance(0.5) => Who { shape: None, ..who },
        (Some(_), Some(_)) => Who { colour: None, ..who },
        _ => who,
    }
}

/// The moments of one film that are worth anything, best first. Of two that overlap by half only the better is listed:
/// the other owes its grade to it, and returning both would be returning one moment twice.
pub(crate) fn graded_moments(meaning: &Meaning, film: &Film) -> Vec<GradedMoment> {
    let answers = relevance::answers(meaning, film);
    let spans = relevance::moments(film).into_iter();
    let mut graded: Vec<(u8, Span)> =
        spans.map(|span| (relevance::grade(meaning, film, span), span)).filter(|(grade, _)| *grade > 0).collect();
    graded.sort_by_key(|(grade, span)| Reverse((*grade, answers.contains(span))));
    let mut listed: Vec<(u8, Span)> = Vec::new();
    for (grade, span) in graded {
        if listed.iter().all(|(_, better)| better.iou(span) < 0.5) {
            listed.push((grade, span));
        }
    }
    let moment = |(grade, span)| GradedMoment {
        moment: Moment { video: film.video.clone(), span },
        relevance: Relevance::new(f64::from(grade)),
    };
    listed.into_iter().map(moment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::films;

    #[test]
    fn graded_lists_hold_every_full_answer_and_nothing_twice() {
        let options = WorldOptions { videos: 300, ..WorldOptions::default() };
        let splits = films::write_all(&options);
        let split = &splits[2];
        let queries = write(split, &options);
        assert!(queries.len() > 50);
        let mut by_grade = [0usize; 5];
        for Asked { truth, meaning, .. } in &queries {
            for film in split.only_films() {
                let listed: Vec<_> = truth.moments.iter().filter(|graded| graded.moment.video == film.video).collect();
                for (at, one) in listed.iter().enumerate() {
                    by_grade[one.relevance.unwrap().value() as usize] += 1;
                    assert!(listed[..at].iter().all(|other| other.moment.span.iou(one.moment.span) < 0.5));
                }
                for answer in relevance::answers(meaning, film) {
                    let close = |graded: &&&GradedMoment| graded.moment.span.iou(answer) >= 0.5;
                    let found = listed.iter().find(close).unwrap();
                    assert_eq!(found.relevance, Relevance::new(4.0), "{}", truth.query.text);
                }
            }
        }
        assert!(by_grade[0] == 0 && by_grade[1..].iter().all(|count| *count > 100), "{by_grade:?}");
    }
}
