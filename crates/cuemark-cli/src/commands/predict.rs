//! `cuemark predict`: answers of a baseline, as an ordinary prediction file.

use camino::Utf8PathBuf;
use cuemark_formats::{PredictionFormat, Source, WholeFile, write_predictions};
use cuemark_protocols::baselines::{self, BASELINES, Needs, Training};
use serde_json::json;

use crate::commands::eval::first_verb;
use crate::input::{Force, TruthArgs, note_faults};
use crate::output::{Outcome, Print, thousands};

/// Answer queries without looking at a video.
///
/// Baselines: predict-all, bias-draw, bias-density, bias-mode, bias-verb. All but the first learn where moments lie from
/// the training file.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which baseline.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(BASELINES.iter().map(|card| card.name)))]
    baseline: String,
    #[command(flatten)]
    truth: TruthArgs,
    /// The training split, in any truth layout.
    #[arg(long, value_name = "FILE")]
    train: Option<Utf8PathBuf>,
    /// Where to write the predictions.
    #[arg(long, value_name = "FILE")]
    out: Utf8PathBuf,
    /// Answers per query, where they are drawn.
    #[arg(long, value_name = "N", default_value_t = 5)]
    answers: usize,
    /// Seed of what is drawn.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    args.force.overwrite().check(&args.out)?;
    let card = baselines::find(&args.baseline)?;
    anyhow::ensure!(
        card.needs == Needs::Nothing || args.train.is_some(),
        "`{}` learns where moments lie: pass `--train FILE`",
        card.name
    );
    let split = args.truth.read()?;
    note_faults(&args.truth.truth, &split.rows);
    let train = match &args.train {
        Some(path) => {
            let train = args.truth.read_another(&Source::new(path))?;
            note_faults(path, &train.rows);
            train.queries
        }
        None => Vec::new(),
    };
    let baseline = card.fit(&Training { truths: &train, first_verb: &first_verb })?;
    let predictions = baseline.predict(&split.queries, args.answers, args.seed)?;
    let mut file = WholeFile::create(&args.out, args.force.overwrite())?;
    write_predictions(&predictions, PredictionFormat::Cuemark, &mut file)?;
    file.finish()?;
    let queries = split.queries.len();
    let told = json!({ "baseline": card.name, "queries": queries, "seed": args.seed, "out": args.out });
    args.print
        .result(&told, || format!("wrote answers of {} to {} queries to {}", card.name, thousands(queries), args.out))
}
