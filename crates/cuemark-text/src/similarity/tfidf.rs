//! Cosine of TF-IDF vectors: the fallback that needs nothing but the sentences.

use std::ops::Range;

use super::postings::{Postings, Weighted};
use super::terms::{Vocabulary, document_frequencies};
use super::{Result, Similarity};

/// Cosine of TF-IDF vectors, 0 to 1.
///
/// A term weighs `count · (ln((1 + n) / (1 + df)) + 1)`, with `df` counted over the `n` sentences on the right, and a
/// sentence has length 1. A sentence without words is like nothing, not even itself.
///
/// ```
/// use cuemark_text::similarity::{Tfidf, of_pair};
/// let sentences = ["a man opens the door", "The door opens.", "the dog sleeps"];
/// let tfidf = Tfidf::new(&sentences, &sentences);
/// assert!((of_pair(&tfidf, 0, 0).unwrap() - 1.0).abs() < 1e-6);
/// assert!(of_pair(&tfidf, 0, 1).unwrap() > of_pair(&tfidf, 0, 2).unwrap());
/// ```
pub struct Tfidf(Postings);

impl Tfidf {
    /// Compares every sentence of `left` with every one of `right`.
    pub fn new(left: &[impl AsRef<str>], right: &[impl AsRef<str>]) -> Self {
        let mut vocabulary = Vocabulary::default();
        let right: Vec<_> = right.iter().map(|sentence| vocabulary.count(sentence.as_ref())).collect();
        let left: Vec<_> = left.iter().map(|sentence| vocabulary.count(sentence.as_ref())).collect();
        let count = right.len() as f64;
        let rarity: Vec<f64> = document_frequencies(&right, vocabulary.len())
            .into_iter()
            .map(|frequency| ((1.0 + count) / (1.0 + f64::from(frequency))).ln() + 1.0)
            .collect();
        let weigh = |sentences: &[Vec<(u32, u32)>]| -> Vec<Weighted> {
            sentences.iter().map(|sentence| unit(sentence, &rarity)).collect()
        };
        Self(Postings::new(weigh(&left), &weigh(&right), vocabulary.len()))
    }
}

/// The weighted sentence, scaled to length 1.
fn unit(sentence: &[(u32, u32)], rarity: &[f64]) -> Weighted {
    let weight = |(term, count): &(u32, u32)| f64::from(*count) * rarity[*term as usize];
    let length = sentence.iter().map(|term| weight(term).powi(2)).sum::<f64>().sqrt();
    sentence.iter().map(|term| (term.0, (weight(term) / length) as f32)).collect()
}

impl Similarity for Tfidf {
    fn name(&self) -> &str {
        "tfidf"
    }

    fn left(&self) -> usize {
        self.0.left()
    }

    fn right(&self) -> usize {
        self.0.right()
    }

    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) -> Result<()> {
        self.0.tile(rows, columns, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::of_pair;

    #[test]
    fn the_cosine_is_the_one_worked_out_by_hand() {
        // Two sentences, `door` in both (df 2, weight 1), the other words in one (df 1, weight ln(3/2) + 1).
        let sentences = ["red door", "blue door"];
        let rare = (1.5f64).ln() + 1.0;
        let expected = 1.0 / (1.0 + rare * rare);
        let found = of_pair(&Tfidf::new(&sentences, &sentences), 0, 1).unwrap();
        assert!((f64::from(found) - expected).abs() < 1e-6, "{found} {expected}");
    }

    #[test]
    fn words_that_the_right_side_never_uses_make_a_sentence_less_alike() {
        let right = ["person opens the door", "person closes the door"];
        let tfidf = Tfidf::new(&["person opens the door", "person opens the creaking wooden door"], &right);
        assert!(of_pair(&tfidf, 1, 0).unwrap() < of_pair(&tfidf, 0, 0).unwrap());
    }

    #[test]
    fn a_sentence_without_words_is_like_nothing() {
        let sentences = ["", "…", "person runs"];
        let tfidf = Tfidf::new(&sentences, &sentences);
        for other in 0..3 {
            assert_eq!(of_pair(&tfidf, 0, other).unwrap(), 0.0);
        }
    }
}
