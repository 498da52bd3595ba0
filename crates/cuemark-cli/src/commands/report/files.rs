//! Prediction files that somebody brings, scored here and now.

use camino::Utf8PathBuf;
use cuemark_bench::report::{About, Answerer, Measure, QueryText, Runs, score_baselines};
use cuemark_core::{Progress, Truth};
use cuemark_formats::Source;

use super::Args;
use crate::input::{GivenTruth, note_faults};

/// Scores every file of `--pred`, what was brought beside the first, and the baselines.
pub(super) fn add(args: &Args, runs: &mut Runs, progress: &Progress) -> anyhow::Result<()> {
    let files = &args.files;
    let Some(given) = args.truth.given().filter(|_| !files.pred.is_empty()) else { return Ok(()) };
    let split = given.read()?;
    note_faults(given.path(), &split.rows);
    let stem = given.path().file_stem().unwrap_or("test").trim_end_matches(".jsonl").to_owned();
    let ood = files.ood_truth.is_some();
    let split_name = args.split.first().cloned().unwrap_or_else(|| if ood { "test-iid".to_owned() } else { stem });
    let about = About {
        kind: Answerer::File,
        dataset: args.dataset.clone().unwrap_or_default(),
        protocol: files.protocol.clone().unwrap_or_default(),
        split: split_name,
        ..About::default()
    };
    let named = |n: usize, path: &Utf8PathBuf| {
        files.model.get(n).cloned().unwrap_or_else(|| path.file_stem().unwrap_or("predictions").to_owned())
    };
    for (n, path) in files.pred.iter().enumerate() {
        let about = About { model: named(n, path), ..about.clone() };
        score(args, path, about, &split.queries, runs, progress)?;
    }
    let Some(first) = files.pred.first().map(|path| named(0, path)) else { return Ok(()) };
    for (path, text) in [(&files.masked_pred, QueryText::MaskVerb), (&files.wrong_pred, QueryText::WrongQuery)] {
        if let Some(path) = path {
            score(args, path, About { model: first.clone(), text, ..about.clone() }, &split.queries, runs, progress)?;
        }
    }
    let train = train(args, given)?;
    add_baselines(&about, &split.queries, &train, runs, progress)?;
    if let Some((pred, truth)) = files.ood_pred.as_ref().zip(files.ood_truth.as_ref()) {
        let other = given.read_another(&Source::new(truth))?;
        note_faults(truth, &other.rows);
        let about = About { model: first, split: "test-ood".to_owned(), ..about };
        score(args, pred, about.clone(), &other.queries, runs, progress)?;
        add_baselines(&about, &other.queries, &train, runs, progress)?;
    }
    Ok(())
}

fn train(args: &Args, given: GivenTruth<'_>) -> anyhow::Result<Vec<Truth>> {
    let Some(path) = &args.files.train else { return Ok(Vec::new()) };
    let train = given.read_another(&Source::new(path))?;
    note_faults(path, &train.rows);
    Ok(train.queries)
}

fn score(
    args: &Args,
    path: &Utf8PathBuf,
    about: About,
    truths: &[Truth],
    runs: &mut Runs,
    progress: &Progress,
) -> anyhow::Result<()> {
    let predictions = args.predictions.read(&Source::new(path))?.answering(truths);
    note_faults(path, &predictions.rows);
    runs.add(Measure::default().run(about, truths, &predictions, progress)?, truths);
    Ok(())
}

/// Baselines need each query's own video and its duration; where those are not known the report does without.
pub(super) fn add_baselines(
    about: &About,
    truths: &[Truth],
    train: &[Truth],
    runs: &mut Runs,
    progress: &Progress,
) -> anyhow::Result<()> {
    let timed = |truth: &Truth| truth.duration().is_some_and(|duration| duration > 0.0 && duration.is_finite());
    if !truths.iter().chain(train).all(timed) || truths.iter().any(|truth| truth.pool.is_some()) {
        return Ok(());
    }
    for baseline in score_baselines(about, truths, train, &Measure::default(), 0, progress)? {
        runs.add(baseline, truths);
    }
    Ok(())
}
