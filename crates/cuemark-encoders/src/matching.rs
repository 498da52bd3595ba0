//! How well sentences and videos match, as a whole and word by word.
//!
//! As EMScore does (Shi et al., "EMScore: Evaluating Video Captioning via Coarse-Grained and Fine-Grained Embedding Matching", CVPR
//! 2022): the coarse part compares the sentence with the mean of the clips, the fine part finds for every word its best clip (rare words
//! count more) and for every clip its best word; both parts count half. Differs from the paper: a word's vector is that of the word by
//! itself, so any sentence encoder will do.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use cuemark_features::Features;
use cuemark_text::similarity::{Result as SimilarityResult, Similarity};
use cuemark_text::tokenize;

use crate::{Result, TextEncoder};

/// Sentences on the left, videos on the right; values lie between -1 and 1.
pub struct VideoMatching {
    name: String,
    sentences: Vec<Sentence>,
    videos: Vec<Video>,
}

struct Sentence {
    whole: Vec<f32>,
    /// Vectors of its words, and what each counts; the sum of that is 1.
    words: Vec<(Vec<f32>, f32)>,
}

struct Video {
    mean: Vec<f32>,
    clips: Vec<Vec<f32>>,
}

impl VideoMatching {
    /// Prepares every pair. Rows of the videos must be in the space of `text`; a video without rows matches nothing (0).
    ///
    /// # Errors
    /// When a sentence cannot be encoded.
    pub fn new(text: &dyn TextEncoder, sentences: &[&str], videos: &[Features]) -> Result<Self> {
        let words: Vec<Vec<String>> = sentences.iter().map(|sentence| words(sentence)).collect();
        let mut in_sentences: HashMap<&str, usize> = HashMap::new();
        for words in &words {
            let distinct: HashSet<&str> = words.iter().map(String::as_str).collect();
            distinct.into_iter().for_each(|word| *in_sentences.entry(word).or_default() += 1);
        }
        let mut distinct: Vec<&str> = in_sentences.keys().copied().collect();
        distinct.sort_unstable();
        let vectors: HashMap<&str, Vec<f32>> = distinct.iter().copied().zip(text.encode(&distinct)?).collect();
        let count = sentences.len() as f32;
        let rarity =
            |word: &str| ((count + 1.0) / (in_sentences.get(word).copied().unwrap_or(0) as f32 + 1.0)).ln() + 1.0;
        let whole = text.encode(sentences)?;
        let sentences = whole.into_iter().zip(&words).map(|(whole, words)| {
            let total: f32 = words.iter().map(|word| rarity(word)).sum();
            let vector = |word: &String| vectors.get(word.as_str()).map(|vector| unit(vector));
            let words = words.iter().filter_map(|word| Some((vector(word)?, rarity(word) / total))).collect();
            Sentence { whole: unit(&whole), words }
        });
        let name = format!("{} with clips, coarse and fine", text.name());
        Ok(Self { name, sentences: sentences.collect(), videos: videos.iter().map(Video::new).collect() })
    }

    /// The coarse and the fine part of one pair.
    fn parts(sentence: &Sentence, video: &Video) -> (f32, f32) {
        if video.clips.is_empty() {
            return (0.0, 0.0);
        }
        let coarse = dot(&sentence.whole, &video.mean);
        if sentence.words.is_empty() {
            return (coarse, coarse);
        }
        let mut best_words = vec![f32::NEG_INFINITY; video.clips.len()];
        let mut recall = 0.0;
        for (word, counts) in &sentence.words {
            let mut best_clip = f32::NEG_INFINITY;
            for (clip, best_word) in video.clips.iter().zip(&mut best_words) {
                let cosine = dot(word, clip);
                best_clip = best_clip.max(cosine);
                *best_word = best_word.max(cosine);
            }
            recall += counts * best_clip;
        }
        let precision = best_words.iter().sum::<f32>() / best_words.len() as f32;
        let (recall, precision) = (recall.max(0.0), precision.max(0.0));
        let fine = if recall + precision > 0.0 { 2.0 * recall * precision / (recall + precision) } else { 0.0 };
        (coarse, fine)
    }
}

impl Similarity for VideoMatching {
    fn name(&self) -> &str {
        &self.name
    }

    fn left(&self) -> usize {
        self.sentences.len()
    }

    fn right(&self) -> usize {
        self.videos.len()
    }

    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) -> SimilarityResult<()> {
        let sentences = self.sentences.get(rows).unwrap_or_default();
        let videos = self.videos.get(columns).unwrap_or_default();
        let pairs = sentences.iter().flat_map(|sentence| videos.iter().map(move |video| (sentence, video)));
        for (out, (sentence, video)) in out.iter_mut().zip(pairs) {
            let (coarse, fine) = Self::parts(sentence, video);
            *out = f32::midpoint(coarse, fine);
        }
        Ok(())
    }
}

impl Video {
    fn new(features: &Features) -> Self {
        let clips: Vec<Vec<f32>> = (0..features.rows()).filter_map(|clip| features.row(clip)).map(unit).collect();
        let mut mean = vec![0.0; features.width()];
        for clip in &clips {
            mean.iter_mut().zip(clip).for_each(|(mean, value)| *mean += value);
        }
        Self { mean: unit(&mean), clips }
    }
}

/// The words of a sentence in lower case, without punctuation.
fn words(sentence: &str) -> Vec<String> {
    let tokens = tokenize(sentence).into_iter().map(|token| token.text.to_lowercase());
    tokens.filter(|word| word.chars().any(char::is_alphanumeric)).collect()
}

/// The same direction with length 1; zeros stay zeros.
fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    let scale = if length > 0.0 { length.recip() } else { 0.0 };
    vector.iter().map(|value| value * scale).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use cuemark_text::similarity::of_pair;

    use super::*;

    /// Knows three words, one axis each; a sentence is the sum of its words.
    struct ThreeWords;

    impl TextEncoder for ThreeWords {
        fn name(&self) -> &str {
            "three-words"
        }

        fn width(&self) -> usize {
            3
        }

        fn encode(&self, sentences: &[&str]) -> Result<Vec<Vec<f32>>> {
            let axis = |sentence: &str, word: &str| f32::from(u8::from(sentence.to_lowercase().contains(word)));
            Ok(sentences.iter().map(|s| ["dog", "runs", "cat"].map(|word| axis(s, word)).to_vec()).collect())
        }
    }

    fn video(rows: &[[f32; 3]]) -> Features {
        Features::new(rows.len(), 3, rows.concat()).unwrap()
    }

    #[test]
    fn a_pair_is_worked_out_by_hand() {
        let videos = [video(&[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), video(&[[0.0, 0.0, 1.0]]), video(&[])];
        let matching = VideoMatching::new(&ThreeWords, &["Dog runs."], &videos).unwrap();
        // The mean of both clips has the sentence's direction; each word has its clip and each clip its word.
        assert!((of_pair(&matching, 0, 0).unwrap() - 1.0).abs() < 1e-6);
        assert_eq!(of_pair(&matching, 0, 1).unwrap(), 0.0);
        assert_eq!(of_pair(&matching, 0, 2).unwrap(), 0.0);
    }

    #[test]
    fn a_rare_word_counts_more_than_a_common_one() {
        let (dog, cat) = (video(&[[1.0, 0.0, 0.0]]), video(&[[0.0, 0.0, 1.0]]));
        // Every sentence has a dog, one has a cat.
        let sentences = ["dog cat", "dog", "dog", "dog"];
        let matching = VideoMatching::new(&ThreeWords, &sentences, &[dog, cat]).unwrap();
        assert!(of_pair(&matching, 0, 1).unwrap() > of_pair(&matching, 0, 0).unwrap());
    }

    #[test]
    fn a_clip_that_no_word_speaks_of_costs() {
        let (tight, loose) = (video(&[[1.0, 0.0, 0.0]]), video(&[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]));
        let matching = VideoMatching::new(&ThreeWords, &["dog"], &[tight, loose]).unwrap();
        // Coarse: cos 45°; fine: recall 1, precision a half, so two thirds.
        let by_hand = f32::midpoint(0.5f32.sqrt(), 2.0 / 3.0);
        assert!((of_pair(&matching, 0, 1).unwrap() - by_hand).abs() < 1e-6);
        assert!(of_pair(&matching, 0, 0).unwrap() > by_hand);
    }
}
