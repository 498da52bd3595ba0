//! Asking somebody to rewrite sentences: what is asked, of many at a time, and never twice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use cuemark_core::Progress;
use sha2::{Digest as _, Sha256};

use super::RewriteFault;
use super::kept::KeptAnswers;
use crate::{ProtocolError, Result};

/// What a language model is told; `{sentence}` is where the sentence stands.
pub const PROMPT: &str = include_str!("../../../data/rewrite-prompt.txt");

/// What stands in a prompt for the sentence.
pub(super) const PLACE: &str = "{sentence}";

/// The longest sentence that is taken for a rewritten query, in characters.
const LONGEST_SENTENCE: usize = 600;

/// How random the first answer may be, and every later one: the same question at the same temperature would be answered alike.
pub const TEMPERATURES: [f64; 2] = [0.0, 0.2];

/// The temperature of an attempt, counted from 1.
pub fn temperature(attempt: usize) -> f64 {
    TEMPERATURES[usize::from(attempt > 1)]
}

/// Somebody who rewrites sentences.
pub trait Rewriter: Sync {
    /// Who it is, for the record: answers of one are never taken for another's.
    fn name(&self) -> String;

    /// Begins to talk to it; everybody who asks has a connection of their own.
    ///
    /// # Errors
    /// When nobody is there at all.
    fn connect(&self) -> Result<Box<dyn Asked + '_>>;
}

/// A connection to a rewriter.
pub trait Asked {
    /// Its answer; `None` when it gave none in time, or none that can be one.
    ///
    /// # Errors
    /// When asking again would be no use: nobody there, or the door shut.
    fn ask(&mut self, question: &Question<'_>) -> Result<Option<String>>;
}

/// One question to a rewriter.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The query.
    pub qid: &'a str,
    /// Its sentence as written.
    pub original: &'a str,
    /// The last answer; the sentence itself before there was one.
    pub rewritten: &'a str,
    /// What is wrong with the last answer; empty when this is the first question.
    pub faults: &'a [RewriteFault],
    /// Which attempt this is, from 1.
    pub attempt: usize,
    /// How random the answer may be.
    pub temperature: f64,
    /// What is said before the sentence, with `{sentence}` in it.
    pub prompt: &'a str,
}

impl Question<'_> {
    /// The prompt with the sentence in its place.
    pub fn opening(&self) -> String {
        self.prompt.replace(PLACE, self.original)
    }

    /// What is wrong with the last answer, in words; `None` where there is no answer to find fault with.
    pub fn complaint(&self) -> Option<String> {
        let says = |fault: &RewriteFault| match fault {
            RewriteFault::MeaningLost => Some("It no longer says what the original says: keep all that happens."),
            RewriteFault::NameLeft => Some("It still names somebody: replace every name by what a stranger would see."),
            RewriteFault::NoAnswer => None,
        };
        let said: Vec<&str> = self.faults.iter().filter_map(says).collect();
        (!said.is_empty()).then(|| format!("{} Answer with the better sentence alone, on one line.", said.join(" ")))
    }

    /// What tells this question from all others that `by` could be asked.
    fn digest(&self, by: &str) -> String {
        let faults = format!("{:?}", self.faults);
        let temperature = self.temperature.to_string();
        let attempt = self.attempt.to_string();
        let mut hash = Sha256::new();
        for part in [by, self.prompt, self.qid, self.original, self.rewritten, &faults, &attempt, &temperature] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// An answer as a sentence: one line, quotation marks around it dropped; `None` for what cannot be one.
pub(super) fn sentence_in(answer: &str) -> Option<String> {
    let mut text = answer.trim();
    for (open, close) in [('"', '"'), ('\u{201c}', '\u{201d}'), ('\'', '\''), ('`', '`')] {
        if let Some(inner) = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)) {
            text = inner.trim();
        }
    }
    let is_sentence = text.chars().any(char::is_alphabetic)
        && !text.chars().any(char::is_control)
        && text.chars().count() <= LONGEST_SENTENCE;
    is_sentence.then(|| text.to_owned())
}

/// Asks all questions, at most `parallel` at a time; the answers in the order of the questions. What was answered before is not
/// asked again, and every new answer is kept at once. `progress` counts questions.
///
/// # Errors
/// When the rewriter cannot be asked at all, an answer cannot be kept, or the work was stopped.
pub(super) fn ask_all(
    rewriter: &dyn Rewriter,
    questions: &[Question<'_>],
    parallel: usize,
    kept: &KeptAnswers,
    progress: &Progress,
) -> Result<Vec<Option<String>>> {
    let by = rewriter.name();
    let answers: Mutex<Vec<Option<String>>> = Mutex::new(vec![None; questions.len()]);
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || -> Result<()> {
        let mut connection = None;
        while !over.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(question) = questions.get(at) else { break };
            let digest = question.digest(&by);
            let answer = match kept.find(&digest) {
                Some(answer) => Some(answer),
                None => {
                    let connection = match &mut connection {
                        Some(connection) => connection,
                        None => connection.insert(rewriter.connect()?),
                    };
                    let answer = connection.ask(question)?.as_deref().and_then(sentence_in);
                    if let Some(answer) = &answer {
                        kept.keep(&digest, &by, question, answer)?;
                    }
                    answer
                }
            };
            answers.lock().unwrap_or_else(PoisonError::into_inner)[at] = answer;
            progress.advance(1)?;
        }
        Ok(())
    };
    let threads = parallel.clamp(1, questions.len().max(1));
    let ended: Vec<Result<()>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let ended = worker();
                    if ended.is_err() {
                        over.store(true, Ordering::Relaxed); // the others need not go on
                    }
                    ended
                })
            })
            .collect();
        let died =
            || ProtocolError::Program { program: by.clone(), problem: "the thread that asked it died".to_owned() };
        handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| Err(died()))).collect()
    });
    ended.into_iter().collect::<Result<()>>()?;
    Ok(answers.into_inner().unwrap_or_else(PoisonError::into_inner))
}
