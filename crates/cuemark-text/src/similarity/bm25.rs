//! Okapi BM25, divided by what a sentence scores against itself.

use std::ops::Range;

use super::postings::{Postings, Weighted};
use super::terms::{Vocabulary, document_frequencies};
use super::{Result, Similarity};

/// How quickly repeated terms stop counting.
const K1: f64 = 1.2;
/// How much long sentences are held back.
const B: f64 = 0.75;

/// Okapi BM25 (k1 = 1.2, b = 0.75) of the left sentence as a query in the right ones, as a share of the score that
/// it would have against itself: 0 to 1, and 1 for equal sentences. Not symmetric.
///
/// A term weighs `ln(1 + (n - df + 0.5) / (df + 0.5))`, with `df` counted over the `n` sentences on the right.
/// Repetition can lift a sentence above the query's own score; such values are cut to 1.
pub struct Bm25(Postings);

impl Bm25 {
    /// Compares every sentence of `left` with every one of `right`.
    pub fn new(left: &[impl AsRef<str>], right: &[impl AsRef<str>]) -> Self {
        let mut vocabulary = Vocabulary::default();
        let right: Vec<_> = right.iter().map(|sentence| vocabulary.count(sentence.as_ref())).collect();
        let left: Vec<_> = left.iter().map(|sentence| vocabulary.count(sentence.as_ref())).collect();
        let count = right.len() as f64;
        let rarity: Vec<f64> = document_frequencies(&right, vocabulary.len())
            .into_iter()
            .map(|frequency| (1.0 + (count - f64::from(frequency) + 0.5) / (f64::from(frequency) + 0.5)).ln())
            .collect();
        let words = |sentence: &[(u32, u32)]| -> f64 { sentence.iter().map(|(_, count)| f64::from(*count)).sum() };
        let mean_words = (right.iter().map(|sentence| words(sentence)).sum::<f64>() / count.max(1.0)).max(1.0);
        let weigh = |sentence: &[(u32, u32)]| -> Vec<(u32, f64)> {
            let held_back = K1 * (1.0 - B + B * words(sentence) / mean_words);
            let weight = |count: f64| count * (K1 + 1.0) / (count + held_back);
            sentence.iter().map(|(term, count)| (*term, rarity[*term as usize] * weight(f64::from(*count)))).collect()
        };
        let asked = |sentence: &Vec<(u32, u32)>| -> Weighted {
            let counts = sentence.iter().map(|(_, count)| f64::from(*count));
            let own: f64 = weigh(sentence).iter().zip(counts).map(|((_, weight), count)| weight * count).sum();
            sentence.iter().map(|(term, count)| (*term, (f64::from(*count) / own) as f32)).collect()
        };
        let held = |sentence: &Vec<(u32, u32)>| -> Weighted {
            weigh(sentence).into_iter().map(|(term, weight)| (term, weight as f32)).collect()
        };
        let right: Vec<Weighted> = right.iter().map(held).collect();
        Self(Postings::new(left.iter().map(asked).collect(), &right, vocabulary.len()))
    }
}

impl Similarity for Bm25 {
    fn name(&self) -> &str {
        "bm25"
    }

    fn left(&self) -> usize {
        self.0.left()
    }

    fn right(&self) -> usize {
        self.0.right()
    }

    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) -> Result<()> {
        self.0.tile(rows, columns, out);
        for value in out {
            *value = value.min(1.0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::of_pair;

    #[test]
    fn equal_sentences_score_one_and_foreign_ones_zero() {
        let sentences = ["person opens the fridge", "a dog sleeps", "person opens the fridge"];
        let bm25 = Bm25::new(&sentences, &sentences);
        assert!((of_pair(&bm25, 0, 2).unwrap() - 1.0).abs() < 1e-6);
        assert_eq!(of_pair(&bm25, 0, 1).unwrap(), 0.0);
    }

    #[test]
    fn a_rare_shared_word_counts_more_than_a_common_one() {
        let sentences = ["person juggles", "person runs", "person sits", "clown juggles"];
        let bm25 = Bm25::new(&sentences, &sentences);
        assert!(of_pair(&bm25, 0, 3).unwrap() > of_pair(&bm25, 0, 1).unwrap());
    }

    #[test]
    fn no_sentence_scores_above_one() {
        let bm25 = Bm25::new(&["door"], &["door door door", "a door in a wall"]);
        assert!((0..2).all(|column| (0.0..=1.0).contains(&of_pair(&bm25, 0, column).unwrap())));
    }
}
