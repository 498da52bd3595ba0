//! Whether a dataset's folder holds what was published.

use cuemark_core::{RowCounts, Split, whole_message};
use cuemark_formats::Source;
use serde::Serialize;

use crate::stats::SplitStats;
use crate::{Dataset, Expected, SideCard};

/// How far a mean may be from the published one, which is rounded to two decimals.
const TOLERANCE: f64 = 0.02;

/// What a folder holds beside what was published about it.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReport {
    /// The dataset's name.
    pub dataset: String,
    /// The folder.
    pub root: String,
    /// One entry per published split.
    pub splits: Vec<SplitCheck>,
    /// One entry per group of files beside the splits.
    pub sides: Vec<SideCheck>,
    /// All splits together; `None` when one is absent or nothing was published about them together.
    pub overall: Option<SplitCheck>,
}

impl CheckReport {
    /// Whether nothing is wrong; absent files are not.
    pub fn is_ok(&self) -> bool {
        let splits = self.splits.iter().chain(&self.overall).map(|split| split.verdict);
        splits.chain(self.sides.iter().map(|side| side.verdict)).all(|verdict| verdict != CheckVerdict::Wrong)
    }
}

/// What came of comparing a file with what was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckVerdict {
    /// Every published figure is met.
    Ok,
    /// A figure is not met, or the file cannot be read.
    Wrong,
    /// The file is not there.
    Absent,
    /// The file is there, but nothing was published to compare it with.
    Unpublished,
}

/// One split beside what was published about it.
#[derive(Debug, Clone, Serialize)]
pub struct SplitCheck {
    /// The split's name.
    pub split: String,
    /// Its file below the folder; where it is absent, the name it should have.
    pub file: String,
    /// What came of it.
    pub verdict: CheckVerdict,
    /// Published figures and ours.
    pub figures: Vec<Figure>,
    /// What is wrong with its rows, fault by fault.
    pub faults: Vec<FaultCount>,
    /// Rows that were left out.
    pub dropped: usize,
    /// Rows whose times were changed.
    pub changed: usize,
}

/// One published figure and ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// What is counted or averaged.
    pub name: String,
    /// As published.
    pub published: f64,
    /// As found; `None` when it cannot be told, for want of durations, say.
    pub found: Option<f64>,
    /// What came of comparing the two.
    pub verdict: CheckVerdict,
}

/// How many rows had one fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultCount {
    /// The fault, in words.
    pub fault: String,
    /// Rows that have it.
    pub rows: usize,
}

/// Files beside the splits, beside what was published about them.
#[derive(Debug, Clone, Serialize)]
pub struct SideCheck {
    /// The files, below the folder.
    pub files: Vec<String>,
    /// What they hold.
    pub about: String,
    /// What came of it.
    pub verdict: CheckVerdict,
    /// Published figures and ours.
    pub figures: Vec<Figure>,
    /// Why the files cannot be read, when they cannot.
    pub problem: Option<String>,
}

/// Compares `dataset` with its published figures. Load it under `RowPolicy::Keep`: they are of the rows as published.
pub fn check(dataset: &Dataset) -> CheckReport {
    let card = dataset.card;
    let splits = card.files.iter().map(|file| match dataset.splits.iter().find(|split| split.name == file.split) {
        Some(split) => split_check(&split.name, &split.file, &[split], &file.expected),
        None => SplitCheck {
            split: file.split.to_owned(),
            file: file.path.to_owned(),
            verdict: CheckVerdict::Absent,
            figures: Vec::new(),
            faults: Vec::new(),
            dropped: 0,
            changed: 0,
        },
    });
    let overall = (dataset.absent.is_empty() && !card.overall.is_nothing())
        .then(|| split_check("all", "", &dataset.distinct(), &card.overall));
    CheckReport {
        dataset: card.name.to_owned(),
        root: dataset.root.to_string(),
        splits: splits.collect(),
        sides: card.sides.iter().map(|side| side_check(dataset, side)).collect(),
        overall,
    }
}

fn split_check(name: &str, file: &str, splits: &[&Split], expected: &Expected) -> SplitCheck {
    let found = SplitStats::of(name, splits, &|_| Vec::new());
    let mut rows = RowCounts::default();
    splits.iter().for_each(|split| rows.add(&split.rows));
    let exact = |name, published: Option<usize>, found: usize| {
        published.map(|published| figure(name, published as f64, Some(found as f64), 0.0))
    };
    let mean = |name, published: Option<f64>, found: Option<crate::stats::Range>| {
        published.map(|published| figure(name, published, found.map(|range| range.mean), TOLERANCE))
    };
    let figures: Vec<Figure> = [
        exact("videos", expected.videos, found.videos),
        exact("queries", expected.queries, found.queries),
        exact("pairs", expected.pairs, found.pairs),
        mean("mean video (s)", expected.video_seconds, found.video_seconds),
        mean("mean moment (s)", expected.moment_seconds, found.moment_seconds),
        mean("mean query (words)", expected.words, found.query_words),
    ]
    .into_iter()
    .flatten()
    .collect();
    SplitCheck {
        split: name.to_owned(),
        file: file.to_owned(),
        verdict: verdict(&figures),
        figures,
        faults: rows.iter().map(|(fault, rows)| FaultCount { fault: fault.to_string(), rows }).collect(),
        dropped: rows.dropped,
        changed: rows.changed,
    }
}

fn side_check(dataset: &Dataset, side: &SideCard) -> SideCheck {
    let files = side.paths.iter().map(|path| (*path).to_owned()).collect();
    let mut check = SideCheck {
        files,
        about: side.about.to_owned(),
        verdict: CheckVerdict::Absent,
        figures: Vec::new(),
        problem: None,
    };
    let sources: Option<Vec<Source>> = side.paths.iter().map(|path| Source::find(&dataset.root, path)).collect();
    let Some(sources) = sources else { return check };
    match (side.count)(&sources) {
        Ok(counts) => {
            let found = |name: &str| counts.iter().find(|(counted, _)| counted == name).map(|(_, n)| *n as f64);
            let compare = |&(name, n): &(&str, usize)| figure(name, n as f64, Some(found(name).unwrap_or(0.0)), 0.0);
            check.figures = side.expected.iter().map(compare).collect();
            check.verdict = verdict(&check.figures);
        }
        Err(error) => {
            check.verdict = CheckVerdict::Wrong;
            check.problem = Some(whole_message(&error));
        }
    }
    check
}

fn figure(name: &str, published: f64, found: Option<f64>, tolerance: f64) -> Figure {
    let verdict = match found {
        None => CheckVerdict::Absent,
        Some(found) if (found - published).abs() <= tolerance => CheckVerdict::Ok,
        Some(_) => CheckVerdict::Wrong,
    };
    Figure { name: name.to_owned(), published, found, verdict }
}

fn verdict(figures: &[Figure]) -> CheckVerdict {
    if figures.is_empty() {
        CheckVerdict::Unpublished
    } else if figures.iter().any(|figure| figure.verdict == CheckVerdict::Wrong) {
        CheckVerdict::Wrong
    } else {
        CheckVerdict::Ok
    }
}
