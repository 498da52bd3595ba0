//! Ranked retrieval the way it is published: one corpus for all queries, and grades for their likest captioned moments alone.
//!
//! Training, validation and test queries search the same films. Every caption of the world gives one imprecise query. Some of
//! them go to val and test; there the moments whose captions are likest to the query are graded from the log, as raters would
//! who were shown nothing else. `graded.jsonl` in contrast grades every moment of films that no training query has seen.

use std::collections::HashSet;

use camino::Utf8Path;
use cuemark_core::{
    Extra, GradedMoment, Moment, Prediction, Predictions, Query, QueryId, QueryPredictions, Relevance, Rng, RowPolicy,
    Truth, VideoId,
};
use cuemark_formats::json::Document;
use cuemark_formats::{
    Overwrite, PredictionFormat, ReadError, Source, WholeFile, read_truth, world_folder, write_predictions, write_truth,
};
use cuemark_text::similarity::{Tfidf, top_k};
use serde::{Deserialize, Serialize};

use crate::grammar::{self, Article};
use crate::{Meaning, Result, SPLITS, WorldError, WorldLog, WorldReport, graded, layout, relevance};

/// Queries of the test split at the most.
const TEST: usize = 200;
/// Queries of the validation split at the most.
const VAL: usize = 100;
/// Moments of a query that are graded, as published.
const GRADED: usize = 40;
/// Moments that the perfect reader lists.
const LISTED: usize = 100;

/// What was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedReport {
    /// The seed of its choices.
    pub seed: u64,
    /// Films that every query searches.
    pub films: usize,
    /// Captions, each with its moment.
    pub captions: usize,
    /// Training queries.
    pub train: usize,
    /// Validation queries.
    pub val: usize,
    /// Test queries.
    pub test: usize,
    /// Moments of a test query that are worth anything, on average.
    pub relevant: f64,
}

/// An imprecise query, the caption it was made of and what it means.
struct Blurred<'a> {
    caption: &'a Truth,
    meaning: Meaning,
    query: Query,
}

/// Writes `captions`, `train`, `val` and `test` of the world in folder `world` into `out`, and `perfect-reader.jsonl`: the answers to
/// `test` of somebody who knows how well every captioned moment answers.
///
/// Queries of val and test are no training queries, by their sentences; films are shared on purpose. A query none of whose
/// likest moments is worth anything is left out of val and test: no list of it could be told from another.
///
/// # Errors
/// When the world cannot be read or the disk refuses.
pub fn write_ranked(world: &Utf8Path, out: &Utf8Path, overwrite: Overwrite) -> Result<RankedReport> {
    let manifest: WorldReport = Document::read(&Source::new(world.join(layout::MANIFEST)))?.root().decode()?;
    let (seed, vocabulary) = (manifest.options.seed, manifest.options.vocabulary);
    overwrite.check(&out.join(layout::MANIFEST))?;
    let log = WorldLog::open(world)?;
    let mut captions: Vec<Truth> = Vec::new();
    for split in SPLITS {
        captions.extend(read_truth(&Source::new(world_folder::split(world, split)), RowPolicy::Keep)?.queries);
    }
    let mut rng = Rng::stream(seed, "ranked");
    let mut blurred = captions
        .iter()
        .enumerate()
        .map(|(number, caption)| {
            let mut rng = Rng::stream(seed, &format!("ranked {number}"));
            let meaning = graded::blur(log.meaning(&caption.query.id)?, &mut rng);
            let text = grammar::say(&meaning, Article::A, vocabulary, &mut rng).text;
            Ok(Blurred { caption, meaning, query: Query { id: QueryId::new(format!("ranked-{number}")), text } })
        })
        .collect::<Result<Vec<_>>>()?;
    rng.shuffle(&mut blurred);

    let moments = captions.iter().map(moment_of).collect::<Result<Vec<_>>>()?;
    let tenth = captions.len() / 10;
    let (wanted_test, wanted_val) = (TEST.min(tenth), VAL.min(tenth));
    let held = held_out(&blurred, &captions, &moments, &log, wanted_test + wanted_val)?;
    let (test, val) = held.split_at(held.len().min(wanted_test));
    let sentences: HashSet<&str> = held.iter().map(|(_, truth)| truth.query.text.trim()).collect();
    let train: Vec<Truth> = blurred
        .iter()
        .filter(|one| !sentences.contains(one.query.text.trim()))
        .map(|one| Truth { query: one.query.clone(), ..one.caption.clone() })
        .collect();

    let pool: Vec<VideoId> = log.films().into_iter().map(|film| film.video.clone()).collect();
    let searched = |held: &[(&Blurred<'_>, Truth)]| -> Vec<Truth> {
        held.iter().map(|(_, truth)| Truth { pool: Some(pool.clone()), ..truth.clone() }).collect()
    };
    for (name, truths) in
        [("captions", captions.clone()), ("train", train.clone()), ("val", searched(val)), ("test", searched(test))]
    {
        let mut file = WholeFile::create(out.join(format!("{name}.jsonl")), Overwrite::Force)?;
        write_truth(&truths, &mut file)?;
        file.finish()?;
    }
    let perfect = test.iter().map(|(one, _)| perfect_reader(one, &moments, &log, seed)).collect::<Result<Vec<_>>>()?;
    let mut file = WholeFile::create(out.join("perfect-reader.jsonl"), Overwrite::Force)?;
    write_predictions(&Predictions::any(perfect), PredictionFormat::Cuemark, &mut file)?;
    file.finish()?;

    let worth = |truth: &Truth| truth.moments.iter().filter(|moment| is_worth_something(moment)).count();
    let relevant = test.iter().map(|(_, truth)| worth(truth)).sum::<usize>() as f64 / test.len().max(1) as f64;
    let report = RankedReport {
        seed,
        films: pool.len(),
        captions: captions.len(),
        train: train.len(),
        val: val.len(),
        test: test.len(),
        relevant,
    };
    // Last: a folder with a manifest is whole.
    let manifest = serde_json::to_vec_pretty(&report).map_err(|error| ReadError::file(out, error))?;
    WholeFile::write_all_to(out.join(layout::MANIFEST), Overwrite::Force, &manifest)?;
    Ok(report)
}

/// The first `wanted` queries, no two of one sentence, with the grades of their likest moments.
fn held_out<'a, 'b>(
    blurred: &'b [Blurred<'a>],
    captions: &[Truth],
    moments: &[Moment],
    log: &WorldLog,
    wanted: usize,
) -> Result<Vec<(&'b Blurred<'a>, Truth)>> {
    // Some are left out for want of anything relevant, so more are looked at than are wanted.
    let mut seen = HashSet::new();
    let fresh = blurred.iter().filter(|one| seen.insert(one.query.text.trim()));
    let looked_at: Vec<&Blurred<'_>> = fresh.take(2 * wanted).collect();
    let asked: Vec<&str> = looked_at.iter().map(|one| one.query.text.as_str()).collect();
    let said: Vec<&str> = captions.iter().map(|caption| caption.query.text.as_str()).collect();
    let likest = top_k(&Tfidf::new(&asked, &said), GRADED)
        .unwrap_or_else(|_| unreachable!("words in memory can always be compared"));
    let mut held = Vec::new();
    for (one, likest) in looked_at.into_iter().zip(likest) {
        let graded = likest
            .iter()
            .map(|near| {
                let moment = moments[near.index as usize].clone();
                let film = log.film(&one.query.id, &moment.video)?;
                let grade = relevance::grade(&one.meaning, film, moment.span);
                Ok(GradedMoment { moment, relevance: Relevance::new(f64::from(grade)) })
            })
            .collect::<Result<Vec<_>>>()?;
        if graded.iter().any(is_worth_something) {
            held.push((one, Truth { moments: graded, ..Truth::bare(one.query.clone()) }));
        }
    }
    held.truncate(wanted);
    Ok(held)
}

fn is_worth_something(moment: &GradedMoment) -> bool {
    moment.relevance.is_some_and(|relevance| relevance.value() > 0.0)
}

/// The moment that a caption describes.
fn moment_of(caption: &Truth) -> Result<Moment> {
    let unknown = || WorldError::UnknownQuery { query: caption.query.id.clone() };
    caption.moments.first().map(|graded| graded.moment.clone()).ok_or_else(unknown)
}

/// Every captioned moment by its grade, drawn among equals: which of them were graded the reader does not know.
fn perfect_reader(one: &Blurred<'_>, moments: &[Moment], log: &WorldLog, seed: u64) -> Result<QueryPredictions> {
    let mut graded = moments
        .iter()
        .map(|moment| {
            let film = log.film(&one.query.id, &moment.video)?;
            Ok((relevance::grade(&one.meaning, film, moment.span), moment))
        })
        .collect::<Result<Vec<_>>>()?;
    Rng::stream(seed, &format!("perfect reader of {}", one.query.id)).shuffle(&mut graded);
    graded.sort_by_key(|(grade, _)| std::cmp::Reverse(*grade));
    graded.truncate(LISTED);
    let answer = |(grade, moment): (u8, &Moment)| Prediction {
        video: Some(moment.video.clone()),
        span: moment.span,
        score: Some(f64::from(grade)),
    };
    let ranked = graded.into_iter().map(answer).collect();
    Ok(QueryPredictions { query: one.query.id.clone(), ranked, saliency: None, extra: Extra::default() })
}

#[cfg(test)]
mod tests {
    use cuemark_core::Progress;
    use cuemark_features::sight::Strength;

    use super::*;
    use crate::{WorldOptions, make};

    #[test]
    fn all_queries_search_one_corpus_and_only_their_likest_moments_are_graded() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let (world, out) = (folder.join("world"), folder.join("ranked"));
        let options = WorldOptions { videos: 150, strengths: vec![Strength::Weak], ..WorldOptions::default() };
        make(&options, &world, &Progress::new()).unwrap();
        let report = write_ranked(&world, &out, Overwrite::Never).unwrap();
        let read =
            |name: &str| read_truth(&Source::new(out.join(format!("{name}.jsonl"))), RowPolicy::Keep).unwrap().queries;
        let (captions, train, val, test) = (read("captions"), read("train"), read("val"), read("test"));
        assert_eq!((captions.len(), val.len(), test.len()), (450, 45, 45));
        assert_eq!((report.train, report.films), (train.len(), 150));
        assert!(train.len() > 300, "{}", train.len());

        let log = WorldLog::open(&world).unwrap();
        let sentences = |truths: &[Truth]| -> HashSet<String> {
            truths.iter().map(|truth| truth.query.text.trim().to_owned()).collect()
        };
        assert!(sentences(&train).is_disjoint(&sentences(&val)) && sentences(&train).is_disjoint(&sentences(&test)));
        assert!(sentences(&val).is_disjoint(&sentences(&test)));
        let described: HashSet<(VideoId, u64)> = captions
            .iter()
            .map(|truth| moment_of(truth).unwrap())
            .map(|m| (m.video, m.span.start().to_bits()))
            .collect();
        for truth in val.iter().chain(&test) {
            assert_eq!(truth.pool.as_ref().unwrap().len(), 150, "val and test search what is trained on");
            assert_eq!(truth.moments.len(), GRADED);
            assert!(truth.moments.iter().any(is_worth_something));
            let moment = |graded: &GradedMoment| (graded.moment.video.clone(), graded.moment.span.start().to_bits());
            assert!(truth.moments.iter().all(|graded| described.contains(&moment(graded))));
        }
        // The paper's test queries have 27 relevant moments of 40 at the most, and so have these, roughly.
        assert!((5.0..40.0).contains(&report.relevant), "{}", report.relevant);
        // A query's own caption is like it, so most own moments are among the graded ones; and a grade is the log's.
        let own = test.iter().filter(|truth| truth.moments.iter().any(|m| m.relevance == Relevance::new(4.0))).count();
        assert!(2 * own > test.len(), "{own} of {}", test.len());
        assert!(log.films().len() == 150 && write_ranked(&world, &out, Overwrite::Never).is_err());
    }
}
