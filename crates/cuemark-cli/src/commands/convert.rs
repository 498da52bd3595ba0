//! `cuemark convert`: prediction and truth files from one layout to another.

use cuemark::Convert;
use cuemark_core::text::counted;

use crate::output::{Outcome, Print};
use crate::progress::watched;

/// Write a prediction or truth file in another layout, or its moments for another program.
///
/// The layout to write follows from the ending of OUT (.jsonl, .csv, .trec, .txt, .vtt, .edl, .fiftyone.json,
/// .labelstudio.json) unless `--to` names it. Truth comes from any dataset's own file and from Label Studio's export.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    convert: Convert,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let done = watched("reading", |progress| args.convert.run(progress))?;
    args.print.result(&done, || {
        let (queries, moments) =
            (counted(done.queries, "query", "queries"), counted(done.moments, "moment", "moments"));
        format!("wrote {} of {queries} with {moments} to {} ({})", done.kind, done.out, done.format)
    })
}
