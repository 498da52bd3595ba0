//! Learning the weights: the averaged perceptron.

use cuemark_core::Rng;
use rustc_hash::FxHashMap;

use super::features::Sentence;
use super::{best, model, sole};
use crate::{Pos, Token};

/// Learns a [`Tagger`](super::Tagger) from tagged sentences; the same sentences and seed give the same tagger.
pub struct Trainer {
    weights: FxHashMap<u32, Weights>,
    /// Tokens seen so far: the time on which averages are taken.
    now: u32,
    rng: Rng,
}

#[derive(Default)]
struct Weights {
    /// How often the feature was seen where there was something to decide.
    seen: u32,
    by_tag: [Weight; Pos::ALL.len()],
}

#[derive(Default, Clone, Copy)]
struct Weight {
    value: f32,
    /// Sum of the value over all steps up to `since`.
    total: f64,
    since: u32,
}

impl Weight {
    fn change(&mut self, by: f32, now: u32) {
        self.total += f64::from(self.value) * f64::from(now - self.since);
        self.since = now;
        self.value += by;
    }

    fn average(mut self, now: u32) -> f64 {
        self.change(0.0, now);
        self.total / f64::from(now.max(1))
    }
}

/// Weights are kept as whole multiples of one over this.
const SCALE: f64 = 64.0;

impl Trainer {
    /// A trainer that knows nothing yet.
    pub fn new(seed: u64) -> Self {
        Self { weights: FxHashMap::default(), now: 0, rng: Rng::stream(seed, "tagger") }
    }

    /// Learns from one sentence and returns how many of its tokens were tagged rightly on the way.
    ///
    /// Tokens past the shorter of the two slices are left out. The identity of open-class words is hidden half of the
    /// time, so that the tagger learns to judge words it has never met by what they can be.
    pub fn learn(&mut self, tokens: &[Token<'_>], gold: &[Pos]) -> usize {
        let mut sentence = Sentence::new(tokens);
        for index in 0..tokens.len() {
            if sentence.is_open(index) && self.rng.chance(0.5) {
                sentence.hide(index);
            }
        }
        let mut right = 0;
        for (index, &truth) in gold.iter().enumerate().take(tokens.len()) {
            let guess = self.learn_token(&sentence, index, truth);
            right += usize::from(guess == truth);
            // Going on from its own guess half of the time teaches the tagger to recover from a mistake.
            let told = if self.rng.chance(0.5) { guess } else { truth };
            sentence.assign(index, told);
        }
        right
    }

    fn learn_token(&mut self, sentence: &Sentence, index: usize, truth: Pos) -> Pos {
        let allowed = sentence.allowed(index);
        if let Some(only) = sole(allowed) {
            return only;
        }
        self.now += 1;
        let mut scores = [0.0f32; Pos::ALL.len()];
        sentence.for_each_feature(index, |feature| {
            let weights = self.weights.entry(feature).or_default();
            weights.seen += 1;
            for (score, weight) in scores.iter_mut().zip(&weights.by_tag) {
                *score += weight.value;
            }
        });
        let guess = best(allowed, &scores);
        if guess != truth && allowed & (1 << truth as u32) != 0 {
            sentence.for_each_feature(index, |feature| {
                let weights = self.weights.entry(feature).or_default();
                weights.by_tag[truth as usize].change(1.0, self.now);
                weights.by_tag[guess as usize].change(-1.0, self.now);
            });
        }
        guess
    }

    /// The model's file: averaged weights, without features that were seen fewer than `least` times or say next to nothing.
    pub fn finish(self, least: u32) -> Vec<u8> {
        let now = self.now;
        let mut features: Vec<(u32, Vec<(u8, i16)>)> = Vec::new();
        for (feature, weights) in self.weights.into_iter().filter(|(_, weights)| weights.seen >= least) {
            let mut kept = Vec::new();
            for (tag, weight) in weights.by_tag.into_iter().enumerate() {
                let scaled = (weight.average(now) * SCALE).round();
                if scaled.abs() >= 2.0 {
                    kept.push((tag as u8, scaled.clamp(f64::from(i16::MIN), f64::from(i16::MAX)) as i16));
                }
            }
            if !kept.is_empty() {
                features.push((feature, kept));
            }
        }
        features.sort_unstable_by_key(|(feature, _)| *feature);
        model::to_bytes(&features)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tagger, tokenize};

    #[test]
    fn a_trainer_learns_what_it_is_shown() {
        use Pos::{Det, Noun, Verb};
        let lessons = [("the man waves", [Det, Noun, Verb]), ("watch the waves", [Verb, Det, Noun])];
        let mut trainer = Trainer::new(7);
        for _ in 0..20 {
            for (sentence, tags) in &lessons {
                trainer.learn(&tokenize(sentence), tags);
            }
        }
        let tagger = Tagger::from_bytes(&trainer.finish(1)).unwrap();
        for (sentence, tags) in lessons {
            assert_eq!(tagger.tag(&tokenize(sentence)), tags, "{sentence}");
        }
    }
}
