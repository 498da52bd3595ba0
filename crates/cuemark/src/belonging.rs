//! Whether predictions belong to a truth: the guard that `eval`, `compare`, `report` and Python share.
//!
//! A wrong truth file, a misspelt key or milliseconds give a table of plausible zeros. What cannot be meant is refused
//! ([`Error::Mismatch`]) unless the caller is lenient; what may be meant is noted.
//!
//! Ids are looked up for every list. Spans are looked at in [`SAMPLE`] lists spread over the file, so that the guard costs the
//! same for a file of millions; once a few of them look wrong, all are counted.

use std::collections::BTreeMap;

use cuemark_core::nearest::slip;
use cuemark_core::text::{counted, thousands};
use cuemark_core::{Advice, Answer, Answers, Lists, QueryId, Truth, UnreadField, VideoId};
use cuemark_metrics::{Metric, Plan, Step};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Error, Note, Result};

/// Lists whose spans are looked at before all are.
const SAMPLE: usize = 500;
/// Below this share of known ids, and of answered queries, files do not belong together.
const FEW: f64 = 0.1;
/// Lists from which "none of them names its query's video" says something.
const ENOUGH: usize = 10;
/// A video of so many seconds is too long for spans that all end within the first.
const LONG: f64 = 5.0;
/// Where fractions of a video end at the latest: answers may reach past the end of their video.
const FRACTION: f64 = 1.5;
/// Times this many durations long are thousandths of seconds, not frames.
const THOUSANDTHS: f64 = 100.0;

/// Fields of prediction files, in any layout that has names for them.
const FIELDS: [&str; 12] = [
    "qid",
    "query",
    "video",
    "vid",
    "predictions",
    "pred_relevant_windows",
    "pred_saliency_scores",
    "saliency",
    "task",
    "timestamp",
    "segment",
    "sentence",
];

/// Whether files that do not seem to belong together are scored all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Leniency {
    /// They are refused. Default.
    #[default]
    Refuse,
    /// They are scored, and what would have been refused is noted.
    Note,
}

/// Predictions beside the truth they are to be scored against, and what both are called.
pub(crate) struct Pairing<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) truths: &'a [Truth],
    pub(crate) answers: &'a dyn Answers,
    /// The prediction file, or the argument that stands for it.
    pub(crate) file: &'a str,
    pub(crate) leniency: Leniency,
}

impl Pairing<'_> {
    /// Refuses what cannot be meant and notes what may not be.
    pub(crate) fn check(&self) -> Result<Vec<Note>> {
        let places: FxHashMap<&QueryId, usize> =
            self.truths.iter().enumerate().map(|(place, truth)| (&truth.query.id, place)).collect();
        let mut notes = Vec::new();
        let slips = self.misspelt();
        self.has_spans(&slips, &mut notes)?;
        notes.extend(slips);
        for lists in self.answers.tasks().into_iter().filter_map(|task| self.answers.named(task)) {
            let known: Vec<(usize, usize)> =
                (0..lists.count()).filter_map(|list| Some((list, *places.get(lists.query(list))?))).collect();
            self.ids(lists, &known, &mut notes)?;
            let sample = sample(lists, &known);
            self.videos(lists, &sample, &mut notes)?;
            notes.extend(self.units(lists, &sample));
            notes.extend(self.order(lists, &known, &sample));
        }
        notes.extend(self.one_answer());
        Ok(notes)
    }

    /// Refuses, or notes where the caller is lenient.
    fn refuse(&self, count: usize, problem: String, advice: &str, notes: &mut Vec<Note>) -> Result<()> {
        match self.leniency {
            Leniency::Note => notes.push(Note::new(self.file, count, format!("{problem}; scored all the same"))),
            Leniency::Refuse => {
                let advice = Advice::say(format!("{advice}; if you mean it, pass ")).set("lenient");
                return Err(Error::Mismatch { file: self.file.to_owned(), problem, advice });
            }
        }
        Ok(())
    }

    /// Is there anything to score?
    fn has_spans(&self, slips: &[Note], notes: &mut Vec<Note>) -> Result<()> {
        // Saliency is something to score only where a metric reads it, and where no span was lost to a slip of the pen.
        let reads_saliency = slips.is_empty() && self.plan.metrics.iter().any(|name| name.metric.is_of_clips());
        let mut count = 0;
        for lists in self.answers.tasks().into_iter().filter_map(|task| self.answers.named(task)) {
            let says = |list| !lists.is_unanswered(list) || (reads_saliency && lists.saliency(list).is_some());
            if (0..lists.count()).any(says) {
                return Ok(());
            }
            count += lists.count();
        }
        // Where a query may have no answer, a method may refuse them all.
        if self.truths.iter().any(|truth| truth.moments.is_empty()) {
            return Ok(());
        }
        let mut problem = match count {
            0 => "it holds no predictions at all".to_owned(),
            _ => format!("none of its {} holds a span", counted(count, "list", "lists")),
        };
        if let Some(slip) = slips.first() {
            problem = format!("{problem}: {}", slip.text);
        }
        self.refuse(count, problem, "check that this is the file you meant, and the names of its fields", notes)
    }

    /// Are the ids the truth's?
    fn ids(&self, lists: &dyn Lists, known: &[(usize, usize)], notes: &mut Vec<Note>) -> Result<()> {
        let (lists_there, queries) = (lists.count(), self.truths.len());
        let answered: FxHashSet<usize> = known.iter().map(|(_, place)| *place).collect();
        let few = |part: usize, whole: usize| (part as f64) < FEW * whole as f64;
        if lists_there == 0 || !few(known.len(), lists_there) || !few(answered.len(), queries) {
            return Ok(());
        }
        let which = if known.is_empty() {
            "none of its queries is in the truth".to_owned()
        } else {
            let (part, whole) = (thousands(known.len()), counted(lists_there, "query", "queries"));
            format!("only {part} of its {whole} are in the truth")
        };
        let mine = lists.query(0);
        let theirs = self.truths.first().map_or("", |truth| truth.query.id.as_str());
        let problem = format!(
            "{which}, and {} of the truth's {} are answered; its ids look like `{mine}`, the truth's like `{theirs}`",
            thousands(answered.len()),
            counted(queries, "query", "queries"),
        );
        self.refuse(lists_there, problem, "check that both files are of the same dataset and split", notes)
    }

    /// Are the videos the truth's?
    fn videos(&self, lists: &dyn Lists, sample: &[Sampled<'_>], notes: &mut Vec<Note>) -> Result<()> {
        let theirs: FxHashSet<&VideoId> = self.truths.iter().flat_map(videos_of).collect();
        let searched = self.searches_many_videos();
        let (mut named, mut right, mut example) = (0, 0, None);
        for Sampled { list, place, ranked } in sample {
            let own = &self.truths[*place];
            let videos: Vec<&VideoId> = ranked.iter().filter_map(|answer| answer.video).collect();
            let (Some(first), Some(truth)) = (videos.first(), videos_of(own).next()) else { continue };
            named += 1;
            let meets = |video: &&&VideoId| {
                if searched { theirs.contains(**video) } else { videos_of(own).any(|right| right == **video) }
            };
            right += usize::from(videos.iter().any(|video| meets(&video)));
            example.get_or_insert_with(|| (lists.query(*list).clone(), (*first).clone(), truth.clone()));
        }
        let Some((query, mine, truth)) = example.filter(|_| right == 0) else { return Ok(()) };
        let is_stranger = !theirs.contains(&mine);
        if !is_stranger && named < ENOUGH {
            return Ok(());
        }
        let problem = format!(
            "none of its {} names the video of its query: query `{query}` is answered in `{mine}`, its truth lies in `{truth}`",
            counted(named, "list", "lists")
        );
        let advice = "the ids agree by accident, say because both count rows: check that the files are of one dataset";
        self.refuse(named, problem, advice, notes)
    }

    /// Seconds, or something else?
    fn units(&self, lists: &dyn Lists, sample: &[Sampled<'_>]) -> Option<Note> {
        let look = |Sampled { list, place, ranked }: &Sampled<'_>| {
            let first = ranked.first().map(|answer| answer.span)?;
            Some(Look { list: *list, start: first.start(), end: first.end(), length: length(&self.truths[*place])? })
        };
        let looks: Vec<Look> = sample.iter().filter_map(look).collect();
        if looks.is_empty() {
            return None;
        }
        let past: Vec<&Look> = looks.iter().filter(|look| look.start > look.length).collect();
        if 2 * past.len() > looks.len() {
            let mut ratios: Vec<f64> = past.iter().map(|look| look.end / look.length).collect();
            ratios.sort_by(f64::total_cmp);
            let middle = ratios.get(ratios.len() / 2).copied().unwrap_or(0.0);
            let unit = if middle > THOUSANDTHS { "milliseconds" } else { "frames" };
            let text = format!(
                "{} of {} start after their video ends, so the times look like {unit}; they were read as seconds",
                thousands(past.len()),
                counted(looks.len(), "first answer", "first answers")
            );
            return Some(Note::new(self.file, past.len(), text).first_at(lists.query(past.first()?.list)));
        }
        let long = looks.iter().filter(|look| look.length > LONG).count();
        let within = looks.iter().filter(|look| look.end <= FRACTION).count();
        let fractions = 20 * within >= 19 * looks.len() && looks.iter().any(|look| look.end > 0.0);
        if fractions && 2 * long > looks.len() && looks.len() >= 3 {
            let text = format!(
                "{} of {} end within the first 1.5 seconds, so the times look like fractions of the video; they were read as \
                 seconds",
                thousands(within),
                counted(looks.len(), "first answer", "first answers")
            );
            return Some(Note::new(self.file, within, text).first_at(lists.query(looks.first()?.list)));
        }
        None
    }

    /// Do scores fall from the first answer to the last?
    fn order(&self, lists: &dyn Lists, known: &[(usize, usize)], sample: &[Sampled<'_>]) -> Option<Note> {
        let sorts = |step: &Step| matches!(step, Step::SortByScore(_));
        if self.plan.stages.iter().all(|stage| stage.steps.iter().any(sorts)) {
            return None;
        }
        let rises = |ranked: &[Answer<'_>]| {
            ranked
                .windows(2)
                .any(|pair| matches!(pair, [Answer { score: Some(a), .. }, Answer { score: Some(b), .. }] if a < b))
        };
        sample.iter().find(|sampled| rises(&sampled.ranked))?;
        let all: Vec<&(usize, usize)> = known.iter().filter(|(list, _)| rises(&lists.ranked(*list))).collect();
        let text = format!(
            "in {} of {} a later answer has a higher score than an earlier one; answers were ranked as the file lists them; \
             the order `score` would rank them by score",
            thousands(all.len()),
            counted(known.len(), "list", "lists")
        );
        Some(Note::new(self.file, all.len(), text).first_at(lists.query(all.first()?.0)))
    }

    /// R@5 of a method that gives one answer is its R@1.
    fn one_answer(&self) -> Option<Note> {
        let deep = self.plan.metrics.iter().find(|name| matches!(depth(&name.metric), Some(depth) if depth > 1))?;
        let mut answered = 0;
        for lists in self.answers.tasks().into_iter().filter_map(|task| self.answers.named(task)) {
            for list in (0..lists.count()).filter(|list| !lists.is_unanswered(*list)) {
                if lists.ranked(list).len() > 1 {
                    return None;
                }
                answered += 1;
            }
        }
        if answered == 0 {
            return None;
        }
        let text = format!(
            "all {} give one answer, so `{deep}` looks at no more than R@1 does",
            counted(answered, "list", "lists")
        );
        Some(Note::new(self.file, answered, text))
    }

    /// Unknown fields that are slips of the pen for known ones.
    fn misspelt(&self) -> Vec<Note> {
        let mut met: BTreeMap<String, (usize, &QueryId)> = BTreeMap::new();
        for lists in self.answers.tasks().into_iter().filter_map(|task| self.answers.named(task)) {
            for (name, UnreadField { lists: count, first }) in lists.unread_fields() {
                met.entry(name).or_insert_with(|| (0, lists.query(first))).0 += count;
            }
        }
        let note = |(field, (count, first)): (String, (usize, &QueryId))| {
            let meant = slip(&field, FIELDS)?;
            let rows = counted(count, "record has", "records have");
            let text = format!("{rows} an unknown field `{field}`, which was ignored; did you mean `{meant}`?");
            Some(Note::new(self.file, count, text).first_at(first))
        };
        met.into_iter().filter_map(note).collect()
    }

    fn searches_many_videos(&self) -> bool {
        let many = |metric: &Metric| {
            matches!(metric, Metric::Vcmr { .. } | Metric::Vr { .. } | Metric::Mvmr { .. } | Metric::Ndcg { .. })
        };
        self.plan.metrics.iter().any(|name| many(&name.metric)) || self.truths.iter().any(|truth| truth.pool.is_some())
    }
}

/// The first answer of a list, and how long there is to look for it.
struct Look {
    list: usize,
    start: f64,
    end: f64,
    length: f64,
}

/// A list whose answers are looked at: its place, and that of its query in the truth.
struct Sampled<'a> {
    list: usize,
    place: usize,
    ranked: Vec<Answer<'a>>,
}

/// At most [`SAMPLE`] lists, spread evenly.
fn sample<'a>(lists: &'a dyn Lists, known: &[(usize, usize)]) -> Vec<Sampled<'a>> {
    let step = known.len().div_ceil(SAMPLE).max(1);
    let sampled = |&(list, place): &(usize, usize)| Sampled { list, place, ranked: lists.ranked(list) };
    known.par_iter().step_by(step).with_min_len(64).map(sampled).collect()
}

fn videos_of(truth: &Truth) -> impl Iterator<Item = &VideoId> {
    let own = truth.video.iter().map(|video| &video.id);
    own.chain(truth.moments.iter().map(|graded| &graded.moment.video)).chain(truth.pool.iter().flatten())
}

/// Seconds of the query's video; where nobody knows, until the end of its last moment.
fn length(truth: &Truth) -> Option<f64> {
    let last = || truth.moments.iter().map(|graded| graded.moment.span.end()).reduce(f64::max);
    truth.duration().or_else(last).filter(|seconds| *seconds > 0.0)
}

/// How many answers a metric looks at; `None` for all of them or none.
fn depth(metric: &Metric) -> Option<usize> {
    match metric {
        Metric::Recall { n, .. }
        | Metric::DiscountedRecall { n, .. }
        | Metric::Vcmr { n, .. }
        | Metric::Svmr { n, .. }
        | Metric::Vr { n }
        | Metric::Mvmr { n, .. } => Some(*n),
        _ => None,
    }
}

#[cfg(test)]
#[path = "belonging_tests.rs"]
mod tests;
