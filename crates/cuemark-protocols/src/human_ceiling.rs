//! What people themselves reach: several people marked the same query, so each can be scored against the others.
//! Otani et al., "Uncovering Hidden Challenges in Query-Based Video Moment Retrieval", 2020, published the re-annotations.
//!
//! Two ways to score an answer against several people: `one`, the mean over the people taken singly, as if each were the
//! dataset's only annotator; `any`, the best of them, as if whatever anyone marked were right. A person is never scored
//! against their own span.

use cuemark_core::{NormSpan, Rng};
use serde::Serialize;

use crate::{ProtocolError, Result};

/// Overlaps that make a hit, inclusive.
const THRESHOLDS: [f64; 3] = [0.3, 0.5, 0.7];
/// Resamples of the queries behind an interval.
const RESAMPLES: usize = 2000;

/// What people reach against other people. Fractions of 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HumanCeiling {
    /// Queries that at least two people marked: those that count.
    pub queries: usize,
    /// Queries that fewer than two people marked.
    pub left_out: usize,
    /// Spans of the queries that count.
    pub spans: usize,
    /// Each person against each other, averaged over ordered pairs, then over queries.
    pub one: Agreement,
    /// Each person against the best match among the others, averaged over people, then over queries.
    pub any: Agreement,
}

/// What given answers reach against people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgainstPeople {
    /// Queries with an answer and at least one person's span.
    pub queries: usize,
    /// Queries without.
    pub left_out: usize,
    /// The answer against each person, averaged over people, then over queries.
    pub one: Agreement,
    /// The answer against the best match among the people, averaged over queries.
    pub any: Agreement,
}

/// How well spans agree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// Mean overlap.
    pub mean_iou: Estimate,
    /// Recall at each threshold.
    pub recall: Vec<RecallAt>,
}

/// R@1 at one threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RecallAt {
    /// The overlap that makes a hit, inclusive.
    pub threshold: f64,
    /// The share of answers that hit.
    pub recall: Estimate,
}

/// A mean over queries with its 95 % interval, from resampling queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Scores people against each other; `queries` holds what each person marked for one query.
///
/// ```
/// use cuemark_core::NormSpan;
/// let span = |start, end| NormSpan::new(start, end).unwrap();
/// let marked = [span(0.0, 0.4), span(0.0, 0.4), span(0.2, 0.4)];
/// let ceiling = cuemark_protocols::human_ceiling::human_ceiling(&[&marked], 0).unwrap();
/// // Two of the six ordered pairs agree wholly, four by half.
/// assert!((ceiling.one.mean_iou.value - (2.0 + 4.0 * 0.5) / 6.0).abs() < 1e-12);
/// // The first two find each other, the third finds half of its span's hull.
/// assert!((ceiling.any.mean_iou.value - 2.5 / 3.0).abs() < 1e-12);
/// ```
///
/// # Errors
/// When no query was marked by at least two people.
pub fn human_ceiling(queries: &[&[NormSpan]], seed: u64) -> Result<HumanCeiling> {
    let counted: Vec<&[NormSpan]> = queries.iter().copied().filter(|spans| spans.len() >= 2).collect();
    let scored: Vec<QueryScores> = counted.iter().map(|spans| among_themselves(spans)).collect();
    let (one, any) = agreements(&scored, seed)?;
    let spans = counted.iter().map(|spans| spans.len()).sum();
    Ok(HumanCeiling { queries: counted.len(), left_out: queries.len() - counted.len(), spans, one, any })
}

/// Scores one answer for each query (a prediction, or the dataset's own annotation) against what people marked.
///
/// # Errors
/// When no query has both an answer and a span.
pub fn against_people(queries: &[(Option<NormSpan>, &[NormSpan])], seed: u64) -> Result<AgainstPeople> {
    let scored: Vec<QueryScores> = queries
        .iter()
        .filter(|(_, spans)| !spans.is_empty())
        .filter_map(|(answer, spans)| Some(QueryScores::of(answer.as_ref()?, spans.iter())))
        .collect();
    let (one, any) = agreements(&scored, seed)?;
    Ok(AgainstPeople { queries: scored.len(), left_out: queries.len() - scored.len(), one, any })
}

/// Overlap and hits of one query: the overlap first, then one entry per threshold.
type Figures = [f64; 1 + THRESHOLDS.len()];

#[derive(Clone, Copy, Default)]
struct QueryScores {
    one: Figures,
    any: Figures,
}

impl QueryScores {
    /// One answer against several people.
    fn of<'a>(answer: &NormSpan, people: impl Iterator<Item = &'a NormSpan>) -> Self {
        let (mut scores, mut count) = (Self::default(), 0.0);
        for person in people {
            count += 1.0;
            for (slot, figure) in figures(answer.iou_hull(*person)).into_iter().enumerate() {
                scores.one[slot] += figure;
                scores.any[slot] = scores.any[slot].max(figure);
            }
        }
        scores.one = scores.one.map(|sum| sum / f64::max(count, 1.0));
        scores
    }
}

fn figures(overlap: f64) -> Figures {
    let mut figures = [overlap; 1 + THRESHOLDS.len()];
    for (slot, threshold) in THRESHOLDS.into_iter().enumerate() {
        figures[slot + 1] = f64::from(u8::from(overlap >= threshold));
    }
    figures
}

/// Every person of one query against the others.
fn among_themselves(spans: &[NormSpan]) -> QueryScores {
    let mut mean = QueryScores::default();
    for (n, span) in spans.iter().enumerate() {
        let others = spans.iter().enumerate().filter(|(m, _)| *m != n).map(|(_, other)| other);
        let scores = QueryScores::of(span, others);
        for slot in 0..mean.one.len() {
            mean.one[slot] += scores.one[slot] / spans.len() as f64;
            mean.any[slot] += scores.any[slot] / spans.len() as f64;
        }
    }
    mean
}

/// Means of both kinds over queries, with intervals.
fn agreements(scored: &[QueryScores], seed: u64) -> Result<(Agreement, Agreement)> {
    if scored.is_empty() {
        return Err(ProtocolError::NoMoments { what: "the re-annotations".to_owned() });
    }
    let mut rng = Rng::stream(seed, "queries of the human ceiling");
    let resamples: Vec<Vec<usize>> =
        (0..RESAMPLES).map(|_| scored.iter().map(|_| rng.below(scored.len())).collect()).collect();
    let agreement = |kind: fn(&QueryScores) -> &Figures| {
        let estimate = |slot: usize| {
            let of_query: Vec<f64> = scored.iter().map(|scores| kind(scores)[slot]).collect();
            let mean = |chosen: &[usize]| chosen.iter().map(|n| of_query[*n]).sum::<f64>() / chosen.len() as f64;
            let mut means: Vec<f64> = resamples.iter().map(|chosen| mean(chosen)).collect();
            means.sort_by(f64::total_cmp);
            let at = |share: f64| means[((RESAMPLES - 1) as f64 * share).round() as usize];
            let value = of_query.iter().sum::<f64>() / of_query.len() as f64;
            Estimate { value, low: at(0.025), high: at(0.975) }
        };
        let at = |(slot, threshold): (usize, &f64)| RecallAt { threshold: *threshold, recall: estimate(slot + 1) };
        Agreement { mean_iou: estimate(0), recall: THRESHOLDS.iter().enumerate().map(at).collect() }
    };
    Ok((agreement(|scores| &scores.one), agreement(|scores| &scores.any)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_formats::Source;
    use cuemark_testkit::shared;
    use proptest::prelude::*;

    fn span(start: f64, end: f64) -> NormSpan {
        NormSpan::new(start, end).unwrap()
    }

    /// Spans under their task, from files in the published layout.
    fn marked(folder: &camino::Utf8Path, files: &[&str]) -> Vec<Vec<NormSpan>> {
        let mut by_task: indexmap::IndexMap<String, Vec<NormSpan>> = indexmap::IndexMap::new();
        for file in files {
            let text = Source::new(folder.join(file)).text().unwrap();
            for row in csv::Reader::from_reader(text.as_bytes()).records() {
                let row = row.unwrap();
                let percent = |column: usize| row[column].parse::<f64>().unwrap() / 100.0;
                by_task.entry(row[0].to_owned()).or_default().push(span(percent(3), percent(4)));
            }
        }
        by_task.into_values().collect()
    }

    fn ceiling(queries: &[Vec<NormSpan>]) -> HumanCeiling {
        human_ceiling(&queries.iter().map(Vec::as_slice).collect::<Vec<_>>(), 0).unwrap()
    }

    #[test]
    fn people_agree_on_charades_and_activitynet_as_an_independent_count_says() {
        let Some(folder) = shared("data/human-reannotations") else { return };
        let files = |name: &str, n: usize| (0..n).map(|i| format!("{name}_test_0{i}.csv")).collect::<Vec<_>>();
        // mIoU and R@1 at 0.5 and 0.7, one against one and one against any, counted by a script of its own in NumPy.
        for (name, parts, queries, one, any) in [
            ("charades", 3, 1000, [0.5213460, 0.5588, 0.2934], [0.7197322, 0.8514, 0.6134]),
            ("activitynet", 5, 1288, [0.4419062, 0.4370342, 0.2982919], [0.6829250, 0.7380435, 0.5850932]),
        ] {
            let names = files(name, parts);
            let ceiling = ceiling(&marked(&folder, &names.iter().map(String::as_str).collect::<Vec<_>>()));
            assert_eq!((ceiling.queries, ceiling.left_out, ceiling.spans), (queries, 0, 5 * queries), "{name}");
            for (ours, theirs) in [(&ceiling.one, one), (&ceiling.any, any)] {
                let figures = [ours.mean_iou.value, ours.recall[1].recall.value, ours.recall[2].recall.value];
                for (ours, theirs) in figures.iter().zip(theirs) {
                    assert!((ours - theirs).abs() < 5e-7, "{name}: {figures:?}");
                }
            }
        }
    }

    #[test]
    fn people_agree_on_the_fixture_as_counted_by_hand() {
        let folder = cuemark_testkit::fixture("protocols/splits");
        let ceiling = ceiling(&marked(&folder, &["reannotations.csv"]));
        assert_eq!((ceiling.queries, ceiling.left_out, ceiling.spans), (2, 1, 5));
        // First query: spans 0-50, 0-50, 25-50: pairs 1, 1/2, 1/2. Second: 0-10 and 50-60: nothing in common.
        assert!((ceiling.one.mean_iou.value - (2.0 / 3.0) / 2.0).abs() < 1e-12);
        assert!((ceiling.any.mean_iou.value - (2.5 / 3.0) / 2.0).abs() < 1e-12);
        let at = |n: usize| (ceiling.one.recall[n].recall.value, ceiling.any.recall[n].recall.value);
        assert_eq!(at(1), (0.5, 0.5), "a half is enough at 0.5");
        assert!((at(2).0 - (1.0 / 3.0) / 2.0).abs() < 1e-12 && (at(2).1 - (2.0 / 3.0) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_given_answer_is_scored_against_one_and_against_any() {
        let people = [span(0.0, 0.5), span(0.5, 1.0)];
        let report = against_people(&[(Some(span(0.0, 0.5)), &people), (None, &people)], 0).unwrap();
        assert_eq!((report.queries, report.left_out), (1, 1));
        assert_eq!((report.one.mean_iou.value, report.any.mean_iou.value), (0.5, 1.0));
    }

    #[test]
    fn one_person_alone_is_no_ceiling() {
        assert!(human_ceiling(&[&[span(0.0, 1.0)]], 0).is_err());
        assert!(against_people(&[], 0).is_err());
    }

    proptest! {
        #[test]
        fn any_is_never_below_one_and_intervals_hold_the_mean(
            queries in proptest::collection::vec(proptest::collection::vec((0.0..1.0f64, 0.0..1.0f64), 2..6), 1..12),
        ) {
            let queries: Vec<Vec<NormSpan>> =
                queries.into_iter().map(|spans| spans.into_iter().map(|(a, b)| span(a, b)).collect()).collect();
            let ceiling = ceiling(&queries);
            prop_assert!(ceiling.any.mean_iou.value >= ceiling.one.mean_iou.value - 1e-12);
            for estimate in [ceiling.any.mean_iou, ceiling.one.mean_iou] {
                prop_assert!(estimate.low <= estimate.value + 1e-12 && estimate.value <= estimate.high + 1e-12);
            }
        }
    }
}
