//! All films of a world, with everything that is asked about them.

use cuemark_core::{Rng, Truth};
use rayon::prelude::*;

use crate::queries::{self, Asked};
use crate::{Film, WorldOptions, layout, script};

/// The films of one split, and the queries about each.
pub(crate) struct SplitFilms {
    pub(crate) name: &'static str,
    pub(crate) films: Vec<(Film, Vec<Asked>)>,
}

impl SplitFilms {
    pub(crate) fn asked(&self) -> impl Iterator<Item = &Asked> {
        self.films.iter().flat_map(|(_, asked)| asked)
    }

    pub(crate) fn truths(&self) -> Vec<Truth> {
        self.asked().map(|asked| asked.truth.clone()).collect()
    }

    pub(crate) fn only_films(&self) -> impl Iterator<Item = &Film> {
        self.films.iter().map(|(film, _)| film)
    }
}

/// Writes every film; each has a random stream of its own, so that neither their number nor the threads matter.
pub(crate) fn write_all(options: &WorldOptions) -> [SplitFilms; 4] {
    let mut splits = layout::SPLITS.into_iter().zip(layout::split_ranges(options.videos));
    std::array::from_fn(|_| {
        let (name, range) = splits.next().unwrap_or(("", 0..0));
        let films = range.into_par_iter().map(|index| {
            let video = layout::video_id(index);
            let mut rng = Rng::stream(options.seed, &format!("script of {video}"));
            let script = script::write(options, video, layout::side(name), &mut rng);
            let asked = queries::ask(&script, options.vocabulary, &mut rng);
            (script.film, asked)
        });
        SplitFilms { name, films: films.collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Also, Verb, relevance};

    fn world() -> [SplitFilms; 4] {
        write_all(&WorldOptions { videos: 600, ..WorldOptions::default() })
    }

    #[test]
    fn every_query_has_exactly_one_answer_in_its_film_and_that_is_its_truth() {
        let mut queries = 0;
        for (film, asked) in world().iter().flat_map(|split| &split.films) {
            assert!(film.check().is_ok());
            assert_eq!(asked.len(), 3, "every lead of six events can be asked for");
            for asked in asked {
                let truth: Vec<_> = asked.truth.moments.iter().map(|graded| graded.moment.span).collect();
                assert_eq!(relevance::answers(&asked.meaning, film), truth, "{}", asked.truth.query.text);
                assert_eq!(relevance::grade(&asked.meaning, film, truth[0]), relevance::FULL);
                queries += 1;
            }
        }
        assert_eq!(queries, 1_800);
    }

    #[test]
    fn nobody_is_in_two_events_at_once_or_acts_behind_the_scenes() {
        for film in world().iter().flat_map(SplitFilms::only_films) {
            for actor in 0..film.actors.len() {
                let events: Vec<_> = film.events_of(actor).collect();
                for pair in events.windows(2) {
                    assert!(pair[0].span.end() <= pair[1].span.start(), "{}: {pair:?}", film.video);
                    assert!(pair[0].verb != Verb::Leave && pair[1].verb != Verb::Enter, "{}: {pair:?}", film.video);
                }
            }
        }
    }

    #[test]
    fn all_kinds_of_queries_occur_and_order_words_are_sometimes_needed() {
        let worlds = world();
        let asked: Vec<&Asked> = worlds.iter().flat_map(SplitFilms::asked).collect();
        let share = |test: &dyn Fn(&Asked) -> bool| {
            asked.iter().filter(|asked| test(asked)).count() as f64 / asked.len() as f64
        };
        for verb in Verb::ALL {
            assert!(share(&|asked| asked.meaning.verb == verb) > 0.08, "{verb:?}");
        }
        assert!(share(&|asked| matches!(asked.meaning.also, Some(Also::Then(_)))) > 0.05);
        assert!(share(&|asked| asked.truth.kind.as_deref() == Some("vt")) > 0.03);
        assert!(share(&|asked| asked.truth.query.text.starts_with(char::is_uppercase)) > 0.02, "names");
        let needed = worlds.iter().flat_map(|split| &split.films).flat_map(|(film, asked)| {
            asked.iter().filter(|asked| {
                let without = crate::Meaning { also: None, ..asked.meaning };
                asked.meaning.also.is_some() && relevance::answers(&without, film).len() > 1
            })
        });
        assert!(needed.count() > 20);
    }
}
