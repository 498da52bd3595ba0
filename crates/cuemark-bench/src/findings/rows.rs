//! Committed runs as rows: the seeds of one variant are one row.

use cuemark_features::FeatureVariant;
use cuemark_train::Among;
use indexmap::IndexMap;

use crate::leaderboard::{Measure, RunResult, RunsFile, TestResult};
use crate::report::{Answerer, QueryText};

/// The metric that is meant where none is named.
pub(super) const USUAL: &str = "R@1,IoU=0.5";

/// The seeds of one method in one variant, on one dataset and its features.
#[derive(Debug, Clone)]
pub(super) struct Row<'a> {
    pub(super) runs: Vec<&'a RunResult>,
}

/// A figure in percent: with one seed its interval over queries, with several their mean and standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    pub(super) value: f64,
    /// Half of what is likely, to either side: of the interval, or two standard errors of the mean over seeds.
    pub(super) half: f64,
    /// The ends of the interval over queries, of one seed.
    interval: Option<(f64, f64)>,
    spread: Option<f64>,
    pub(super) seeds: usize,
}

/// Which of a run's tests is meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asking<'a> {
    /// A split, each query of its own video, as it is.
    Plain(&'a str),
    /// A split with changed queries.
    Text(&'a str, QueryText),
    /// Queries of their pools.
    Pools,
    /// Graded queries over a corpus.
    Graded,
    /// A split, every query of all its videos.
    Corpus,
}

impl Asking<'_> {
    fn is_of(self, test: &TestResult) -> bool {
        let seen = test.footage == FeatureVariant::Seen;
        match self {
            Self::Plain(split) => {
                test.split == split && seen && (test.among, test.text) == (Among::Own, QueryText::Original)
            }
            Self::Text(split, text) => test.split == split && seen && test.among == Among::Own && test.text == text,
            Self::Pools => test.among == Among::Pool && test.split == "pools",
            Self::Graded => test.among == Among::Pool && test.metrics.keys().any(|name| name.starts_with("NDCG")),
            Self::Corpus => test.among == Among::Split,
        }
    }
}

impl<'a> Row<'a> {
    fn first(&self) -> &'a RunResult {
        self.runs[0]
    }

    pub(super) fn model(&self) -> &'a str {
        &self.first().model
    }

    pub(super) fn variant(&self) -> &'a str {
        &self.first().variant
    }

    pub(super) fn kind(&self) -> Answerer {
        self.first().kind
    }

    pub(super) fn is_model(&self) -> bool {
        self.kind() == Answerer::Model
    }

    /// Its name and variant.
    pub(super) fn name(&self) -> String {
        let RunResult { model, variant, .. } = self.first();
        if variant.is_empty() { model.clone() } else { format!("{model}, {variant}") }
    }

    /// The figure of its seeds that have it.
    pub(super) fn figure(&self, asking: Asking<'_>, metric: &str) -> Option<Figure> {
        let of = |run: &&RunResult| {
            run.tests.iter().filter(|test| asking.is_of(test)).find_map(|t| t.metrics.get(metric).copied())
        };
        Figure::of(&self.runs.iter().filter_map(of).collect::<Vec<_>>())
    }

    /// R@1,IoU=0.5 of a plain split.
    pub(super) fn usual(&self, split: &str) -> Option<Figure> {
        self.figure(Asking::Plain(split), USUAL)
    }

    /// From iid to ood.
    pub(super) fn drop(&self) -> Option<Change> {
        Some(self.usual("test-iid")?.to(self.usual("test-ood")?))
    }
}

/// A difference of two figures in points, with half of what is likely to either side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Change {
    pub(super) points: f64,
    half: f64,
}

impl Change {
    /// Whether it is surely less than nothing.
    pub(super) fn falls(self) -> bool {
        self.points + self.half < 0.0
    }

    /// Whether it is surely more than nothing.
    pub(super) fn rises(self) -> bool {
        self.points - self.half > 0.0
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { points, half } = self;
        write!(f, "{points:+.1} ({:+.1} – {:+.1})", points - half, points + half)
    }
}

impl Figure {
    fn of(measures: &[Measure]) -> Option<Self> {
        let count = measures.len() as f64;
        let value = 100.0 * measures.iter().map(|measure| measure.value).sum::<f64>() / count;
        match measures {
            [] => None,
            [Measure { low: Some(low), high: Some(high), .. }] => {
                let interval = Some((100.0 * low, 100.0 * high));
                Some(Self { value, half: 50.0 * (high - low), interval, spread: None, seeds: 1 })
            }
            [_] => Some(Self { value, half: 0.0, interval: None, spread: None, seeds: 1 }),
            _ => {
                let squares: f64 = measures.iter().map(|measure| (100.0 * measure.value - value).powi(2)).sum();
                let spread = (squares / (count - 1.0)).sqrt();
                let half = 2.0 * spread / count.sqrt();
                Some(Self { value, half, interval: None, spread: Some(spread), seeds: measures.len() })
            }
        }
    }

    /// `after - self`; the queries or seeds are others, so the halves add in quadrature.
    pub(super) fn to(self, after: Self) -> Change {
        Change { points: after.value - self.value, half: self.half.hypot(after.half) }
    }

    /// The standard deviation over seeds.
    pub(super) fn spread(self) -> Option<f64> {
        self.spread
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.interval, self.spread) {
            (Some((low, high)), _) => write!(f, "{:.1} ({low:.1} – {high:.1})", self.value),
            (None, Some(spread)) => write!(f, "{:.1} ± {spread:.1} ({} seeds)", self.value, self.seeds),
            (None, None) => write!(f, "{:.1}", self.value),
        }
    }
}

/// All runs, the later of one key, seeds of a variant together.
pub(super) struct Rows<'a>(Vec<Row<'a>>);

impl<'a> Rows<'a> {
    pub(super) fn of(files: &'a [RunsFile]) -> Self {
        let mut latest: IndexMap<_, &RunResult> = IndexMap::new();
        for run in files.iter().flat_map(|file| &file.results) {
            latest.insert(run.key(), run);
        }
        let mut rows: IndexMap<_, Row<'_>> = IndexMap::new();
        for ((dataset, protocol, model, variant, features, _), run) in latest {
            let row = rows.entry((dataset, protocol, model, variant, features));
            row.or_insert_with(|| Row { runs: Vec::new() }).runs.push(run);
        }
        Self(rows.into_values().collect())
    }

    /// The rows of a dataset in its own splits.
    pub(super) fn on(&self, dataset: &str) -> Vec<&Row<'a>> {
        self.under(dataset, "own")
    }

    /// The rows of a dataset that somebody cut into splits.
    pub(super) fn under(&self, dataset: &str, protocol: &str) -> Vec<&Row<'a>> {
        let is_meant = |row: &&Row<'_>| row.first().dataset == dataset && row.first().protocol == protocol;
        self.0.iter().filter(is_meant).collect()
    }

    /// One row, on its strongest features where it looks at any.
    pub(super) fn find(&self, dataset: &str, model: &str, variant: &str) -> Option<&Row<'a>> {
        let on = self.on(dataset).into_iter();
        let mut fits = on.filter(|row| row.model() == model && row.variant() == variant);
        fits.find(|row| matches!(row.first().features.as_str(), "" | "motion"))
    }

    /// The rows of a dataset whose features were as stored: methods are held against each other on what all of them were given.
    pub(super) fn as_stored(&self, dataset: &str) -> Vec<&Row<'a>> {
        self.on(dataset).into_iter().filter(|row| !row.variant().contains("standardised")).collect()
    }

    /// The variant of a method that has most of the usual metric on test-iid, with features as stored.
    pub(super) fn best(&self, dataset: &str, model: &str) -> Option<&Row<'a>> {
        best_of(self.as_stored(dataset), model)
    }

    /// The same, whatever was done to the features.
    pub(super) fn best_of_all(&self, dataset: &str, model: &str) -> Option<&Row<'a>> {
        best_of(self.on(dataset), model)
    }
}

fn best_of<'b, 'a>(rows: Vec<&'b Row<'a>>, model: &str) -> Option<&'b Row<'a>> {
    let of_model = rows.into_iter().filter(|row| row.model() == model);
    let scored = of_model.filter_map(|row| Some((row.usual("test-iid")?.value, row)));
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, row)| row)
}

/// A table in Markdown; `None` without rows.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    Some(rows.iter().fold(line(&head) + &rule, |text, row| text + &line(row)))
}

/// What there is to say of something, or nothing.
pub(super) fn said(thing: Option<impl std::fmt::Display>) -> String {
    thing.map(|thing| thing.to_string()).unwrap_or_default()
}

/// Kendall's tau-a of two rankings of the same methods: 1 when all pairs agree, -1 when none does.
pub(super) fn kendall(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len().checked_mul(pairs.len().checked_sub(1)?)? / 2;
    if count == 0 {
        return None;
    }
    let mut sum = 0.0;
    for (place, (a, b)) in pairs.iter().enumerate() {
        for (c, d) in &pairs[..place] {
            // `signum` of 0 is 1: ties count for nobody.
            let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
            sum += sign(a - c) * sign(b - d);
        }
    }
    Some(sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_counts_agreeing_pairs() {
        // By hand: of three pairs two agree and one does not.
        assert_eq!(kendall(&[(3.0, 3.0), (2.0, 1.0), (1.0, 2.0)]), Some((2.0 - 1.0) / 3.0));
        assert_eq!(kendall(&[(1.0, 2.0), (2.0, 1.0)]), Some(-1.0));
        assert_eq!(kendall(&[(1.0, 2.0), (1.0, 1.0)]), Some(0.0), "a tie agrees with nobody");
        assert_eq!(kendall(&[(1.0, 1.0)]), None);
    }

    #[test]
    fn one_seed_has_its_interval_and_several_their_spread() {
        let at = |value: f64, half: f64| Measure { value, low: Some(value - half), high: Some(value + half) };
        let one = Figure::of(&[at(0.5, 0.03)]).unwrap();
        assert_eq!(one.to_string(), "50.0 (47.0 – 53.0)");
        // 3-4-5.
        assert_eq!(one.to(Figure::of(&[at(0.4, 0.04)]).unwrap()).to_string(), "-10.0 (-15.0 – -5.0)");
        // Mean 45, deviation sqrt(2 · 0.05²) = 7.07.
        let two = Figure::of(&[at(0.4, 0.01), at(0.5, 0.01)]).unwrap();
        assert_eq!(two.to_string(), "45.0 ± 7.1 (2 seeds)");
        assert!((two.half - 10.0).abs() < 1e-9, "two standard errors: 2 · 7.07 / sqrt 2");
        assert_eq!(Figure::of(&[]), None);
    }
}
