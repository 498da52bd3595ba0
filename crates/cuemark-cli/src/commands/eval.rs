//! `cuemark eval`: scores a prediction file.

use std::time::Instant;

use camino::Utf8PathBuf;
use clap::ValueEnum;
use cuemark_core::{Predictions, Truth};
use cuemark_formats::WholeFile;
use cuemark_metrics::{
    Bootstrap, Comparison, Evaluation, Grouping, Interval, Order, Overrides, Plan, Preset, Report, TruthSpans,
    evaluate, intervals, parse_list, suitable,
};
use serde_json::{Map, Value, json};

use crate::input::{Force, PredictionArgs, TruthArgs, note_faults};
use crate::output::{self, Outcome, Print, percent, thousands};
use crate::progress::watched;

/// Score a prediction file.
///
/// Metrics: R@n,IoU=m  dR@n,IoU=m  mIoU  mAP  mAP@m  NDCG@K,IoU=m  VCMR:R@n,IoU=m  SVMR:R@n,IoU=m  VR:R@n
/// MVMR:R@n,IoU=m  DiDeMo:rank@n  DiDeMo:mIoU  HL-mAP/LEVEL  HL-Hit1/LEVEL, each with a part of the queries behind
/// it if wished: /short /middle /long /type=v /verb=open /words=6-10 /length=0-10% /position=last-third.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    truth: TruthArgs,
    /// The predictions: our JSONL, QVHighlights, TVR, TVR-Ranking, ActivityNet, TREC run or CSV.
    #[arg(long, value_name = "FILE")]
    pred: Utf8PathBuf,
    #[command(flatten)]
    predictions: PredictionArgs,
    #[command(flatten)]
    scoring: Scoring,
    /// Confidence interval in percent, by bootstrap over queries.
    #[arg(long, value_name = "PERCENT", value_parser = confidence)]
    ci: Option<f64>,
    /// Resamples of the bootstrap.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    resamples: usize,
    /// Seed of the bootstrap.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Report every metric for parts of the queries too.
    #[arg(long, value_name = "BY", value_delimiter = ',', value_parser = grouping)]
    group_by: Vec<Grouping>,
    /// Write every query's scores as JSON lines.
    #[arg(long, value_name = "FILE")]
    per_query: Option<Utf8PathBuf>,
    #[command(flatten)]
    print: Print,
    /// Print to standard error how long reading and evaluating took.
    #[arg(long)]
    timings: bool,
    #[command(flatten)]
    force: Force,
}

/// Which metrics, in which conventions.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Scoring {
    /// Metrics, separated by commas. Default: what suits the files.
    #[arg(long, value_name = "LIST")]
    pub(crate) metrics: Option<String>,
    /// A published evaluator to agree with to the digit: qvhighlights, tvr, 2d-tan, charades-cd, tvr-ranking,
    /// tvr-ranking-paper, mvmr, molef, didemo.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Suppress answers that overlap a better one by more than this, or `none`.
    #[arg(long, value_name = "T|none", value_parser = suppression)]
    nms: Option<Suppression>,
    /// What the ranking is. Default: the order of the file, or the preset's.
    #[arg(long, value_enum)]
    order: Option<OrderArg>,
    /// Count an answer only when its overlap is above the threshold, not at it.
    #[arg(long)]
    strict: bool,
    /// Clip true spans to their video first.
    #[arg(long)]
    clip_truth: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OrderArg {
    /// The order of the file.
    File,
    /// The score, highest first.
    Score,
}

/// `--nms`: a threshold, or none at all.
#[derive(Debug, Clone, Copy)]
struct Suppression(Option<f64>);

fn suppression(text: &str) -> Result<Suppression, String> {
    if text == "none" {
        return Ok(Suppression(None));
    }
    let threshold = text.parse::<f64>().ok().filter(|t| (0.0..=1.0).contains(t));
    threshold.map(|t| Suppression(Some(t))).ok_or_else(|| "a threshold between 0 and 1, or `none`".to_owned())
}

fn confidence(text: &str) -> Result<f64, String> {
    let level = text.parse::<f64>().ok().filter(|level| *level > 0.0 && *level < 100.0);
    level.ok_or_else(|| "a percentage above 0 and below 100, such as 95".to_owned())
}

fn grouping(text: &str) -> Result<Grouping, String> {
    Grouping::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = Grouping::ALL.into_iter().map(Grouping::name).collect();
        format!("one of {}", names.join(", "))
    })
}

impl Scoring {
    /// Refuses names that do not exist before any file is read.
    ///
    /// # Errors
    /// The first such name.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.metrics.as_deref().map(parse_list).transpose()?;
        self.preset.as_deref().map(str::parse::<Preset>).transpose()?;
        Ok(())
    }

    /// The plan that the flags ask for; without metrics or preset, the metrics that suit the files.
    pub(crate) fn plan(&self, truths: &[Truth], predictions: &Predictions) -> anyhow::Result<Plan> {
        let overrides = Overrides {
            nms: self.nms.map(|nms| nms.0),
            order: self.order.map(|order| match order {
                OrderArg::File => Order::File,
                OrderArg::Score => Order::Score,
            }),
            comparison: self.strict.then_some(Comparison::Strict),
            truth: self.clip_truth.then_some(TruthSpans::Clipped),
        };
        let metrics = self.metrics.as_deref().map(parse_list).transpose()?;
        Ok(match &self.preset {
            Some(name) => Plan::preset(name.parse::<Preset>()?, metrics, overrides),
            None => Plan::plain(metrics.unwrap_or_else(|| suitable(truths, predictions)), overrides),
        })
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    args.scoring.check()?;
    if let Some(path) = &args.per_query {
        args.force.overwrite().check(path)?;
    }
    let start = Instant::now();
    let (split, predictions) = rayon::join(|| args.truth.read(), || args.predictions.read(&args.pred));
    let split = split?;
    let predictions = predictions?.answering(&split.queries);
    let read = start.elapsed();
    note_faults(&args.truth.truth, &split.rows);
    note_faults(&args.pred, &predictions.rows);

    let start = Instant::now();
    let mut plan = args.scoring.plan(&split.queries, &predictions)?;
    plan.groupings.extend(&args.group_by);
    plan.groupings.dedup();
    let evaluation = watched("scoring", |progress| evaluate(&plan, &split.queries, &predictions, progress))?;
    let evaluated = start.elapsed();

    let bounds = args.ci.map(|percent| {
        let how = Bootstrap { level: percent / 100.0, resamples: args.resamples, seed: args.seed };
        watched("resampling", |progress| intervals(&evaluation.columns, how, progress))
    });
    let bounds = bounds.transpose()?;
    if let Some(path) = &args.per_query {
        write_per_query(path, args, &split.queries, &evaluation)?;
    }
    if args.timings {
        let seconds = json!({ "read_s": read.as_secs_f64(), "evaluate_s": evaluated.as_secs_f64() });
        output::say(&format!("timings {seconds}"));
    }
    let report = Report {
        plan: &plan,
        evaluation: &evaluation,
        intervals: bounds.as_deref(),
        truth_rows: &split.rows,
        prediction_rows: &predictions.rows,
    };
    let as_json = report.to_json();
    let outcome = args.print.result(&as_json, || as_table(&plan, &evaluation, args.ci.zip(bounds.as_deref())));
    // The process is about to end; freeing millions of small lists one by one would only delay that.
    std::mem::forget((split, predictions, evaluation));
    outcome
}

fn as_table(plan: &Plan, evaluation: &Evaluation, bounds: Option<(f64, &[Interval])>) -> String {
    let interval_title = bounds.as_ref().map(|(level, _)| format!("{level} % interval"));
    let mut header = vec!["metric", "percent"];
    header.extend(interval_title.as_deref());
    header.push("queries");
    let rows: Vec<Vec<String>> = evaluation
        .columns
        .iter()
        .enumerate()
        .map(|(position, column)| {
            let mut row = vec![column.name.to_string(), column.mean().map_or_else(String::new, percent)];
            if let Some((_, bounds)) = &bounds {
                row.push(format!("{} – {}", percent(bounds[position].low), percent(bounds[position].high)));
            }
            row.push(thousands(column.counted()));
            row
        })
        .collect();
    let mut text = output::table(&header, &rows);
    text.push_str(&format!(
        "\n\n{} queries, {} without predictions",
        thousands(evaluation.queries),
        thousands(evaluation.missing)
    ));
    if evaluation.unknown > 0 {
        text.push_str(&format!(
            ", {} prediction lists for queries the truth does not have",
            thousands(evaluation.unknown)
        ));
    }
    text.push('\n');
    for line in plan.conventions() {
        text.push_str(&format!("{line}\n"));
    }
    for note in &evaluation.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

fn write_per_query(path: &Utf8PathBuf, args: &Args, truths: &[Truth], evaluation: &Evaluation) -> anyhow::Result<()> {
    let mut file = WholeFile::create(path, args.force.overwrite())?;
    for (position, truth) in truths.iter().enumerate() {
        let mut line = Map::new();
        line.insert("qid".to_owned(), truth.query.id.as_str().into());
        let scores = evaluation
            .columns
            .iter()
            .filter_map(|column| Some((column.name.to_string(), column.score(position)?.into())));
        line.extend(scores);
        file.put(format!("{}\n", Value::Object(line)).as_bytes())?;
    }
    Ok(file.finish()?)
}
