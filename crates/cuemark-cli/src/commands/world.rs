//! `cuemark world`: the built-in synthetic world, made and checked.

use camino::{Utf8Path, Utf8PathBuf};
use clap::Subcommand;
use cuemark_protocols::splits;
use cuemark_world::{Interval, Reels, WorldOptions};
use serde_json::json;

use crate::commands::eval::first_verb;
use crate::input::Force;
use crate::output::{self, Outcome, percent, thousands};
use crate::progress;

/// The built-in synthetic world: films of coloured shapes in which the truth is known.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Film a world: videos, features, queries, parses, grades, pools.
    Make(Make),
    /// Check a world against what it promises.
    Audit {
        /// The world's folder.
        dir: Utf8PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Make {
    /// The folder to make it in; a stopped world of the same settings is resumed.
    #[arg(long, value_name = "DIR")]
    out: Utf8PathBuf,
    /// Videos over all splits.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    videos: usize,
    /// Every random choice hangs on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How strongly the place of a moment can be guessed, 0 to 1.
    #[arg(long, value_name = "B", default_value_t = 0.8)]
    bias: f64,
    /// Mean length of a video, in seconds.
    #[arg(long, value_name = "S", default_value_t = 32.0)]
    length: f64,
    /// Events per video.
    #[arg(long, value_name = "N", default_value_t = 6)]
    events: usize,
    /// Share of moments that fill half of their video or more.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    overlong: f64,
    /// Words that each meaning may be said with, 1 to 4.
    #[arg(long, value_name = "N", default_value_t = 3)]
    vocabulary: usize,
    /// Standard deviation of the camera's noise, as a fraction of white.
    #[arg(long, value_name = "SD", default_value_t = 0.03)]
    noise: f64,
    /// Write a video file for every film; needs `ffmpeg`.
    #[arg(long)]
    mp4: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.action {
        Action::Make(args) => make(args),
        Action::Audit { dir, json } => audit(dir, *json),
    }
}

fn make(args: &Make) -> anyhow::Result<Outcome> {
    let options = WorldOptions {
        videos: args.videos,
        seed: args.seed,
        length: args.length,
        events: args.events,
        bias: args.bias,
        overlong: args.overlong,
        vocabulary: args.vocabulary,
        noise: args.noise,
        reels: if args.mp4 { Reels::Mp4 } else { Reels::None },
        overwrite: args.force.overwrite(),
    };
    let bar = progress::bar(args.videos, "filming");
    let report = cuemark_world::make(&options, &args.out, &|done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    if args.json {
        return Ok(Outcome::json(&serde_json::to_value(&report)?));
    }
    let rows: Vec<Vec<String>> = report
        .splits
        .iter()
        .map(|split| vec![split.name.clone(), thousands(split.videos), thousands(split.queries)])
        .collect();
    Ok(Outcome::ok(format!(
        "{}\n\n{} events, {} spoken lines, {} graded queries, {} pools, {} words; bias {}, seed {}\nwrote {}",
        output::table(&["split", "videos", "queries"], &rows),
        thousands(report.events),
        thousands(report.lines),
        thousands(report.graded),
        thousands(report.pools),
        thousands(report.words),
        args.bias,
        args.seed,
        args.out
    )))
}

/// What the world says of itself, and what guesses reach on its own splits and on splits that `cd` makes of it.
fn audit(dir: &Utf8Path, json: bool) -> anyhow::Result<Outcome> {
    let world = cuemark_world::audit(dir)?;
    let own = splits::read_folder(&dir.join("splits"))?;
    let seed = world.manifest.options.seed;
    let on_own = splits::audit::audit(&own, &first_verb, seed)?;
    let everything: Vec<_> = own.iter().flat_map(|split| split.queries.iter().cloned()).collect();
    let made = splits::cd(&everything, &splits::CdOptions { seed, ..Default::default() })?;
    let on_cd = splits::audit::audit(&made.splits, &first_verb, seed)?;
    let sound = world.faults.is_empty();
    let outcome = if json {
        Outcome::json(&json!({ "world": world, "baselines": on_own.gaps, "cd": on_cd.gaps }))
    } else {
        Outcome::ok(audit_text(dir, &world, &on_own, &on_cd))
    };
    Ok(if sound { outcome } else { outcome.with_problems() })
}

fn audit_text(
    dir: &Utf8Path,
    world: &cuemark_world::AuditReport,
    on_own: &splits::audit::AuditReport,
    on_cd: &splits::audit::AuditReport,
) -> String {
    let with_interval = |i: &Interval| format!("{} ({} – {})", percent(i.value), percent(i.low), percent(i.high));
    let mut rows: Vec<Vec<String>> = world
        .oracle
        .iter()
        .map(|gap| {
            let cells = [&gap.iid, &gap.ood, &gap.gap].map(with_interval);
            [vec![format!("oracle, {}", gap.metric)], cells.to_vec()].concat()
        })
        .collect();
    for (place, report) in [("world's splits", on_own), ("cd splits", on_cd)] {
        rows.extend(report.gaps.iter().map(|gap| {
            vec![
                format!("{}, dR@1,IoU=0.5, {place}", gap.baseline),
                percent(gap.iid),
                percent(gap.ood),
                format!("{} ({} – {})", percent(gap.gap), percent(gap.low), percent(gap.high)),
            ]
        }));
    }
    let gaps = output::table(&["percent, 95 % interval", "test-iid", "test-ood", "gap"], &rows);
    let distances: String = world
        .locations
        .iter()
        .map(|d| {
            let [left, right] = &d.splits;
            format!(
                "{left} against {right}: locations differ by {:.3}, by chance {:.3}, p = {:.3}\n",
                d.distance, d.by_chance, d.p_value
            )
        })
        .collect();
    let faults: String = world.faults.iter().map(|fault| format!("WRONG: {fault}\n")).collect();
    let verdict = if world.faults.is_empty() { "the world is what it says\n" } else { "" };
    format!(
        "{dir}: {} videos, bias {}, seed {}\n\n{gaps}\n\n{distances}\
         pools: precision {}, recall {}, {} positives unclaimed\n\
         grades: {} exact, {} within one level, of {} moments\n\
         A split that selects rare places, such as cd, shows a gap for guesses even at bias 0: a property of that protocol.\n\n{faults}{verdict}",
        thousands(world.manifest.options.videos),
        world.manifest.options.bias,
        world.manifest.options.seed,
        with_interval(&world.pools.precision),
        with_interval(&world.pools.recall),
        thousands(world.pools.unclaimed),
        with_interval(&world.graded.exact),
        with_interval(&world.graded.within_one),
        thousands(world.graded.moments),
    )
}
