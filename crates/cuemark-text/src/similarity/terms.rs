//! Sentences as counted terms.

use rustc_hash::FxHashMap;

/// Numbers for terms, in the order they are first met.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(FxHashMap<String, u32>);

impl Vocabulary {
    /// How many terms there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The terms of `sentence` with their counts, in ascending order of their numbers.
    pub(super) fn count(&mut self, sentence: &str) -> Vec<(u32, u32)> {
        let mut terms: Vec<u32> = words(sentence).map(|word| self.number(&word)).collect();
        terms.sort_unstable();
        let mut counted: Vec<(u32, u32)> = Vec::with_capacity(terms.len());
        for term in terms {
            match counted.last_mut() {
                Some((last, count)) if *last == term => *count += 1,
                _ => counted.push((term, 1)),
            }
        }
        counted
    }

    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.0.get(word) {
            return *number;
        }
        let number = self.0.len() as u32;
        self.0.insert(word.to_owned(), number);
        number
    }
}

/// Runs of letters and digits in lower case; everything else separates them.
fn words(sentence: &str) -> impl Iterator<Item = String> + '_ {
    sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// In how many of `documents` each of `terms` terms occurs.
pub(super) fn document_frequencies(documents: &[Vec<(u32, u32)>], terms: usize) -> Vec<u32> {
    let mut frequencies = vec![0; terms];
    for (term, _) in documents.iter().flatten() {
        frequencies[*term as usize] += 1;
    }
    frequencies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_punctuation_do_not_count() {
        let mut vocabulary = Vocabulary::default();
        let plain = vocabulary.count("the dog sees the cat");
        assert_eq!(vocabulary.count("The dog, sees THE cat."), plain);
        assert_eq!(plain, [(0, 2), (1, 1), (2, 1), (3, 1)]);
        assert!(vocabulary.count(" …! ").is_empty());
    }
}
