//! The moments that people rate: for each query those whose own descriptions are likest, in batches.

use std::collections::HashSet;

use camino::Utf8Path;
use cuemark_core::{GradedMoment, Moment, Query, QueryId, Relevance, Span, Truth, VideoId};
use cuemark_data::Rating;
use cuemark_formats::{Overwrite, Source, json};
use cuemark_text::similarity::{Similarity, top_k};
use serde::{Deserialize, Serialize};

use super::consensus::{Grades, by_pair};
use crate::manifest::Manifest;
use crate::pools::check_sides;
use crate::{ProtocolError, Result};

/// How many candidates a query gets, and when it gets more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CandidateSettings {
    /// Candidates of one query at most. Default: 40
    pub most: usize,
    /// Candidates that are rated together. Default: 20
    pub batch: usize,
    /// How many at the end of a batch decide whether there is another. Default: 5
    pub last: usize,
    /// Their mean rating must reach this. Default: 2
    pub bar: f64,
}

impl Default for CandidateSettings {
    fn default() -> Self {
        Self { most: 40, batch: 20, last: 5, bar: 2.0 }
    }
}

/// One query-moment pair to be rated: a line of the candidates' JSONL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The pair's number, from 0 over all queries, later batches after earlier ones of the same query.
    pub pair_id: u64,
    /// The query's id.
    pub qid: QueryId,
    /// Its sentence.
    pub query: String,
    /// The moment's video.
    pub video: VideoId,
    /// Where in it, in **seconds**; `[start, end]` in the file.
    #[serde(with = "span_as_pair")]
    pub span: Span,
    /// How long the video lasts, in seconds, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    /// The moment's own description.
    pub caption: String,
    /// How like the query it is.
    pub similarity: f32,
    /// Its place among the query's candidates, from 1.
    pub rank: usize,
    /// The batch it is rated in, from 1.
    pub batch: usize,
}

/// The likest moments of each query, best first.
///
/// `captions` are descriptions, each with the moment it describes (its first one); `between` compares the queries on
/// the left with the captions on the right. A description equal to the query is a candidate like any other.
///
/// # Errors
/// When a setting cannot be met, a caption has no moment, or similarities are of other things.
pub fn candidates(
    queries: &[Truth],
    captions: &[Truth],
    between: &dyn Similarity,
    settings: &CandidateSettings,
) -> Result<Vec<Candidate>> {
    settings.check()?;
    check_sides(between, queries.len(), captions.len())?;
    let moments = described_moments(captions)?;
    let mut found = Vec::new();
    for (truth, likest) in queries.iter().zip(top_k(between, settings.most)?) {
        for (place, neighbour) in likest.iter().enumerate() {
            let (caption, moment) = moments[neighbour.index as usize];
            found.push(Candidate {
                pair_id: found.len() as u64,
                qid: truth.query.id.clone(),
                query: truth.query.text.clone(),
                video: moment.video.clone(),
                span: moment.span,
                duration: caption.duration(),
                caption: caption.query.text.clone(),
                similarity: neighbour.similarity,
                rank: place + 1,
                batch: place / settings.batch + 1,
            });
        }
    }
    Ok(found)
}

/// Each caption with the first moment it describes.
pub(super) fn described_moments(captions: &[Truth]) -> Result<Vec<(&Truth, &Moment)>> {
    captions
        .iter()
        .map(|caption| match caption.moments.first() {
            Some(graded) => Ok((caption, &graded.moment)),
            None => Err(ProtocolError::NoMoments { what: format!("caption `{}`", caption.query.id) }),
        })
        .collect()
}

impl CandidateSettings {
    fn check(&self) -> Result<()> {
        let wrong = |option, value: usize| {
            let problem = "must be at least 1, a batch no larger than all candidates".to_owned();
            Err(ProtocolError::Option { option, value: value.to_string(), problem })
        };
        match self {
            Self { most: 0, .. } => wrong("most", 0),
            Self { batch, most, .. } if *batch == 0 || batch > most => wrong("batch", *batch),
            Self { last: 0, .. } => wrong("last", 0),
            _ => Ok(()),
        }
    }
}

/// The candidates to rate next: of each query, the first batch that is not fully rated, when there is reason to go on.
///
/// There is reason for a first batch always, and for a later one when the last candidates of the batch before it were
/// rated at least [`CandidateSettings::bar`] on average (each candidate's ratings averaged first). A batch with some
/// pairs rated and others not comes back whole.
///
/// # Errors
/// When a rating is of a pair that is no candidate, or a grade is above 4.
pub fn next_batch(all: &[Candidate], ratings: &[Rating], settings: &CandidateSettings) -> Result<Vec<Candidate>> {
    settings.check()?;
    let rated = by_pair(ratings)?;
    let known: HashSet<u64> = all.iter().map(|candidate| candidate.pair_id).collect();
    if let Some(pair) = rated.keys().find(|pair| !known.contains(pair)) {
        return Err(ProtocolError::Ratings { pair: *pair, problem: "is not among the candidates".to_owned() });
    }
    let mean = |candidate: &Candidate| {
        let given = rated.get(&candidate.pair_id)?;
        Some(given.iter().map(|grade| f64::from(*grade)).sum::<f64>() / given.len() as f64)
    };
    let mut next = Vec::new();
    for of_query in all.chunk_by(|a, b| a.qid == b.qid) {
        for batch in of_query.chunk_by(|a, b| a.batch == b.batch) {
            let means: Option<Vec<f64>> = batch.iter().map(mean).collect();
            let Some(means) = means else {
                next.extend_from_slice(batch);
                break;
            };
            let last = &means[means.len().saturating_sub(settings.last)..];
            if last.iter().sum::<f64>() / (last.len() as f64) < settings.bar {
                break;
            }
        }
    }
    Ok(next)
}

/// Writes candidates as JSON Lines, with a manifest beside them.
///
/// # Errors
/// When something stands there already and may not be replaced, or a file cannot be written.
pub fn write(
    candidates: &[Candidate],
    provider: &str,
    settings: &CandidateSettings,
    out: &Utf8Path,
    overwrite: Overwrite,
) -> Result<()> {
    let outcome = serde_json::json!({ "provider": provider, "pairs": candidates.len() });
    Manifest::new("rank-candidates", 1, settings, outcome).write_with(out, overwrite, |file| {
        for candidate in candidates {
            file.put_json(candidate)?;
            file.put(b"\n")?;
        }
        Ok(())
    })
}

/// Reads candidates, in file order.
///
/// # Errors
/// When a line is no candidate, repeats a pair, or has a span that cannot be.
pub fn read(source: &Source) -> Result<Vec<Candidate>> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut seen = HashSet::new();
    source.for_each_line(|line, text| {
        let candidate: Candidate = json::decode_line(source, line, text)?;
        if !seen.insert(candidate.pair_id) {
            return Err(source.record(line, "pair_id", format!("{} stands in the file twice", candidate.pair_id)));
        }
        found.push(candidate);
        Ok(())
    })?;
    Ok(found)
}

/// `[start, end]` in seconds.
mod span_as_pair {
    use cuemark_core::Span;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(span: &Span, out: S) -> Result<S::Ok, S::Error> {
        [span.start(), span.end()].serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
        let [start, end] = <[f64; 2]>::deserialize(from)?;
        Span::new(start, end).map_err(D::Error::custom)
    }
}

/// The graded set: one truth per query with its graded moments in order of rank; pairs without a grade are left out,
/// and so are queries without a graded pair.
///
/// # Errors
/// When a grade is of a pair that is no candidate.
pub fn graded(candidates: &[Candidate], grades: &Grades) -> Result<Vec<Truth>> {
    let known: HashSet<u64> = candidates.iter().map(|candidate| candidate.pair_id).collect();
    if let Some(pair) = grades.grades.keys().find(|pair| !known.contains(pair)) {
        return Err(ProtocolError::Ratings { pair: *pair, problem: "is not among the candidates".to_owned() });
    }
    let mut truths: Vec<Truth> = Vec::new();
    for candidate in candidates {
        let Some(relevance) = grades.grades.get(&candidate.pair_id).and_then(|g| Relevance::new(f64::from(*g))) else {
            continue;
        };
        if truths.last().is_none_or(|truth| truth.query.id != candidate.qid) {
            truths.push(Truth::bare(Query { id: candidate.qid.clone(), text: candidate.query.clone() }));
        }
        let moment = Moment { video: candidate.video.clone(), span: candidate.span };
        if let Some(truth) = truths.last_mut() {
            truth.moments.push(GradedMoment { moment, relevance: Some(relevance) });
        }
    }
    Ok(truths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranked::consensus::grade;
    use cuemark_core::Video;
    use cuemark_text::similarity::Matrix;

    const SMALL: CandidateSettings = CandidateSettings { most: 4, batch: 2, last: 1, bar: 2.0 };

    fn caption(id: usize) -> Truth {
        let query = Query { id: format!("{id}").as_str().into(), text: format!("caption {id}") };
        Truth::single(query, Video::new(format!("v{id}").as_str(), 30.0), [Span::new(1.0, 4.5).unwrap()])
    }

    fn found() -> Vec<Candidate> {
        let captions: Vec<Truth> = (0..5).map(caption).collect();
        let values = vec![0.1, 0.9, 0.5, 0.7, 0.3, 0.8, 0.1, 0.2, 0.3, 0.9];
        let between = Matrix::new("known", 5, values).unwrap();
        candidates(&captions[..2], &captions, &between, &SMALL).unwrap()
    }

    fn rate(pair_id: u64, grades: &[u8]) -> Vec<Rating> {
        (0..).zip(grades).map(|(worker, relevance)| Rating { pair_id, worker, relevance: *relevance }).collect()
    }

    #[test]
    fn candidates_come_likest_first_in_batches() {
        let found = found();
        let first: Vec<(&str, usize, usize)> = found[..4].iter().map(|c| (c.video.as_str(), c.rank, c.batch)).collect();
        assert_eq!(first, [("v1", 1, 1), ("v3", 2, 1), ("v2", 3, 2), ("v4", 4, 2)]);
        assert!(found.iter().enumerate().all(|(n, candidate)| candidate.pair_id == n as u64));
    }

    #[test]
    fn a_second_batch_is_asked_for_when_the_end_of_the_first_is_still_good() {
        let all = found();
        let pairs = |next: &[Candidate]| next.iter().map(|candidate| candidate.pair_id).collect::<Vec<_>>();
        assert_eq!(pairs(&next_batch(&all, &[], &SMALL).unwrap()), [0, 1, 4, 5]);
        // Query 0 ends its first batch with 1.5, query 1 with 2.
        let ratings = [rate(0, &[4, 4]), rate(1, &[1, 2]), rate(4, &[0, 0]), rate(5, &[1, 3])].concat();
        assert_eq!(pairs(&next_batch(&all, &ratings, &SMALL).unwrap()), [6, 7]);
        let done = [ratings, rate(6, &[3, 3]), rate(7, &[3, 3])].concat();
        assert!(next_batch(&all, &done, &SMALL).unwrap().is_empty());
        assert!(next_batch(&all, &rate(99, &[1, 1]), &SMALL).is_err());
    }

    #[test]
    fn the_default_rule_is_the_published_one() {
        let of_rank =
            |rank: usize| Candidate { rank, batch: (rank - 1) / 20 + 1, pair_id: rank as u64, ..found()[0].clone() };
        let all: Vec<Candidate> = (1..=40).map(of_rank).collect();
        let settings = CandidateSettings::default();
        // Fifteen zeros do not matter, only the last five do: 2, 2, 2, 2, 1 averages below 2.
        let rated = |last: u8| -> Vec<Rating> {
            (1..=20)
                .flat_map(|pair| {
                    rate(
                        pair,
                        &[if pair == 20 {
                            last
                        } else if pair > 15 {
                            2
                        } else {
                            0
                        }],
                    )
                })
                .collect()
        };
        assert!(next_batch(&all, &rated(1), &settings).unwrap().is_empty());
        assert_eq!(next_batch(&all, &rated(2), &settings).unwrap().len(), 20);
    }

    #[test]
    fn grades_turn_candidates_into_a_graded_set() {
        let ratings = [rate(0, &[4, 4]), rate(1, &[0, 4]), rate(2, &[1, 2]), rate(5, &[0, 0])].concat();
        let truths = graded(&found(), &grade(&ratings).unwrap()).unwrap();
        let grades = |truth: &Truth| -> Vec<(String, f64)> {
            truth.moments.iter().map(|m| (m.moment.video.to_string(), m.relevance.unwrap().value())).collect()
        };
        assert_eq!(grades(&truths[0]), [("v1".to_owned(), 4.0), ("v2".to_owned(), 2.0)]);
        assert_eq!(grades(&truths[1]), [("v0".to_owned(), 0.0)]);
        assert!(graded(&found()[..1], &grade(&rate(7, &[1, 1])).unwrap()).is_err());
    }

    #[test]
    fn candidates_are_written_with_their_manifest_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let out = camino::Utf8PathBuf::from_path_buf(folder.path().join("c.jsonl")).unwrap();
        write(&found(), "known", &SMALL, &out, Overwrite::Never).unwrap();
        assert_eq!(read(&Source::new(out.clone())).unwrap(), found());
        assert!(folder.path().join("c.manifest.json").is_file());
        let twice = std::fs::read_to_string(&out).unwrap().repeat(2);
        std::fs::write(&out, twice).unwrap();
        assert!(read(&Source::new(out)).unwrap_err().to_string().contains(":9: `pair_id`: 0 stands in the file twice"));
    }
}
