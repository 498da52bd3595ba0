//! `cuemark compare`: is one prediction file better than another?

use cuemark::{Compare, Compared};

use crate::input::note_faults;
use crate::output::{self, Outcome, Print, percent, thousands};
use crate::progress::watched;

/// Is one prediction file better than another?
///
/// Both are scored on the same queries. The difference B - A comes with a paired bootstrap interval, the p-value of a
/// paired randomisation test, the effect size (mean difference over its standard deviation) and the queries won and lost.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    compare: Compare,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let compare = &args.compare;
    let compared = watched("reading", |progress| compare.run(progress))?;
    note_faults(&compare.truth.path, &compared.truth_rows);
    for (path, rows) in [&compare.a, &compare.b].into_iter().zip(&compared.prediction_rows) {
        note_faults(path, rows);
    }
    args.print.result(&compared, || as_table(compare, &compared))
}

fn as_table(asked: &Compare, compared: &Compared) -> String {
    let title = format!("{} % interval", asked.ci);
    let header = ["metric", "A", "B", "B - A", &title, "p", "effect", "B wins", "ties", "A wins"];
    let rows: Vec<Vec<String>> = compared
        .metrics
        .iter()
        .map(|metric| {
            let r = &metric.comparison;
            vec![
                metric.name.clone(),
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
    let queries = compared.metrics.first().map_or(0, |metric| metric.comparison.queries);
    format!(
        "A = {}\nB = {}\n\n{}\n\n{} queries, {} resamples, seed {}",
        asked.a,
        asked.b,
        output::table(&header, &rows),
        thousands(queries),
        thousands(asked.resampling.resamples),
        asked.resampling.seed
    )
}
