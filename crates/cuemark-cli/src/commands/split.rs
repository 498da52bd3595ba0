//! `cuemark split`: splits that expose bias, made and audited.

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Subcommand, ValueEnum};
use cuemark_protocols::splits::audit::{self, AuditReport};
use cuemark_protocols::splits::{
    CdOptions, Centre, CentreOptions, OodCut, StandardOptions, StandardTest, Ties, cd, centre, hash_inputs,
    read_folder, standard, write_folder,
};

use crate::commands::data::{DatasetFlags, note_dataset};
use crate::input::Force;
use crate::output::{self, Outcome, Print, percent, thousands};
use crate::progress::watched;

/// Splits that expose bias.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Part a dataset into train, val and test, with a manifest beside them.
    Make(Make),
    /// What a set of splits shares, how far apart its parts lie, and what guesses reach on each.
    Audit {
        /// A folder with train.jsonl, val.jsonl, test-iid.jsonl, test-ood.jsonl or test.jsonl.
        dir: Utf8PathBuf,
        /// Draw heat maps, length histograms and verb bars as SVG files in this folder.
        #[arg(long, value_name = "DIR")]
        plots: Option<Utf8PathBuf>,
        /// Seed of resampling and draws.
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
    /// The recipe.
    #[arg(long, value_enum)]
    protocol: Protocol,
    #[command(flatten)]
    dataset: DatasetFlags,
    /// The folder to write.
    #[arg(long, value_name = "DIR")]
    out: Utf8PathBuf,
    /// cd: the share of pairs that goes to test-ood.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    ood_share: f64,
    /// cd: what that share is of.
    #[arg(long, value_enum, default_value_t = CutArg::Final)]
    ood_cut: CutArg,
    /// cd: where a video goes whose pairs are evenly rare and common.
    #[arg(long, value_enum, default_value_t = TiesArg::Ood)]
    ties: TiesArg,
    /// cd: a video with a moment longer than this share of it is never test-ood.
    #[arg(long, value_name = "SHARE")]
    max_ood_length: Option<f64>,
    /// centre: whose centre decides.
    #[arg(long, value_enum, default_value_t = CentreArg::Video)]
    centre: CentreArg,
    /// standard: which test split, for datasets that have a choice.
    #[arg(long, value_enum, default_value_t = TestArg::Usual)]
    test: TestArg,
    /// Seed of the cut by video.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Protocol {
    /// The published parts, with a validation split cut where none is published.
    Standard,
    /// Changing distribution: the rarest places are test-ood.
    Cd,
    /// The last tenth by moment centre is test-ood.
    Centre,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CutArg {
    /// The share that test-ood ends up with.
    Final,
    /// The share of pairs that is marked before whole videos move.
    Preliminary,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TiesArg {
    /// To test-ood.
    Ood,
    /// To the rest.
    Iid,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CentreArg {
    /// The mean centre of a video's moments; no video is shared.
    Video,
    /// Each pair's own; test-ood shares videos with the rest.
    Pair,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TestArg {
    /// The one that most papers use.
    Usual,
    /// ActivityNet Captions: both validation files together.
    Merged,
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::Make(args) => make(args),
        Action::Audit { dir, plots, seed, print, force } => {
            let splits = watched("reading", |progress| read_folder(dir, progress))?;
            let report = watched("auditing", |progress| audit::audit(&splits, *seed, progress))?;
            if let Some(folder) = plots {
                for path in audit::draw(&splits, folder, force.overwrite())? {
                    output::say(&format!("drew {path}"));
                }
            }
            print.result(&report, || audit_text(dir, &report))
        }
    }
}

fn make(args: &Make) -> anyhow::Result<Outcome> {
    args.force.overwrite().check(&args.out)?;
    let dataset = args.dataset.load()?;
    note_dataset(&dataset);
    let seed = args.seed;
    let made = match args.protocol {
        Protocol::Cd => {
            let options = CdOptions {
                ood_share: args.ood_share,
                ood_cut: match args.ood_cut {
                    CutArg::Final => OodCut::Final,
                    CutArg::Preliminary => OodCut::Preliminary,
                },
                ties: match args.ties {
                    TiesArg::Ood => Ties::Ood,
                    TiesArg::Iid => Ties::Iid,
                },
                max_ood_length: args.max_ood_length,
                seed,
            };
            watched("splitting", |progress| cd(&dataset.all().queries, &options, progress))?
        }
        Protocol::Centre => {
            let centre_of = match args.centre {
                CentreArg::Video => Centre::Video,
                CentreArg::Pair => Centre::Pair,
            };
            centre(&dataset.all().queries, &CentreOptions { centre: centre_of, seed })?
        }
        Protocol::Standard => {
            let test = match args.test {
                TestArg::Usual => StandardTest::Usual,
                TestArg::Merged => StandardTest::Merged,
            };
            standard(dataset.card.name, &dataset.splits, &StandardOptions { test, seed })?
        }
    };
    let mut files: Vec<Utf8PathBuf> = dataset.splits.iter().map(|split| split.file.clone().into()).collect();
    files.dedup();
    let inputs = hash_inputs(&dataset.root, &files)?;
    let manifest = write_folder(&made, dataset.card.name, inputs, &args.out, args.force.overwrite())?;
    let found = serde_json::to_value(&made.found)?;
    args.print.result(&manifest, || {
        let rows: Vec<Vec<String>> = made
            .splits
            .iter()
            .map(|split| vec![split.name.clone(), thousands(split.videos.len()), thousands(split.queries.len())])
            .collect();
        let table = output::table(&["split", "videos", "queries"], &rows);
        let found: String =
            found.as_object().into_iter().flatten().map(|(name, value)| format!("{name}: {value}\n")).collect();
        format!("{table}\n\n{found}wrote {}", args.out)
    })
}

fn audit_text(dir: &Utf8Path, report: &AuditReport) -> String {
    let splits: Vec<Vec<String>> = report
        .splits
        .iter()
        .zip(&report.places)
        .map(|(split, place)| {
            let density = place.training_density.map_or_else(|| "–".to_owned(), |q| format!("{:.2}", q.median));
            vec![
                split.name.clone(),
                thousands(split.videos),
                thousands(split.queries),
                format!("{:.3}", place.mean_start),
                format!("{:.3}", place.mean_end),
                format!("{:.3}", place.mean_length),
                percent(place.longer_than_half),
                density,
            ]
        })
        .collect();
    let header = ["split", "videos", "queries", "start", "end", "length", "% > half", "training density"];
    let mut text = format!("{dir}\n\n{}\n", output::table(&header, &splits));
    let shared: Vec<String> = report
        .shared_videos
        .iter()
        .filter(|pair| pair.videos > 0)
        .map(|pair| format!("{} and {} share {} videos", pair.left, pair.right, thousands(pair.videos)))
        .collect();
    text.push_str(&format!(
        "\n{}\n\n",
        if shared.is_empty() { "no video is shared".to_owned() } else { shared.join("\n") }
    ));
    let distances: Vec<Vec<String>> = report
        .distances
        .iter()
        .map(|d| vec![format!("{} – {}", d.left, d.right), format!("{:.4}", d.energy), format!("{:.3}", d.p_value)])
        .collect();
    text.push_str(&output::table(&["energy distance of locations", "distance", "p"], &distances));
    if !report.baselines.is_empty() {
        let rows: Vec<Vec<String>> = report
            .baselines
            .iter()
            .flat_map(|b| {
                b.scores.iter().enumerate().map(|(n, s)| {
                    let (name, split) =
                        if n == 0 { (b.baseline.to_owned(), b.split.clone()) } else { Default::default() };
                    let spread = |sd: f64| if b.seeds > 1 { format!(" ± {}", percent(sd)) } else { String::new() };
                    vec![
                        name,
                        split,
                        s.threshold.to_string(),
                        format!("{}{}", percent(s.recall), spread(s.recall_sd)),
                        format!("{}{}", percent(s.discounted), spread(s.discounted_sd)),
                    ]
                })
            })
            .collect();
        text.push_str(&format!("\n\n{}", output::table(&["baseline", "split", "IoU", "R@1", "dR@1"], &rows)));
    }
    if !report.gaps.is_empty() {
        let rows: Vec<Vec<String>> = report
            .gaps
            .iter()
            .map(|g| {
                let interval = format!("{} – {}", percent(g.low), percent(g.high));
                vec![g.baseline.to_owned(), percent(g.iid), percent(g.ood), percent(g.gap), interval]
            })
            .collect();
        let header = ["dR@1,IoU=0.5", "test-iid", "test-ood", "gap", "95 % interval"];
        text.push_str(&format!("\n\n{}", output::table(&header, &rows)));
    }
    let top: Vec<&str> = report.verbs.top.iter().take(10).map(|verb| verb.verb.as_str()).collect();
    let coverage: Vec<String> = report
        .verbs
        .splits
        .iter()
        .zip(&report.verbs.coverage)
        .map(|(split, share)| format!("{split} {}", percent(*share)))
        .collect();
    text.push_str(&format!(
        "\n\nmost frequent verbs: {}\nthe 30 most frequent cover, %: {}",
        top.join(", "),
        coverage.join(", ")
    ));
    text
}
