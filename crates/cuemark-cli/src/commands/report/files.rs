//! Prediction files that somebody brings, scored here and now.

use cuemark::{Elsewhere, ReportFiles};
use cuemark_bench::report::Runs;
use cuemark_core::Progress;

use super::Args;
use crate::output;

/// Scores every file of `--pred`, what was brought beside the first, and the baselines.
pub(super) fn add(args: &Args, runs: &mut Runs, progress: &Progress) -> anyhow::Result<()> {
    let files = &args.files;
    let Some(truth) = args.truth.given().filter(|_| !files.pred.is_empty()) else { return Ok(()) };
    let request = ReportFiles {
        reading: args.predictions.clone(),
        models: files.model.clone(),
        scoring: args.scoring.clone(),
        train: files.train.clone(),
        dataset: args.dataset.clone(),
        protocol: files.protocol.clone(),
        split: args.split.first().cloned(),
        elsewhere: files
            .ood_pred
            .clone()
            .zip(files.ood_truth.clone())
            .map(|(predictions, truth)| Elsewhere { predictions, truth }),
        masked: files.masked_pred.clone(),
        wrong: files.wrong_pred.clone(),
        hidden: files.hidden_pred.clone(),
        ..ReportFiles::new(truth.file(), files.pred.clone())
    };
    output::say_notes(request.add_to(runs, progress)?);
    Ok(())
}
