//! From words to the stretches that have most of them.
//!
//! Every word of a question weighs what BM25 gives it (the fewer lines have it, the more). A stretch is a line, or a few that follow
//! each other, and gets the share of the question's weight that stands in it; a word that is there with one wrong letter counts
//! half. Between stretches with the same words the one with fewer lines is better, and neighbours that match nearly as well are
//! joined.

use cuemark_core::Span;
use rustc_hash::{FxHashMap, FxHashSet};

use super::inverted::{Inverted, LinePlace, LinesOf};
use super::near::is_near;
use super::phrases::{self, Texts};
use super::{Passage, Passages, WordsAsked, lemma, tokens};

/// What a word counts that is there with a slip.
const SLIP: f32 = 0.5;
/// What a stretch keeps of its share for every line beyond the first.
const PER_LINE: f64 = 0.92;
/// Lines of a stretch at most.
const MOST_LINES: u32 = 8;
/// Lines without a word of the question that a stretch may have between two with one.
const BETWEEN: u32 = 1;
/// **Seconds** between two lines of a stretch at most.
const PAUSE: f32 = 8.0;
/// **Seconds** of a stretch of several lines at most.
const LONGEST: f32 = 60.0;
/// A neighbour whose share is at least so much of a stretch's is joined to it.
const AS_GOOD: f64 = 0.8;
/// A word in more lines than this finds none by itself where a rarer one does.
const COMMON: usize = 50_000;
/// Words that may stand between two neighbouring words of the question for them to be near each other.
const APART: usize = 4;
/// Stretches that are looked at closely for every one that is wanted.
const CLOSELY: usize = 3;

/// What is looked for in lines: a word, or words in their order.
struct Wanted {
    weight: f64,
    worth: f64,
    required: bool,
    lines: FxHashMap<u32, f32>,
}

/// A stretch of lines, by their places.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    first: u32,
    last: u32,
    share: f64,
    information: f64,
    /// The share less what its length costs.
    value: f64,
}

/// Terms that a word may mean, each with how well it fits.
type Terms = Vec<(u32, f32)>;

impl Inverted {
    /// The best stretches of videos that `admits` lets through, by their places.
    pub(crate) fn passages(
        &self,
        ask: &WordsAsked,
        admits: &dyn Fn(usize) -> bool,
        lines_of: &LinesOf<'_>,
    ) -> Passages {
        let mut texts = Texts::new(lines_of);
        let (wanted, known) = self.wanted(ask, admits, &mut texts);
        let mut excluded: FxHashSet<u32> = FxHashSet::default();
        for phrase in &ask.without {
            excluded.extend(phrases::find(self, phrase, admits, &mut texts).into_keys());
        }
        let mut matched: Vec<u32> = wanted.iter().flat_map(|wanted| wanted.lines.keys().copied()).collect();
        matched.sort_unstable();
        matched.dedup();
        let mut admitted: FxHashMap<u32, bool> = FxHashMap::default();
        matched.retain(|at| {
            self.line(*at).is_some_and(|line| {
                let is_admitted = *admitted.entry(line.film).or_insert_with(|| admits(line.film as usize));
                is_admitted && !excluded.contains(at) && (ask.tracks.is_empty() || ask.tracks.contains(&line.track))
            })
        });
        let chosen = self.chosen(&matched, &wanted, CLOSELY * ask.limit.max(1));
        let mut passages: Vec<Passage> =
            chosen.into_iter().filter_map(|stretch| self.passage(ask, stretch, &mut texts)).collect();
        let value = |passage: &Passage| passage.share * (0.8 + 0.2 * passage.order) * passage.confidence.sqrt();
        passages.sort_by(|a, b| {
            let better = value(b).total_cmp(&value(a)).then_with(|| a.lines.len().cmp(&b.lines.len()));
            better.then_with(|| a.video.cmp(&b.video)).then_with(|| a.span.start().total_cmp(&b.span.start()))
        });
        passages.truncate(ask.limit);
        Passages { passages, known }
    }

    /// Everything that is looked for with the lines that have it, and the words that stand anywhere.
    fn wanted(
        &self,
        ask: &WordsAsked,
        admits: &dyn Fn(usize) -> bool,
        texts: &mut Texts<'_>,
    ) -> (Vec<Wanted>, Vec<String>) {
        let mut known = Vec::new();
        let mut words: Vec<(usize, Terms, f64)> = Vec::new();
        for (place, asked) in ask.words.iter().enumerate() {
            let exact = self.term(&asked.word);
            let base = lemma(&asked.word);
            let is_slip = |term: &u32| {
                Some(*term) != exact && self.terms.get(*term as usize).is_some_and(|term| is_near(&term.lemma, &base))
            };
            let near = (0..self.terms.len() as u32).filter(is_slip).map(|term| (term, SLIP));
            let terms: Terms = exact.map(|term| (term, 1.0)).into_iter().chain(near).collect();
            if !terms.is_empty() {
                known.push(asked.word.clone());
            }
            words.push((place, terms, asked.weight));
        }
        let lines_of_terms =
            |terms: &[(u32, f32)]| terms.iter().map(|(term, _)| self.lines_with(*term).len()).sum::<usize>();
        words.sort_by_key(|(_, terms, _)| lines_of_terms(terms));
        let rarer_found = words.iter().any(|(_, terms, _)| (1..=COMMON).contains(&lines_of_terms(terms)));
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut found: FxHashSet<u32> = FxHashSet::default();
        for (_, terms, weight) in &words {
            let is_common = rarer_found && lines_of_terms(terms) > COMMON;
            let mut lines: FxHashMap<u32, f32> = FxHashMap::default();
            for (term, how_well) in terms {
                for at in self.lines_with(*term).iter().filter(|at| !is_common || found.contains(*at)) {
                    let known = lines.entry(*at).or_insert(0.0);
                    *known = known.max(*how_well);
                }
            }
            // A word that nobody says is as telling as the rarest: what has not got it lacks much.
            let exact = terms.iter().find(|(_, how_well)| *how_well == 1.0);
            let with = exact.map_or_else(|| lines_of_terms(terms), |(term, _)| self.lines_with(*term).len());
            found.extend(lines.keys());
            wanted.push(Wanted { weight: *weight, worth: self.worth(with), required: false, lines });
        }
        for phrase in &ask.phrases {
            let worth = phrase.words.iter().map(|word| {
                let term = self.term(word);
                self.worth(term.map_or(0, |term| self.lines_with(term).len()))
            });
            let (worth, lines) = (worth.sum::<f64>(), phrases::find(self, phrase, admits, texts));
            if !lines.is_empty() {
                known.extend(phrase.words.iter().cloned());
            }
            wanted.push(Wanted { weight: 1.0, worth, required: true, lines });
        }
        (wanted, known)
    }

    /// The best stretches that have no line in common, neighbours joined.
    fn chosen(&self, matched: &[u32], wanted: &[Wanted], count: usize) -> Vec<Stretch> {
        let all: f64 = wanted.iter().map(|wanted| wanted.weight * wanted.worth).sum();
        if all <= 0.0 {
            return Vec::new();
        }
        let mut best: Vec<Stretch> = Vec::new();
        for (place, first) in matched.iter().enumerate() {
            let mut how_well = vec![0f32; wanted.len()];
            let mut here: Option<Stretch> = None;
            let mut last: Option<(u32, &LinePlace)> = None;
            for at in matched.iter().skip(place) {
                let Some(line) = self.line(*at) else { break };
                let Some(begin) = self.line(*first) else { break };
                if last.is_some_and(|(before, known)| !follows(before, known, *at, line)) {
                    break;
                }
                if at - first >= MOST_LINES || (at != first && line.end - begin.start > LONGEST) {
                    break;
                }
                for (known, wanted) in how_well.iter_mut().zip(wanted) {
                    *known = known.max(wanted.lines.get(at).copied().unwrap_or(0.0));
                }
                last = Some((*at, line));
                if wanted.iter().zip(&how_well).any(|(wanted, found)| wanted.required && *found == 0.0) {
                    continue;
                }
                let sum = |worth: fn(&Wanted) -> f64| -> f64 {
                    wanted.iter().zip(&how_well).map(|(wanted, found)| worth(wanted) * f64::from(*found)).sum()
                };
                let share = sum(|wanted| wanted.weight * wanted.worth) / all;
                let information = sum(|wanted| wanted.worth);
                let value = share * PER_LINE.powi((at - first) as i32);
                let stretch = Stretch { first: *first, last: *at, share, information, value };
                if here.is_none_or(|here| value > here.value) {
                    here = Some(stretch);
                }
            }
            best.extend(here);
        }
        let alone: FxHashMap<u32, f64> =
            best.iter().filter(|one| one.first == one.last).map(|one| (one.first, one.share)).collect();
        best.sort_by(|a, b| b.value.total_cmp(&a.value).then(a.first.cmp(&b.first)));
        let mut taken: FxHashSet<u32> = FxHashSet::default();
        let mut chosen = Vec::new();
        for stretch in best {
            if chosen.len() >= count {
                break;
            }
            if (stretch.first..=stretch.last).any(|at| taken.contains(&at)) {
                continue;
            }
            let stretch = self.joined(stretch, &alone, &taken);
            taken.extend(stretch.first..=stretch.last);
            chosen.push(stretch);
        }
        chosen
    }

    /// With the lines right beside it that match nearly as well by themselves.
    fn joined(&self, mut stretch: Stretch, alone: &FxHashMap<u32, f64>, taken: &FxHashSet<u32>) -> Stretch {
        let fits = |stretch: &Stretch, at: u32, (before, after): (u32, u32)| {
            let as_good = alone.get(&at).is_some_and(|share| *share >= AS_GOOD * stretch.share);
            let (Some(one), Some(other)) = (self.line(before), self.line(after)) else { return false };
            let (Some(first), Some(last)) = (self.line(stretch.first.min(at)), self.line(stretch.last.max(at))) else {
                return false;
            };
            let is_short = last.end - first.start <= LONGEST && stretch.last - stretch.first < MOST_LINES;
            as_good && is_short && !taken.contains(&at) && follows(before, one, after, other)
        };
        while let Some(at) = stretch.first.checked_sub(1).filter(|at| fits(&stretch, *at, (*at, stretch.first))) {
            stretch.first = at;
        }
        while let Some(at) = stretch.last.checked_add(1).filter(|at| fits(&stretch, *at, (stretch.last, *at))) {
            stretch.last = at;
        }
        stretch
    }

    fn passage(&self, ask: &WordsAsked, stretch: Stretch, texts: &mut Texts<'_>) -> Option<Passage> {
        let (first, last) = (self.line(stretch.first)?, self.line(stretch.last)?);
        let film = self.films.get(first.film as usize)?;
        let lines = texts.film(first.film).get(first.number as usize..=last.number as usize)?;
        let lines: Vec<_> = lines.iter().map(|(_, line)| line.clone()).collect();
        let start = lines.iter().map(|line| line.span.start()).fold(f64::INFINITY, f64::min);
        let end = lines.iter().map(|line| line.span.end()).fold(0.0, f64::max);
        let order = order(ask, &lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join(" "));
        let sure: Vec<f64> = (stretch.first..=stretch.last)
            .filter_map(|at| self.lines.get(at as usize))
            .map(|line| f64::from(line.confidence))
            .collect();
        Some(Passage {
            video: film.video.clone(),
            track: first.track,
            span: Span::new(start, end).ok()?,
            share: stretch.value,
            information: stretch.information,
            order,
            confidence: sure.iter().sum::<f64>() / sure.len().max(1) as f64,
            lines,
        })
    }
}

/// Whether a line belongs behind another: of the same film and track, soon after it.
fn follows(before: u32, known: &LinePlace, at: u32, line: &LinePlace) -> bool {
    let beside = (known.film, known.track) == (line.film, line.track) && at - before <= 1 + BETWEEN;
    beside && line.start - known.end <= PAUSE
}

/// The share of neighbouring words of the question that are near each other in a text, in their order.
fn order(ask: &WordsAsked, text: &str) -> f64 {
    let text: Vec<String> = tokens(text).iter().map(|word| lemma(word)).collect();
    // Words that only say how the rest is told stand nowhere near it.
    let telling = ask.words.iter().filter(|asked| asked.weight >= 1.0);
    let asked: Vec<String> = telling.map(|asked| lemma(&asked.word)).collect();
    let near = |(a, b): (&String, &String)| {
        let mut places = text.iter().enumerate().filter(|(_, word)| *word == a).map(|(place, _)| place);
        places.any(|place| text.iter().skip(place + 1).take(APART).any(|word| word == b))
    };
    let pairs = asked.len().saturating_sub(1);
    if pairs == 0 {
        return 1.0;
    }
    asked.iter().zip(asked.iter().skip(1)).filter(|pair| near(*pair)).count() as f64 / pairs as f64
}
