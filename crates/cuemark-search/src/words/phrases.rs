//! Words that must stand in this order: where they do.

use cuemark_core::{Line, Track};
use rustc_hash::{FxHashMap, FxHashSet};

use super::inverted::{Inverted, LinesOf};
use super::near::is_near;
use super::{Forms, Phrase, lemma, tokens};

/// What is written beside a phrase that is there with a slip of a recogniser, and beside one that is there as it is.
const SLIP: f32 = 0.5;

/// The lines of films that were looked at, each read once.
pub(super) struct Texts<'a> {
    lines_of: &'a LinesOf<'a>,
    films: FxHashMap<u32, Vec<(Track, Line)>>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(lines_of: &'a LinesOf<'a>) -> Self {
        Self { lines_of, films: FxHashMap::default() }
    }

    pub(super) fn film(&mut self, film: u32) -> &[(Track, Line)] {
        self.films.entry(film).or_insert_with(|| (self.lines_of)(film as usize).unwrap_or_default())
    }
}

/// The lines in which a phrase stands, each with how well: 1, or less with a slip. A phrase that begins in one line and ends in
/// the next stands in both.
pub(super) fn find(
    inverted: &Inverted,
    phrase: &Phrase,
    admits: &dyn Fn(usize) -> bool,
    texts: &mut Texts<'_>,
) -> FxHashMap<u32, f32> {
    let mut found = FxHashMap::default();
    let candidates = candidates(inverted, phrase);
    for at in candidates {
        let Some(place) = inverted.line(at).filter(|place| admits(place.film as usize)) else { continue };
        let lines = texts.film(place.film);
        let number = place.number as usize;
        // The line with its neighbours of the same track, and whose word each is.
        let mut words: Vec<(String, usize)> = Vec::new();
        for near in number.saturating_sub(1)..=number + 1 {
            let Some((track, line)) = lines.get(near) else { continue };
            if *track == place.track {
                words.extend(tokens(&line.text).into_iter().map(|word| (word, near)));
            }
        }
        for window in words.windows(phrase.words.len().max(1)) {
            let Some(how_well) = fits(window, phrase) else { continue };
            for (_, near) in window {
                let line = at + *near as u32 - place.number;
                let known: &mut f32 = found.entry(line).or_insert(0.0);
                *known = known.max(how_well);
            }
        }
    }
    found
}

/// Lines in which the phrase's rarest word stands, slips included.
fn candidates(inverted: &Inverted, phrase: &Phrase) -> Vec<u32> {
    let of_word = |word: &String| -> Vec<u32> {
        let exact = inverted.term(word);
        let base = lemma(word);
        let near = (0..inverted.terms.len() as u32).filter(|term| {
            phrase.forms == Forms::AsTheyAre
                && inverted.terms.get(*term as usize).is_some_and(|term| is_near(&term.lemma, &base))
        });
        let terms: FxHashSet<u32> = exact.into_iter().chain(near).collect();
        terms.into_iter().flat_map(|term| inverted.lines_with(term).iter().copied()).collect()
    };
    let mut best: Option<Vec<u32>> = None;
    for word in &phrase.words {
        let lines = of_word(word);
        if best.as_ref().is_none_or(|best| lines.len() < best.len()) {
            best = Some(lines);
        }
    }
    let mut best = best.unwrap_or_default();
    best.sort_unstable();
    best.dedup();
    best
}

/// How well words are the phrase; `None` when they are not. One of three words may have a slip.
fn fits(words: &[(String, usize)], phrase: &Phrase) -> Option<f32> {
    if words.len() != phrase.words.len() {
        return None;
    }
    let mut slips = 0;
    for ((word, _), wanted) in words.iter().zip(&phrase.words) {
        let same = word == wanted || (phrase.forms == Forms::Any && lemma(word) == lemma(wanted));
        if !same {
            let near = phrase.forms == Forms::AsTheyAre && is_near(word, wanted);
            slips += 1;
            if !near || slips > phrase.words.len().div_ceil(3) {
                return None;
            }
        }
    }
    Some(if slips == 0 { 1.0 } else { SLIP })
}
