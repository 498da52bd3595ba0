//! How well films and stretches of them are found, and how well questions are refused that nothing answers.
//!
//! What people notice first is whether the right film stands on top, then whether the right stretch of it does, then whether the
//! index says so when it has nothing. Questions about a whole film and about a part of it are counted apart: a whole film is easily
//! hit by half, a part is not.

use cuemark_core::{Progress, Truth, VideoId};
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::{Answer, Calibration, Filter, Index, Question, Result, RightMoments};

/// A moment that covers this share of its film is the whole film.
const WHOLE: f64 = 0.9;
/// Answers that are looked at to tell the order of films.
const ANSWERS: usize = 50;
/// Films that are looked at.
const FIVE: usize = 5;
/// The share of questions with an answer that a cut must leave: a little more than is wanted on films that nobody has seen.
const ANSWERED: f64 = 0.88;

/// How well films and stretches are found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FilmsQuality {
    /// Questions whose moment is a whole film.
    pub whole: FilmShares,
    /// Questions whose moment is a part of one.
    pub part: FilmShares,
    /// How well the unanswerable is refused; `None` where nothing unanswerable was asked.
    pub refusing: Option<Refusing>,
}

/// Shares of questions, in 0..1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct FilmShares {
    /// How many questions.
    pub queries: usize,
    /// The right film's answer comes first.
    pub film_first: f64,
    /// That by chance.
    pub film_first_by_chance: f64,
    /// The right film is among the first five films.
    pub film_in_five: f64,
    /// That by chance.
    pub film_in_five_by_chance: f64,
    /// The first answer overlaps a right moment by half.
    pub stretch_first: f64,
    /// Asked of the right film alone, the first answer overlaps a right moment by half.
    pub stretch_in_film: f64,
    /// At least one answer is good enough.
    pub answered: f64,
}

/// How well the unanswerable is refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refusing {
    /// Questions that nothing answers.
    pub queries: usize,
    /// The share of them that is told so, as the index is.
    pub refused: f64,
    /// A cut fitted on half of the films with half of the questions, and measured on the others; once each way.
    pub halves: Vec<HalfRefusing>,
}

/// A cut that was fitted on other films and other questions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HalfRefusing {
    /// The cut.
    pub cut: f64,
    /// Questions with an answer that it was measured on.
    pub queries: usize,
    /// The share of them that get one.
    pub answered: f64,
    /// Questions without one.
    pub absent: usize,
    /// The share of them that is refused.
    pub refused: f64,
}

/// The highest cut that leaves enough of the questions with an answer, by how their best answers stand; `None` of too few.
pub fn fit_cut(standings: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = standings.iter().copied().filter(|standing| standing.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let lost = ((1.0 - ANSWERED) * sorted.len() as f64).floor() as usize;
    // Fewer than ten questions say nothing about one in eight of them.
    (sorted.len() >= 10).then(|| sorted.get(lost).copied()).flatten()
}

impl FilmsQuality {
    /// Asks every question that has a right answer among the videos, and every one of `absent`, which nothing there answers.
    /// `progress` counts questions.
    ///
    /// # Errors
    /// As [`Index::answer`], and when the work was stopped.
    pub fn of(index: &Index, truths: &[Truth], absent: &[String], progress: &Progress) -> Result<Self> {
        progress.phase("asking", 2 * (truths.len() + absent.len()));
        let entries = index.engine().videos()?;
        let films: Vec<VideoId> = entries.iter().map(|entry| entry.id.clone()).collect();
        let (mut whole, mut part) = (Sums::default(), Sums::default());
        let mut asked: Vec<(&Truth, RightMoments)> = Vec::new();
        for truth in truths {
            progress.advance(1)?;
            let right = RightMoments::of(truth);
            let Some(film) = entries.iter().find(|entry| right.are_in(&entry.id)) else { continue };
            let is_whole = truth.moments.iter().any(|one| one.moment.span.len() >= WHOLE * film.duration);
            let sums = if is_whole { &mut whole } else { &mut part };
            sums.add(index, truth, &right, &film.id, films.len())?;
            asked.push((truth, right));
        }
        let refusing = if absent.is_empty() { None } else { Some(refusing(index, &films, &asked, absent, progress)?) };
        Ok(Self { whole: whole.shares(), part: part.shares(), refusing })
    }
}

#[derive(Debug, Default)]
struct Sums {
    queries: usize,
    counts: [usize; 5],
    by_chance: [f64; 2],
}

impl Sums {
    fn add(&mut self, index: &Index, truth: &Truth, right: &RightMoments, film: &VideoId, films: usize) -> Result<()> {
        let question = Question { limit: ANSWERS, ..Question::sentence(&truth.query.text) };
        let found = index.answer(&question)?;
        let is_right = |answer: &Answer| right.found_by(&answer.video, answer.span);
        let mut order: Vec<&VideoId> = Vec::new();
        for answer in &found.moments {
            if !order.contains(&&answer.video) {
                order.push(&answer.video);
            }
        }
        let place = order.iter().position(|video| right.are_in(video));
        let inside = index.answer(&Question { filter: Filter::video(film.clone()), ..question })?;
        let found = [
            place == Some(0),
            place.is_some_and(|place| place < FIVE),
            found.moments.first().is_some_and(is_right),
            inside.moments.first().is_some_and(is_right),
            found.good > 0,
        ];
        self.queries += 1;
        self.counts.iter_mut().zip(found).for_each(|(count, found)| *count += usize::from(found));
        let films = films.max(1) as f64;
        self.by_chance[0] += 1.0 / films;
        self.by_chance[1] += (FIVE as f64 / films).min(1.0);
        Ok(())
    }

    fn shares(&self) -> FilmShares {
        let of = |sum: f64| sum / self.queries.max(1) as f64;
        let [film_first, film_in_five, stretch_first, stretch_in_film, answered] =
            self.counts.map(|count| of(count as f64));
        let [film_first_by_chance, film_in_five_by_chance] = self.by_chance.map(of);
        FilmShares {
            queries: self.queries,
            film_first,
            film_first_by_chance,
            film_in_five,
            film_in_five_by_chance,
            stretch_first,
            stretch_in_film,
            answered,
        }
    }
}

/// The films and questions of one half.
struct Half<'a> {
    films: FxHashSet<VideoId>,
    present: Vec<&'a str>,
    absent: Vec<&'a str>,
}

fn refusing(
    index: &Index,
    films: &[VideoId],
    asked: &[(&Truth, RightMoments)],
    absent: &[String],
    progress: &Progress,
) -> Result<Refusing> {
    let mut refused = 0;
    for text in absent {
        progress.advance(1)?;
        refused += usize::from(index.answer(&Question::sentence(text))?.good == 0);
    }
    let mut halves = Vec::new();
    for (fitted, measured) in [(0, 1), (1, 0)] {
        let (fitted, measured) = (half(fitted, films, asked, absent), half(measured, films, asked, absent));
        let standing = |text: &str| {
            progress.advance(1)?;
            let question = Question { filter: among(&fitted.films), ..Question::sentence(text) };
            Ok(index.answer(&question)?.standing)
        };
        let standings = fitted.present.iter().map(|text| standing(text)).collect::<Result<Vec<Option<f64>>>>()?;
        let Some(cut) = fit_cut(&standings.into_iter().flatten().collect::<Vec<f64>>()) else { continue };
        let curve = Calibration { cut: Some(cut), ..index.calibration() };
        let answered = |texts: &[&str]| -> Result<usize> {
            let mut answered = 0;
            for text in texts {
                let question = Question { filter: among(&measured.films), ..Question::sentence(text) };
                answered += usize::from(index.answer_by(&question, &curve)?.good > 0);
            }
            Ok(answered)
        };
        let (present, found) = (answered(&measured.present)?, answered(&measured.absent)?);
        let share = |count: usize, of: usize| count as f64 / of.max(1) as f64;
        let (queries, absent) = (measured.present.len(), measured.absent.len());
        let refused = share(absent - found, absent);
        halves.push(HalfRefusing { cut, queries, answered: share(present, queries), absent, refused });
    }
    Ok(Refusing { queries: absent.len(), refused: refused as f64 / absent.len().max(1) as f64, halves })
}

/// Every second film with the questions about it, and every second question that nothing answers.
fn half<'a>(which: usize, films: &[VideoId], asked: &'a [(&Truth, RightMoments)], absent: &'a [String]) -> Half<'a> {
    let films: FxHashSet<VideoId> = films.iter().skip(which).step_by(2).cloned().collect();
    let of_half = |(_, right): &&(&Truth, RightMoments)| films.iter().any(|film| right.are_in(film));
    let present = asked.iter().filter(of_half).map(|(truth, _)| truth.query.text.as_str()).collect();
    let absent = absent.iter().skip(which).step_by(2).map(String::as_str).collect();
    Half { films, present, absent }
}

fn among(films: &FxHashSet<VideoId>) -> Filter {
    Filter { videos: Some(films.clone()), ..Filter::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_leaves_seven_in_eight_and_is_not_fitted_to_a_handful() {
        let standings: Vec<f64> = (0..100).map(f64::from).collect();
        let cut = fit_cut(&standings).unwrap();
        assert_eq!(standings.iter().filter(|standing| **standing >= cut).count(), 88);
        assert_eq!(fit_cut(&standings[..9]), None);
        assert_eq!(fit_cut(&[f64::NAN; 20]), None);
    }
}
