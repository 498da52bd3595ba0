//! An index of words: for every word the lines in which it stands.
//!
//! It is derived from the lines that an engine keeps and follows them: what is new is added, what is gone is marked, and when
//! half of it is gone it is made anew. The texts stay where they are; here are four numbers for every word of every line.

use std::sync::Arc;

use cuemark_core::{Line, Track, VideoId};
use rustc_hash::FxHashMap;

use super::{lemma, tokens};

/// Words with their places that are held at most, some two gigabytes: films beyond are not found by their words.
const MOST: usize = 1 << 28;
/// Lines that there are at least, as far as rarity goes: a word of a small index may be rare elsewhere.
const LEAST_LINES: f64 = 100.0;
/// Lines of films that are gone at most before the index is made anew, unless half of all lines are alive.
const FEW: usize = 10_000;

/// One video as an engine has it, whatever has become of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shelved<'a> {
    pub(crate) video: &'a VideoId,
    /// Whether it is still what the index has under that name.
    pub(crate) live: bool,
    pub(crate) has_words: bool,
}

/// How an engine's lines are read, by the video's place among everything that was ever put.
pub(crate) type LinesOf<'a> = dyn Fn(usize) -> Option<Vec<(Track, Line)>> + 'a;

/// An index of the words of an engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inverted {
    /// Which log it was derived from: its identity and its generation.
    log: (String, u32),
    pub(super) films: Vec<Film>,
    pub(super) lines: Vec<LinePlace>,
    pub(super) terms: Vec<Term>,
    /// Every form of a word that was ever seen, with the term that it belongs to.
    forms: FxHashMap<Box<str>, u32>,
    lemmas: FxHashMap<Box<str>, u32>,
    /// Places of words.
    held: usize,
    dead: usize,
}

/// A video, at its place among everything that was ever put.
#[derive(Debug, Clone)]
pub(super) struct Film {
    pub(super) video: VideoId,
    live: bool,
    /// Its lines.
    lines: std::ops::Range<u32>,
}

/// A line.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePlace {
    /// Which film.
    pub(super) film: u32,
    /// Which of the film's lines.
    pub(super) number: u32,
    pub(super) track: Track,
    /// **Seconds**, to the millisecond of a long film.
    pub(super) start: f32,
    pub(super) end: f32,
    pub(super) confidence: f32,
}

/// A word in all its forms.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) lemma: Box<str>,
    /// Lines in which it stands, in ascending order.
    pub(super) lines: Vec<u32>,
}

impl Inverted {
    /// Everything anew.
    pub(crate) fn new(log: (String, u32), films: Vec<Shelved<'_>>, lines_of: &LinesOf<'_>) -> Self {
        let mut made = Self { log, ..Self::default() };
        films.into_iter().for_each(|film| made.add(film, lines_of));
        made
    }

    /// The same with what has come and gone since.
    pub(crate) fn followed(
        self: Arc<Self>,
        log: (String, u32),
        films: Vec<Shelved<'_>>,
        lines_of: &LinesOf<'_>,
    ) -> Arc<Self> {
        let known = self.films.len();
        let goes_on = log == self.log && known <= films.len();
        let goes_on = goes_on && self.films.iter().zip(&films).all(|(known, film)| known.video == *film.video);
        if !goes_on {
            return Arc::new(Self::new(log, films, lines_of));
        }
        let changed = self.films.iter().zip(&films).any(|(known, film)| known.live != film.live);
        if !changed && known == films.len() {
            return self;
        }
        // Copied only while somebody else is searching it.
        let mut next = Arc::unwrap_or_clone(self);
        for (place, film) in films.iter().enumerate().take(known) {
            if let Some(known) = next.films.get_mut(place).filter(|known| known.live && !film.live) {
                known.live = false;
                next.dead += known.lines.len();
            }
        }
        if next.dead > FEW && 2 * next.dead > next.lines.len() {
            return Arc::new(Self::new(log, films, lines_of));
        }
        films.into_iter().skip(known).for_each(|film| next.add(film, lines_of));
        Arc::new(next)
    }

    fn add(&mut self, film: Shelved<'_>, lines_of: &LinesOf<'_>) {
        let (place, first) = (self.films.len(), self.lines.len() as u32);
        // Most of what was replaced is dead by the time that it is read.
        let wanted = film.live && film.has_words && self.held < MOST;
        let lines = if wanted { lines_of(place).unwrap_or_default() } else { Vec::new() };
        for (number, (track, line)) in lines.iter().enumerate() {
            let at = self.lines.len() as u32;
            for word in tokens(&line.text) {
                let term = self.term_to_be(&word);
                if let Some(term) = self.terms.get_mut(term as usize)
                    && term.lines.last() != Some(&at)
                {
                    term.lines.push(at);
                    self.held += 1;
                }
            }
            self.lines.push(LinePlace {
                film: place as u32,
                number: number as u32,
                track: *track,
                start: line.span.start() as f32,
                end: line.span.end() as f32,
                confidence: line.confidence,
            });
        }
        let lines = first..self.lines.len() as u32;
        self.films.push(Film { video: film.video.clone(), live: film.live, lines });
    }

    fn term_to_be(&mut self, word: &str) -> u32 {
        if let Some(term) = self.forms.get(word) {
            return *term;
        }
        let base = lemma(word);
        let next = self.terms.len() as u32;
        let term = *self.lemmas.entry(base.as_str().into()).or_insert(next);
        if term == next {
            self.terms.push(Term { lemma: base.into(), lines: Vec::new() });
        }
        self.forms.insert(word.into(), term);
        term
    }

    /// The term of a word, in whatever form.
    pub(super) fn term(&self, word: &str) -> Option<u32> {
        self.forms.get(word).or_else(|| self.lemmas.get(lemma(word).as_str())).copied()
    }

    /// Lines in which a term stands.
    pub(super) fn lines_with(&self, term: u32) -> &[u32] {
        self.terms.get(term as usize).map_or(&[], |term| &term.lines)
    }

    /// What a word is worth that stands in so many lines, in nats: BM25's, never below 0.
    pub(super) fn worth(&self, lines: usize) -> f64 {
        let (all, with) = ((self.lines.len() as f64).max(LEAST_LINES), lines as f64);
        (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln()
    }

    /// A line, unless its film is gone.
    pub(super) fn line(&self, at: u32) -> Option<&LinePlace> {
        let line = self.lines.get(at as usize)?;
        self.films.get(line.film as usize).filter(|film| film.live).map(|_| line)
    }
}
