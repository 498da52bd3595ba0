//! Readings at one time and another, joined into lines that last.

use cuemark_core::{Line, Span};

use super::glimpse::Glimpse;
use super::likeness::{Likeness, same_place};
use crate::FoundText;
use crate::boxes::Corners;

/// A line that one reading does not find may have been covered or blurred; one that two do not find is gone.
const MISSES: usize = 2;
/// What one line was read as, that often at most.
const VARIANTS: usize = 8;
/// A line that was found once, and with less confidence, is taken for a pattern that looked like letters.
const SURE_AT_ONCE: f32 = 0.8;

/// Lines of one film, as readings come in.
#[derive(Debug)]
pub(super) struct Merging {
    /// Seconds from one look at the film to the next: what was seen stays until then.
    step: f64,
    open: Vec<Open>,
    closed: Vec<Line>,
    /// The last reading.
    last: Option<Look>,
}

/// The film at one time.
#[derive(Debug, Clone)]
pub(super) struct Look {
    /// **Seconds**.
    pub(super) time: f64,
    pub(super) glimpse: Glimpse,
}

/// A line that may still be on screen.
#[derive(Debug)]
struct Open {
    corners: Corners,
    variants: Vec<Variant>,
    likeness: Likeness,
    /// How sure the last reading of it was.
    confidence: f32,
    start: f64,
    end: f64,
    times: usize,
    missed: usize,
}

#[derive(Debug)]
struct Variant {
    text: String,
    best: f32,
    sum: f32,
}

impl Merging {
    /// For a film that is looked at every `step` seconds.
    pub(super) fn every(step: f64) -> Self {
        Self { step, open: Vec::new(), closed: Vec::new(), last: None }
    }

    /// The picture at `time` is still the one that was read last.
    pub(super) fn unchanged(&mut self, time: f64) {
        for line in self.open.iter_mut().filter(|line| line.missed == 0) {
            line.end = time + self.step;
        }
    }

    /// What was found at one time, and how the film looked between the last reading and this one.
    pub(super) fn reading(&mut self, now: Look, found: Vec<FoundText>, between: &[Look]) {
        let mut matched = vec![false; self.open.len()];
        for line in found.into_iter().filter(|line| line.text.chars().any(char::is_alphanumeric)) {
            let likeness = Likeness::of(&line.text);
            // The same words before words that may be the same.
            let free = || (0..matched.len()).filter(|at| !matched[*at]);
            let equal = free().find(|at| {
                self.open[*at].likeness == likeness && self.is_same(&self.open[*at], &line, &likeness, &now)
            });
            let same = equal.or_else(|| free().find(|at| self.is_same(&self.open[*at], &line, &likeness, &now)));
            match same {
                Some(at) => {
                    matched[at] = true;
                    self.open[at].add(line, likeness, now.time + self.step);
                }
                None => {
                    // It came between two readings: with the first look that shows there what is there now.
                    let alike = |look: &&Look| !look.glimpse.differs_within(&now.glimpse, &line.corners);
                    let start = between.iter().rev().take_while(alike).last().map_or(now.time, |look| look.time);
                    self.open.push(Open::begin(line, likeness, start, now.time + self.step));
                }
            }
        }
        for (line, _) in self.open.iter_mut().zip(&matched).filter(|(_, matched)| !**matched) {
            if let Some(last) = self.last.as_ref().filter(|_| line.missed == 0) {
                // It went between two readings: with the last look that still shows it.
                let alike = |look: &&Look| !look.glimpse.differs_within(&last.glimpse, &line.corners);
                let seen = between.iter().take_while(alike).last().map_or(line.end, |look| look.time + self.step);
                line.end = line.end.max(seen.min(now.time));
            }
            line.missed += 1;
        }
        self.last = Some(now);
        let (gone, open) = std::mem::take(&mut self.open).into_iter().partition(|line| line.missed >= MISSES);
        self.open = open;
        self.closed.extend(Vec::into_iter(gone).filter_map(Open::line));
    }

    /// Whether `found` is a line that was there before.
    fn is_same(&self, open: &Open, found: &FoundText, likeness: &Likeness, now: &Look) -> bool {
        if open.likeness == *likeness {
            return likeness.is_telling() || same_place(&open.corners, &found.corners);
        }
        if !same_place(&open.corners, &found.corners) {
            return false;
        }
        // The very same pixels say the same, whatever was read.
        let still = self.last.as_ref().is_some_and(|last| !last.glimpse.differs_within(&now.glimpse, &open.corners));
        // (Of a line that the last reading did not find, those pixels say nothing.)
        (still && open.missed == 0) || open.likeness.is_misreading_of(likeness, open.confidence.min(found.confidence))
    }

    /// How many lines there are so far.
    pub(super) fn count(&self) -> usize {
        self.closed.len() + self.open.len()
    }

    /// All lines by their starts, of a film that lasts `duration` seconds.
    pub(super) fn finish(mut self, duration: f64) -> Vec<Line> {
        self.closed.extend(self.open.into_iter().filter_map(Open::line));
        for line in &mut self.closed {
            if let Ok(span) = Span::new(line.span.start().min(duration), line.span.end().min(duration)) {
                line.span = span;
            }
        }
        self.closed.sort_by(|a, b| a.span.start().total_cmp(&b.span.start()));
        self.closed
    }
}

impl Open {
    fn begin(found: FoundText, likeness: Likeness, start: f64, end: f64) -> Self {
        let mut line = Self {
            corners: found.corners,
            variants: Vec::new(),
            likeness: likeness.clone(),
            confidence: 0.0,
            start,
            end,
            times: 0,
            missed: 0,
        };
        line.add(found, likeness, end);
        line
    }

    fn add(&mut self, found: FoundText, likeness: Likeness, end: f64) {
        (self.corners, self.likeness, self.confidence) = (found.corners, likeness, found.confidence);
        (self.end, self.missed) = (end, 0);
        self.times += 1;
        if let Some(variant) = self.variants.iter_mut().find(|variant| variant.text == found.words) {
            variant.best = variant.best.max(found.confidence);
            variant.sum += found.confidence;
        } else if self.variants.len() < VARIANTS {
            self.variants.push(Variant { text: found.words, best: found.confidence, sum: found.confidence });
        }
    }

    /// `None` of what was hardly text.
    fn line(self) -> Option<Line> {
        // The first of several that are as good.
        let best = self.variants.into_iter().rev().max_by(|a, b| a.sum.total_cmp(&b.sum))?;
        if self.times == 1 && best.best < SURE_AT_ONCE {
            return None;
        }
        let span = Span::new(self.start, self.end.max(self.start)).ok()?;
        Some(Line { span, text: best.text, words: Vec::new(), confidence: best.best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 320;
    const HEIGHT: usize = 180;

    /// A look at a film that is as bright as `level` all over.
    fn look(time: f64, level: u8) -> Look {
        Look { time, glimpse: Glimpse::of(&vec![level; 3 * WIDTH * HEIGHT], WIDTH, HEIGHT) }
    }

    fn found(text: &str, confidence: f32, x: f32) -> FoundText {
        let corners = [[x, 100.0], [x + 90.0, 100.0], [x + 90.0, 120.0], [x, 120.0]];
        FoundText { text: text.to_owned(), words: text.to_owned(), corners, confidence }
    }

    fn told(lines: &[Line]) -> Vec<(f64, f64, &str)> {
        lines.iter().map(|line| (line.span.start(), line.span.end(), line.text.as_str())).collect()
    }

    #[test]
    fn a_line_lasts_from_the_first_look_that_shows_it_to_the_last() {
        let mut merging = Merging::every(0.25);
        merging.reading(look(0.0, 10), vec![], &[]);
        // The caption's picture was there at 0.75 already, and the change at 0.5 was another.
        merging.reading(look(1.0, 200), vec![found("One caption", 0.95, 50.0)], &[look(0.5, 90), look(0.75, 200)]);
        merging.unchanged(1.25);
        merging.unchanged(1.5);
        // It is gone at 2.25; nothing was read before 2.5 and again at 3.5.
        merging.reading(look(2.5, 40), vec![], &[look(2.0, 200), look(2.25, 40)]);
        merging.reading(look(3.5, 90), vec![], &[]);
        let lines = merging.finish(10.0);
        assert_eq!(told(&lines), [(0.75, 2.25, "One caption")]);
        assert!(lines[0].words.is_empty() && lines[0].confidence == 0.95);
    }

    #[test]
    fn captions_that_follow_each_other_in_one_place_stay_apart() {
        let mut merging = Merging::every(0.25);
        merging.reading(look(0.0, 10), vec![found("I love cats", 0.97, 50.0)], &[]);
        merging.reading(look(1.0, 50), vec![found("I love bats", 0.96, 50.0)], &[]);
        merging.reading(look(2.0, 90), vec![found("Chapter 1", 0.7, 50.0)], &[]);
        merging.reading(look(3.0, 130), vec![found("Chapter 2", 0.9, 50.0)], &[]);
        let lines = merging.finish(4.0);
        assert_eq!(
            told(&lines).iter().map(|line| line.2).collect::<Vec<_>>(),
            ["I love cats", "I love bats", "Chapter 2"] // "Chapter 1" was found once, without confidence
        );
    }

    #[test]
    fn a_counter_in_a_picture_that_hardly_changes_is_read_anew() {
        let counter = |time: f64, shade: u8| {
            let mut rgb = vec![40; 3 * WIDTH * HEIGHT];
            // Where the last digit of a line of 90 pixels stands.
            for (at, pixel) in rgb.chunks_exact_mut(3).enumerate() {
                if (130..140).contains(&(at % WIDTH)) && (102..118).contains(&(at / WIDTH)) {
                    pixel.fill(shade);
                }
            }
            Look { time, glimpse: Glimpse::of(&rgb, WIDTH, HEIGHT) }
        };
        let mut merging = Merging::every(0.25);
        for (number, shade) in [(156, 60), (157, 90), (158, 60)] {
            let line = found(&format!("Chapter {number}"), 0.97, 50.0);
            merging.reading(counter(f64::from(number), shade), vec![line], &[]);
        }
        let lines = merging.finish(200.0);
        assert_eq!(
            told(&lines).iter().map(|line| line.2).collect::<Vec<_>>(),
            ["Chapter 156", "Chapter 157", "Chapter 158"]
        );
    }

    #[test]
    fn a_caption_that_stays_is_not_taken_for_the_one_before_it() {
        let mut merging = Merging::every(0.25);
        merging.reading(look(0.0, 10), vec![found("Nobody told me", 0.97, 50.0)], &[]);
        for time in [1.0, 2.0, 3.0] {
            merging.reading(look(time, 90), vec![found("The bridge is closed", 0.97, 50.0)], &[]);
        }
        assert_eq!(told(&merging.finish(9.0)), [(0.0, 0.25, "Nobody told me"), (1.0, 3.25, "The bridge is closed")]);
    }

    #[test]
    fn misreadings_are_outvoted() {
        let mut merging = Merging::every(0.25);
        for (time, text, confidence) in [
            (0.0, "Grand Central", 0.9),
            (1.0, "Grand Centra1 ", 0.6),
            (2.0, "Grand  central", 0.9),
            (3.0, "Grand Central", 0.9),
        ] {
            merging.reading(look(time, 40 * time as u8), vec![found(text, confidence, 50.0 + time as f32)], &[]);
        }
        let lines = merging.finish(3.1);
        assert_eq!(told(&lines), [(0.0, 3.1, "Grand Central")]);
    }

    #[test]
    fn one_reading_without_it_does_not_end_a_line_and_two_do() {
        let mut merging = Merging::every(0.25);
        merging.reading(look(0.0, 0), vec![found("STATION", 0.9, 50.0)], &[]);
        merging.reading(look(1.0, 40), vec![], &[]);
        merging.reading(look(2.0, 80), vec![found("STATION", 0.9, 60.0)], &[]);
        merging.reading(look(3.0, 120), vec![], &[]);
        merging.reading(look(4.0, 160), vec![], &[]);
        merging.reading(look(5.0, 200), vec![found("STATION", 0.9, 60.0)], &[]);
        assert_eq!(told(&merging.finish(9.0)), [(0.0, 2.25, "STATION"), (5.0, 5.25, "STATION")]);
    }

    #[test]
    fn the_same_words_twice_in_one_picture_are_two_lines() {
        let mut merging = Merging::every(0.25);
        for time in [0.0, 1.0] {
            merging.reading(look(time, 0), vec![found("EXIT", 0.9, 10.0), found("EXIT", 0.9, 200.0)], &[]);
        }
        assert_eq!(told(&merging.finish(2.0)), [(0.0, 1.25, "EXIT"), (0.0, 1.25, "EXIT")]);
    }

    #[test]
    fn what_was_hardly_text_is_left_out() {
        let mut merging = Merging::every(0.25);
        merging.reading(look(0.0, 0), vec![found("lIl", 0.6, 50.0), found("--", 0.99, 150.0)], &[]);
        merging.reading(look(1.0, 90), vec![], &[]);
        assert!(merging.finish(2.0).is_empty());
    }
}
