//! `cuemark index eval`: how good an index answers, on queries whose answers are known.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark::{IndexPlace, JudgedFile};
use cuemark_core::Truth;
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::Source;
use cuemark_search::{EngineUrl, FilmShares, FilmsQuality, Quality, QualityOptions, Refusing, Reliability};
use cuemark_world::WorldLog;
use serde::Serialize;

use crate::output::{self, Outcome, Print, percent, thousands};
use crate::progress::watched;

/// Measure how good an index answers.
///
/// Asks every query in every way: exhaustively, as usual, and in two stages; and asks it again of the videos that have no
/// right answer. Prints NDCG and R@1 of each way, stated probabilities beside how often such answers are right, and how often
/// a question is told "nothing good enough" with and without an answer there. An answer is right when it overlaps a moment of
/// grade 3 or 4 (any moment where nothing is graded) by half.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: IndexPlace,
    /// The queries and their answers, in any truth layout; a query with a pool is asked of its pool. Default: what was judged on
    /// the page of this index
    #[arg(long, value_name = "FILE")]
    truth: Option<Utf8PathBuf>,
    /// The queries are about this built-in world: grade the moments of all its films instead of those of the query's pool.
    #[arg(long, value_name = "DIR")]
    world: Option<Utf8PathBuf>,
    /// Ask so many queries, spread evenly over the file. Default: all
    #[arg(long, value_name = "N")]
    queries: Option<usize>,
    /// Answers per question.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// The overlap from which an answer counts for NDCG.
    #[arg(long, value_name = "IOU", default_value_t = 0.5)]
    iou: f64,
    /// Questions that nothing in the index answers, a line each: how many of them are refused, and how many would be by a cut that
    /// is fitted on half of the films and measured on the others.
    #[arg(long, value_name = "FILE")]
    absent: Option<Utf8PathBuf>,
    /// Videos of the first of two stages; may be repeated.
    #[arg(long, value_name = "VIDEOS", default_values_t = [10, 50, 200])]
    two_stage: Vec<usize>,
    #[command(flatten)]
    print: Print,
}

/// What was measured.
#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    quality: Quality,
    films: FilmsQuality,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let (name, all) = match &args.truth {
        Some(path) => (path.clone(), read_truth(&Source::new(path), None, &ReadOptions::default())?.queries),
        None => judged(&args.place)?,
    };
    let step = args.queries.map_or(1, |wanted| all.len().div_ceil(wanted.max(1))).max(1);
    let truths: Vec<Truth> = all.into_iter().step_by(step).collect();
    let truths = match &args.world {
        Some(world) => everywhere(world, &truths)?,
        None => truths,
    };
    let index = args.place.open(None)?;
    let options = QualityOptions { answers: args.limit.max(1), iou: args.iou, two_stage: args.two_stage.clone() };
    let quality = watched("asking", |progress| Quality::of(&index, &truths, &options, progress))?;
    if quality.queries == 0 {
        anyhow::bail!("{name}: no query has a right answer among the videos of the index");
    }
    let absent = args.absent.as_deref().map(lines).transpose()?.unwrap_or_default();
    let films = watched("asking", |progress| FilmsQuality::of(&index, &truths, &absent, progress))?;
    let measured = Measured { quality, films };
    args.print.result(&measured, || format!("{}\n\n{}", text(&measured.quality, &options), films_text(&measured.films)))
}

/// The lines of a file that are not empty.
fn lines(path: &Utf8Path) -> anyhow::Result<Vec<String>> {
    let text = Source::new(path).text()?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn films_text(films: &FilmsQuality) -> String {
    let row = |about: &str, shares: &FilmShares| {
        let FilmShares { film_first, film_in_five, stretch_first, stretch_in_film, answered, .. } = *shares;
        let shown = [film_first, film_in_five, stretch_first, stretch_in_film, answered].map(percent);
        [vec![about.to_owned(), thousands(shares.queries)], shown.to_vec()].concat()
    };
    let chance = |about: &str, shares: &FilmShares| {
        let [first, five] = [shares.film_first_by_chance, shares.film_in_five_by_chance].map(percent);
        let rest = vec![String::new(); 3];
        [vec![format!("  {about}, by chance"), String::new(), first, five], rest].concat()
    };
    let mut rows = Vec::new();
    for (about, shares) in [("whole films", &films.whole), ("parts of films", &films.part)] {
        if shares.queries > 0 {
            rows.extend([row(about, shares), chance(about, shares)]);
        }
    }
    let header = ["questions about", "", "film first", "in five", "stretch first", "in its film", "answered"];
    let mut text = output::table(&header, &rows);
    if let Some(Refusing { queries, refused, halves }) = &films.refusing {
        text += &format!("\n\n{} questions without an answer: {} % refused", thousands(*queries), percent(*refused));
        for half in halves {
            text += &format!(
                "\na cut of {:.3} from one half: of the other, {} % of {} are answered, {} % of {} refused",
                half.cut,
                percent(half.answered),
                half.queries,
                percent(half.refused),
                half.absent
            );
        }
    }
    text
}

/// What people said of the answers of this index, one query for each question.
fn judged(place: &IndexPlace) -> anyhow::Result<(Utf8PathBuf, Vec<Truth>)> {
    let EngineUrl::File(folder) = place.url()? else {
        anyhow::bail!("an index on a server keeps no judgements; name a file with `--truth`");
    };
    let file = JudgedFile::in_folder(&folder);
    let judged = file.read()?;
    if judged.damaged > 0 {
        output::say(&format!("note: {}: {} lines cannot be read and were left out", file.path(), judged.damaged));
    }
    if judged.list.is_empty() {
        anyhow::bail!("nobody has judged an answer of `{folder}` yet; name a file with `--truth`");
    }
    Ok((file.path().to_owned(), judged.truths()))
}

/// The same queries with the graded moments of every film.
fn everywhere(world: &Utf8Path, truths: &[Truth]) -> anyhow::Result<Vec<Truth>> {
    let log = WorldLog::open(world)?;
    Ok(truths.iter().map(|truth| log.graded_everywhere(truth)).collect::<cuemark_world::Result<Vec<_>>>()?)
}

fn text(quality: &Quality, options: &QualityOptions) -> String {
    let ways: Vec<Vec<String>> = quality
        .ways
        .iter()
        .map(|way| {
            vec![
                way.way.clone(),
                percent(way.ndcg),
                percent(way.of_exhaustive),
                percent(way.first_right),
                percent(way.same_answers),
                format!("{:.1}", way.milliseconds),
            ]
        })
        .collect();
    let ndcg = format!("NDCG@{}, IoU={}", options.answers, options.iou);
    let header = ["", &ndcg, "% of exhaustive", "R@1", "% same answers", "ms"];
    let left_out = match quality.without_answer {
        0 => String::new(),
        queries => format!("; {} queries without a right answer left out", thousands(queries)),
    };
    format!(
        "{} queries, {} moments of {} videos{left_out}\n\n{}\n\nprobabilities, where there is a right answer (error {:.3}, \
         Brier {:.3})\n{}\n\nwhere there is none (error {:.3}, Brier {:.3})\n{}\n\nboth (error {:.3}, Brier {:.3})\n{}\n\n\
         \"nothing good enough\": {} % of questions with an answer, {} % of those without; {} % of them by a cut that keeps seven \
         of ten right first answers",
        thousands(quality.queries),
        thousands(quality.moments),
        thousands(quality.videos),
        output::table(&header, &ways),
        quality.present.error,
        quality.present.brier,
        bins(&quality.present),
        quality.absent.error,
        quality.absent.brier,
        bins(&quality.absent),
        quality.all.error,
        quality.all.brier,
        bins(&quality.all),
        percent(quality.silent_when_present),
        percent(quality.silent_when_absent),
        percent(quality.refused_keeping_seven),
    )
}

fn bins(reliability: &Reliability) -> String {
    let row = |bin: &cuemark_search::ReliabilityBin| {
        let range = format!("{} – {} %", 100.0 * bin.from, 100.0 * bin.to);
        vec![range, thousands(bin.answers), percent(bin.stated), percent(bin.right)]
    };
    let rows: Vec<Vec<String>> = reliability.bins.iter().map(row).collect();
    output::table(&["stated", "answers", "mean stated", "% right"], &rows)
}
