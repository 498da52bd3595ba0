//! `cuemark rank`: graded relevance for imprecise queries.

use std::collections::HashMap;

use camino::Utf8PathBuf;
use clap::Subcommand;
use cuemark::{Queries, SimilarityBy, TakeNamesOut};
use cuemark_core::VideoId;
use cuemark_data::read_ratings;
use cuemark_formats::{Source, WholeFile, json, write_truth};
use cuemark_protocols::ranked::candidates::{self, CandidateSettings};
use cuemark_protocols::ranked::frames::FrameRate;
use cuemark_protocols::ranked::label_studio::{self, VideoFile};
use cuemark_protocols::ranked::{agreement, consensus, exam, proxy, pseudo_train};
use serde::Deserialize;
use serde_json::json;

use crate::input::Force;
use crate::output::{self, Outcome, Print, percent, thousands};
use crate::progress::watched;

/// Graded relevance for imprecise queries: rewriting, candidates, ratings, consensus.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Take the names of characters out of queries, with two checks and queues for what fails them.
    ///
    /// With `--program` or `--endpoint` a language model rewrites every query: at temperature 0, and, where a name is left or the
    /// meaning is lost, once more at 0.2 with the fault named. Answers are kept in `answers.jsonl`, so that a stopped run goes on.
    Rewrite {
        #[command(flatten)]
        request: Box<TakeNamesOut>,
        #[command(flatten)]
        print: Print,
    },
    /// The moments whose captions are likest to each query, in batches to be rated.
    Candidates {
        #[command(flatten)]
        queries: Queries,
        /// Captions, each with its moment.
        #[arg(long, value_name = "FILE")]
        captions: Utf8PathBuf,
        #[command(flatten)]
        similarity: SimilarityBy,
        /// Candidates of a query at the most.
        #[arg(long, value_name = "K", default_value_t = 40)]
        most: usize,
        /// Ratings of earlier batches: only what the second-batch rule asks for is written.
        #[arg(long, value_name = "FILE.csv")]
        ratings: Option<Utf8PathBuf>,
        /// Continue when the last ratings of a batch average this much.
        #[arg(long, value_name = "GRADE", default_value_t = 2.0)]
        bar: f64,
        /// Draw this many of the likest and as many random moments instead, for the proxy study.
        #[arg(long, value_name = "N", conflicts_with = "ratings")]
        study: Option<usize>,
        /// Where to write them.
        #[arg(long, value_name = "FILE.jsonl")]
        out: Utf8PathBuf,
        /// Seed of the random moments.
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
        #[command(flatten)]
        print: Print,
        #[command(flatten)]
        force: Force,
    },
    /// What several people's ratings come to.
    Consensus {
        /// `pair_id,worker,relevance` rows.
        #[arg(long = "in", value_name = "FILE.csv")]
        input: Utf8PathBuf,
        /// Write `pair_id,relevance` of what has consensus.
        #[arg(long, value_name = "FILE.csv")]
        out: Option<Utf8PathBuf>,
        /// The candidates that were rated, to write graded truth with `--truth-out`.
        #[arg(long, value_name = "FILE.jsonl", requires = "truth_out")]
        candidates: Option<Utf8PathBuf>,
        /// Where to write graded truth.
        #[arg(long, value_name = "FILE.jsonl", requires = "candidates")]
        truth_out: Option<Utf8PathBuf>,
        #[command(flatten)]
        print: Print,
        #[command(flatten)]
        force: Force,
    },
    /// How far people agree: kappas, spread of ratings; with experts' ratings, an exam.
    Agreement {
        /// `pair_id,worker,relevance` rows.
        #[arg(long = "in", value_name = "FILE.csv")]
        input: Utf8PathBuf,
        /// Compare two people only when they rated this many pairs both.
        #[arg(long, value_name = "N", default_value_t = 30)]
        least_shared: usize,
        /// Experts' ratings: the median is the exam's truth.
        #[arg(long, value_name = "FILE.csv")]
        experts: Option<Utf8PathBuf>,
        /// Grades an answer may be off in the exam.
        #[arg(long, value_name = "N", default_value_t = 1)]
        tolerance: u8,
        /// Candidates of a proxy study: relevance against similarity and rank.
        #[arg(long, value_name = "FILE.jsonl")]
        study: Option<Utf8PathBuf>,
        #[command(flatten)]
        print: Print,
    },
    /// Training sets of the likest moments, queries of val and test taken out.
    PseudoTrain {
        #[command(flatten)]
        queries: Queries,
        /// Captions, each with its moment.
        #[arg(long, value_name = "FILE")]
        captions: Utf8PathBuf,
        /// Queries that must not be trained on; may be given several times.
        #[arg(long, value_name = "FILE")]
        held_out: Vec<Utf8PathBuf>,
        #[command(flatten)]
        similarity: SimilarityBy,
        /// How many moments a query gets; a file for each.
        #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = pseudo_train::PUBLISHED_TOP)]
        top: Vec<usize>,
        /// The folder for train-topN.jsonl.
        #[arg(long, value_name = "DIR")]
        out: Utf8PathBuf,
        #[command(flatten)]
        print: Print,
        #[command(flatten)]
        force: Force,
    },
    /// Write candidates as Label Studio tasks.
    Export {
        /// The candidates.
        #[arg(long = "in", value_name = "FILE.jsonl")]
        input: Utf8PathBuf,
        /// JSON lines `{"video","url","framerate"}`.
        #[arg(long, value_name = "FILE.jsonl")]
        videos: Utf8PathBuf,
        /// Where to write the tasks; the labelling configuration goes beside it as `.xml`.
        #[arg(long, value_name = "FILE.json")]
        out: Utf8PathBuf,
        #[command(flatten)]
        force: Force,
    },
    /// Read Label Studio's export back as ratings.
    Import {
        /// The export.
        #[arg(long = "in", value_name = "FILE.json")]
        input: Utf8PathBuf,
        /// Where to write `pair_id,worker,relevance` rows.
        #[arg(long, value_name = "FILE.csv")]
        out: Utf8PathBuf,
        #[command(flatten)]
        print: Print,
        #[command(flatten)]
        force: Force,
    },
}

pub(crate) fn run(action: Action) -> anyhow::Result<Outcome> {
    match action {
        Action::Rewrite { request, print } => {
            let done = watched("rewriting", |progress| request.run(progress))?;
            let report = done.report;
            print.result(&done, || {
                format!(
                    "{} accepted ({} changed), {} to retry, {} for review; wrote {}",
                    thousands(report.accepted),
                    thousands(report.changed),
                    thousands(report.retry),
                    thousands(report.review),
                    done.out
                )
            })
        }
        Action::Candidates { queries, captions, similarity, most, ratings, bar, study, out, seed, print, force } => {
            let (queries, captions) = (queries.read()?, Queries::new(captions).read()?);
            let between = watched("comparing", |progress| similarity.between(&queries, &captions, progress))?;
            let settings = CandidateSettings { most, bar, ..CandidateSettings::default() };
            let found = match study {
                Some(each) => {
                    let study = proxy::StudySettings { top: each, random: each, seed };
                    proxy::choose(&queries, &captions, &*between, study)?
                }
                None => candidates::candidates(&queries, &captions, &*between, &settings)?,
            };
            let found = match ratings {
                Some(path) => candidates::next_batch(&found, &read_ratings(&Source::new(path))?, &settings)?,
                None => found,
            };
            candidates::write(&found, between.name(), &settings, &out, force.overwrite())?;
            let told = json!({ "provider": between.name(), "pairs": found.len(), "out": out });
            print
                .result(&told, || format!("wrote {} candidates by {} to {out}", thousands(found.len()), between.name()))
        }
        Action::Consensus { input, out, candidates: rated, truth_out, print, force } => {
            let grades = consensus::grade(&read_ratings(&Source::new(&input))?)?;
            if let Some(path) = &out {
                grades.write(path, force.overwrite())?;
            }
            if let (Some(rated), Some(path)) = (rated, truth_out) {
                let truths = candidates::graded(&candidates::read(&Source::new(rated))?, &grades)?;
                let mut file = WholeFile::create(&path, force.overwrite())?;
                write_truth(&truths, &mut file)?;
                file.finish()?;
            }
            let report = grades.report();
            print.result(&report, || {
                let rows: Vec<Vec<String>> =
                    report.scores.iter().map(|(grade, pairs)| vec![grade.to_string(), thousands(*pairs)]).collect();
                format!(
                    "{} ratings of {} pairs: {} with consensus, {} discarded\n\n{}",
                    thousands(report.ratings),
                    thousands(report.pairs),
                    thousands(report.kept),
                    thousands(report.discarded),
                    output::table(&["grade", "pairs"], &rows)
                )
            })
        }
        Action::Agreement { input, least_shared, experts, tolerance, study, print } => {
            let ratings = read_ratings(&Source::new(&input))?;
            let report = agreement::agreement(&ratings, least_shared)?;
            let marks = match experts {
                Some(path) => Some(exam::Exam::new(&read_ratings(&Source::new(path))?, tolerance)?.mark(&ratings)?),
                None => None,
            };
            let study = match study {
                Some(path) => {
                    let rated = candidates::read(&Source::new(path))?;
                    Some(proxy::study(&rated, &consensus::grade(&ratings)?, 1_000, 0)?)
                }
                None => None,
            };
            let all = json!({ "agreement": report, "exam": marks, "study": study });
            print.result(&all, || agreement_text(&report, marks.as_deref(), study.as_ref()))
        }
        Action::PseudoTrain { queries, captions, held_out, similarity, top, out, print, force } => {
            let mut held = Vec::new();
            for path in &held_out {
                held.extend(Queries::new(path).read()?);
            }
            let (queries, removed) = pseudo_train::without(&queries.read()?, &held);
            let captions = Queries::new(captions).read()?;
            let between = watched("comparing", |progress| similarity.between(&queries, &captions, progress))?;
            let most = top.iter().copied().max().unwrap_or(1);
            let largest = pseudo_train::pseudo_train(&queries, &captions, &*between, most, removed)?;
            let mut written = Vec::new();
            for n in top {
                let path = out.join(format!("train-top{n}.jsonl"));
                largest.cut(n).write(&path, force.overwrite())?;
                written.push(path.into_string());
            }
            let told =
                json!({ "provider": between.name(), "queries": queries.len(), "removed": removed, "files": written });
            print.result(&told, || {
                format!(
                    "{} queries ({} taken out by id, {} by sentence), the likest by {}; wrote {}",
                    thousands(queries.len()),
                    thousands(removed.by_id),
                    thousands(removed.by_sentence),
                    between.name(),
                    written.join(", ")
                )
            })
        }
        Action::Export { input, videos, out, force } => {
            let rated = candidates::read(&Source::new(&input))?;
            let videos = read_videos(&Source::new(&videos))?;
            let mut file = WholeFile::create(&out, force.overwrite())?;
            label_studio::export(&rated, &videos, &mut file)?;
            let config = out.with_extension("xml");
            WholeFile::write_all_to(&config, force.overwrite(), label_studio::CONFIG.as_bytes())?;
            file.finish()?;
            Ok(Outcome::ok(format!(
                "wrote {} tasks to {out} and their configuration to {config}",
                thousands(rated.len())
            )))
        }
        Action::Import { input, out, print, force } => {
            let import = label_studio::import(&Source::new(&input))?;
            let mut file = WholeFile::create(&out, force.overwrite())?;
            file.put(b"pair_id,worker,relevance\n")?;
            for rating in &import.ratings {
                file.put(format!("{},{},{}\n", rating.pair_id, rating.worker, rating.relevance).as_bytes())?;
            }
            file.finish()?;
            let told =
                json!({ "ratings": import.ratings.len(), "spans": import.spans.len(), "cancelled": import.cancelled });
            print.result(&told, || {
                format!(
                    "{} ratings, {} marked spans, {} cancelled; wrote {out}",
                    thousands(import.ratings.len()),
                    thousands(import.spans.len()),
                    thousands(import.cancelled)
                )
            })
        }
    }
}

/// Where a video can be watched, and its frames a second.
#[derive(Deserialize)]
struct VideoLine {
    video: VideoId,
    url: String,
    framerate: f64,
}

fn read_videos(source: &Source) -> anyhow::Result<HashMap<VideoId, VideoFile>> {
    let mut videos = HashMap::new();
    source.for_each_line(|line, text| {
        let VideoLine { video, url, framerate } = json::decode_line(source, line, text)?;
        let rate = FrameRate::new(framerate)
            .ok_or_else(|| source.record(line, "framerate", format!("{framerate} is not a frame rate")))?;
        videos.insert(video, VideoFile { url, rate });
        Ok(())
    })?;
    Ok(videos)
}

fn agreement_text(
    report: &agreement::AgreementReport,
    marks: Option<&[exam::Marks]>,
    study: Option<&proxy::StudyReport>,
) -> String {
    let kappa = |kappa: Option<f64>| kappa.map_or_else(|| "–".to_owned(), |kappa| format!("{kappa:.4}"));
    let spread: Vec<Vec<String>> = report
        .spread
        .iter()
        .enumerate()
        .map(|(lowest, row)| std::iter::once(lowest.to_string()).chain(row.iter().map(|n| thousands(*n))).collect())
        .collect();
    let mut text = format!(
        "{} people, {} ratings of {} pairs\nFleiss' kappa {}, Cohen's kappa {}, linearly weighted {} (means over {} pairs of people)\n\n{}",
        thousands(report.workers),
        thousands(report.consensus.ratings),
        thousands(report.consensus.pairs),
        kappa(report.fleiss_kappa),
        kappa(report.cohen_kappa),
        kappa(report.weighted_cohen_kappa),
        thousands(report.rater_pairs.len()),
        output::table(&["pairs by lowest and highest rating", "0", "1", "2", "3", "4"], &spread)
    );
    if let Some(marks) = marks {
        let rows: Vec<Vec<String>> = marks
            .iter()
            .map(|m| vec![m.worker.to_string(), thousands(m.answered), percent(m.disagreement), kappa(m.kappa)])
            .collect();
        text.push_str(&format!("\n\n{}", output::table(&["exam, person", "answered", "% wrong", "kappa"], &rows)));
    }
    if let Some(study) = study {
        let row = |name: &str, c: &proxy::Correlation| {
            vec![name.to_owned(), format!("{:.3}", c.mean), format!("{:.3} – {:.3}", c.interval.low, c.interval.high)]
        };
        let rows = [
            row("similarity, Spearman", &study.spearman_similarity),
            row("similarity, Kendall", &study.kendall_similarity),
            row("rank, Spearman", &study.spearman_rank),
            row("rank, Kendall", &study.kendall_rank),
        ];
        text.push_str(&format!("\n\n{}", output::table(&["relevance against", "mean", "95 % interval"], &rows)));
    }
    text
}
