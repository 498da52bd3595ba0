//! `cuemark text-bias`: queries rewritten so that a model's dependence on their words can be measured.

use camino::Utf8PathBuf;
use clap::ValueEnum;
use cuemark_formats::{WholeFile, write_truth};
use cuemark_text::variants::{Mask, Variant, apply};

use crate::input::{Force, QueriesArg};
use crate::output::{Outcome, Print, thousands};

/// Rewrite queries so that a model's dependence on their words can be measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is done to each query.
    #[arg(long, value_enum)]
    mode: Mode,
    #[command(flatten)]
    queries: QueriesArg,
    /// Where to write the same truth with rewritten queries, as our JSON lines.
    #[arg(long, value_name = "FILE")]
    out: Utf8PathBuf,
    /// What stands in the place of a masked verb; empty drops the verb.
    #[arg(long, value_name = "TOKEN", default_value = "[MASK]")]
    mask: String,
    /// Seed of what is drawn.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// The first verb is masked.
    MaskVerb,
    /// Only the first verb is left.
    OnlyVerb,
    /// The words are put in random order.
    Shuffle,
    /// The text is that of a query about another video.
    WrongQuery,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    args.force.overwrite().check(&args.out)?;
    let variant = match args.mode {
        Mode::MaskVerb if args.mask.is_empty() => Variant::MaskVerb(Mask::Drop),
        Mode::MaskVerb => Variant::MaskVerb(Mask::Token(args.mask.clone())),
        Mode::OnlyVerb => Variant::OnlyVerb,
        Mode::Shuffle => Variant::Shuffle,
        Mode::WrongQuery => Variant::WrongQuery,
    };
    let (rewritten, report) = apply(&variant, &args.queries.read()?, args.seed)?;
    let mut file = WholeFile::create(&args.out, args.force.overwrite())?;
    write_truth(&rewritten, &mut file)?;
    file.finish()?;
    args.print.result(&report, || {
        format!(
            "{} of {} queries changed, {} without a verb left as they are; wrote {}",
            thousands(report.changed),
            thousands(report.queries),
            thousands(report.without_verb),
            args.out
        )
    })
}
