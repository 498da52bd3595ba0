//! The headline metric for parts of the queries: by the length and place of the moment, by words and verb.

use cuemark_core::Truth;
use cuemark_metrics::Grouping;
use indexmap::IndexMap;
use rayon::prelude::*;
use serde::Serialize;

use super::entry::Entry;
use super::estimate::Estimate;

/// Classes that a breakdown shows at most, the most frequent ones.
const CLASSES: usize = 12;

/// The headline metric by class of query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Breakdown {
    /// How queries were divided: `length`, `position`, `words`, `verb`, `type`.
    pub by: &'static str,
    /// The classes, in their own order where they have one, else the most frequent first.
    pub classes: Vec<String>,
    /// Queries in each.
    pub queries: Vec<usize>,
    /// What each entry reaches in each class, with Wilson's intervals.
    pub entries: Vec<Classes>,
}

/// One entry's figures by class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Classes {
    /// Whose.
    pub label: String,
    /// One per class; nothing where no query counts.
    pub values: Vec<Option<Estimate>>,
}

/// Queries by class, for one grouping.
pub(super) struct Division {
    by: Grouping,
    /// Class and the positions of its queries.
    classes: Vec<(String, Vec<usize>)>,
}

/// How `truths` divide, for every grouping that makes at least two classes.
pub(super) fn divisions(truths: &[Truth]) -> Vec<Division> {
    let of = |by: &Grouping| {
        let class_of = |truth: &Truth| by.class_of(truth);
        let classes: Vec<Option<String>> = truths.par_iter().map(class_of).collect();
        let mut members: IndexMap<String, Vec<usize>> = IndexMap::new();
        for (position, class) in classes.into_iter().enumerate() {
            if let Some(class) = class {
                members.entry(class).or_default().push(position);
            }
        }
        let mut classes: Vec<(String, Vec<usize>)> = members.into_iter().collect();
        let rank = |class: &str| order_of(*by).iter().position(|name| *name == class).unwrap_or(usize::MAX);
        classes.sort_by(|a, b| rank(&a.0).cmp(&rank(&b.0)).then(b.1.len().cmp(&a.1.len())).then_with(|| a.0.cmp(&b.0)));
        classes.truncate(CLASSES);
        Division { by: *by, classes }
    };
    Grouping::ALL.iter().map(of).filter(|division| division.classes.len() > 1).collect()
}

/// Classes that have an order of their own.
fn order_of(by: Grouping) -> &'static [&'static str] {
    match by {
        Grouping::Length => &["0-10%", "10-30%", "30-50%", "50-100%"],
        Grouping::Position => &["first-third", "second-third", "last-third"],
        Grouping::Words => &["1-5", "6-10", "11-20", "21+"],
        Grouping::Verb | Grouping::Type => &[],
    }
}

impl Division {
    /// What entries reach in each class; `scores` holds one number per query for each.
    pub(super) fn breakdown(&self, entries: &[Entry<'_>], scores: &[Vec<f64>]) -> Breakdown {
        let values = |scores: &Vec<f64>| {
            let of_class = |(_, members): &(String, Vec<usize>)| {
                Estimate::share(members.iter().filter_map(|n| scores.get(*n).copied())).map(|(estimate, _)| estimate)
            };
            self.classes.iter().map(of_class).collect()
        };
        Breakdown {
            by: self.by.name(),
            classes: self.classes.iter().map(|(class, _)| class.clone()).collect(),
            queries: self.classes.iter().map(|(_, members)| members.len()).collect(),
            entries: entries
                .iter()
                .zip(scores)
                .map(|(entry, scores)| Classes { label: entry.name.label(), values: values(scores) })
                .collect(),
        }
    }

    /// Classes in which an entry does clearly worse than overall: class, queries, figure.
    pub(super) fn weak_spots(&self, scores: &[f64], overall: f64) -> Vec<WeakSpot> {
        let least = (scores.len() / 100).max(20);
        let spot = |(class, members): &(String, Vec<usize>)| {
            let (estimate, queries) = Estimate::share(members.iter().filter_map(|n| scores.get(*n).copied()))?;
            let weak = queries >= least && estimate.high < overall;
            weak.then(|| WeakSpot { by: self.by.name(), class: class.clone(), queries, estimate })
        };
        self.classes.iter().filter_map(spot).collect()
    }
}

/// A class of queries in which an entry does clearly worse than overall.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeakSpot {
    /// How queries were divided.
    pub by: &'static str,
    /// The class.
    pub class: String,
    /// Queries in it.
    pub queries: usize,
    /// What the entry reaches there.
    #[serde(flatten)]
    pub estimate: Estimate,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::truths;

    #[test]
    fn a_class_that_fails_is_found_and_a_small_one_is_not_blamed() {
        let mut truths = truths(200);
        for (n, truth) in truths.iter_mut().enumerate() {
            truth.kind = Some(
                if n < 60 {
                    "hard"
                } else if n < 65 {
                    "rare"
                } else {
                    "easy"
                }
                .to_owned(),
            );
        }
        let scores: Vec<f64> = (0..200).map(|n| f64::from(u8::from(n >= 65))).collect();
        let divisions = divisions(&truths);
        let kinds = divisions.iter().find(|division| division.by == Grouping::Type).unwrap();
        let spots = kinds.weak_spots(&scores, 0.675);
        assert_eq!(spots.iter().map(|spot| spot.class.as_str()).collect::<Vec<_>>(), ["hard"]);
        assert_eq!((spots[0].queries, spots[0].estimate.value), (60, 0.0));
    }
}
