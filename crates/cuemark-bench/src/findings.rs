//! The field's findings, looked for in committed runs, whatever comes out.
//!
//! Each finding is a question that papers answered on real data. The answer here is a table of what was measured; nothing
//! is asserted, and a question without runs says so.

use cuemark_features::FeatureVariant;
use cuemark_train::Among;
use indexmap::IndexMap;

use crate::leaderboard::{Measure, RunResult, RunsFile, TestResult};
use crate::report::{Answerer, QueryText};

/// One question and who answers it.
struct Finding {
    question: &'static str,
    answer: fn(&[&RunResult]) -> Option<String>,
}

/// In the order of the document.
const FINDINGS: &[Finding] = &[
    Finding { question: "What does a world of the size of real datasets change?", answer: full_size },
    Finding {
        question: "Do models drop from iid to ood when locations are biased, and not when they are not?",
        answer: gaps,
    },
    Finding {
        question: "Do guesses stand higher among the models under R@1,IoU=0.1 than under dR@1,IoU=0.1?",
        answer: guesses,
    },
    Finding { question: "Do thresholds agree on the order of the methods?", answer: thresholds },
    Finding { question: "Do stronger features help more than a better model?", answer: features },
    Finding { question: "Does masking the verb cost less than keeping only the verb?", answer: verbs },
    Finding { question: "How far do single-video scores fall in pools of fifty?", answer: pools },
    Finding { question: "Do more pseudo-training moments help ranked retrieval?", answer: ranked },
];

/// The document: a section per question, in Markdown.
pub fn findings(files: &[RunsFile]) -> String {
    let mut latest: IndexMap<_, &RunResult> = IndexMap::new();
    for run in files.iter().flat_map(|file| &file.results) {
        latest.insert((&run.dataset, &run.protocol, &run.model, &run.variant, &run.features, run.seed), run);
    }
    let runs: Vec<&RunResult> = latest.into_values().collect();
    let sources: Vec<String> = files.iter().map(|file| format!("{} of {}", file.name, file.date)).collect();
    let mut text = "# What the field found, looked for in the built-in world\n\n\
                    Made by `cargo xtask leaderboard` from `results/runs/runs-*.json`; not edited by hand. R@1 and the like in percent, with 95 % intervals over\n\
                    queries. A difference of two splits has the interval that the two intervals give when added in quadrature. Small worlds and short\n\
                    training: these figures say whether our measurements can show an effect, not how large it is on real video.\n"
        .to_owned();
    if !sources.is_empty() {
        text += &format!("\nRuns: {}.\n", sources.join(", "));
    }
    for finding in FINDINGS {
        let answer = (finding.answer)(&runs).unwrap_or_else(|| "No committed run tells yet.\n".to_owned());
        text += &format!("\n## {}\n\n{answer}", finding.question);
    }
    text
}

fn name(run: &RunResult) -> String {
    let variant = if run.variant.is_empty() { String::new() } else { format!(", {}", run.variant) };
    let seed =
        if run.kind == Answerer::Model && run.seed != 0 { format!(", seed {}", run.seed) } else { String::new() };
    format!("{}{variant}{seed}", run.model)
}

fn table(head: &[&str], rows: &[Vec<String>]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    Some(rows.iter().fold(line(&head) + &rule, |text, row| text + &line(row)))
}

fn percent(measure: Measure) -> String {
    match (measure.low, measure.high) {
        (Some(low), Some(high)) => {
            format!("{:.1} ({:.1} – {:.1})", 100.0 * measure.value, 100.0 * low, 100.0 * high)
        }
        _ => format!("{:.1}", 100.0 * measure.value),
    }
}

/// `after - before`; the interval adds the two half-widths in quadrature, since the queries are others.
fn difference(before: Measure, after: Measure) -> String {
    let change = 100.0 * (after.value - before.value);
    let width = |measure: Measure| Some(50.0 * (measure.high? - measure.low?));
    match (width(before), width(after)) {
        (Some(a), Some(b)) => {
            let half = a.hypot(b);
            format!("{change:+.1} ({:+.1} – {:+.1})", change - half, change + half)
        }
        _ => format!("{change:+.1}"),
    }
}

/// The plain test of a run with changed queries.
fn with_text(run: &RunResult, text: QueryText, metric: &str) -> Option<Measure> {
    let fits = |test: &&TestResult| {
        test.text == text
            && test.footage == FeatureVariant::Seen
            && test.among == Among::Own
            && test.split.starts_with("test")
    };
    run.tests.iter().filter(fits).find_map(|test| test.metrics.get(metric).copied())
}

/// Chance and guesses first, then the methods, best first; the small world's figure beside the large one's.
fn full_size(runs: &[&RunResult]) -> Option<String> {
    let metric = "R@1,IoU=0.5";
    let of = |dataset: &str, named: &str, split: &str| {
        let is_same = |run: &&&RunResult| run.dataset == dataset && run.protocol == "own" && name(run) == named;
        runs.iter().filter(is_same).find_map(|run| run.plain(split, metric))
    };
    let mut full: Vec<&&RunResult> = runs.iter().filter(|run| run.dataset == "world-full").collect();
    let score = |run: &RunResult| run.plain("test-iid", metric).map_or(0.0, |measure| measure.value);
    let place = |run: &RunResult| u8::from(run.kind == Answerer::Model);
    full.sort_by(|a, b| place(a).cmp(&place(b)).then(score(b).total_cmp(&score(a))));
    let rows: Vec<Vec<String>> = full
        .iter()
        .map(|run| {
            let named = name(run);
            let small = of("world", &named, "test-iid").map(percent).unwrap_or_default();
            let seconds = run.train_seconds.map_or_else(String::new, |seconds| format!("{seconds:.0}"));
            let [iid, ood] = ["test-iid", "test-ood"].map(|split| of("world-full", &named, split));
            let gap = iid.zip(ood).map(|(iid, ood)| difference(iid, ood)).unwrap_or_default();
            vec![named, seconds, small, iid.map(percent).unwrap_or_default(), ood.map(percent).unwrap_or_default(), gap]
        })
        .collect();
    let table = table(&["R@1,IoU=0.5", "seconds", "small, iid", "full, iid", "full, ood", "ood − iid"], &rows)?;
    Some(format!(
        "Ten times the films: 42,000 queries to learn from. Every run has a cap in minutes, and methods with slow steps made few of them:\n\
         `results/notes/full-2026-11-17.md` has the steps, and what the rows decide and do not.\n\n{table}"
    ))
}

fn gaps(runs: &[&RunResult]) -> Option<String> {
    let metric = "R@1,IoU=0.5";
    let datasets: Vec<&str> = ["world-bias0", "world", "world-bias1"]
        .into_iter()
        .filter(|label| runs.iter().any(|run| run.dataset == **label && run.protocol == "own"))
        .collect();
    let gap = |dataset: &str, named: &str| {
        let run = runs.iter().find(|run| run.dataset == dataset && run.protocol == "own" && name(run) == named)?;
        Some(difference(run.plain("test-iid", metric)?, run.plain("test-ood", metric)?))
    };
    let mut names: Vec<String> = runs.iter().map(|run| name(run)).collect();
    names.dedup();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let rows: Vec<Vec<String>> = names
        .iter()
        .filter(|name| datasets.iter().any(|dataset| gap(dataset, name).is_some()))
        .map(|name| {
            let cells = datasets.iter().map(|dataset| gap(dataset, name).unwrap_or_default());
            std::iter::once(name.clone()).chain(cells).collect()
        })
        .collect();
    let heads: Vec<String> = datasets
        .iter()
        .map(|label| format!("{}: ood − iid", label.replace("world-bias", "bias ").replace("world", "bias 0.8")))
        .collect();
    let heads: Vec<&str> = std::iter::once("R@1,IoU=0.5").chain(heads.iter().map(String::as_str)).collect();
    table(&heads, &rows)
}

/// Runs with both figures on one split, best first by the first.
fn ranked_by<'a>(runs: &[&'a RunResult], split: &str, metric: &str) -> Vec<&'a RunResult> {
    let on_world = |run: &&&RunResult| run.dataset == "world" && run.protocol == "own" && run.kind != Answerer::Oracle;
    let mut found: Vec<(f64, &RunResult)> =
        runs.iter().filter(on_world).filter_map(|run| Some((run.plain(split, metric)?.value, *run))).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, run)| run).collect()
}

fn guesses(runs: &[&RunResult]) -> Option<String> {
    let (plain, discounted) = (ranked_by(runs, "test-iid", "R@1,IoU=0.1"), ranked_by(runs, "test-iid", "dR@1,IoU=0.1"));
    let place = |list: &[&RunResult], run: &RunResult| {
        list.iter().position(|other| name(other) == name(run)).map(|place| place + 1)
    };
    let of = |run: &RunResult, metric: &str| run.plain("test-iid", metric).map(percent).unwrap_or_default();
    let rows: Vec<Vec<String>> = plain
        .iter()
        .filter(|run| run.kind == Answerer::Baseline)
        .filter_map(|run| {
            let places = (place(&plain, run)?, place(&discounted, run)?);
            let cell = |metric: &str, place: usize, all: usize| format!("{}, place {place} of {all}", of(run, metric));
            Some(vec![
                name(run),
                cell("R@1,IoU=0.1", places.0, plain.len()),
                cell("dR@1,IoU=0.1", places.1, discounted.len()),
            ])
        })
        .collect();
    table(&["guess", "R@1,IoU=0.1", "dR@1,IoU=0.1"], &rows)
}

/// Kendall's tau-a of two rankings of the same methods: 1 when all pairs agree, -1 when none does.
fn kendall(a: &[f64], b: &[f64]) -> Option<f64> {
    let pairs = a.len().checked_mul(a.len().checked_sub(1)?)? / 2;
    if pairs == 0 || a.len() != b.len() {
        return None;
    }
    let mut sum = 0.0;
    for i in 0..a.len() {
        for j in 0..i {
            // `signum` of 0 is 1: ties count for nobody.
            let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
            sum += sign(a[i] - a[j]) * sign(b[i] - b[j]);
        }
    }
    Some(sum / pairs as f64)
}

fn thresholds(runs: &[&RunResult]) -> Option<String> {
    let metrics = ["R@1,IoU=0.1", "R@1,IoU=0.3", "R@1,IoU=0.5", "R@1,IoU=0.7", "mIoU"];
    let models: Vec<&&RunResult> = runs
        .iter()
        .filter(|run| run.dataset == "world" && run.protocol == "own" && run.kind == Answerer::Model)
        .collect();
    let scores: Vec<[f64; 5]> = models
        .iter()
        .filter_map(|run| {
            let values: Vec<f64> =
                metrics.iter().filter_map(|metric| Some(run.plain("test-iid", metric)?.value)).collect();
            values.try_into().ok()
        })
        .collect();
    if scores.len() < 3 {
        return None;
    }
    let column = |position: usize| scores.iter().map(|row| row[position]).collect::<Vec<f64>>();
    let rows: Vec<Vec<String>> = metrics
        .iter()
        .enumerate()
        .map(|(i, metric)| {
            let cells = (0..metrics.len()).map(|j| match kendall(&column(i), &column(j)) {
                Some(tau) if i != j => format!("{tau:.2}"),
                _ => String::new(),
            });
            std::iter::once((*metric).to_owned()).chain(cells).collect()
        })
        .collect();
    let heads: Vec<&str> = std::iter::once("Kendall's tau").chain(metrics).collect();
    Some(format!("Over {} runs on test-iid of the world.\n\n{}", scores.len(), table(&heads, &rows)?))
}

fn features(runs: &[&RunResult]) -> Option<String> {
    let metric = "R@1,IoU=0.5";
    let stores = ["weak", "shape", "motion"];
    let on = |model: &str, store: &str| {
        let fits = |run: &&&RunResult| {
            run.dataset == "world" && run.protocol == "own" && name(run) == model && run.features == store
        };
        runs.iter().find(fits)?.plain("test-iid", metric)
    };
    let mut names: Vec<String> =
        runs.iter().filter(|run| run.features == "weak" && run.kind == Answerer::Model).map(|run| name(run)).collect();
    names.dedup();
    let with_all: Vec<(&String, [Measure; 3])> = names
        .iter()
        .filter_map(|model| Some((model, [on(model, stores[0])?, on(model, stores[1])?, on(model, stores[2])?])))
        .collect();
    let rows: Vec<Vec<String>> = with_all
        .iter()
        .map(|(model, [weak, shape, motion])| {
            vec![
                (*model).clone(),
                percent(*weak),
                percent(*shape),
                percent(*motion),
                format!("{:+.1}", 100.0 * (motion.value - weak.value)),
            ]
        })
        .collect();
    let best = |position: usize| with_all.iter().map(|(_, measures)| measures[position].value).fold(f64::MIN, f64::max);
    let worst =
        |position: usize| with_all.iter().map(|(_, measures)| measures[position].value).fold(f64::MAX, f64::min);
    let text = table(&["R@1,IoU=0.5, test-iid", "weak", "shape", "motion", "motion − weak"], &rows)?;
    Some(format!(
        "{text}\nBetween the best and the worst model on motion features lie {:.1} points.\n",
        100.0 * (best(2) - worst(2))
    ))
}

fn verbs(runs: &[&RunResult]) -> Option<String> {
    let metric = "R@1,IoU=0.5";
    let rows: Vec<Vec<String>> = runs
        .iter()
        .filter(|run| run.kind == Answerer::Model && run.dataset == "world")
        .filter_map(|run| {
            let of = |text| with_text(run, text, metric);
            let (original, masked, only) =
                (of(QueryText::Original)?, of(QueryText::MaskVerb)?, of(QueryText::OnlyVerb)?);
            let change =
                |measure: Measure| format!("{} ({:+.1})", percent(measure), 100.0 * (measure.value - original.value));
            let (model, features) = (name(run), run.features.clone());
            Some(vec![model, features, percent(original), change(masked), change(only)])
        })
        .collect();
    table(&["R@1,IoU=0.5, test-iid", "features", "original", "verb masked", "verb only"], &rows)
}

fn pools(runs: &[&RunResult]) -> Option<String> {
    let in_pool = |run: &RunResult| {
        let test = run.tests.iter().find(|test| test.among == Among::Pool && test.split == "pools")?;
        test.metrics.get("MVMR:R@1,IoU=0.5").copied()
    };
    let rows: Vec<Vec<String>> = runs
        .iter()
        .filter_map(|run| {
            let single = run.plain("test-iid", "R@1,IoU=0.5").map(percent).unwrap_or_default();
            Some(vec![name(run), single, percent(in_pool(run)?)])
        })
        .collect();
    table(&["R@1,IoU=0.5", "its own video", "among fifty"], &rows)
}

fn ranked(runs: &[&RunResult]) -> Option<String> {
    let metric = "NDCG@20,IoU=0.5";
    let rows: Vec<Vec<String>> = runs
        .iter()
        .filter(|run| run.kind == Answerer::Model)
        .filter_map(|run| {
            let graded = run.tests.iter().find_map(|test| test.metrics.get(metric).copied())?;
            let recall = run.tests.iter().find_map(|test| test.metrics.get("VCMR:R@10,IoU=0.5").copied());
            Some(vec![name(run), percent(graded), recall.map(percent).unwrap_or_default()])
        })
        .collect();
    table(&["", metric, "VCMR:R@10,IoU=0.5"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_counts_agreeing_pairs() {
        // By hand: of three pairs two agree and one does not.
        assert_eq!(kendall(&[3.0, 2.0, 1.0], &[3.0, 1.0, 2.0]), Some((2.0 - 1.0) / 3.0));
        assert_eq!(kendall(&[1.0, 2.0], &[2.0, 1.0]), Some(-1.0));
        assert_eq!(kendall(&[1.0, 1.0], &[2.0, 1.0]), Some(0.0), "a tie agrees with nobody");
        assert_eq!(kendall(&[1.0], &[1.0]), None);
    }

    #[test]
    fn differences_add_half_widths_in_quadrature() {
        let at = |value: f64, half: f64| Measure { value, low: Some(value - half), high: Some(value + half) };
        // 3-4-5.
        assert_eq!(difference(at(0.5, 0.03), at(0.4, 0.04)), "-10.0 (-15.0 – -5.0)");
    }

    #[test]
    fn a_question_without_runs_says_so() {
        let text = findings(&[]);
        assert_eq!(text.matches("No committed run tells yet.").count(), FINDINGS.len());
    }
}
