//! `cuemark world`: the built-in synthetic world, made and checked.

use camino::{Utf8Path, Utf8PathBuf};
use clap::Subcommand;
use cuemark_core::{Extra, Prediction, Predictions, Progress, QueryPredictions, Truth};
use cuemark_formats::{Source, read_truth};
use cuemark_protocols::pools::calibration::{Shares, by_share};
use cuemark_protocols::pools::{self, PoolSettings};
use cuemark_protocols::ranked::candidates::{self, Candidate, CandidateSettings};
use cuemark_protocols::splits;
use cuemark_text::similarity::Tfidf;
use cuemark_world::{
    AuditFigure, CandidateGrades, PoolQuality, Reels, WorldLog, WorldOptions, grade_candidates, pool_quality,
};
use serde_json::json;

use crate::commands::pool;
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
        /// The world's folder.
        dir: Utf8PathBuf,
        #[command(flatten)]
        print: Print,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Make {
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
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::Make(args) => make(args),
        Action::Audit { dir, print } => audit(dir, *print),
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

/// What our protocols make of the world, against what its log knows.
struct Constructed {
    /// What guesses reach on the world's own splits.
    baselines: splits::audit::AuditReport,
    /// What they reach on splits that `cd` makes of it.
    cd: splits::audit::AuditReport,
    /// Pools that words alone build, against known positives.
    pools: PoolQuality,
    /// Candidates that words alone find for imprecise queries, against known grades.
    candidates: CandidateGrades,
}

fn audit(dir: &Utf8Path, print: Print) -> anyhow::Result<Outcome> {
    let world = cuemark_world::audit(dir)?;
    let constructed = watched("auditing", |progress| construct(dir, world.manifest.options.seed, progress))?;
    let gaps = json!({ "baselines": constructed.baselines.gaps, "cd": constructed.cd.gaps });
    let made = json!({ "pools": constructed.pools, "candidates": constructed.candidates });
    let told = json!({ "world": world, "gaps": gaps, "constructed": made });
    let outcome = print.result(&told, || audit_text(dir, &world, &constructed))?;
    Ok(if world.faults.is_empty() { outcome } else { outcome.with_problems() })
}

fn construct(dir: &Utf8Path, seed: u64, progress: &Progress) -> anyhow::Result<Constructed> {
    let log = WorldLog::open(dir)?;
    let own = splits::read_folder(&dir.join("splits"), progress)?;
    let everything: Vec<Truth> = own.iter().flat_map(|split| split.queries.iter().cloned()).collect();
    let made = splits::cd(&everything, &splits::CdOptions { seed, ..Default::default() }, progress)?;
    Ok(Constructed {
        baselines: splits::audit::audit(&own, seed, progress)?,
        cd: splits::audit::audit(&made.splits, seed, progress)?,
        pools: construct_pools(dir, &log, seed)?,
        candidates: construct_candidates(dir, &log, &everything)?,
    })
}

/// The queries of the world's pools, each with its own video only, pooled anew by their words.
fn construct_pools(dir: &Utf8Path, log: &WorldLog, seed: u64) -> anyhow::Result<PoolQuality> {
    let known = read_truth(&Source::new(dir.join("pools.jsonl")), Default::default())?.queries;
    let own_alone = |truth: &Truth| {
        let first = truth.moments.first().map(|graded| graded.moment.clone())?;
        let video = cuemark_core::Video { id: first.video, duration: None };
        Some(Truth::single(truth.query.clone(), video, [first.span]))
    };
    let queries: Vec<Truth> = known.iter().filter_map(own_alone).collect();
    let texts: Vec<&str> = queries.iter().map(|truth| truth.query.text.as_str()).collect();
    let words = Tfidf::new(&texts, &texts);
    // The world's vocabulary is small, so that most sentences share words; nine in ten pairs still mean different things.
    let (thresholds, calibration) = by_share(&words, Shares { negative: 0.9, ..pool::USUAL_SHARES })?;
    let videos = pools::Collection::new(&queries)?.videos().len().min(20);
    let settings = PoolSettings { videos, positives: 5.min(videos), thresholds, calibration, seed };
    Ok(pool_quality(log, &pools::make(&queries, &words, None, settings)?.truths)?)
}

/// The ten likest moments of every imprecise query, by the words of the precise ones.
fn construct_candidates(dir: &Utf8Path, log: &WorldLog, captions: &[Truth]) -> anyhow::Result<CandidateGrades> {
    let queries = read_truth(&Source::new(dir.join("graded.jsonl")), Default::default())?.queries;
    let texts = |truths: &[Truth]| truths.iter().map(|truth| truth.query.text.clone()).collect::<Vec<String>>();
    let words = Tfidf::new(&texts(&queries), &texts(captions));
    let settings = CandidateSettings { most: 40.min(captions.len()), ..CandidateSettings::default() };
    let found = candidates::candidates(&queries, captions, &words, &settings)?;
    let lists = found.chunk_by(|a, b| a.qid == b.qid).map(|list| QueryPredictions {
        query: list[0].qid.clone(),
        ranked: list.iter().map(as_prediction).collect(),
        saliency: None,
        extra: Extra::default(),
    });
    Ok(grade_candidates(log, &Predictions::any(lists.collect()))?)
}

fn as_prediction(candidate: &Candidate) -> Prediction {
    let score = Some(f64::from(candidate.similarity));
    Prediction { video: Some(candidate.video.clone()), span: candidate.span, score }
}

fn audit_text(dir: &Utf8Path, world: &cuemark_world::AuditReport, made: &Constructed) -> String {
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
    let faults: String = world.faults.iter().map(|fault| format!("WRONG: {fault}\n")).collect();
    let verdict = if world.faults.is_empty() { "the world is what it says\n" } else { "" };
    format!(
        "{dir}: {} videos, bias {}, seed {}\n\n{gaps}\n\n{distances}\
         A split that selects rare places, such as cd, shows a gap for guesses even at bias 0: a property of that protocol.\n\n\
         the world's pools:     precision {}, recall {}\n\
         pools made by words:   precision {}, recall {}, {} positives unclaimed in {} pools\n\
         the world's grades:    {} exact, {} within one level, of {} moments\n\
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
