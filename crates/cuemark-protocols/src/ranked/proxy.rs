//! How far the likeness of descriptions stands in for relevance: the likest moments of some queries and as many random
//! ones are rated, and the grades are compared with likeness and rank.

use std::collections::BTreeMap;

use cuemark_core::stats::Interval;
use cuemark_core::{Rng, Truth};
use cuemark_text::similarity::Similarity;
use serde::Serialize;

use super::GRADES;
use super::candidates::{Candidate, described_moments};
use super::consensus::Grades;
use super::statistics::{bootstrap_mean, kendall, spearman};
use crate::pools::check_sides;
use crate::{ProtocolError, Result};

/// What is rated for the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StudySettings {
    /// The likest moments of each query. Default: 60
    pub top: usize,
    /// Moments drawn from all others. Default: 60
    pub random: usize,
    /// Seed of the draw.
    #[serde(skip)]
    pub seed: u64,
}

impl StudySettings {
    /// The published numbers, with a seed.
    pub fn published(seed: u64) -> Self {
        Self { top: 60, random: 60, seed }
    }
}

/// Draws the moments to rate: batch 1 holds the likest, batch 2 the random ones, each with its true rank.
///
/// # Errors
/// When there are too few captions, one has no moment, or similarities are of other things.
pub fn choose(
    queries: &[Truth],
    captions: &[Truth],
    between: &dyn Similarity,
    settings: StudySettings,
) -> Result<Vec<Candidate>> {
    check_sides(between, queries.len(), captions.len())?;
    let wanted = settings.top.saturating_add(settings.random);
    if captions.len() < wanted {
        let problem = format!("are more moments a query than the {} there are", captions.len());
        return Err(ProtocolError::Option { option: "top and random", value: wanted.to_string(), problem });
    }
    let moments = described_moments(captions)?;
    let mut chosen = Vec::new();
    let mut values = vec![0.0; captions.len()];
    for (row, truth) in queries.iter().enumerate() {
        between.tile(row..row + 1, 0..captions.len(), &mut values)?;
        let mut order: Vec<usize> = (0..captions.len()).collect();
        order.sort_by(|a, b| values[*b].total_cmp(&values[*a]).then(a.cmp(b)));
        let mut ranked: Vec<(usize, usize)> = order.into_iter().enumerate().collect();
        let mut rest = ranked.split_off(settings.top);
        Rng::stream(settings.seed, &format!("proxy study of {}", truth.query.id)).shuffle(&mut rest);
        rest.truncate(settings.random);
        rest.sort_unstable();
        let batches = ranked.into_iter().map(|place| (1, place)).chain(rest.into_iter().map(|place| (2, place)));
        for (batch, (place, index)) in batches {
            let (caption, moment) = moments[index];
            chosen.push(Candidate {
                pair_id: chosen.len() as u64,
                qid: truth.query.id.clone(),
                query: truth.query.text.clone(),
                video: moment.video.clone(),
                span: moment.span,
                duration: caption.duration(),
                caption: caption.query.text.clone(),
                similarity: values[index],
                rank: place + 1,
                batch,
            });
        }
    }
    Ok(chosen)
}

/// A correlation, averaged over queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Correlation {
    /// Mean over queries.
    pub mean: f64,
    /// Its 95 % interval, by drawing queries with replacement.
    pub interval: Interval,
}

/// The grades of some of the rated moments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// What they have in common: `rank 1-10`, `random`, `similarity 0.8-0.9`.
    pub name: String,
    /// How many have a grade.
    pub moments: usize,
    /// Their mean grade; 0 without any.
    pub mean_relevance: f64,
    /// How many have each grade.
    pub grades: [usize; GRADES],
}

/// What the study says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyReport {
    /// Queries with at least two graded moments.
    pub queries: usize,
    /// Graded moments.
    pub moments: usize,
    /// Spearman's correlation of grade and similarity, over the likest and the random moments.
    pub spearman_similarity: Correlation,
    /// Kendall's tau-b of the same.
    pub kendall_similarity: Correlation,
    /// Spearman's correlation of grade and rank (1 is best, so negative is good), over the likest moments.
    pub spearman_rank: Correlation,
    /// Kendall's tau-b of the same.
    pub kendall_rank: Correlation,
    /// Grades by rank, ten ranks a group, and of the random moments.
    pub by_rank: Vec<Group>,
    /// Grades by similarity, a tenth a group, lowest first.
    pub by_similarity: Vec<Group>,
}

/// Compares grades with likeness and rank; `draws` resamples give the intervals.
///
/// Moments without a grade are left out. A query whose moments all have one grade has correlation 0.
///
/// # Errors
/// When no query has two graded moments.
pub fn study(chosen: &[Candidate], grades: &Grades, draws: usize, seed: u64) -> Result<StudyReport> {
    let graded: Vec<(&Candidate, u8)> =
        chosen.iter().filter_map(|candidate| Some((candidate, *grades.grades.get(&candidate.pair_id)?))).collect();
    let queries: Vec<&[(&Candidate, u8)]> =
        graded.chunk_by(|a, b| a.0.qid == b.0.qid).filter(|query| query.len() >= 2).collect();
    if queries.is_empty() {
        return Err(ProtocolError::NoMoments { what: "the study's graded moments".to_owned() });
    }
    let mut rng = Rng::stream(seed, "proxy study intervals");
    let mut correlate = |by: fn(&Candidate) -> f64, batches: &[usize], correlation: fn(&[f64], &[f64]) -> f64| {
        let of_query = |query: &&[(&Candidate, u8)]| {
            let kept = query.iter().filter(|(candidate, _)| batches.contains(&candidate.batch));
            let (x, y): (Vec<f64>, Vec<f64>) =
                kept.map(|(candidate, grade)| (by(candidate), f64::from(*grade))).unzip();
            correlation(&x, &y)
        };
        let values: Vec<f64> = queries.iter().map(of_query).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Correlation { mean, interval: bootstrap_mean(&values, draws, &mut rng) }
    };
    let similarity = |candidate: &Candidate| f64::from(candidate.similarity);
    let rank = |candidate: &Candidate| candidate.rank as f64;
    Ok(StudyReport {
        queries: queries.len(),
        moments: graded.len(),
        spearman_similarity: correlate(similarity, &[1, 2], spearman),
        kendall_similarity: correlate(similarity, &[1, 2], kendall),
        spearman_rank: correlate(rank, &[1], spearman),
        kendall_rank: correlate(rank, &[1], kendall),
        by_rank: by_rank(&graded),
        by_similarity: by_similarity(&graded),
    })
}

fn by_rank(graded: &[(&Candidate, u8)]) -> Vec<Group> {
    let mut groups: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (candidate, grade) in graded {
        let ten = if candidate.batch == 1 { (candidate.rank - 1) / 10 } else { usize::MAX };
        groups.entry(ten).or_default().push(*grade);
    }
    let name = |ten: usize| match ten {
        usize::MAX => "random".to_owned(),
        ten => format!("rank {}-{}", ten * 10 + 1, ten * 10 + 10),
    };
    groups.into_iter().map(|(ten, grades)| group(name(ten), &grades)).collect()
}

fn by_similarity(graded: &[(&Candidate, u8)]) -> Vec<Group> {
    let mut groups: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    for (candidate, grade) in graded {
        groups.entry((candidate.similarity * 10.0).floor() as i64).or_default().push(*grade);
    }
    let name = |tenth: i64| format!("similarity {:.1}-{:.1}", tenth as f64 / 10.0, (tenth as f64 + 1.0) / 10.0);
    groups.into_iter().map(|(tenth, grades)| group(name(tenth), &grades)).collect()
}

fn group(name: String, given: &[u8]) -> Group {
    let mut grades = [0; GRADES];
    for grade in given {
        if let Some(count) = grades.get_mut(usize::from(*grade)) {
            *count += 1;
        }
    }
    let sum: f64 = given.iter().map(|grade| f64::from(*grade)).sum();
    Group { name, moments: given.len(), mean_relevance: sum / given.len().max(1) as f64, grades }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::{Query, Span, Video};
    use cuemark_text::similarity::Matrix;

    const SMALL: StudySettings = StudySettings { top: 20, random: 10, seed: 1 };

    fn caption(id: usize) -> Truth {
        let query = Query { id: format!("{id}").as_str().into(), text: format!("caption {id}") };
        Truth::single(query, Video::new("v", 30.0), [Span::new(1.0, 4.5).unwrap()])
    }

    /// Two queries; the first likes captions in order, the second in reverse.
    fn chosen() -> Vec<Candidate> {
        let captions: Vec<Truth> = (0..100).map(caption).collect();
        let values =
            (0..200).map(|n| if n < 100 { 1.0 - n as f32 / 100.0 } else { (n - 100) as f32 / 100.0 }).collect();
        choose(&captions[..2], &captions, &Matrix::new("known", 100, values).unwrap(), SMALL).unwrap()
    }

    fn graded(grade: impl Fn(&Candidate) -> u8) -> Grades {
        let grades = chosen().iter().map(|candidate| (candidate.pair_id, grade(candidate))).collect();
        Grades { grades, discarded: Vec::new(), ratings: 0 }
    }

    #[test]
    fn the_likest_and_as_many_random_others_are_drawn_with_their_true_ranks() {
        let chosen = chosen();
        assert_eq!(chosen.len(), 60);
        let ranks: Vec<usize> = chosen[..20].iter().map(|candidate| candidate.rank).collect();
        assert_eq!(ranks, (1..=20).collect::<Vec<_>>());
        assert!(chosen[20..30].iter().all(|candidate| candidate.rank > 20 && candidate.batch == 2));
        assert_eq!(chosen[0].caption, "caption 0");
        assert_eq!(chosen[30].caption, "caption 99");
    }

    #[test]
    fn grades_that_follow_likeness_correlate_with_it() {
        // Grades 4 to 1 for five ranks each, 0 for the random ten: 435 pairs of moments, 85 of them tied in grade.
        let grade = |c: &Candidate| if c.batch == 1 { 4 - (c.rank as u8 - 1) / 5 } else { 0 };
        let report = study(&chosen(), &graded(grade), 200, 1).unwrap();
        assert_eq!((report.queries, report.moments), (2, 60));
        assert!((report.kendall_similarity.mean - (350.0f64 / 435.0).sqrt()).abs() < 1e-9);
        // Among the likest, 190 pairs of which 40 are tied, all the other way round.
        assert!((report.kendall_rank.mean + (150.0f64 / 190.0).sqrt()).abs() < 1e-9);
        assert!(report.spearman_similarity.mean > 0.9 && report.spearman_rank.mean < -0.9);
        let (first, last) = (report.by_rank.first().unwrap(), report.by_rank.last().unwrap());
        assert_eq!((first.name.as_str(), first.mean_relevance), ("rank 1-10", 3.5));
        assert_eq!((last.name.as_str(), last.grades), ("random", [20, 0, 0, 0, 0]));
    }

    #[test]
    fn constant_grades_correlate_with_nothing() {
        let report = study(&chosen(), &graded(|_| 2), 200, 1).unwrap();
        assert_eq!(report.spearman_similarity.mean, 0.0);
        assert_eq!(report.by_similarity.iter().map(|group| group.moments).sum::<usize>(), 60);
    }

    #[test]
    fn more_moments_than_there_are_cannot_be_drawn() {
        let captions: Vec<Truth> = (0..5).map(caption).collect();
        let matrix = Matrix::new("known", 5, vec![0.0; 5]).unwrap();
        assert!(choose(&captions[..1], &captions, &matrix, SMALL).is_err());
        let empty = Grades { grades: BTreeMap::new(), discarded: Vec::new(), ratings: 0 };
        assert!(study(&chosen(), &empty, 10, 1).is_err());
    }
}
