//! Shares of one matrix that several machines filled over one folder, put together without a lock.
//!
//! Every share writes a file of its own, `results-2-of-4.json`, and then [`merge`]s whatever shares are there. Whoever comes last
//! sees them all; whoever finds, having written, that another share has come meanwhile, merges again.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::whole_message;
use cuemark_formats::{Overwrite, ReadError};
use indexmap::IndexMap;

use crate::leaderboard::{RunResult, RunsFile};
use crate::{Result, doubles};

/// What shares come to together.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// Their runs, in the order of their files' names.
    pub file: RunsFile,
    /// The files that are in it.
    pub parts: Vec<Utf8PathBuf>,
    /// Files that are not, each with the reason: damaged, or a share that another file has.
    pub left_out: Vec<String>,
}

/// The file that a share such as `2/4` writes.
pub fn file_of(stem: &str, shard: &str) -> String {
    format!("{stem}-{}.json", shard.replace('/', "-of-"))
}

/// Reads every share in `folder`.
///
/// A share that cannot be read is left out, and so is one that stands there under two names: which of the two is meant nobody
/// knows, so the one with the shorter name stays.
///
/// # Errors
/// When the folder cannot be read, or two shares say different things of one run.
pub fn merge(folder: &Utf8Path) -> Result<Merged> {
    let mut file: Option<RunsFile> = None;
    let (mut parts, mut left_out) = (Vec::new(), Vec::new());
    let mut shares: IndexMap<String, Utf8PathBuf> = IndexMap::new();
    let mut runs: Vec<(Utf8PathBuf, RunResult)> = Vec::new();
    for path in shares_in(folder)? {
        let part = match RunsFile::read(&path) {
            Ok(part) => part,
            Err(error) => {
                left_out.push(format!("{path} is damaged and left out: {}", whole_message(&error)));
                continue;
            }
        };
        let Some(shard) = part.shard.clone() else {
            left_out.push(format!("{path} is left out: it does not say which share it is"));
            continue;
        };
        if let Some(first) = shares.get(&shard) {
            left_out.push(format!("{path} is left out: share {shard} is in {first} already"));
            continue;
        }
        shares.insert(shard, path.clone());
        for run in &part.results {
            match runs.iter().find(|(_, other)| other.key() == run.key()) {
                Some((first, other)) if !doubles::same_figures(other, run) => {
                    return Err(doubles::contradiction(run, first.as_str(), path.as_str()));
                }
                Some(_) => {}
                None => runs.push((path.clone(), run.clone())),
            }
        }
        parts.push(path);
        let merged = file.get_or_insert_with(|| RunsFile { shard: None, results: Vec::new(), ..part.clone() });
        merged.datasets.extend(part.datasets);
        if !merged.machine.split("; ").any(|machine| machine == part.machine) {
            merged.machine = format!("{}; {}", merged.machine, part.machine);
        }
    }
    let mut file = file.unwrap_or_else(|| RunsFile::new("", String::new(), Vec::new()));
    file.results = runs.into_iter().map(|(_, run)| run).collect();
    Ok(Merged { file, parts, left_out })
}

/// Merges what is in `folder` into `results.json` there, until no share has come meanwhile.
///
/// # Errors
/// As [`merge`], and when the disk refuses.
pub fn merge_into_results(folder: &Utf8Path) -> Result<Merged> {
    loop {
        let merged = merge(folder)?;
        merged.file.write(&folder.join("results.json"), Overwrite::Force)?;
        // The last to write must have seen every share: whoever wrote one later will merge later.
        let now = merge(folder)?;
        if now == merged {
            return Ok(merged);
        }
    }
}

/// `results-K-of-N.json` and copies of such, the shortest names first.
fn shares_in(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>> {
    let refused = |source| ReadError::Io { path: folder.to_owned(), source };
    let mut paths = Vec::new();
    for entry in folder.read_dir_utf8().map_err(refused)? {
        let path = entry.map_err(refused)?.into_path();
        let name = path.file_name().unwrap_or_default();
        if name.starts_with("results-") && name.contains("-of-") && name.ends_with(".json") {
            paths.push(path);
        }
    }
    // A copy has a longer name than what it was copied from.
    paths.sort_by(|a, b| a.as_str().len().cmp(&b.as_str().len()).then(a.cmp(b)));
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn share(shard: &str, runs: &[(&str, f64)]) -> RunsFile {
        let run = |(model, value): &(&str, f64)| {
            json!({
                "model": model, "dataset": "world", "protocol": "own", "features": "motion", "seed": 0, "kind": "model",
                "tests": [{ "test": "iid", "split": "test-iid", "queries": 1, "metrics": { "mIoU": { "value": value } } }],
            })
        };
        let results = runs.iter().map(run).map(|run| serde_json::from_value(run).unwrap()).collect();
        RunsFile { shard: Some(shard.to_owned()), ..RunsFile::new("m", "2026-11-15".to_owned(), results) }
    }

    fn models(merged: &Merged) -> Vec<&str> {
        merged.file.results.iter().map(|run| run.model.as_str()).collect()
    }

    #[test]
    fn shares_are_put_together_and_damaged_and_doubled_ones_named_and_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let put = |name: &str, file: &RunsFile| file.write(&folder.join(name), Overwrite::Force).unwrap();
        assert!(models(&merge_into_results(folder).unwrap()).is_empty());
        put(&file_of("results", "1/3"), &share("1/3", &[("mmn", 0.4), ("drn", 0.5)]));
        put(&file_of("results", "2/3"), &share("2/3", &[("lgi", 0.3)]));
        put("results-2-of-3-copy.json", &share("2/3", &[("lgi", 0.9)]));
        std::fs::write(folder.join("results-3-of-3.json"), "{\"runs\": 1, \"na").unwrap();
        let merged = merge_into_results(folder).unwrap();
        assert_eq!(models(&merged), ["mmn", "drn", "lgi"]);
        assert_eq!(merged.file.results[2].tests[0].metrics["mIoU"].value, 0.3, "not the copy's: {:?}", merged.parts);
        assert_eq!(merged.left_out.len(), 2, "{:?}", merged.left_out);
        assert!(merged.left_out[0].contains("results-3-of-3.json is damaged"), "{:?}", merged.left_out);
        assert!(
            merged.left_out[1].contains("results-2-of-3-copy.json is left out: share 2/3"),
            "{:?}",
            merged.left_out
        );
        let written = RunsFile::read(&folder.join("results.json")).unwrap();
        assert_eq!((written.shard.clone(), written.results.len()), (None, 3));
        // The share is run again: it is whole now.
        put(&file_of("results", "3/3"), &share("3/3", &[("tgn", 0.2)]));
        assert_eq!(models(&merge_into_results(folder).unwrap()), ["mmn", "drn", "lgi", "tgn"]);
    }

    #[test]
    fn one_run_with_two_figures_is_an_error_that_names_both() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        for (shard, value) in [("1/2", 0.4), ("1/3", 0.4)] {
            share(shard, &[("mmn", value)]).write(&folder.join(file_of("results", shard)), Overwrite::Never).unwrap();
        }
        assert_eq!(models(&merge(folder).unwrap()), ["mmn"], "said twice alike");
        share("2/2", &[("mmn", 0.5)]).write(&folder.join(file_of("results", "2/2")), Overwrite::Never).unwrap();
        let error = merge(folder).unwrap_err().to_string();
        assert!(error.contains("results-1-of-2.json") && error.contains("results-2-of-2.json"), "{error}");
    }
}
