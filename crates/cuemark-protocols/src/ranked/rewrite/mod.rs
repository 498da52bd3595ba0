//! Descriptions become imprecise queries: the names of characters are taken out, and two checks say whether it worked.
//!
//! As published, a language model rewrites *every* query ([`rewrite_by`]): an external [`Program`] or an [`Endpoint`]. What fails a
//! check is asked again with the fault named, at a higher temperature. Where there is no such model the rules ([`StandIns`]) do what
//! they can ([`rewrite`]). What still fails goes to a queue for human review, and what nobody gave a usable answer to goes to a queue
//! for retries. Both queues are JSON Lines of [`Rewrite`]; a reviewer fills in `approved`.

mod ask;
mod endpoint;
mod kept;
mod program;
mod recogniser;
mod stand_ins;

use std::collections::HashMap;

use camino::Utf8Path;
use cuemark_core::{Progress, QueryId, Truth};
use cuemark_formats::{Overwrite, Source, WholeFile, json, write_truth};
use cuemark_text::names::{NAME_THRESHOLD, NameList};
use cuemark_text::similarity::{Tfidf, of_pair};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use ask::{Asked, PROMPT, Question, Rewriter, TEMPERATURES, temperature};
pub use endpoint::Endpoint;
pub use kept::KeptAnswers;
pub use program::Program;
pub use recogniser::{EndpointNames, NameRecogniser, ProgramNames};
pub use stand_ins::StandIns;

use crate::manifest::Manifest;
use crate::{ProtocolError, Result};

/// When a rewrite passes, and how often somebody may try.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RewriteSettings {
    /// The meaning is kept when rewrite and original are at least this much alike. Default: 0.4
    pub least_similarity: f32,
    /// No name is left when the recogniser's highest score is below this. Default: 0.8
    pub name_bar: f64,
    /// How often a rewriter is asked about one query. Default: 2
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
pub enum RewriteFault {
    /// It is too unlike the original.
    MeaningLost,
    /// A name is still in it.
    NameLeft,
    /// A rewriter, or who looks for names, gave no usable answer in time.
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
    /// How often a rewriter was asked.
    pub attempts: usize,
    /// How random its last answer could be; absent where nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// What is wrong with it; empty when it is accepted.
    pub faults: Vec<RewriteFault>,
    /// The sentence a reviewer settled on; absent until there was a review.
    #[serde(default)]
    pub approved: Option<String>,
}

/// All queries, sorted by what became of them; each list in the order of the input.
#[derive(Debug, Clone, Default)]
pub struct Rewrites {
    /// Both checks passed, or a person approved.
    pub accepted: Vec<Rewrite>,
    /// Nobody gave a usable answer: worth another try.
    pub retry: Vec<Rewrite>,
    /// A check still fails: a person must look.
    pub review: Vec<Rewrite>,
    /// Who was asked and how; `None` where the rules did it.
    pub asked: Option<AskedBy>,
}

/// Who rewrote, for the record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AskedBy {
    /// The program, or the model and its address.
    pub rewriter: String,
    /// SHA-256 of what it was told.
    pub prompt: String,
    /// Of the first attempt, and of later ones.
    pub temperatures: [f64; 2],
    /// Who looked for names.
    pub names: String,
}

/// Who is asked, and how.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// Who rewrites.
    pub rewriter: &'a dyn Rewriter,
    /// What it is told, with `{sentence}` in it.
    pub prompt: &'a str,
    /// Questions that are open at a time, at most.
    pub parallel: usize,
    /// What was answered before.
    pub kept: &'a KeptAnswers,
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

/// Takes the names out of every query by rule.
///
/// # Errors
/// When sentences cannot be compared.
pub fn rewrite(
    queries: &[Truth],
    stand_ins: &StandIns,
    names: &NameList,
    compare: &Compare<'_>,
    settings: &RewriteSettings,
) -> Result<Rewrites> {
    let by_rule = |truth: &Truth| stand_ins.replace(&truth.query.text, names, settings.name_bar);
    let mut all: Vec<Rewrite> = queries.iter().map(|truth| Rewrite::of(truth, by_rule(truth))).collect();
    check(&mut all.iter_mut().collect::<Vec<_>>(), names, compare, settings)?;
    Ok(Rewrites::sorted(all))
}

/// Has [`Asking::rewriter`] take the names out of every query, asks again with the fault named where a check fails, and sorts what came of it.
///
/// # Errors
/// When the rewriter or who looks for names cannot be asked at all, answers cannot be kept, the prompt has no place for the sentence,
/// or the work was stopped: everything answered so far is kept.
pub fn rewrite_by(
    queries: &[Truth],
    names: &dyn NameRecogniser,
    compare: &Compare<'_>,
    settings: &RewriteSettings,
    asking: &Asking<'_>,
    progress: &Progress,
) -> Result<Rewrites> {
    if !asking.prompt.contains(ask::PLACE) {
        return Err(ProtocolError::Option {
            option: "prompt",
            value: format!("`{}`", asking.prompt.lines().next().unwrap_or_default()),
            problem: format!("has no `{}` where the sentence goes", ask::PLACE),
        });
    }
    let mut all: Vec<Rewrite> = queries.iter().map(|truth| Rewrite::of(truth, truth.query.text.clone())).collect();
    for attempt in 1..=settings.attempts.max(1) {
        let mut open: Vec<&mut Rewrite> =
            all.iter_mut().filter(|rewrite| attempt == 1 || !rewrite.faults.is_empty()).collect();
        progress.phase(if attempt == 1 { "asking" } else { "asking again" }, open.len());
        let temperature = temperature(attempt);
        let question = |rewrite: &&mut Rewrite| (rewrite.qid.clone(), (**rewrite).clone());
        let before: Vec<(QueryId, Rewrite)> = open.iter().map(question).collect();
        let questions: Vec<Question<'_>> = before
            .iter()
            .map(|(qid, rewrite)| Question {
                qid: qid.as_str(),
                original: &rewrite.original,
                rewritten: &rewrite.rewritten,
                faults: &rewrite.faults,
                attempt,
                temperature,
                prompt: asking.prompt,
            })
            .collect();
        let answers = ask::ask_all(asking.rewriter, &questions, asking.parallel, asking.kept, progress)?;
        let mut answered = Vec::new();
        for (rewrite, answer) in open.iter_mut().zip(answers) {
            rewrite.attempts = attempt;
            rewrite.temperature = Some(temperature);
            match answer {
                Some(sentence) => {
                    rewrite.rewritten = sentence;
                    answered.push(&mut **rewrite);
                }
                None => rewrite.faults = vec![RewriteFault::NoAnswer],
            }
        }
        check(&mut answered, names, compare, settings)?;
    }
    let prompt = Sha256::digest(asking.prompt.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let asked = AskedBy { rewriter: asking.rewriter.name(), prompt, temperatures: TEMPERATURES, names: names.name() };
    Ok(Rewrites { asked: Some(asked), ..Rewrites::sorted(all) })
}

impl Rewrite {
    /// A sentence for a query, not yet checked.
    fn of(truth: &Truth, rewritten: String) -> Self {
        Self {
            qid: truth.query.id.clone(),
            original: truth.query.text.clone(),
            rewritten,
            similarity: 0.0,
            name_score: 0.0,
            attempts: 0,
            temperature: None,
            faults: Vec::new(),
            approved: None,
        }
    }
}

/// Makes both checks and writes down what they say.
fn check(
    rewrites: &mut [&mut Rewrite],
    names: &dyn NameRecogniser,
    compare: &Compare<'_>,
    settings: &RewriteSettings,
) -> Result<()> {
    let originals: Vec<String> = rewrites.iter().map(|rewrite| rewrite.original.clone()).collect();
    let rewritten: Vec<String> = rewrites.iter().map(|rewrite| rewrite.rewritten.clone()).collect();
    for (rewrite, similarity) in rewrites.iter_mut().zip(compare(&originals, &rewritten)?) {
        rewrite.similarity = similarity;
        rewrite.faults.clear();
        let score = names.highest(&rewrite.rewritten)?;
        // What nobody looked at counts as a name until somebody has.
        rewrite.name_score = score.unwrap_or(1.0);
        if similarity < settings.least_similarity {
            rewrite.faults.push(RewriteFault::MeaningLost);
        }
        match score {
            Some(score) if score >= settings.name_bar => rewrite.faults.push(RewriteFault::NameLeft),
            Some(_) => {}
            None => rewrite.faults.push(RewriteFault::NoAnswer),
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
    fn sorted(all: Vec<Rewrite>) -> Self {
        let mut sorted = Self::default();
        for rewrite in all {
            let queue = match rewrite.faults[..] {
                [] => &mut sorted.accepted,
                [RewriteFault::NoAnswer] => &mut sorted.retry,
                _ => &mut sorted.review,
            };
            queue.push(rewrite);
        }
        sorted
    }

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
        let settings = Recorded { settings, asked: self.asked.as_ref() };
        Manifest::new("rank-rewrite", 2, settings, self.report()).write_with(
            &folder.join("queries.jsonl"),
            overwrite,
            |file| {
                write_truth(&self.queries(queries), file)?;
                // The queues appear just before the queries they belong to.
                queues.into_iter().try_for_each(|queue| Ok(queue.finish()?))
            },
        )
    }
}

/// What the manifest says was asked for.
#[derive(Serialize)]
struct Recorded<'a> {
    #[serde(flatten)]
    settings: &'a RewriteSettings,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<&'a AskedBy>,
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
