//! Fits the curve of an index to graded queries of the built-in world, at many sizes of the index: how the curve of the encoder that
//! comes with the program was made (`results/notes/encoder-2026-11-17.md`).
//!
//! `cargo run --release --example fit_curve -- INDEX WORLD OUT.json`

#![allow(clippy::print_stdout)] // an example talks to the terminal

use camino::Utf8Path;
use cuemark_core::{Rng, RowPolicy, Truth, VideoId};
use cuemark_formats::{Overwrite, Source, WholeFile, read_truth};
use cuemark_search::{EngineUrl, Filter, Index, Question, RightMoments, SizedAnswer, encoder, fit_at_sizes};
use cuemark_tensor::Device;
use cuemark_world::WorldLog;

/// Answers to a question: as many as a page shows.
const ANSWERS: usize = 10;
/// Videos that a question is asked of; as many as there are at the most.
const SIZES: [usize; 6] = [60, 120, 240, 500, 1000, usize::MAX];

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [index, world, out] = words.as_slice() else { return Err("name an index, its world and a file".into()) };
    fit(Utf8Path::new(index), Utf8Path::new(world), Utf8Path::new(out))
}

fn fit(folder: &Utf8Path, world: &Utf8Path, out: &Utf8Path) -> Result<(), Failed> {
    let url = EngineUrl::File(folder.to_owned());
    let about = Index::manifest_of(&url)?;
    let index = Index::open(&url, encoder::open_kept(&url, &about, None, &Device::Cpu)?)?;
    let videos: Vec<VideoId> = index.engine().videos()?.into_iter().map(|entry| entry.id).collect();
    let moments_of_one = index.engine().status()?.moments as f64 / videos.len().max(1) as f64;
    let judged = judge(&index, &videos, &graded(world)?, moments_of_one)?;
    let curve = fit_at_sizes(&judged).ok_or("no curve fits")?;
    println!("{} answers, {} of them right: {curve:?}", judged.len(), judged.iter().filter(|one| one.right).count());
    WholeFile::write_all_to(out, Overwrite::Force, &serde_json::to_vec_pretty(&curve)?)?;
    Ok(())
}

/// The graded queries of a world with the grades of all its films.
fn graded(world: &Utf8Path) -> Result<Vec<Truth>, Failed> {
    let log = WorldLog::open(world)?;
    let mut truths = Vec::new();
    for name in ["graded.jsonl", "graded-val.jsonl"] {
        for truth in read_truth(&Source::new(world.join(name)), RowPolicy::Keep)?.queries {
            truths.push(log.graded_everywhere(&truth)?);
        }
    }
    Ok(truths)
}

/// Asks every query of videos that are drawn anew for each size: of all of those, and of the ones that have no right answer.
fn judge(index: &Index, videos: &[VideoId], truths: &[Truth], moments: f64) -> Result<Vec<SizedAnswer>, Failed> {
    let mut rng = Rng::new(0);
    let mut judged = Vec::new();
    for truth in truths {
        let right = RightMoments::of(truth);
        for size in SIZES {
            let mut drawn = videos.to_vec();
            rng.shuffle(&mut drawn);
            drawn.truncate(size);
            let without = drawn.iter().filter(|video| !right.are_in(video)).cloned().collect::<Vec<_>>();
            for among in [drawn, without] {
                let searched = (moments * among.len() as f64) as usize;
                let filter = Filter { videos: Some(among.into_iter().collect()), ..Filter::default() };
                let question = Question { filter, limit: ANSWERS, ..Question::sentence(&truth.query.text) };
                for answer in index.answer(&question)?.moments {
                    judged.push(SizedAnswer {
                        z: index.surprise(&truth.query.text, answer.score)?,
                        score: f64::from(answer.score),
                        moments: searched,
                        right: right.found_by(&answer.video, answer.span),
                    });
                }
            }
        }
    }
    Ok(judged)
}
