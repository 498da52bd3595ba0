//! Fits the curve of an index to queries of the built-in world, imprecise and exact ones, at many sizes of the index. The curve of the encoder
//! that comes with the program was fitted on less, to the figures of `index eval` at two sizes (`results/notes/studies-2026-11-18.md`).
//!
//! `cargo run --release --example fit_curve -- INDEX WORLD OUT.json [ANSWERS.csv]`, where the last keeps every judged answer.

#![allow(clippy::print_stdout)] // an example talks to the terminal

use camino::Utf8Path;
use cuemark_core::{GradedMoment, Rng, RowPolicy, Truth, VideoId};
use cuemark_formats::{Overwrite, Source, WholeFile, read_truth};
use cuemark_search::{EngineUrl, Filter, Index, Question, RightMoments, SizedAnswer, encoder, fit_at_sizes};
use cuemark_tensor::Device;
use cuemark_world::WorldLog;

/// Answers to a question: as many as a page shows.
const ANSWERS: usize = 10;
/// A moment of this grade or more is right.
const RIGHT: f64 = 3.0;
/// Videos that a question is asked of; as many as there are at the most.
const SIZES: [usize; 6] = [60, 120, 240, 500, 1000, usize::MAX];

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&Utf8Path> = words.iter().map(Utf8Path::new).collect();
    let [index, world, out, rest @ ..] = words.as_slice() else {
        return Err("name an index, its world and a file".into());
    };
    fit(index, world, out, rest.first().copied())
}

/// An answer whose truth is known, and where it stood.
struct Judged {
    query: String,
    films: usize,
    place: usize,
    video: VideoId,
    answer: SizedAnswer,
}

fn fit(folder: &Utf8Path, world: &Utf8Path, out: &Utf8Path, answers: Option<&Utf8Path>) -> Result<(), Failed> {
    let url = EngineUrl::File(folder.to_owned());
    let about = Index::manifest_of(&url)?;
    let index = Index::open(&url, encoder::open_kept(&url, &about, None, &Device::Cpu)?)?;
    let videos: Vec<VideoId> = index.engine().videos()?.into_iter().map(|entry| entry.id).collect();
    let moments_of_one = index.engine().status()?.moments as f64 / videos.len().max(1) as f64;
    let judged = judge(&index, &videos, &graded(world)?, moments_of_one)?;
    if let Some(path) = answers {
        let line = |Judged { query, films, place, video, answer }: &Judged| {
            let SizedAnswer { z, score, moments, right } = answer;
            format!("{query},{films},{place},{video},{z},{score},{moments},{}\n", u8::from(*right))
        };
        let lines: String = judged.iter().map(line).collect();
        WholeFile::write_all_to(
            path,
            Overwrite::Force,
            format!("query,films,place,video,z,score,moments,right\n{lines}").as_bytes(),
        )?;
    }
    let judged: Vec<SizedAnswer> = judged.into_iter().map(|one| one.answer).collect();
    let curve = fit_at_sizes(&judged).ok_or("no curve fits")?;
    println!("{} answers, {} of them right: {curve:?}", judged.len(), judged.iter().filter(|one| one.right).count());
    WholeFile::write_all_to(out, Overwrite::Force, &serde_json::to_vec_pretty(&curve)?)?;
    Ok(())
}

/// The graded queries of a world, and as many that were written for one moment, with the grades of all its films: people ask both kinds,
/// and an exact question has fewer right answers that score as high.
fn graded(world: &Utf8Path) -> Result<Vec<Truth>, Failed> {
    let log = WorldLog::open(world)?;
    let read = |name: &str| Ok::<_, Failed>(read_truth(&Source::new(world.join(name)), RowPolicy::Keep)?.queries);
    let mut asked = read("graded.jsonl")?;
    asked.extend(read("graded-val.jsonl")?);
    for name in ["splits/val.jsonl", "splits/test-iid.jsonl"] {
        let exact = read(name)?;
        let step = (2 * exact.len() / asked.len().max(1)).max(1);
        asked.extend(exact.into_iter().step_by(step));
    }
    let truths = asked.iter().map(|truth| log.graded_everywhere(truth)).collect::<Result<Vec<_>, _>>()?;
    Ok(truths)
}

/// The film that a query was written for, or one that answers it.
fn answering(truth: &Truth, rng: &mut Rng) -> Option<VideoId> {
    let is_right = |one: &&GradedMoment| one.relevance.is_some_and(|grade| grade.value() >= RIGHT);
    let right: Vec<&VideoId> = truth.moments.iter().filter(is_right).map(|one| &one.moment.video).collect();
    let own = truth.video.as_ref().map(|video| &video.id);
    own.or_else(|| (!right.is_empty()).then(|| right[rng.below(right.len())])).cloned()
}

/// Asks every query of videos that are drawn anew for each size: of all of those, and of the ones that have no right answer.
fn judge(index: &Index, videos: &[VideoId], truths: &[Truth], moments: f64) -> Result<Vec<Judged>, Failed> {
    let mut rng = Rng::new(0);
    let mut judged = Vec::new();
    for truth in truths {
        let right = RightMoments::of(truth);
        for size in SIZES {
            let mut drawn = videos.to_vec();
            rng.shuffle(&mut drawn);
            drawn.truncate(size);
            // Asked of a handful of films drawn anyhow, an exact question would have no answer in all but a few.
            if let Some(answering) = answering(truth, &mut rng).filter(|video| !drawn.contains(video)) {
                drawn.pop();
                drawn.push(answering);
            }
            let without = drawn.iter().filter(|video| !right.are_in(video)).cloned().collect::<Vec<_>>();
            for among in [drawn, without] {
                let (films, searched) = (among.len(), (moments * among.len() as f64) as usize);
                let filter = Filter { videos: Some(among.into_iter().collect()), ..Filter::default() };
                let question = Question { filter, limit: ANSWERS, ..Question::sentence(&truth.query.text) };
                for (place, answer) in index.answer(&question)?.moments.into_iter().enumerate() {
                    let sized = SizedAnswer {
                        z: index.surprise(&truth.query.text, answer.score)?,
                        score: f64::from(answer.score),
                        moments: searched,
                        right: right.found_by(&answer.video, answer.span),
                    };
                    let query = truth.query.id.to_string();
                    judged.push(Judged { query, films, place, video: answer.video, answer: sized });
                }
            }
        }
    }
    Ok(judged)
}
