//! `cuemark world`: the built-in synthetic world, made and checked.

use camino::{Utf8Path, Utf8PathBuf};
use clap::Subcommand;
use cuemark::{AuditWorld, AuditedWorld};
use cuemark_features::sight::Strength;
use cuemark_world::{AuditFigure, Reels, WorldOptions, WorldSize};

use crate::input::Force;
use crate::output::{self, Outcome, Print, percent, thousands};
use crate::progress::watched;

/// The built-in synthetic world: films of coloured shapes in which the truth is known.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Film a world: videos, features, queries, parses, grades, pools.
    Make(Make),
    /// Check a world against what it promises.
    Audit {
        #[command(flatten)]
        audit: AuditWorld,
        #[command(flatten)]
        print: Print,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Make {
    /// The folder to make it in; a stopped world of the same settings is resumed.
    #[arg(long, value_name = "DIR")]
    out: Utf8PathBuf,
    /// How large: demo (700 videos), small (2,000) or full (20,000, the size of the real datasets).
    #[arg(long, value_name = "SIZE", default_value = "small")]
    size: WorldSize,
    /// Videos over all splits, where no size will do.
    #[arg(long, value_name = "N", conflicts_with = "size")]
    videos: Option<usize>,
    /// Every random choice hangs on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How strongly the place of a moment can be guessed, 0 to 1.
    #[arg(long, value_name = "B", default_value_t = 0.8)]
    bias: f64,
    /// How much of that guess hangs on the verb, 0 to 1; the rest is the same for all queries.
    #[arg(long, value_name = "SHARE", default_value_t = 0.75)]
    verb_share: f64,
    /// How much of that guess hangs on the actor's colour, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    actor_share: f64,
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
    /// How far the three raters of clips are from what a clip shows, in grades.
    #[arg(long, value_name = "SD", default_value_t = 0.7)]
    disagreement: f64,
    /// The extractors whose features are stored, by commas: weak, shape, motion. Default: all; `motion` for the full size
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = strength)]
    features: Vec<Strength>,
    /// Write a video file for every film; needs `ffmpeg`.
    #[arg(long)]
    mp4: bool,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::Make(args) => make(args),
        Action::Audit { audit: request, print } => audit(request, *print),
    }
}

fn strength(name: &str) -> Result<Strength, String> {
    let of_name = Strength::ALL.into_iter().find(|strength| strength.name() == name);
    of_name.ok_or_else(|| format!("`{name}` is no extractor of the world: weak, shape or motion"))
}

fn make(args: &Make) -> anyhow::Result<Outcome> {
    let strengths = match (args.features.is_empty(), args.videos.is_none() && args.size == WorldSize::Full) {
        (false, _) => args.features.clone(),
        (true, false) => Strength::ALL.to_vec(),
        // A gigabyte that nearly no run reads.
        (true, true) => vec![Strength::Motion],
    };
    let options = WorldOptions {
        videos: args.videos.unwrap_or_else(|| args.size.films()),
        seed: args.seed,
        length: args.length,
        events: args.events,
        bias: args.bias,
        verb_share: args.verb_share,
        actor_share: args.actor_share,
        overlong: args.overlong,
        vocabulary: args.vocabulary,
        noise: args.noise,
        disagreement: args.disagreement,
        reels: if args.mp4 { Reels::Mp4 } else { Reels::None },
        strengths,
        overwrite: args.force.overwrite(),
    };
    let report = watched("filming", |progress| cuemark_world::make(&options, &args.out, progress))?;
    args.print.result(&report, || {
        let rows: Vec<Vec<String>> = report
            .splits
            .iter()
            .map(|split| vec![split.name.clone(), thousands(split.videos), thousands(split.queries)])
            .collect();
        format!(
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
        )
    })
}

fn audit(request: &AuditWorld, print: Print) -> anyhow::Result<Outcome> {
    let found = watched("auditing", |progress| request.run(progress))?;
    let outcome = print.result(&found, || audit_text(&request.dir, &found))?;
    Ok(if found.is_sound() { outcome } else { outcome.with_problems() })
}

fn audit_text(dir: &Utf8Path, made: &AuditedWorld) -> String {
    let world = &made.world;
    let with_interval =
        |i: &AuditFigure| format!("{} ({} – {})", percent(i.value), percent(i.interval.low), percent(i.interval.high));
    let mut rows: Vec<Vec<String>> = world
        .oracle
        .iter()
        .map(|gap| {
            let cells = [&gap.iid, &gap.ood, &gap.gap].map(with_interval);
            [vec![format!("oracle, {}", gap.metric)], cells.to_vec()].concat()
        })
        .collect();
    for (place, report) in [("world's splits", &made.baselines), ("cd splits", &made.cd)] {
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
    let tens: Vec<String> = made.candidates.mean_by_tens.iter().map(|mean| format!("{mean:.2}")).collect();
    let grades: Vec<String> =
        made.candidates.by_grade.iter().enumerate().map(|(grade, n)| format!("{grade}: {}", thousands(*n))).collect();
    let ratings = world.ratings.map_or_else(String::new, |ratings| {
        let clips = thousands(ratings.clips);
        format!(
            "the world's raters:    off by {:.2} grades, {:.2} apart, of {clips} clips\n",
            ratings.off, ratings.apart
        )
    });
    let faults: String = world.faults.iter().map(|fault| format!("WRONG: {fault}\n")).collect();
    let verdict = if world.faults.is_empty() { "the world is what it says\n" } else { "" };
    format!(
        "{dir}: {} videos, bias {}, seed {}\n\n{gaps}\n\n{distances}\
         A split that selects rare places, such as cd, shows a gap for guesses even at bias 0: a property of that protocol.\n\n\
         the world's pools:     precision {}, recall {}\n\
         pools made by words:   precision {}, recall {}, {} positives unclaimed in {} pools\n\
         the world's grades:    {} exact, {} within one level, of {} moments\n{ratings}\
         candidates by words:   mean grade {:.2} ({:.2} – {:.2}); by tens of ranks {}; by grade {}\n\n{faults}{verdict}",
        thousands(world.manifest.options.videos),
        world.manifest.options.bias,
        world.manifest.options.seed,
        with_interval(&world.pools.precision),
        with_interval(&world.pools.recall),
        with_interval(&made.pools.precision),
        with_interval(&made.pools.recall),
        thousands(made.pools.unclaimed),
        thousands(made.pools.pools),
        with_interval(&world.graded.exact),
        with_interval(&world.graded.within_one),
        thousands(world.graded.moments),
        made.candidates.mean.value,
        made.candidates.mean.interval.low,
        made.candidates.mean.interval.high,
        tens.join(", "),
        grades.join(", "),
    )
}
