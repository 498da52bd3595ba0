//! `cuemark demo`: a first look on the built-in world.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Predictions, Split};
use cuemark_formats::{Overwrite, PredictionFormat, Source, WholeFile, write_predictions};
use cuemark_metrics::{Bootstrap, Interval, Overrides, Plan, evaluate, intervals, parse_list};
use cuemark_protocols::baselines::{BASELINES, Training};
use cuemark_world::WorldOptions;
use serde_json::{Value, json};

use crate::commands::eval::first_verb;
use crate::output::{self, Outcome, Print, percent, thousands};
use crate::progress;

const METRIC: &str = "R@1,IoU=0.5";

/// A first look: a synthetic world, guesses that never see a video, and what the two test splits say about them.
///
/// Nothing is downloaded. The world's moments sit where their verb makes them likely (bias 0.8); test-iid follows that
/// rule, test-ood reverses it. Methods that only learnt the rule win the first and lose the second.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where everything is written; what is finished there is used again.
    #[arg(long, value_name = "DIR", default_value = "cuemark-demo")]
    out: Utf8PathBuf,
    /// A smaller world, in seconds.
    #[arg(long)]
    quick: bool,
    /// Seed of the world and of the draws.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    print: Print,
}

/// One method on one split.
struct Line {
    method: String,
    split: &'static str,
    mean: f64,
    interval: Interval,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let world = args.out.join("world");
    let options =
        WorldOptions { videos: if args.quick { 120 } else { 600 }, seed: args.seed, ..WorldOptions::default() };
    make_world(&options, &world)?;
    let split = |name: &str| -> anyhow::Result<Split> {
        Ok(cuemark_formats::read_truth(&Source::new(world.join(format!("splits/{name}.jsonl"))), Default::default())?)
    };
    let train = split("train")?;
    let mut lines = Vec::new();
    for name in ["test-iid", "test-ood"] {
        let test = split(name)?;
        for card in BASELINES {
            let baseline = card.fit(&Training { truths: &train.queries, first_verb: &first_verb })?;
            let predictions = baseline.predict(&test.queries, 5, args.seed)?;
            lines.push(score(card.name, name, &test, &predictions, &args.out)?);
        }
        lines.push(score("oracle", name, &test, &cuemark_world::oracle(&world, name)?, &args.out)?);
    }
    args.print.result(&as_json(args, &lines), || as_text(args, &train, &lines))
}

fn make_world(options: &WorldOptions, world: &Utf8Path) -> anyhow::Result<()> {
    if world.join("manifest.json").exists() {
        output::say(&format!("using the world in {world}"));
        return Ok(());
    }
    let bar = progress::bar(options.videos, "filming");
    let report = cuemark_world::make(options, world, &|done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    output::say(&format!("filmed {} videos with {} events", thousands(options.videos), thousands(report.events)));
    Ok(())
}

fn score(
    method: &str,
    name: &'static str,
    split: &Split,
    predictions: &Predictions,
    out: &Utf8Path,
) -> anyhow::Result<Line> {
    let mut file = WholeFile::create(out.join(format!("predictions/{method}.{name}.jsonl")), Overwrite::Force)?;
    write_predictions(predictions, PredictionFormat::Cuemark, &mut file)?;
    file.finish()?;
    let plan = Plan::plain(parse_list(METRIC)?, Overrides::default());
    let evaluation = evaluate(&plan, &split.queries, predictions, &first_verb)?;
    let mean = evaluation.columns.first().and_then(cuemark_metrics::Column::mean).unwrap_or(0.0);
    let interval = intervals(&evaluation.columns, Bootstrap::default())[0];
    Ok(Line { method: method.to_owned(), split: name, mean, interval })
}

/// Every method's lines, iid first.
fn by_method(lines: &[Line]) -> impl Iterator<Item = (&Line, &Line)> {
    let on = |split: &'static str| lines.iter().filter(move |line| line.split == split);
    on("test-iid").zip(on("test-ood"))
}

fn as_text(args: &Args, train: &Split, lines: &[Line]) -> String {
    let cell = |line: &Line| {
        format!("{} ({} – {})", percent(line.mean), percent(line.interval.low), percent(line.interval.high))
    };
    let rows: Vec<Vec<String>> = by_method(lines)
        .map(|(iid, ood)| {
            let gap = format!("{:+.2}", 100.0 * (ood.mean - iid.mean));
            vec![iid.method.clone(), cell(iid), cell(ood), gap]
        })
        .collect();
    let table = output::table(&[METRIC, "test-iid", "test-ood", "gap"], &rows);
    format!(
        "A world of coloured shapes, {} training queries, location bias 0.8.\n\
         Percent with 95 % intervals over queries, seed {}.\n\n{table}\n\n\
         Guesses that learnt where moments lie lose on test-ood, where the rule is reversed; the oracle, which reads the\n\
         event log, loses nothing. Training, search and the report join this demo as they are built.\n\n\
         everything is in {out}; try\n  \
         cuemark eval --truth {out}/world/splits/test-ood.jsonl --pred {out}/predictions/bias-mode.test-ood.jsonl --ci 95",
        thousands(train.queries.len()),
        args.seed,
        out = args.out,
    )
}

fn as_json(args: &Args, lines: &[Line]) -> Value {
    let methods = by_method(lines).map(|(iid, ood)| {
        let figures = |line: &Line| json!({ METRIC: line.mean, "interval": [line.interval.low, line.interval.high] });
        json!({ "method": iid.method, "test-iid": figures(iid), "test-ood": figures(ood) })
    });
    json!({ "out": args.out, "seed": args.seed, "bias": 0.8, "methods": methods.collect::<Vec<Value>>() })
}
