//! `cuemark predict`: answers of a trained model or of a baseline, as an ordinary prediction file.

use camino::Utf8PathBuf;
use cuemark_core::Predictions;
use cuemark_features::FeatureVariant;
use cuemark_formats::{PredictionFormat, PredictionOptions, Source, WholeFile, read_predictions, write_predictions};
use cuemark_protocols::baselines::{self, BASELINES, Needs, Training};
use cuemark_train::{Among, FirstStage, PredictOptions, RunFolder, Trained};
use serde_json::json;

use crate::input::{Force, OptionalTruthArgs, note_faults};
use crate::output::{self, Outcome, Print, thousands};
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
    /// The folder of a run that `cuemark train` made.
    #[arg(value_name = "RUN_DIR", required_unless_present = "baseline", conflicts_with = "baseline")]
    run: Option<Utf8PathBuf>,
    /// Which baseline.
    #[arg(long, value_name = "NAME", requires = "truth", value_parser = clap::builder::PossibleValuesParser::new(BASELINES.iter().map(|card| card.name)))]
    baseline: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    truth: OptionalTruthArgs,
    /// The training split of a baseline, in any truth layout.
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    train: Option<Utf8PathBuf>,
    /// Where to write the predictions.
    #[arg(long, value_name = "FILE")]
    out: Utf8PathBuf,
    /// Answers per query; baselines draw so many.
    #[arg(long, value_name = "N")]
    answers: Option<usize>,
    /// Seed of what a baseline draws.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "run")]
    seed: u64,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

/// What is asked of a trained model.
#[derive(Debug, clap::Args)]
struct ModelArgs {
    /// A split of the run's data, such as test-iid.
    #[arg(long, value_name = "SPLIT", conflicts_with_all = ["baseline", "truth"])]
    split: Option<String>,
    /// Where each query is searched.
    #[arg(long, value_enum, default_value_t = Where::Own)]
    among: Where,
    /// Look only into the videos that another model's predictions name for each query, with its scores: a list of videos
    /// (VR) or of moments, as `predict --among split` writes them.
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    first_stage: Option<Utf8PathBuf>,
    /// Videos that are taken of each list of the first stage.
    #[arg(long, value_name = "N", default_value_t = 40, requires = "first_stage")]
    first_stage_videos: usize,
    /// Features of the videos, when they are not in the run's store.
    #[arg(long, value_name = "STORE", conflicts_with = "baseline")]
    features: Option<Utf8PathBuf>,
    /// Cut videos into stretches of so many seconds, half overlapping.
    #[arg(long, value_name = "SECONDS", conflicts_with = "baseline")]
    window: Option<f64>,
    /// What the model is shown instead of the video.
    #[arg(long, value_enum, conflicts_with = "baseline")]
    blind: Option<Blind>,
    /// What to compute on: cpu, cuda, cuda:N.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
}

/// Where a query is searched.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Where {
    /// In the video it was written for.
    Own,
    /// In its pool.
    Pool,
    /// In every video of the split.
    Split,
}

/// What a model is shown instead of the video.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Blind {
    /// Its clips in random order.
    Shuffled,
    /// Nothing.
    Zeroed,
}

/// Answers per query of a baseline.
const BASELINE_ANSWERS: usize = 5;

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    args.force.overwrite().check(&args.out)?;
    match (&args.run, &args.baseline) {
        (Some(run), _) => with_model(args, run),
        (None, Some(baseline)) => with_baseline(args, baseline),
        (None, None) => anyhow::bail!("name a run folder or a `--baseline`"),
    }
}

fn with_model(args: &Args, run: &Utf8PathBuf) -> anyhow::Result<Outcome> {
    let device = cuemark_tensor::device(&args.model.device)?;
    let folder = RunFolder::new(run);
    let mut trained = Trained::open(&folder, &device)?;
    if let Some(note) = &trained.note {
        output::say(&format!("note: {note}"));
    }
    if let Some(features) = &args.model.features {
        trained.run.data.features = Some(features.clone());
    }
    let split = match (&args.model.split, args.truth.given()) {
        (Some(split), _) => trained.run.data.split(split)?,
        (None, Some(truth)) => truth.read()?,
        (None, None) => anyhow::bail!("what shall it answer? pass `--split NAME` or `--truth FILE`"),
    };
    let options = PredictOptions {
        answers: args.answers.unwrap_or(trained.run.eval.answers),
        batch: trained.run.eval.batch,
        among: match args.model.among {
            Where::Own => Among::OwnVideo,
            Where::Pool => Among::Pool,
            Where::Split => Among::Split,
        },
        window: args.model.window,
        variant: args.model.blind.map(|blind| match blind {
            Blind::Shuffled => FeatureVariant::Shuffled,
            Blind::Zeroed => FeatureVariant::Zeroed,
        }),
    };
    let first = match &args.model.first_stage {
        Some(path) => {
            let (_, predictions) = read_predictions(&Source::new(path), &PredictionOptions::default())?;
            Some(FirstStage::of(&predictions, args.model.first_stage_videos))
        }
        None => None,
    };
    let predicted = watched("answering", |progress| trained.predict_after(&split, &options, first.as_ref(), progress))?;
    write(args, &predicted.predictions)?;
    let reach = predicted.out_of_reach;
    let queries = split.queries.len();
    let told = json!({ "model": trained.run.model, "split": split.name, "queries": queries, "out_of_reach": reach, "out": args.out });
    args.print.result(&told, || {
        let mut text =
            format!("wrote answers of {} to {} queries to {}", trained.run.model, thousands(queries), args.out);
        if reach.past_the_end + reach.too_short > 0 {
            text += &format!(
                "\nout of reach: {} of {} moments begin past the features, {} are shorter than half a clip",
                reach.past_the_end, reach.moments, reach.too_short
            );
        }
        text
    })
}

fn write(args: &Args, predictions: &Predictions) -> anyhow::Result<()> {
    let mut file = WholeFile::create(&args.out, args.force.overwrite())?;
    write_predictions(predictions, PredictionFormat::Cuemark, &mut file)?;
    Ok(file.finish()?)
}

fn with_baseline(args: &Args, baseline: &str) -> anyhow::Result<Outcome> {
    let card = baselines::find(baseline)?;
    let Some(truth) = args.truth.given() else { anyhow::bail!("a baseline answers a truth file: pass `--truth FILE`") };
    anyhow::ensure!(
        card.needs == Needs::Nothing || args.train.is_some(),
        "`{}` learns where moments lie: pass `--train FILE`",
        card.name
    );
    let split = truth.read()?;
    note_faults(truth.path(), &split.rows);
    let train = match &args.train {
        Some(path) => {
            let train = truth.read_another(&Source::new(path))?;
            note_faults(path, &train.rows);
            train.queries
        }
        None => Vec::new(),
    };
    let baseline = card.fit(&Training::of(&train))?;
    let predictions = baseline.predict(&split.queries, args.answers.unwrap_or(BASELINE_ANSWERS), args.seed)?;
    write(args, &predictions)?;
    let queries = split.queries.len();
    let told = json!({ "baseline": card.name, "queries": queries, "seed": args.seed, "out": args.out });
    args.print
        .result(&told, || format!("wrote answers of {} to {} queries to {}", card.name, thousands(queries), args.out))
}
