//! Run folders: what they hold already, and what a trained model has to answer first.

use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_bench::report::{About, Answerer, Evaluated, Measure, QueryText, Runs, is_evaluated, read_runs};
use cuemark_core::{Predictions, Progress, Split};
use cuemark_features::FeatureVariant;
use cuemark_formats::world_folder::WORLD;
use cuemark_formats::{Overwrite, PredictionOptions, Source, read_predictions};
use cuemark_text::variants::apply;
use cuemark_train::{Among, PredictOptions, RunFile, RunFolder, Trained};

use super::Args;

/// What is asked of a model beside the plain questions.
const PROBES: [(QueryText, FeatureVariant); 3] = [
    (QueryText::MaskVerb, FeatureVariant::Seen),
    (QueryText::WrongQuery, FeatureVariant::Seen),
    (QueryText::Original, FeatureVariant::Zeroed),
];

/// Adds every run folder's evaluations, making those that are asked for and not there.
pub(super) fn add(args: &Args, runs: &mut Runs, progress: &Progress) -> anyhow::Result<()> {
    if args.runs.is_empty() {
        return Ok(());
    }
    let mut own: Vec<(Utf8PathBuf, RunFile)> = Vec::new();
    for folder in &args.runs {
        if folder.join("run.toml").is_file() {
            let run = RunFolder::new(folder).read_run()?;
            prepare(args, folder, &run, progress)?;
            own.push((folder.clone(), run));
        }
    }
    let read = read_runs(&args.runs)?;
    runs.evaluated.extend(read.evaluated);
    runs.truths.extend(read.truths);
    runs.logs.extend(read.logs);
    baselines(&own, runs, progress)
}

/// Makes what is missing in one folder of `cuemark train`.
fn prepare(args: &Args, folder: &Utf8Path, run: &RunFile, progress: &Progress) -> anyhow::Result<()> {
    let saved = RunFolder::new(folder).predictions();
    if args.split.is_empty() && !args.probe && !is_evaluated(folder) && saved.is_file() {
        // The answers to the validation split are there; only their scores are not.
        let split = run.data.split(&run.data.val)?;
        let (_, predictions) = read_predictions(&Source::new(&saved), &PredictionOptions::default())?;
        let about = about(run, &split.name, QueryText::Original, FeatureVariant::Seen);
        let measure = Measure::default();
        return store(folder, &split, &predictions, about, &measure, progress);
    }
    let splits = if args.split.is_empty() && args.probe { vec![run.data.val.clone()] } else { args.split.clone() };
    let mut wanted: Vec<About> = Vec::new();
    for split in &splits {
        let probes = PROBES.iter().filter(|_| args.probe).copied();
        let asked = std::iter::once((QueryText::Original, FeatureVariant::Seen)).chain(probes);
        wanted.extend(asked.map(|(text, footage)| about(run, split, text, footage)));
    }
    wanted.retain(|about| !folder.join("evaluations").join(about.file_name()).is_file());
    if wanted.is_empty() {
        return Ok(());
    }
    let device = cuemark_tensor::device(&args.device)?;
    let trained = Trained::open(&RunFolder::new(folder), &device)?;
    for about in wanted {
        answer(args, folder, &trained, about, progress)?;
    }
    Ok(())
}

fn about(run: &RunFile, split: &str, text: QueryText, footage: FeatureVariant) -> About {
    let dataset = run.data.dataset.clone().unwrap_or_default();
    About {
        model: run.model.clone(),
        kind: Answerer::Model,
        protocol: protocol_of(&dataset).to_owned(),
        dataset,
        split: split.to_owned(),
        text,
        footage,
        features: run.data.features().file_name().unwrap_or_default().to_owned(),
        seed: Some(run.train.seed),
        ..About::default()
    }
}

/// How a dataset's own splits were made.
fn protocol_of(dataset: &str) -> &'static str {
    match dataset {
        WORLD => WORLD,
        name if name.ends_with("-cd") => "cd",
        _ => "standard",
    }
}

/// Lets the model answer, scores it, keeps the scores in the run folder.
fn answer(args: &Args, folder: &Utf8Path, trained: &Trained, about: About, progress: &Progress) -> anyhow::Result<()> {
    let mut split = trained.run.data.split(&about.split)?;
    if let Some(variant) = about.text.variant() {
        split.queries = apply(&variant, &split.queries, 0)?.0;
    }
    let options = PredictOptions {
        answers: trained.run.eval.answers,
        batch: trained.run.eval.batch,
        among: Among::Own,
        window: None,
        variant: about.footage,
    };
    progress.phase(format!("{} {}", trained.run.model, about.file_name()), 0);
    let start = Instant::now();
    let predicted = trained.predict(&split, &options, progress)?;
    let about = About {
        parameters: Some(trained.parameters() as u64),
        ms_per_query: Some(start.elapsed().as_secs_f64() * 1e3 / split.queries.len().max(1) as f64),
        device: Some(args.device.clone()),
        ..about
    };
    let measure = Measure { out_of_reach: Some(predicted.out_of_reach), ..Measure::default() };
    store(folder, &split, &predicted.predictions, about, &measure, progress)
}

fn store(
    folder: &Utf8Path,
    split: &Split,
    predictions: &Predictions,
    about: About,
    measure: &Measure,
    progress: &Progress,
) -> anyhow::Result<()> {
    let evaluated: Evaluated = measure.run(about, &split.queries, predictions, progress)?;
    evaluated.store(folder, &split.queries, Overwrite::Force)?;
    Ok(())
}

/// Adds blind baselines where no run brought any and the training split of one is at hand.
fn baselines(own: &[(Utf8PathBuf, RunFile)], runs: &mut Runs, progress: &Progress) -> anyhow::Result<()> {
    let plain: Vec<About> =
        runs.evaluated.iter().map(|run| &run.about).filter(|about| about.is_plain()).cloned().collect();
    let mut done: Vec<(String, String, String)> = Vec::new();
    for about in plain.iter().filter(|about| about.kind == Answerer::Model && about.among == Among::Own) {
        let place = (about.dataset.clone(), about.protocol.clone(), about.split.clone());
        let known = plain.iter().any(|other| {
            other.kind == Answerer::Baseline
                && (&other.dataset, &other.protocol, &other.split) == (&place.0, &place.1, &place.2)
        });
        if known || done.contains(&place) {
            continue;
        }
        let same = |(_, run): &&(Utf8PathBuf, RunFile)| run.data.dataset.clone().unwrap_or_default() == about.dataset;
        let Some((_, run)) = own.iter().find(same) else { continue };
        // Data that has moved since costs the baselines, not the report.
        let Some((train, split)) = run.data.split(&run.data.train).ok().zip(run.data.split(&about.split).ok()) else {
            crate::output::say(&format!("note: no baselines on {}: the run's data is not where it was", about.split));
            continue;
        };
        cuemark::add_baselines(about, &split.queries, &train.queries, &Measure::default(), runs, progress)?;
        done.push(place);
    }
    Ok(())
}
