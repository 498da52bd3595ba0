//! Training queries with their likest moments, for want of ratings.
//!
//! Queries that validation or test use are taken out first, by id and by sentence; moments are shared on purpose, since
//! all queries of ranked retrieval search one collection.

use std::collections::HashSet;

use camino::Utf8Path;
use cuemark_core::{GradedMoment, QueryId, Truth};
use cuemark_formats::{Overwrite, write_truth};
use cuemark_text::similarity::{Similarity, top_k};
use serde::Serialize;
use serde_json::json;

use super::candidates::described_moments;
use crate::manifest::Manifest;
use crate::pools::check_sides;
use crate::{ProtocolError, Result};

/// The published numbers of moments per query.
pub const PUBLISHED_TOP: [usize; 3] = [1, 20, 40];

/// Queries that were taken out of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Their id is one of validation or test.
    pub by_id: usize,
    /// Their sentence is, white space at its ends aside.
    pub by_sentence: usize,
}

/// The queries that may be trained on: those whose id and sentence are in none of `held_out`.
pub fn without(queries: &[Truth], held_out: &[Truth]) -> (Vec<Truth>, Removed) {
    let ids: HashSet<&QueryId> = held_out.iter().map(|truth| &truth.query.id).collect();
    let sentences: HashSet<&str> = held_out.iter().map(|truth| truth.query.text.trim()).collect();
    let mut removed = Removed { by_id: 0, by_sentence: 0 };
    let kept = queries.iter().filter(|truth| {
        let (id, sentence) = (ids.contains(&truth.query.id), sentences.contains(truth.query.text.trim()));
        removed.by_id += usize::from(id);
        removed.by_sentence += usize::from(sentence && !id);
        !id && !sentence
    });
    let kept = kept.cloned().collect();
    (kept, removed)
}

/// Training queries with their likest moments.
#[derive(Debug, Clone)]
pub struct PseudoTrain {
    /// One truth per query; its moments are ungraded, likest first, each with a `similarity` in its extra fields.
    pub truths: Vec<Truth>,
    /// Whose similarities.
    pub provider: String,
    /// Moments per query.
    pub top: usize,
    /// What was taken out before.
    pub removed: Removed,
}

/// Gives each query its `top` likest moments; `between` compares the queries on the left with the captions on the right.
///
/// `removed` is what [`without`] counted, for the manifest.
///
/// # Errors
/// When `top` is 0, a caption has no moment, or similarities are of other things.
pub fn pseudo_train(
    queries: &[Truth],
    captions: &[Truth],
    between: &dyn Similarity,
    top: usize,
    removed: Removed,
) -> Result<PseudoTrain> {
    if top == 0 {
        let problem = "gives a query nothing to learn from".to_owned();
        return Err(ProtocolError::Option { option: "top", value: "0".to_owned(), problem });
    }
    check_sides(between, queries.len(), captions.len())?;
    let moments = described_moments(captions)?;
    let truths = queries.iter().zip(top_k(between, top)?).map(|(truth, likest)| {
        let mut pseudo = Truth::bare(truth.query.clone());
        let similarities: Vec<_> = likest.iter().map(|near| json!({ "similarity": near.similarity })).collect();
        pseudo.extra.insert("moments", similarities.into());
        pseudo.moments = likest
            .iter()
            .map(|near| GradedMoment { moment: moments[near.index as usize].1.clone(), relevance: None })
            .collect();
        pseudo
    });
    Ok(PseudoTrain { truths: truths.collect(), provider: between.name().to_owned(), top, removed })
}

impl PseudoTrain {
    /// The same with fewer moments per query.
    #[must_use]
    pub fn cut(&self, top: usize) -> Self {
        let mut cut = Self { top: top.min(self.top), ..self.clone() };
        for truth in &mut cut.truths {
            truth.moments.truncate(top);
            if let Some(fields) = truth.extra.get("moments").and_then(|fields| fields.as_array()) {
                let fewer: Vec<_> = fields.iter().take(top).cloned().collect();
                truth.extra.insert("moments", fewer.into());
            }
        }
        cut
    }

    /// Writes the set as our truth JSONL, each moment with its `similarity`, with a manifest beside it.
    ///
    /// # Errors
    /// When something stands there already and may not be replaced, or a file cannot be written.
    pub fn write(&self, out: &Utf8Path, overwrite: Overwrite) -> Result<()> {
        let settings = json!({ "top": self.top });
        let outcome = json!({ "provider": self.provider, "queries": self.truths.len(), "removed": self.removed });
        Manifest::new("rank-pseudo-train", 1, settings, outcome)
            .write_with(out, overwrite, |file| Ok(write_truth(&self.truths, file)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::{Query, RowPolicy, Span, Video};
    use cuemark_formats::{Source, read_truth};
    use cuemark_text::similarity::Tfidf;

    fn described(id: &str, text: &str) -> Truth {
        let query = Query { id: id.into(), text: text.to_owned() };
        Truth::single(query, Video::new(format!("v{id}").as_str(), 30.0), [Span::new(1.0, 4.5).unwrap()])
    }

    fn train() -> Vec<Truth> {
        [("0", "a man runs"), ("1", "a man runs fast"), ("2", "a dog barks"), ("3", "a woman sits ")]
            .map(|(id, text)| described(id, text))
            .to_vec()
    }

    #[test]
    fn queries_of_validation_and_test_are_taken_out_by_id_and_by_sentence() {
        let held_out = [described("2", "something else"), described("77", "a woman sits")];
        let (kept, removed) = without(&train(), &held_out);
        let ids: Vec<&str> = kept.iter().map(|truth| truth.query.id.as_str()).collect();
        assert_eq!(ids, ["0", "1"]);
        assert_eq!(removed, Removed { by_id: 1, by_sentence: 1 });
    }

    #[test]
    fn the_likest_moments_come_first_and_survive_a_round_trip_with_their_similarities() {
        let queries = train();
        let texts: Vec<&str> = queries.iter().map(|truth| truth.query.text.as_str()).collect();
        let between = Tfidf::new(&texts, &texts);
        let made = pseudo_train(&queries, &queries, &between, 3, Removed { by_id: 0, by_sentence: 0 }).unwrap();
        let videos: Vec<&str> = made.truths[1].moments.iter().map(|m| m.moment.video.as_str()).collect();
        assert_eq!(videos[..2], ["v1", "v0"]);
        let folder = tempfile::tempdir().unwrap();
        let out = camino::Utf8PathBuf::from_path_buf(folder.path().join("train_top2.jsonl")).unwrap();
        let cut = made.cut(2);
        cut.write(&out, Overwrite::Never).unwrap();
        let text = std::fs::read_to_string(&out).unwrap();
        assert_eq!(text.matches("\"similarity\":").count(), 8);
        let read = read_truth(&Source::new(out), RowPolicy::Error).unwrap();
        assert!(read.queries.iter().all(|truth| truth.moments.len() == 2));
        assert!(folder.path().join("train_top2.manifest.json").is_file());
    }

    #[test]
    fn nothing_to_learn_from_is_refused() {
        let queries = train();
        let between = Tfidf::new(&["x"], &["y"]);
        let none = Removed { by_id: 0, by_sentence: 0 };
        assert!(pseudo_train(&queries, &queries, &between, 0, none).is_err());
        assert!(pseudo_train(&queries, &queries, &between, 1, none).is_err());
    }
}
