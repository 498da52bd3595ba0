//! `cuemark human-ceiling`: what people reach against each other.

use camino::Utf8PathBuf;
use cuemark_core::NormSpan;
use cuemark_data::{Reannotation, read_reannotations};
use cuemark_formats::Source;
use cuemark_protocols::human_ceiling::{Agreement, Estimate, HumanCeiling, human_ceiling};

use crate::output::{self, Outcome, Print, percent, thousands};

/// What people reach against each other, from five re-annotations of the same queries.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The dataset whose queries were marked again: charades or activitynet (`charades-sta` and `activitynet-captions` too).
    name: String,
    /// The folder with `NAME_test_00.csv` and so on.
    #[arg(long, value_name = "DIR")]
    root: Utf8PathBuf,
    /// Seed of the bootstrap.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let stem = args.name.split('-').next().unwrap_or_default();
    let files: Vec<Source> =
        (0..100).map_while(|n| Source::find(&args.root, &format!("{stem}_test_{n:02}.csv"))).collect();
    anyhow::ensure!(!files.is_empty(), "there is no `{stem}_test_00.csv` in `{}`", args.root);
    let mut queries: Vec<Reannotation> = Vec::new();
    for file in &files {
        queries.extend(read_reannotations(file)?);
    }
    let spans: Vec<&[NormSpan]> = queries.iter().map(|query| query.spans.as_slice()).collect();
    let ceiling = human_ceiling(&spans, args.seed)?;
    args.print.result(&ceiling, || as_text(args, &ceiling))
}

fn as_text(args: &Args, ceiling: &HumanCeiling) -> String {
    let cell = |e: &Estimate| format!("{} ({} – {})", percent(e.value), percent(e.low), percent(e.high));
    let row = |name: String, of: &dyn Fn(&Agreement) -> Estimate| {
        vec![name, cell(&of(&ceiling.one)), cell(&of(&ceiling.any))]
    };
    let mut rows: Vec<Vec<String>> = ceiling
        .one
        .recall
        .iter()
        .enumerate()
        .map(|(n, at)| row(format!("R@1,IoU={}", at.threshold), &|agreement| agreement.recall[n].recall))
        .collect();
    rows.push(row("mIoU".to_owned(), &|agreement| agreement.mean_iou));
    let header = ["percent, 95 % interval", "one other person is right", "any other person is right"];
    format!(
        "{}: {} queries, {} spans, {} queries left out\n\n{}",
        args.name,
        thousands(ceiling.queries),
        thousands(ceiling.spans),
        thousands(ceiling.left_out),
        output::table(&header, &rows)
    )
}
