//! `cuemark text-bias`: queries rewritten so that a model's dependence on their words can be measured.

use cuemark::RewriteQueries;

use crate::output::{Outcome, Print, thousands};
use crate::progress::watched;

/// Rewrite queries so that a model's dependence on their words can be measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    rewrite: RewriteQueries,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let report = watched("rewriting", |progress| args.rewrite.run(progress))?;
    args.print.result(&report, || {
        format!(
            "{} of {} queries changed, {} without a verb left as they are; wrote {}",
            thousands(report.changed),
            thousands(report.queries),
            thousands(report.without_verb),
            args.rewrite.out
        )
    })
}
