//! `cuemark compare`: is one prediction file better than another?

use camino::Utf8PathBuf;
use cuemark_core::Stopped;
use cuemark_metrics::{Bootstrap, PairedComparison, compare, evaluate};
use serde_json::{Map, Value, json};

use crate::commands::eval::Scoring;
use crate::input::{PredictionArgs, TruthArgs, note_faults};
use crate::output::{self, Outcome, Print, percent, thousands};
use crate::progress::watched;

/// Is one prediction file better than another?
///
/// Both are scored on the same queries. The difference B - A comes with a paired bootstrap interval, the p-value of a
/// paired randomisation test, the effect size (mean difference over its standard deviation) and the queries won and lost.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    truth: TruthArgs,
    /// The first prediction file.
    a: Utf8PathBuf,
    /// The second, compared with the first.
    b: Utf8PathBuf,
    #[command(flatten)]
    predictions: PredictionArgs,
    /// The metric; several are separated by commas. Default: R@1,IoU=0.5
    #[arg(long, value_name = "M")]
    metric: Option<String>,
    #[command(flatten)]
    scoring: Scoring,
    /// Confidence level of the interval in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0)]
    ci: f64,
    /// Resamples of the bootstrap and of the randomisation test.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    resamples: usize,
    /// Seed of both.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    anyhow::ensure!(args.ci > 0.0 && args.ci < 100.0, "`--ci` {} is not between 0 and 100", args.ci);
    let mut scoring = args.scoring.clone();
    scoring.metrics = args.metric.clone().or(scoring.metrics).or_else(|| Some("R@1,IoU=0.5".to_owned()));
    scoring.check()?;
    let split = args.truth.read()?;
    note_faults(&args.truth.truth, &split.rows);
    let mut columns = Vec::new();
    for path in [&args.a, &args.b] {
        let predictions = args.predictions.read(path)?.answering(&split.queries);
        note_faults(path, &predictions.rows);
        let plan = scoring.plan(&split.queries, &predictions)?;
        let scored = watched("scoring", |progress| evaluate(&plan, &split.queries, &predictions, progress))?;
        columns.push(scored.columns);
    }
    let how = Bootstrap { level: args.ci / 100.0, resamples: args.resamples, seed: args.seed };
    let results = watched("resampling", |progress| {
        let mut results: Vec<(String, PairedComparison)> = Vec::new();
        for a in &columns[0] {
            let Some(b) = columns[1].iter().find(|b| b.name == a.name) else { continue };
            let compared = compare(a, b, how, progress)?;
            results.extend(compared.map(|compared| (a.name.to_string(), compared)));
        }
        Ok::<_, Stopped>(results)
    })?;
    anyhow::ensure!(!results.is_empty(), "no query counts for both files");
    args.print.result(&as_json(&results), || as_table(args, &results))
}

fn as_table(args: &Args, results: &[(String, PairedComparison)]) -> String {
    let title = format!("{} % interval", args.ci);
    let header = ["metric", "A", "B", "B - A", &title, "p", "effect", "B wins", "ties", "A wins"];
    let rows: Vec<Vec<String>> = results
        .iter()
        .map(|(name, r)| {
            vec![
                name.clone(),
                percent(r.a),
                percent(r.b),
                format!("{:+.2}", 100.0 * r.difference),
                format!("{:+.2} – {:+.2}", 100.0 * r.interval.low, 100.0 * r.interval.high),
                format!("{:.4}", r.p_value),
                format!("{:+.3}", r.effect_size),
                thousands(r.wins),
                thousands(r.ties),
                thousands(r.losses),
            ]
        })
        .collect();
    let queries = results[0].1.queries;
    let table = output::table(&header, &rows);
    format!(
        "A = {}\nB = {}\n\n{table}\n\n{} queries, {} resamples, seed {}",
        args.a,
        args.b,
        thousands(queries),
        thousands(args.resamples),
        args.seed
    )
}

fn as_json(results: &[(String, PairedComparison)]) -> Value {
    let figures = results.iter().map(|(name, r)| {
        let value = json!({
            "a": r.a, "b": r.b, "difference": r.difference, "interval": [r.interval.low, r.interval.high],
            "p_value": r.p_value, "effect_size": r.effect_size,
            "wins": r.wins, "ties": r.ties, "losses": r.losses, "queries": r.queries,
        });
        (name.clone(), value)
    });
    json!({ "comparisons": figures.collect::<Map<String, Value>>() })
}
