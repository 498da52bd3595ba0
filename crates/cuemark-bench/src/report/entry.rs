//! Rows of tables: what was evaluated under one name, over its seeds.

use cuemark_train::Among;
use indexmap::IndexMap;
use serde::Serialize;

use super::about::Answerer;
use super::estimate::Estimate;
use super::evaluated::Evaluated;

/// What boards are told apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The dataset.
    pub dataset: String,
    /// How its splits were made.
    pub protocol: String,
    /// The split.
    pub split: String,
    /// Where its queries were searched.
    pub among: Among,
}

impl Place {
    pub(super) fn of(evaluated: &Evaluated) -> Self {
        let about = &evaluated.about;
        Self {
            dataset: about.dataset.clone(),
            protocol: about.protocol.clone(),
            split: about.split.clone(),
            among: about.among,
        }
    }

    /// `charades-cd · cd · test-iid`; what is empty or says nothing new is left out.
    pub fn title(&self) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for part in [&self.dataset, &self.protocol, &self.split] {
            if !part.is_empty() && !parts.contains(&part.as_str()) {
                parts.push(part);
            }
        }
        let searched = match self.among {
            Among::Own => "",
            Among::Pool => ", searched in pools",
            Among::Split => ", searched in the whole split",
        };
        format!("{}{searched}", if parts.is_empty() { "results".to_owned() } else { parts.join(" · ") })
    }
}

/// What one row is told apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Name {
    /// What gave the answers.
    pub kind: Answerer,
    /// The model, baseline or file.
    pub model: String,
    /// Ablation or configuration; empty for the plain model.
    pub variant: String,
    /// The feature recipe.
    pub features: String,
}

impl Name {
    pub(super) fn of(evaluated: &Evaluated) -> Self {
        let about = &evaluated.about;
        Self {
            kind: about.kind,
            model: about.model.clone(),
            variant: about.variant.clone(),
            features: about.features.clone(),
        }
    }

    /// `mmn`, or `mmn, no-matching` for a variant.
    pub fn label(&self) -> String {
        if self.variant.is_empty() { self.model.clone() } else { format!("{}, {}", self.model, self.variant) }
    }
}

/// What was evaluated under one name at one place: one evaluation per seed.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub(super) name: Name,
    pub(super) runs: Vec<&'a Evaluated>,
}

impl<'a> Entry<'a> {
    /// A metric over the seeds.
    pub(super) fn measured(&self, metric: &str) -> Option<Estimate> {
        Estimate::over_seeds(self.runs.iter().filter_map(|run| run.metrics.get(metric)))
    }

    /// Standard deviation over seeds, of which there must be two.
    pub(super) fn spread(&self, metric: &str) -> Option<f64> {
        let values: Vec<f64> = self.runs.iter().filter_map(|run| Some(run.metrics.get(metric)?.value)).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (values.len() > 1).then(|| (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
    }

    /// Each query's score, averaged over the seeds that were scored on the queries of `pairing`; empty when none was.
    pub(super) fn scores(&self, metric: &str, pairing: &str) -> Vec<f64> {
        let same = self.runs.iter().filter(|run| run.pairing == pairing);
        let mut columns: Vec<&[f32]> =
            same.filter_map(|run| Some(run.metrics.get(metric)?.scores.0.as_slice())).collect();
        let queries = columns.first().map_or(0, |column| column.len());
        // Files that claim the same queries and hold another number of them are not averaged.
        columns.retain(|column| column.len() == queries);
        let n = columns.len() as f64;
        (0..queries).map(|q| columns.iter().map(|column| f64::from(column[q])).sum::<f64>() / n).collect()
    }

    /// The first seed's run.
    pub(super) fn first(&self) -> &'a Evaluated {
        self.runs[0]
    }

    pub(super) fn is_baseline(&self) -> bool {
        self.name.kind == Answerer::Baseline
    }
}

/// Evaluations by place, then by name; places in the order of their first evaluation, models before baselines.
pub(super) fn by_place<'a>(evaluated: impl Iterator<Item = &'a Evaluated>) -> IndexMap<Place, Vec<Entry<'a>>> {
    let mut places: IndexMap<Place, IndexMap<Name, Vec<&Evaluated>>> = IndexMap::new();
    for one in evaluated {
        places.entry(Place::of(one)).or_default().entry(Name::of(one)).or_default().push(one);
    }
    let entries = |names: IndexMap<Name, Vec<&'a Evaluated>>| {
        let mut entries: Vec<Entry<'_>> = names.into_iter().map(|(name, runs)| Entry { name, runs }).collect();
        entries.sort_by_key(Entry::is_baseline);
        entries
    };
    places.into_iter().map(|(place, names)| (place, entries(names))).collect()
}

/// The pairing that most evaluations share; ties go to the first.
pub(super) fn usual_pairing<'a>(entries: &[Entry<'a>]) -> &'a str {
    let mut counts: IndexMap<&str, usize> = IndexMap::new();
    for run in entries.iter().flat_map(|entry| &entry.runs) {
        *counts.entry(run.pairing.as_str()).or_default() += 1;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    counts.into_iter().find(|(_, count)| *count == most).map_or("", |(pairing, _)| pairing)
}
