//! Queries to look at: where everybody is right, where nobody is, and what is usual.

use cuemark_core::{Rng, Span, Truth};
use serde::Serialize;

use super::entry::Entry;

/// Examples of each kind.
const EACH: usize = 3;

/// One query with the truth and every entry's first answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Example {
    /// `best`, `median` or `worst`, by the entries' mean overlap.
    pub kind: &'static str,
    /// The query's id.
    pub query: String,
    /// What it says.
    pub text: String,
    /// The video.
    pub video: String,
    /// The video's length, in **seconds**.
    pub duration: f64,
    /// Its right moments in **seconds**.
    pub truth: Vec<[f64; 2]>,
    /// First answers, in the order of the entries.
    pub answers: Vec<Answer>,
}

/// One entry's first answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Whose.
    pub label: String,
    /// Where, in **seconds**; nothing when there is none.
    pub span: Option<[f64; 2]>,
    /// Its overlap with the truth.
    pub iou: f64,
}

/// Three of each kind, ordered best, median, worst; equal ones are drawn with a fixed seed, no video twice in a kind.
///
/// Judged by models and files; by baselines when there is nothing else.
pub(super) fn examples(entries: &[Entry<'_>], truths: &[Truth]) -> Vec<Example> {
    let fits = |entry: &&Entry<'_>| entry.first().queries == truths.len();
    let shown: Vec<&Entry<'_>> = entries.iter().filter(fits).collect();
    let mut judges: Vec<&&Entry<'_>> = shown.iter().filter(|entry| !entry.is_baseline()).collect();
    if judges.is_empty() {
        judges = shown.iter().collect();
    }
    let overlap = |n: usize| {
        judges.iter().map(|entry| f64::from(entry.first().first.iou.0[n])).sum::<f64>() / judges.len().max(1) as f64
    };
    let timed = |n: &usize| truths[*n].duration().is_some_and(|duration| duration > 0.0);
    let mut order: Vec<usize> =
        (0..truths.len()).filter(timed).filter(|n| truths[*n].right().next().is_some()).collect();
    Rng::stream(0, "examples").shuffle(&mut order);
    order.sort_by(|a, b| overlap(*b).total_cmp(&overlap(*a)));
    if judges.is_empty() || order.is_empty() {
        return Vec::new();
    }
    let middle = order.len().saturating_sub(EACH) / 2;
    let mut examples = Vec::new();
    let mut pick = |kind, candidates: &mut dyn Iterator<Item = usize>| {
        let mut videos: Vec<&str> = Vec::new();
        for n in candidates {
            let video = truths[n].video.as_ref().map_or("", |video| video.id.as_str());
            if videos.len() < EACH && !videos.contains(&video) {
                videos.push(video);
                examples.push(example(kind, n, &truths[n], &shown));
            }
        }
    };
    pick("best", &mut order.iter().copied().take(order.len() / 3 + 1));
    pick("median", &mut order.iter().copied().skip(middle).take(order.len() / 6 + EACH));
    pick("worst", &mut order.iter().rev().copied().take(order.len() / 3 + 1));
    examples
}

fn example(kind: &'static str, n: usize, truth: &Truth, entries: &[&Entry<'_>]) -> Example {
    let pair = |span: Span| [span.start(), span.end()];
    let answer = |entry: &&Entry<'_>| {
        let first = &entry.first().first;
        let span = first.start.get(n).zip(first.end.get(n)).map(|(start, end)| [start, end]);
        Answer { label: entry.name.label(), span, iou: first.iou.get(n).unwrap_or(0.0) }
    };
    Example {
        kind,
        query: truth.query.id.to_string(),
        text: truth.query.text.clone(),
        video: truth.video.as_ref().map_or(String::new(), |video| video.id.to_string()),
        duration: truth.duration().unwrap_or(0.0),
        truth: truth.right().map(|moment| pair(moment.span)).collect(),
        answers: entries.iter().map(answer).collect(),
    }
}
