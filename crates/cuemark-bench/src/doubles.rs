//! Two runs of one key: the same figures are one run said twice, different ones are a contradiction.

use indexmap::IndexMap;

use crate::leaderboard::{RunResult, RunsFile};
use crate::{BenchError, Result};

/// Refuses files that say different things of one run, unless the later one says that it replaces the earlier.
///
/// # Errors
/// The first such run, with both files.
pub(crate) fn refuse(files: &[(&str, &RunsFile)]) -> Result<()> {
    let mut seen: IndexMap<_, (&str, &RunResult)> = IndexMap::new();
    for (name, file) in files {
        for run in &file.results {
            let Some((first, earlier)) = seen.insert(run.key(), (*name, run)) else { continue };
            let replaced = first != *name && file.replaces.iter().any(|replaced| replaced == first);
            if !replaced && !same_figures(earlier, run) {
                return Err(contradiction(run, first, name));
            }
        }
    }
    Ok(())
}

/// What a figure that was written with five digits may be off by.
const ROUNDED: f64 = 1e-5;

/// Whether two runs measured the same, as far as both were asked the same. How long they took may differ.
pub(crate) fn same_figures(a: &RunResult, b: &RunResult) -> bool {
    a.tests.iter().all(|test| {
        let other = b.tests.iter().find(|other| other.test == test.test);
        other.is_none_or(|other| {
            test.metrics.iter().all(|(name, measure)| {
                other.metrics.get(name).is_none_or(|said| (said.value - measure.value).abs() < ROUNDED)
            })
        })
    })
}

/// What to say of a run that two files disagree about.
pub(crate) fn contradiction(run: &RunResult, first: &str, second: &str) -> BenchError {
    let variant = if run.variant.is_empty() { String::new() } else { format!(" ({})", run.variant) };
    let run = format!(
        "{}{variant} on {} {}, features `{}`, seed {}",
        run.model, run.dataset, run.protocol, run.features, run.seed
    );
    BenchError::TwoFigures { run, first: first.to_owned(), second: second.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(value: f64, replaces: &[&str]) -> RunsFile {
        let results = json!([{
            "model": "mmn", "dataset": "world", "protocol": "own", "features": "motion", "seed": 0, "kind": "model",
            "tests": [{ "test": "iid", "split": "test-iid", "queries": 1, "metrics": { "mIoU": { "value": value } } }],
        }]);
        let mut file = RunsFile::new("test", "2026-11-15".to_owned(), serde_json::from_value(results).unwrap());
        file.replaces = replaces.iter().map(|name| (*name).to_owned()).collect();
        file
    }

    #[test]
    fn one_run_with_two_figures_is_an_error_unless_it_is_replaced() {
        let (old, same, other, newer) = (file(0.4, &[]), file(0.4, &[]), file(0.5, &[]), file(0.5, &["old"]));
        assert!(refuse(&[("old", &old), ("same", &same)]).is_ok());
        let error = refuse(&[("old", &old), ("other", &other)]).unwrap_err().to_string();
        assert_eq!(error, "mmn on world own, features `motion`, seed 0: `old` and `other` have different figures");
        assert!(refuse(&[("old", &old), ("newer", &newer)]).is_ok());
        assert!(refuse(&[("older", &old), ("newer", &newer)]).is_err(), "another file is not named");
        let mut twice = file(0.4, &["twice"]);
        twice.results.extend(file(0.5, &[]).results);
        assert!(refuse(&[("twice", &twice)]).is_err(), "no file replaces itself");
    }
}
