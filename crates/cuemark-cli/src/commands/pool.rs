//! `cuemark pool`: pools of many videos with several right answers.

use camino::Utf8PathBuf;
use clap::Subcommand;
use cuemark::{MakePools, PositiveNegative, Queries, SimilarityBy, WrittenPools};
use cuemark_formats::{Source, WholeFile};
use cuemark_protocols::pools::{audit, sheet};
use cuemark_text::similarity::{Histogram, Scale};
use serde_json::json;

use crate::input::Force;
use crate::output::{self, Outcome, Print, percent, thousands};
use crate::progress::watched;

/// Pools of many videos in which a query has several right answers.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Build a pool for every query.
    Make(Make),
    /// How alike positives and negatives are, as counts and as a picture.
    Audit {
        #[command(flatten)]
        queries: Queries,
        /// The pools.
        #[arg(long, value_name = "FILE")]
        pools: Utf8PathBuf,
        #[command(flatten)]
        similarity: SimilarityBy,
        /// Draw the histograms as an SVG file.
        #[arg(long, value_name = "FILE.svg")]
        plot: Option<Utf8PathBuf>,
        /// Thresholds to draw: positive,negative.
        #[arg(long, value_name = "P,N", default_value = "0.9,0.5")]
        thresholds: PositiveNegative,
        #[command(flatten)]
        print: Print,
        #[command(flatten)]
        force: Force,
    },
    /// Write a sheet for people to check pools by, or read a filled one back.
    Sheet {
        /// The pools.
        #[arg(long, value_name = "FILE")]
        pools: Utf8PathBuf,
        /// Where to write the sheet.
        #[arg(long, value_name = "FILE.csv", conflicts_with = "filled", required_unless_present = "filled")]
        out: Option<Utf8PathBuf>,
        /// A filled sheet to read.
        #[arg(long, value_name = "FILE.csv")]
        filled: Option<Utf8PathBuf>,
        /// Queries on the sheet.
        #[arg(long, value_name = "N", default_value_t = 100)]
        queries: usize,
        /// Seed of the draw.
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
        #[command(flatten)]
        print: Print,
        #[command(flatten)]
        force: Force,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Make {
    #[command(flatten)]
    make: MakePools,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::Make(args) => make_pools(args),
        Action::Audit { queries, pools, similarity, plot, thresholds, print, force } => {
            let (queries, pools) = (queries.read()?, Queries::new(pools).read()?);
            let between = watched("comparing", |progress| similarity.between(&queries, &queries, progress))?;
            let found = audit::audit(&queries, &pools, &*between, Scale::cosine(100))?;
            if let Some(path) = plot {
                let picture = found.draw(thresholds.thresholds());
                WholeFile::write_all_to(path, force.overwrite(), picture.as_bytes())?;
                output::say(&format!("drew {path}"));
            }
            let PositiveNegative { positive, negative } = *thresholds;
            print.result(&found, || {
                let row = |name: &str, counted: &Histogram| {
                    let at = |threshold: f64| percent(counted.share_at_least(threshold as f32));
                    vec![name.to_owned(), thousands(counted.total() as usize), at(positive), at(negative)]
                };
                let (high, low) = (format!("% ≥ {positive}"), format!("% ≥ {negative}"));
                let groups =
                    [("all pairs", &found.all), ("positives", &found.positives), ("negatives", &found.negatives)];
                let rows = groups.map(|(name, counted)| row(name, counted));
                output::table(&[&found.provider, "pairs", &high, &low], &rows)
            })
        }
        Action::Sheet { pools, out, filled, queries, seed, print, force } => {
            let pools = Queries::new(pools).read()?;
            if let Some(path) = filled {
                let verdict = sheet::read(&Source::new(path), &pools)?;
                return print.result(&verdict, || {
                    format!(
                        "{} of {} questions answered: {} false positives, {} false negatives, false rate {} % ({} – {})",
                        thousands(verdict.answered),
                        thousands(verdict.questions),
                        thousands(verdict.false_positives),
                        thousands(verdict.false_negatives),
                        percent(verdict.false_rate),
                        percent(verdict.interval.low),
                        percent(verdict.interval.high)
                    )
                });
            }
            let Some(path) = out else { anyhow::bail!("pass `--out FILE` or `--filled FILE`") };
            let questions = sheet::questions(&pools, *queries, *seed);
            let mut file = WholeFile::create(path, force.overwrite())?;
            sheet::write(&questions, &mut file)?;
            file.finish()?;
            print.result(&json!({ "questions": questions.len(), "out": path }), || {
                format!("wrote {} questions to {path}", thousands(questions.len()))
            })
        }
    }
}

fn make_pools(args: &Make) -> anyhow::Result<Outcome> {
    let written = watched("comparing", |progress| args.make.run(progress))?;
    args.print.result(&written, || {
        let WrittenPools { settings, report, out } = &written;
        let by_count = report.positives.iter().enumerate();
        let by_count: Vec<String> =
            by_count.map(|(n, queries)| format!("{}: {}", n + 1, thousands(*queries))).collect();
        let videos = report.video_filter.as_ref().map_or_else(String::new, |filter| {
            let (gold, negative) = (filter.gold_mean, filter.negative_mean);
            format!("\nvideos by {}: positives at {gold:.3}, negatives at {negative:.3}", filter.provider)
        });
        format!(
            "{} of {} queries have a pool of {} videos; {} dropped for want of negatives\n\
             positives by {} at {:.3}, negatives at {:.3}; {:.2} positives on average ({}){videos}\nwrote {out}",
            thousands(report.kept),
            thousands(report.queries),
            thousands(settings.videos),
            thousands(report.dropped),
            report.provider,
            settings.thresholds.positive,
            settings.thresholds.negative,
            report.mean_positives,
            by_count.join(", "),
        )
    })
}
