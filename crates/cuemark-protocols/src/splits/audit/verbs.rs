//! Which verbs the queries of each split begin with, and how much of them the frequent ones cover.

use std::collections::{BTreeMap, HashMap};

use cuemark_core::Split;
use rayon::prelude::*;
use serde::Serialize;

/// Verbs in the table.
const TOP: usize = 30;

/// The most frequent first verbs over all splits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerbTable {
    /// The splits, in the order that counts are given.
    pub splits: Vec<String>,
    /// Queries of each split.
    pub queries: Vec<usize>,
    /// The thirty most frequent verbs, most frequent first; equal ones by the alphabet.
    pub top: Vec<VerbCounts>,
    /// For each split the share of queries whose first verb is among the thirty.
    pub coverage: Vec<f64>,
    /// For each split the number of different first verbs.
    pub distinct: Vec<usize>,
    /// For each split the queries in which no verb was found.
    pub without_verb: Vec<usize>,
}

/// How often one verb comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerbCounts {
    /// The verb, in its base form.
    pub verb: String,
    /// Queries of each split.
    pub queries: Vec<usize>,
}

/// The table and, for every sentence in it, the verb that was found: sentences are analysed once.
pub(super) struct KnownVerbs<'a> {
    verbs: HashMap<&'a str, Option<String>>,
    pub(super) table: VerbTable,
}

impl KnownVerbs<'_> {
    pub(super) fn verb_of(&self, sentence: &str) -> Option<String> {
        self.verbs.get(sentence).cloned().flatten()
    }
}

impl VerbTable {
    pub(super) fn of(splits: &[Split]) -> KnownVerbs<'_> {
        let sentences = splits.par_iter().flat_map(|split| &split.queries).map(|truth| truth.query.text.as_str());
        let verbs: HashMap<&str, Option<String>> =
            sentences.map(|text| (text, cuemark_text::first_verb_lemma(text))).collect();
        let mut queries_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut without_verb = vec![0; splits.len()];
        for (n, split) in splits.iter().enumerate() {
            for truth in &split.queries {
                match verbs.get(truth.query.text.as_str()).and_then(Option::as_deref) {
                    Some(verb) => queries_of.entry(verb).or_insert_with(|| vec![0; splits.len()])[n] += 1,
                    None => without_verb[n] += 1,
                }
            }
        }
        let distinct =
            (0..splits.len()).map(|n| queries_of.values().filter(|queries| queries[n] > 0).count()).collect();
        let mut ranked: Vec<(&str, Vec<usize>)> = queries_of.into_iter().collect();
        ranked.sort_by_key(|(_, queries)| std::cmp::Reverse(queries.iter().sum::<usize>()));
        ranked.truncate(TOP);
        let coverage = splits.iter().enumerate().map(|(n, split)| {
            let covered: usize = ranked.iter().map(|(_, queries)| queries[n]).sum();
            covered as f64 / split.queries.len().max(1) as f64
        });
        let table = VerbTable {
            splits: splits.iter().map(|split| split.name.clone()).collect(),
            queries: splits.iter().map(|split| split.queries.len()).collect(),
            coverage: coverage.collect(),
            top: ranked
                .iter()
                .map(|(verb, queries)| VerbCounts { verb: (*verb).to_owned(), queries: queries.clone() })
                .collect(),
            distinct,
            without_verb,
        };
        KnownVerbs { verbs, table }
    }
}
