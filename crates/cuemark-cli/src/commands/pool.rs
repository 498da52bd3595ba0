//! `cuemark pool`: pools of many videos with several right answers.

use camino::Utf8PathBuf;
use clap::Subcommand;
use cuemark_formats::{Source, WholeFile};
use cuemark_protocols::pools::calibration::{Shares, by_known_pools, by_share};
use cuemark_protocols::pools::{Calibration, PoolSettings, Thresholds, audit, make, sheet};
use cuemark_text::similarity::{Histogram, Scale};
use serde_json::json;

use crate::input::{Force, QueriesArg, read_queries};
use crate::output::{self, Outcome, Print, percent, thousands};
use crate::similarity::{SimilarityArgs, with_videos};

/// The most positives that published pools hold, the query's own video among them.
const PUBLISHED_POSITIVES: usize = 5;
/// Share of known positives that may count as negatives when thresholds are fitted to known pools.
const LOST: f64 = 0.01;

/// The shares of all pairs that are positive and negative when nothing else is known; ours.
pub(crate) const USUAL_SHARES: Shares = Shares { positive: 0.002, negative: 0.5 };

/// Pools of many videos in which a query has several right answers.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Build a pool for every query.
    Make(Make),
    /// How alike positives and negatives are, as counts and as a picture.
    Audit {
        #[command(flatten)]
        queries: QueriesArg,
        /// The pools.
        #[arg(long, value_name = "FILE")]
        pools: Utf8PathBuf,
        #[command(flatten)]
        similarity: SimilarityArgs,
        /// Draw the histograms as an SVG file.
        #[arg(long, value_name = "FILE.svg")]
        plot: Option<Utf8PathBuf>,
        /// Thresholds to draw: positive,negative.
        #[arg(long, value_name = "P,N", value_parser = pair, default_value = "0.9,0.5")]
        thresholds: Pair,
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
    queries: QueriesArg,
    /// Where to write them with their pools; the manifest goes beside it.
    #[arg(long, value_name = "FILE.jsonl")]
    out: Utf8PathBuf,
    /// Videos in a pool.
    #[arg(long, value_name = "N", default_value_t = 50)]
    videos: usize,
    /// Positive videos in a pool at the most, the query's own among them.
    #[arg(long, value_name = "K", default_value_t = PUBLISHED_POSITIVES)]
    positives: usize,
    #[command(flatten)]
    similarity: SimilarityArgs,
    /// Filter by how well queries match videos, too: `concepts:STORE` or `clip:STORE`, a store that `features extract` made
    /// with that encoder, or a FILE with a matrix of queries by videos, these in the order they first come up.
    #[arg(long, value_name = "PROVIDER")]
    video_similarity: Option<String>,
    /// Thresholds of this provider: positive,negative (SimCSE's are 0.9,0.5).
    #[arg(long, value_name = "P,N", value_parser = pair, conflicts_with_all = ["shares", "known"])]
    thresholds: Option<Pair>,
    /// Calibrate: the shares of all pairs that are positive and negative. Default: 0.002,0.5
    #[arg(long, value_name = "P,N", value_parser = pair)]
    shares: Option<Pair>,
    /// Calibrate: known pools of the same queries, to agree with best.
    #[arg(long, value_name = "FILE", conflicts_with = "shares")]
    known: Option<Utf8PathBuf>,
    /// Seed of the draw.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

/// Two numbers, positive and negative.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair(f64, f64);

fn pair(text: &str) -> Result<Pair, String> {
    let numbers: Vec<f64> = text.split(',').filter_map(|number| number.trim().parse().ok()).collect();
    match numbers[..] {
        [positive, negative] => Ok(Pair(positive, negative)),
        _ => Err("two numbers with a comma between them, such as 0.9,0.5".to_owned()),
    }
}

impl Pair {
    fn thresholds(self) -> Thresholds {
        Thresholds { positive: self.0 as f32, negative: self.1 as f32 }
    }
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::Make(args) => make_pools(args),
        Action::Audit { queries, pools, similarity, plot, thresholds, print, force } => {
            let (queries, pools) = (queries.read()?, read_queries(pools)?);
            let between = similarity.between(&queries, &queries)?;
            let found = audit::audit(&queries, &pools, &*between, Scale::cosine(100))?;
            if let Some(path) = plot {
                let picture = found.draw(thresholds.thresholds())?;
                WholeFile::write_all_to(path, force.overwrite(), picture.as_bytes())?;
                output::say(&format!("drew {path}"));
            }
            print.result(&found, || {
                let row = |name: &str, counted: &Histogram| {
                    let at = |threshold: f64| percent(counted.share_at_least(threshold as f32));
                    vec![name.to_owned(), thousands(counted.total() as usize), at(thresholds.0), at(thresholds.1)]
                };
                let (high, low) = (format!("% ≥ {}", thresholds.0), format!("% ≥ {}", thresholds.1));
                let groups =
                    [("all pairs", &found.all), ("positives", &found.positives), ("negatives", &found.negatives)];
                let rows = groups.map(|(name, counted)| row(name, counted));
                output::table(&[&found.provider, "pairs", &high, &low], &rows)
            })
        }
        Action::Sheet { pools, out, filled, queries, seed, print, force } => {
            let pools = read_queries(pools)?;
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
    args.force.overwrite().check(&args.out)?;
    let queries = args.queries.read()?;
    let between = args.similarity.between(&queries, &queries)?;
    let (thresholds, calibration) = match (args.thresholds, &args.known) {
        (Some(thresholds), _) => (thresholds.thresholds(), Calibration::Given),
        (None, Some(path)) => by_known_pools(&queries, &read_queries(path)?, &*between, PUBLISHED_POSITIVES, LOST)?,
        (None, None) => {
            let given = args.shares.map(|Pair(positive, negative)| Shares { positive, negative });
            by_share(&*between, given.unwrap_or(USUAL_SHARES))?
        }
    };
    let collection = cuemark_protocols::pools::Collection::new(&queries)?;
    let matching = |provider: &String| with_videos(provider, &queries, collection.videos());
    let matching = args.video_similarity.as_ref().map(matching).transpose()?;
    let settings =
        PoolSettings { videos: args.videos, positives: args.positives, thresholds, calibration, seed: args.seed };
    let pools = make(&queries, &*between, matching.as_deref(), settings)?;
    pools.write(&args.out, args.force.overwrite())?;
    let report = &pools.report;
    args.print.result(&json!({ "settings": pools.settings, "report": report, "out": args.out }), || {
        let by_count = report.positives.iter().enumerate();
        let by_count: Vec<String> =
            by_count.map(|(n, queries)| format!("{}: {}", n + 1, thousands(*queries))).collect();
        let videos = report.video_filter.as_ref().map_or_else(String::new, |filter| {
            let (gold, negative) = (filter.gold_mean, filter.negative_mean);
            format!("\nvideos by {}: positives at {gold:.3}, negatives at {negative:.3}", filter.provider)
        });
        format!(
            "{} of {} queries have a pool of {} videos; {} dropped for want of negatives\n\
             positives by {} at {:.3}, negatives at {:.3}; {:.2} positives on average ({}){videos}\nwrote {}",
            thousands(report.kept),
            thousands(report.queries),
            thousands(pools.settings.videos),
            thousands(report.dropped),
            report.provider,
            thresholds.positive,
            thresholds.negative,
            report.mean_positives,
            by_count.join(", "),
            args.out
        )
    })
}
