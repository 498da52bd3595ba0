//! Descriptions become imprecise queries: the names of characters are taken out, and two checks say whether it worked.
//!
//! The rules ([`StandIns`]) go first. What fails a check is handed to an external rewriter ([`Program`]), if there is
//! one, a few times; what still fails goes to a queue for human review, and what the program gave no usable answer to
//! goes to a queue for retries. Both queues are JSON Lines of [`Rewrite`]; a reviewer fills in `approved`.

mod program;
mod stand_ins;

use std::collections::HashMap;

use camino::Utf8Path;
use cuemark_core::{QueryId, Truth};
use cuemark_formats::{Overwrite, Source, WholeFile, cuemark_jsonl, json};
use cuemark_text::names::{NAME_THRESHOLD, NameList};
use cuemark_text::similarity::{Tfidf, of_pair};
use serde::{Deserialize, Serialize};

pub use program::Program;
pub use stand_ins::StandIns;

use crate::Result;
use crate::manifest::Manifest;

/// When a rewrite passes, and how often the program may try.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RewriteSettings {
    /// The meaning is kept when rewrite and original are at least this much alike. Default: 0.4
    pub least_similarity: f32,
    /// No name is left when the recogniser's highest score is below this. Default: 0.8
    pub name_bar: f64,
    /// How often the program is asked about one query. Default: 2
    pub attempts: usize,
}

impl Default for RewriteSettings {
    fn default() -> Self {
        Self { least_similarity: 0.4, name_bar: NAME_THRESHOLD, attempts: 2 }
    }
}

/// Why a rewrite is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// It is too unlike the original.
    MeaningLost,
    /// A name is still in it.
    NameLeft,
    /// The program gave no usable answer in time.
    NoAnswer,
}

/// One query before and after: a line of the queues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rewrite {
    /// The query.
    pub qid: QueryId,
    /// Its sentence as written.
    pub original: String,
    /// The sentence without names.
    pub rewritten: String,
    /// How alike the two are.
    pub similarity: f32,
    /// The recogniser's highest score in the rewritten sentence.
    pub name_score: f64,
    /// How often the program was asked.
    pub attempts: usize,
    /// What is wrong with it; empty when it is accepted.
    pub faults: Vec<Fault>,
    /// The sentence a reviewer settled on; absent until there was a review.
    #[serde(default)]
    pub approved: Option<String>,
}

/// All queries, sorted by what became of them; each list in the order of the input.
#[derive(Debug, Clone, Default)]
pub struct Rewrites {
    /// Both checks passed, or a person approved.
    pub accepted: Vec<Rewrite>,
    /// The program gave no usable answer: worth another try.
    pub retry: Vec<Rewrite>,
    /// A check still fails: a person must look.
    pub review: Vec<Rewrite>,
}

/// How alike each original is to its rewrite, pair by pair.
pub type Compare<'a> = dyn Fn(&[String], &[String]) -> Result<Vec<f32>> + 'a;

/// [`Compare`] by TF-IDF, which needs nothing; 0.4 was chosen for a sentence encoder, so look at the queue for review.
///
/// # Errors
/// Never in practice; the signature is that of every comparison.
pub fn compare_by_words(originals: &[String], rewritten: &[String]) -> Result<Vec<f32>> {
    let words = Tfidf::new(originals, rewritten);
    Ok((0..originals.len().min(rewritten.len())).map(|n| of_pair(&words, n, n)).collect::<Result<_, _>>()?)
}

/// Takes the names out of every query.
///
/// # Errors
/// When sentences cannot be compared, or the program cannot be started at all.
pub fn rewrite(
    queries: &[Truth],
    stand_ins: &StandIns,
    names: &NameList,
    program: Option<&Program>,
    compare: &Compare<'_>,
    settings: &RewriteSettings,
) -> Result<Rewrites> {
    let mut all: Vec<Rewrite> = queries
        .iter()
        .map(|truth| Rewrite {
            qid: truth.query.id.clone(),
            original: truth.query.text.clone(),
            rewritten: stand_ins.replace(&truth.query.text, names, settings.name_bar),
            similarity: 0.0,
            name_score: 0.0,
            attempts: 0,
            faults: Vec::new(),
            approved: None,
        })
        .collect();
    check(&mut all.iter_mut().collect::<Vec<_>>(), names, compare, settings)?;
    if let Some(program) = program {
        let mut running = program.start()?;
        for _ in 0..settings.attempts {
            let mut failing: Vec<&mut Rewrite> = all.iter_mut().filter(|rewrite| !rewrite.faults.is_empty()).collect();
            let mut answered = Vec::new();
            for rewrite in &mut failing {
                rewrite.attempts += 1;
                match running.ask(rewrite)? {
                    Some(sentence) => {
                        rewrite.rewritten = sentence;
                        answered.push(&mut **rewrite);
                    }
                    None => rewrite.faults = vec![Fault::NoAnswer],
                }
            }
            check(&mut answered, names, compare, settings)?;
        }
    }
    let mut sorted = Rewrites::default();
    for rewrite in all {
        let queue = match rewrite.faults[..] {
            [] => &mut sorted.accepted,
            [Fault::NoAnswer] => &mut sorted.retry,
            _ => &mut sorted.review,
        };
        queue.push(rewrite);
    }
    Ok(sorted)
}

/// Makes both checks and writes down what they say.
fn check(
    rewrites: &mut [&mut Rewrite],
    names: &NameList,
    compare: &Compare<'_>,
    settings: &RewriteSettings,
) -> Result<()> {
    let originals: Vec<String> = rewrites.iter().map(|rewrite| rewrite.original.clone()).collect();
    let rewritten: Vec<String> = rewrites.iter().map(|rewrite| rewrite.rewritten.clone()).collect();
    for (rewrite, similarity) in rewrites.iter_mut().zip(compare(&originals, &rewritten)?) {
        rewrite.similarity = similarity;
        rewrite.name_score = names.highest(&rewrite.rewritten);
        rewrite.faults.clear();
        if similarity < settings.least_similarity {
            rewrite.faults.push(Fault::MeaningLost);
        }
        if rewrite.name_score >= settings.name_bar {
            rewrite.faults.push(Fault::NameLeft);
        }
    }
    Ok(())
}

/// The counts of [`Rewrites`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RewriteReport {
    /// Queries that passed or were approved.
    pub accepted: usize,
    /// Queries to try again.
    pub retry: usize,
    /// Queries for a person.
    pub review: usize,
    /// Accepted queries whose sentence was changed.
    pub changed: usize,
}

impl Rewrites {
    /// The counts.
    pub fn report(&self) -> RewriteReport {
        RewriteReport {
            accepted: self.accepted.len(),
            retry: self.retry.len(),
            review: self.review.len(),
            changed: self.accepted.iter().filter(|rewrite| rewrite.rewritten != rewrite.original).count(),
        }
    }

    /// Takes reviewed queries over: those with an approved sentence leave the queues and are accepted, last.
    pub fn approve(&mut self, reviewed: &[Rewrite]) {
        let approved: HashMap<&QueryId, &String> =
            reviewed.iter().filter_map(|rewrite| Some((&rewrite.qid, rewrite.approved.as_ref()?))).collect();
        for queue in [&mut self.review, &mut self.retry] {
            for mut rewrite in std::mem::take(queue) {
                match approved.get(&rewrite.qid) {
                    Some(sentence) => {
                        rewrite.rewritten = (*sentence).clone();
                        rewrite.approved = Some((*sentence).clone());
                        rewrite.faults.clear();
                        self.accepted.push(rewrite);
                    }
                    None => queue.push(rewrite),
                }
            }
        }
    }

    /// The accepted queries as truths: those of `queries` with their new sentences, the old one kept as `original`.
    pub fn queries(&self, queries: &[Truth]) -> Vec<Truth> {
        let accepted: HashMap<&QueryId, &Rewrite> =
            self.accepted.iter().map(|rewrite| (&rewrite.qid, rewrite)).collect();
        let rewritten = queries.iter().filter_map(|truth| {
            let rewrite = accepted.get(&truth.query.id)?;
            let mut truth = truth.clone();
            truth.extra.insert("original", truth.query.text.clone().into());
            truth.query.text.clone_from(&rewrite.rewritten);
            Some(truth)
        });
        rewritten.collect()
    }

    /// Writes `queries.jsonl`, `retry.jsonl`, `review.jsonl` and `queries.manifest.json` into `folder`.
    ///
    /// # Errors
    /// When something stands there already and may not be replaced, or a file cannot be written.
    pub fn write(
        &self,
        queries: &[Truth],
        settings: &RewriteSettings,
        folder: &Utf8Path,
        overwrite: Overwrite,
    ) -> Result<()> {
        let mut queues = Vec::new();
        for (name, queue) in [("retry.jsonl", &self.retry), ("review.jsonl", &self.review)] {
            let mut file = WholeFile::create(folder.join(name), overwrite)?;
            for rewrite in queue {
                file.put_json(rewrite)?;
                file.put(b"\n")?;
            }
            queues.push(file);
        }
        Manifest::new("rank-rewrite", 1, settings, self.report()).write_with(
            &folder.join("queries.jsonl"),
            overwrite,
            |file| {
                cuemark_jsonl::write_truth(&self.queries(queries), file)?;
                // The queues appear just before the queries they belong to.
                queues.into_iter().try_for_each(|queue| Ok(queue.finish()?))
            },
        )
    }
}

/// Reads a queue, in file order.
///
/// # Errors
/// When a line is none of ours.
pub fn read_queue(source: &Source) -> Result<Vec<Rewrite>> {
    let mut queue = Vec::new();
    source.for_each_line(|line, text| {
        queue.push(json::decode_line(source, line, text)?);
        Ok(())
    })?;
    Ok(queue)
}

#[cfg(test)]
mod tests;
