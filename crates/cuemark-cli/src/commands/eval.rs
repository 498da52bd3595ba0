//! `cuemark eval`: scores a prediction file.

use cuemark::{Score, Scored};
use serde_json::json;

use crate::input::note_faults;
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
    score: Score,
    #[command(flatten)]
    print: Print,
    /// Print to standard error how long reading and evaluating took.
    #[arg(long)]
    timings: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let scored = watched("reading", |progress| args.score.run(progress))?;
    note_faults(&args.score.truth.path, &scored.truth_rows);
    note_faults(&args.score.predictions.path, &scored.prediction_rows);
    if args.timings {
        let (read, evaluated) = (scored.took.reading.as_secs_f64(), scored.took.evaluating.as_secs_f64());
        output::say(&format!("timings {}", json!({ "read_s": read, "evaluate_s": evaluated })));
    }
    args.print.result(&scored, || as_table(&scored, args.score.ci))
}

fn as_table(scored: &Scored, level: Option<f64>) -> String {
    let evaluation = &scored.evaluation;
    let bounds = scored.intervals.as_deref();
    let interval_title = level.map(|level| format!("{level} % interval"));
    let mut header = vec!["metric", "percent"];
    header.extend(interval_title.as_deref());
    header.push("queries");
    let rows: Vec<Vec<String>> = evaluation
        .columns
        .iter()
        .enumerate()
        .map(|(position, column)| {
            let mut row = vec![column.name.to_string(), column.mean().map_or_else(String::new, percent)];
            if let Some(bounds) = bounds {
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
    for line in scored.plan.conventions() {
        text.push_str(&format!("{line}\n"));
    }
    for note in &evaluation.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}
