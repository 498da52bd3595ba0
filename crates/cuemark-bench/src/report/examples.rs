//! Queries to look at: where everybody is right, where nobody is, and what is usual.

use cuemark_core::{Rng, Span, Truth};
use serde::Serialize;

use super::clip_scores::ClipScores;
use super::entry::Entry;
use super::films::Films;

/// Examples of each kind.
const EACH: usize = 3;
/// Failures, where films can be watched.
const FAILURES: usize = 12;
/// Longer videos have no curve of ratings: it would be finer than the page.
const MOST_CLIPS: usize = 5_000;

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
    /// The raters' mean grade (0 to 4) of every whole clip; empty where nobody rated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratings: Vec<f64>,
    /// First answers, in the order of the entries.
    pub answers: Vec<ExampleAnswer>,
    /// Where the video's file is, as a link from the report's folder; nothing when nobody said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub film: Option<String>,
}

/// One entry's first answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExampleAnswer {
    /// Whose.
    pub label: String,
    /// Where, in **seconds**; nothing when there is none.
    pub span: Option<[f64; 2]>,
    /// Its overlap with the truth.
    pub iou: f64,
    /// Its score of every clip; empty when it gives none.
    #[serde(skip_serializing_if = "ClipScores::is_empty")]
    pub saliency: ClipScores,
}

/// Three of each kind, ordered best, median, worst, and of the worst as many as are shown with films; equal ones are drawn with a fixed seed, no video twice in a kind.
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
    let mut pick = |kind, most: usize, candidates: &mut dyn Iterator<Item = usize>| {
        let mut videos: Vec<&str> = Vec::new();
        for n in candidates {
            let video = truths[n].video.as_ref().map_or("", |video| video.id.as_str());
            if videos.len() < most && !videos.contains(&video) {
                videos.push(video);
                examples.push(example(kind, n, &truths[n], &shown));
            }
        }
    };
    pick("best", EACH, &mut order.iter().copied().take(order.len() / 3 + 1));
    pick("median", EACH, &mut order.iter().copied().skip(middle).take(order.len() / 6 + EACH));
    pick("worst", FAILURES, &mut order.iter().rev().copied().take(order.len() / 3 + 1));
    examples
}

/// Gives examples their films. Without one, failures are cut to as many as there are of the other kinds.
pub(super) fn with_films(examples: &mut Vec<Example>, films: &Films) {
    for example in examples.iter_mut() {
        example.film = films.link(&example.video).map(str::to_owned);
    }
    if examples.iter().all(|example| example.film.is_none()) {
        let mut worst = 0;
        examples.retain(|example| {
            worst += usize::from(example.kind == "worst");
            example.kind != "worst" || worst <= EACH
        });
    }
}

fn example(kind: &'static str, n: usize, truth: &Truth, entries: &[&Entry<'_>]) -> Example {
    let pair = |span: Span| [span.start(), span.end()];
    let answer = |entry: &&Entry<'_>| {
        let first = &entry.first().first;
        let span = first.start.get(n).zip(first.end.get(n)).map(|(start, end)| [start, end]);
        let saliency = first.saliency.get(n).cloned().unwrap_or_default();
        ExampleAnswer { label: entry.name.label(), span, iou: first.iou.get(n).unwrap_or(0.0), saliency }
    };
    Example {
        kind,
        query: truth.query.id.to_string(),
        text: truth.query.text.clone(),
        video: truth.video.as_ref().map_or(String::new(), |video| video.id.to_string()),
        duration: truth.duration().unwrap_or(0.0),
        truth: truth.right().map(|moment| pair(moment.span)).collect(),
        ratings: mean_grades(truth),
        answers: entries.iter().map(answer).collect(),
        film: None,
    }
}

/// The mean grade of every whole clip of the query's video; clips that nobody rated have 0. A list of ratings from outside may name any
/// clip, so that its length follows from the video alone.
fn mean_grades(truth: &Truth) -> Vec<f64> {
    let (Some(rated), Some(duration)) = (&truth.highlights, truth.duration()) else { return Vec::new() };
    let clips = (duration / rated.clip_len.seconds()) as usize;
    if clips > MOST_CLIPS {
        return Vec::new();
    }
    let mut grades = vec![0.0; clips];
    for (clip, ratings) in rated.clips.iter().zip(&rated.ratings) {
        if let Some(grade) = grades.get_mut(*clip) {
            *grade = ratings.iter().map(|rating| f64::from(*rating)).sum::<f64>() / ratings.len().max(1) as f64;
        }
    }
    grades
}
