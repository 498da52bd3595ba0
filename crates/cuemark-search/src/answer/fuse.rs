//! One ranking of what is seen, said and written.
//!
//! Every track gives a stretch a probability of its own. Two tracks that speak for the same stretch are two witnesses that do not
//! know of each other, so that the stretch is no answer only when both are wrong: `1 - (1 - p)(1 - q)`. A track that says nothing
//! takes nothing away, since most of what is seen is never said.

use cuemark_core::{Span, Track};
use serde::Serialize;

use super::Answer;
use crate::words::Passage;

/// How likely words are the answer at the best: whole, rare and read without doubt.
const SUREST: f64 = 0.95;
/// Nats of rarity at which a match is as likely meant as by chance, about: a word in every fourth line.
const TELLING: f64 = 2.0;
/// The most that the longer of two stretches may be of the shorter to be one with it.
const LONGER: f64 = 4.0;

/// What one track has to say for an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Because {
    /// Whether it is seen, said or written.
    pub track: Track,
    /// The words that are there, or what was recognised; empty where the encoder recognises nothing by name.
    pub text: String,
    /// Where it begins, in **seconds**.
    pub start: f64,
    /// Where it ends, in **seconds**.
    pub end: f64,
}

/// That a stretch with words of a question answers it.
///
/// The square of the share: half of a question is a quarter of an answer. Less for words that stand everywhere, for words far
/// from each other, and for lines that their reader was not sure of.
pub(super) fn probability(passage: &Passage) -> f64 {
    let telling = 1.0 - (-passage.information / TELLING).exp();
    SUREST * passage.share.powi(2) * telling * (0.8 + 0.2 * passage.order) * passage.confidence.clamp(0.0, 1.0).sqrt()
}

/// A stretch with words as an answer.
pub(super) fn of_words(passage: Passage) -> Answer {
    let probability = probability(&passage);
    let text: Vec<&str> = passage.lines.iter().map(|line| line.text.as_str()).collect();
    let because = Because {
        track: passage.track,
        text: text.join(" ").split_whitespace().collect::<Vec<_>>().join(" "),
        start: passage.span.start(),
        end: passage.span.end(),
    };
    Answer {
        video: passage.video,
        span: passage.span,
        score: passage.share as f32,
        probability,
        words: Vec::new(),
        concepts: Vec::new(),
        because: vec![because],
    }
}

/// What is seen as an answer that says so.
pub(super) fn of_seen(mut answer: Answer) -> Answer {
    let recognised: Vec<&str> = answer.concepts.iter().take(3).map(|seen| seen.concept.as_str()).collect();
    let text = recognised.join(", ");
    let (start, end) = (answer.span.start(), answer.span.end());
    answer.because = vec![Because { track: Track::Seen, text, start, end }];
    answer
}

/// One ranking, best first; answers of different tracks that are the same stretch of a video become one.
pub(super) fn fused(mut answers: Vec<Answer>) -> Vec<Answer> {
    best_first(&mut answers);
    let mut fused: Vec<Answer> = Vec::with_capacity(answers.len());
    for answer in answers {
        let track = |answer: &Answer| answer.because.first().map(|because| because.track);
        let same = fused.iter_mut().find(|better| {
            let known = better.because.iter().any(|because| Some(because.track) == track(&answer));
            !known && better.video == answer.video && are_one(better.span, answer.span)
        });
        match same {
            Some(better) => {
                better.probability = 1.0 - (1.0 - better.probability) * (1.0 - answer.probability);
                better.because.extend(answer.because);
                if better.concepts.is_empty() && better.words.is_empty() {
                    (better.concepts, better.words) = (answer.concepts, answer.words);
                }
            }
            None => fused.push(answer),
        }
    }
    best_first(&mut fused);
    fused
}

fn best_first(answers: &mut [Answer]) {
    answers.sort_by(|a, b| {
        let better = b.probability.total_cmp(&a.probability).then_with(|| b.score.total_cmp(&a.score));
        better.then_with(|| a.video.cmp(&b.video)).then_with(|| a.span.start().total_cmp(&b.span.start()))
    });
}

/// Whether most of the shorter lies in the longer.
pub(super) fn shares_time(a: Span, b: Span) -> bool {
    let both = (a.end().min(b.end()) - a.start().max(b.start())).max(0.0);
    both > 0.0 && both >= 0.5 * a.len().min(b.len())
}

/// Whether most of the shorter lies in the longer, and the longer is not much longer.
fn are_one(a: Span, b: Span) -> bool {
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    shares_time(a, b) && long <= LONGER * short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(track: Track, start: f64, end: f64, probability: f64) -> Answer {
        let because = vec![Because { track, text: String::new(), start, end }];
        let span = Span::new(start, end).unwrap();
        let (words, concepts) = (Vec::new(), Vec::new());
        Answer { video: "v".into(), span, score: 0.0, probability, words, concepts, because }
    }

    #[test]
    fn two_witnesses_are_surer_than_either_and_one_track_is_one_witness() {
        let said = answer(Track::Said, 10.0, 14.0, 0.5);
        let both = fused(vec![said.clone(), answer(Track::Seen, 9.0, 15.0, 0.6), answer(Track::Seen, 10.0, 13.0, 0.1)]);
        assert_eq!(both.len(), 2);
        assert!((both[0].probability - 0.8).abs() < 1e-12, "1 - 0.5 * 0.4");
        assert_eq!(both[0].because.iter().map(|because| because.track).collect::<Vec<_>>(), [Track::Seen, Track::Said]);
        assert_eq!(both[0].span.start(), 9.0, "the surer one says where");
        let apart = fused(vec![said, answer(Track::Seen, 0.0, 100.0, 0.9)]);
        assert_eq!(apart.len(), 2, "a whole film is not a line of it");
    }

    #[test]
    fn whole_rare_words_are_surer_than_half_of_them_and_than_common_ones() {
        let passage = |share, information| Passage {
            video: "v".into(),
            track: Track::Said,
            span: Span::whole(1.0),
            share,
            information,
            order: 1.0,
            confidence: 1.0,
            lines: Vec::new(),
        };
        assert!(probability(&passage(1.0, 10.0)) > 0.9);
        assert!(probability(&passage(0.5, 10.0)) < 0.25);
        assert!(probability(&passage(1.0, 0.5)) < 0.25, "a word of every second line");
    }
}
