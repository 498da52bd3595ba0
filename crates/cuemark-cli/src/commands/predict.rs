//! `cuemark predict`: answers of a trained model or of a baseline, as an ordinary prediction file.

use cuemark::{Predict, WrittenPredictions};

use crate::output::{Outcome, Print, thousands};
use crate::progress::watched;

/// Answer queries with a trained model, or without looking at a video.
///
/// A trained model answers a split of the data it was trained on (`--split test-iid`) or any truth file (`--truth`), whose
/// videos must have features in the run's store or in `--features`.
///
/// Baselines: predict-all, bias-draw, bias-density, bias-mode, bias-verb. All but the first learn where moments lie from
/// the training file.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    predict: Predict,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let written = watched("answering", |progress| args.predict.run(progress))?;
    args.print.result(&written, || as_text(&written))
}

fn as_text(written: &WrittenPredictions) -> String {
    match written {
        WrittenPredictions::Model { model, queries, out_of_reach: reach, cut, out, .. } => {
            let mut text = format!("wrote answers of {model} to {} queries to {out}", thousands(*queries));
            if reach.past_the_end + reach.too_short + reach.too_long > 0 {
                text += &format!(
                    "\nout of reach: {} of {} moments begin past the features, {} are shorter than half a clip, {} longer than two stretches",
                    reach.past_the_end, reach.moments, reach.too_short, reach.too_long
                );
            }
            if let Some(cut) = cut.line() {
                text += &format!("\n{cut}");
            }
            text
        }
        WrittenPredictions::Baseline { baseline, queries, out, .. } => {
            format!("wrote answers of {baseline} to {} queries to {out}", thousands(*queries))
        }
    }
}
