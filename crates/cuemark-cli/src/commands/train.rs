//! `cuemark train`: a run file in, a run folder out.

use cuemark::{Train, TrainedRun};
use cuemark_core::text::{percent, thousands};

use crate::output::{Outcome, Print, say};
use crate::progress::watched;

/// Train a model.
///
/// Settings come from the run file, then from variables such as `CUEMARK_TRAIN_EPOCHS`, then from `--set`. Ctrl-C saves
/// everything; `--resume` goes on as if nothing had happened.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    train: Train,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let request = args.train.clone().with_environment();
    let trained = watched("training", |progress| request.run(progress))?;
    if trained.stopped {
        say(&format!("stopped after step {}; `cuemark train {} --resume` goes on", trained.steps, request.run_file));
    }
    args.print.result(&trained, || as_text(&trained))
}

fn as_text(trained: &TrainedRun) -> String {
    let best = trained.best.map_or_else(
        || "no evaluation yet".to_owned(),
        |best| format!("best on {}: {} at step {}", trained.val, percent(best), thousands(trained.best_step)),
    );
    format!(
        "{} steps in {:.0} s, {} % of the time waiting for data\n{best}\n{}",
        thousands(trained.steps),
        trained.seconds,
        percent(trained.waiting),
        trained.folder
    )
}
