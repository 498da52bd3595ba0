//! `cuemark train`: a run file in, a run folder out.

use camino::Utf8PathBuf;
use cuemark_core::text::{percent, thousands};
use cuemark_train::{Override, RunFile, RunFolder, Start, TrainOptions, train};
use serde_json::json;

use crate::input::Force;
use crate::output::{Outcome, Print, say};
use crate::progress::watched;

/// Train a model.
///
/// Settings come from the run file, then from variables such as `CUEMARK_TRAIN_EPOCHS`, then from `--set`. Ctrl-C saves
/// everything; `--resume` goes on as if nothing had happened.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run file.
    run: Utf8PathBuf,
    /// What to compute on: cpu, cuda, cuda:N.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// The run's folder. Default: out/MODEL-FILE-seedN
    #[arg(long, value_name = "DIR")]
    out: Option<Utf8PathBuf>,
    /// Set a key of the run file, such as `train.epochs=5`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Go on with the run in the folder.
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

/// Sections of a run file that variables of the environment may set.
const SECTIONS: [&str; 4] = ["model", "data", "train", "eval"];

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut overrides = from_environment();
    overrides.extend(args.set.iter().map(|set| from_flag(set)).collect::<anyhow::Result<Vec<_>>>()?);
    let run = RunFile::read(&args.run, &overrides)?;
    let folder = RunFolder::new(args.out.clone().unwrap_or_else(|| {
        let stem = args.run.file_stem().unwrap_or("run");
        format!("out/{}-{stem}-seed{}", run.model, run.train.seed).into()
    }));
    let start = if args.resume { Start::Resume } else { Start::Fresh(args.force.overwrite()) };
    let options = TrainOptions { device: cuemark_tensor::device(&args.device)?, folder: folder.clone(), start };
    let outcome = watched("training", |progress| train(&run, &options, progress))?;
    if outcome.stopped {
        say(&format!("stopped after step {}; `cuemark train {} --resume` goes on", outcome.steps, args.run));
    }
    let value = json!({
        "model": run.model,
        "folder": folder.path(),
        "seed": run.train.seed,
        "steps": outcome.steps,
        "best": outcome.best,
        "best_step": outcome.best_step,
        "val": run.data.val,
        "stopped": outcome.stopped,
        "seconds": outcome.seconds,
        "waiting": outcome.waiting,
    });
    args.print.result(&value, || {
        let best = outcome.best.map_or_else(
            || "no evaluation yet".to_owned(),
            |best| format!("best on {}: {} at step {}", run.data.val, percent(best), thousands(outcome.best_step)),
        );
        let waiting = percent(outcome.waiting);
        format!(
            "{} in {:.0} s, {waiting} % of the time waiting for data\n{best}\n{}",
            steps(outcome.steps),
            outcome.seconds,
            folder.path()
        )
    })
}

fn steps(count: usize) -> String {
    format!("{} steps", thousands(count))
}

/// `CUEMARK_TRAIN_CLIP_NORM=5` is `train.clip_norm = 5`.
fn from_environment() -> Vec<Override> {
    let of = |(name, value): (String, String)| {
        let rest = name.strip_prefix("CUEMARK_")?.to_lowercase();
        let section = SECTIONS.iter().find(|section| rest.starts_with(&format!("{section}_")))?;
        let key = format!("{section}.{}", &rest[section.len() + 1..]);
        Some(Override { key, value, origin: name })
    };
    // A variable that is no text cannot be one of ours.
    let text =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut found: Vec<Override> = text.filter_map(of).collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

fn from_flag(set: &str) -> anyhow::Result<Override> {
    let (key, value) = set.split_once('=').ok_or_else(|| anyhow::anyhow!("`--set {set}`: expected KEY=VALUE"))?;
    Ok(Override { key: key.trim().to_owned(), value: value.trim().to_owned(), origin: format!("--set {set}") })
}
