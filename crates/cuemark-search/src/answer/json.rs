//! Answers as scripts read them.

use serde_json::{Value, json};

use super::{Answer, Answers};
use crate::{Index, Result};

impl Index {
    /// What `cuemark search --json` prints of the answers to a question whose sentence was `sentence`.
    ///
    /// `answers` has those that are likely enough, best first, each with `video`, `span` (seconds), `probability`, `score`,
    /// `words`, recognised `concepts` the `path` of the video's file (`null` without one) and `partial`, how far that could be read (`null` of a whole film);
    /// `below_least` counts the others.
    ///
    /// # Errors
    /// When the engine cannot be read.
    pub fn json(&self, sentence: Option<&str>, answers: &Answers) -> Result<Value> {
        let listed = answers.likely().iter().map(|answer| self.answer_json(answer)).collect::<Result<Vec<_>>>()?;
        Ok(json!({
            "query": sentence,
            "answers": listed,
            "below_least": answers.moments.len() - listed.len(),
            "best_probability": answers.moments.first().map(|answer| answer.probability),
            "unknown_words": answers.unknown_words,
        }))
    }

    fn answer_json(&self, answer: &Answer) -> Result<Value> {
        let (path, partial) = self.engine().video(&answer.video)?.map(|entry| (entry.path, entry.partial)).unzip();
        let (path, partial) = (path.flatten(), partial.flatten());
        let words = answer.words.iter().map(|word| json!({ "word": word.word, "share": word.share }));
        let concepts = answer.concepts.iter().map(|seen| json!({ "concept": seen.concept, "share": seen.share }));
        Ok(json!({
            "video": answer.video,
            "span": [answer.span.start(), answer.span.end()],
            "probability": answer.probability,
            "score": answer.score,
            "words": words.collect::<Vec<_>>(),
            "concepts": concepts.collect::<Vec<_>>(),
            "path": path,
            "partial": partial,
        }))
    }
}

impl Answers {
    /// The answers that reach the question's least probability, best first.
    pub fn likely(&self) -> &[Answer] {
        self.moments.get(..self.good).unwrap_or(&self.moments)
    }
}
