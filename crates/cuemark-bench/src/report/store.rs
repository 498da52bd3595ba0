//! The files of evaluated runs: `RUN/evaluations/SPLIT.json` and the truth that they were scored against.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Truth;
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::{Overwrite, Source, WholeFile, write_truth};
use indexmap::IndexMap;
use rayon::prelude::*;

use super::digest;
use super::evaluated::Evaluated;
use super::training_log::TrainingLog;
use crate::{BenchError, Result};

/// The folder of a run that holds its evaluations.
const EVALUATIONS: &str = "evaluations";
/// The folder beside runs that may hold the truth of them all.
const TRUTHS: &str = "truths";

impl Evaluated {
    /// Writes `RUN/evaluations/SPLIT.json` and, unless `RUN/../truths` has it, the truth that it was scored against.
    ///
    /// # Errors
    /// When a file stands there and may not be replaced, or cannot be written.
    pub fn store(&self, run: &Utf8Path, truths: &[Truth], overwrite: Overwrite) -> Result<Utf8PathBuf> {
        let folder = run.join(EVALUATIONS);
        let path = folder.join(self.about.file_name());
        overwrite.check(&path)?;
        if find_truth(run, &self.truth).is_none() {
            store_truth(&folder, truths)?;
        }
        let mut file = WholeFile::create(&path, overwrite)?;
        file.put_json(self)?;
        file.finish()?;
        Ok(path)
    }

    /// Reads what [`Evaluated::store`] wrote.
    ///
    /// # Errors
    /// When the file cannot be read or does not hold together.
    pub fn read(path: &Utf8Path) -> Result<Self> {
        let text = Source::new(path).text()?;
        let evaluated: Self = serde_json::from_str(&text).map_err(|error| BenchError::Stored {
            path: path.to_owned(),
            field: "evaluation",
            problem: error.to_string(),
        })?;
        match evaluated.fault() {
            Some((field, problem)) => Err(BenchError::Stored { path: path.to_owned(), field, problem }),
            None => Ok(evaluated),
        }
    }
}

/// Writes `FOLDER/truth-DIGEST.jsonl.zst`, unless it is there; runs beside a folder called `truths` share what lies in it.
///
/// # Errors
/// When the file cannot be written.
pub fn store_truth(folder: &Utf8Path, truths: &[Truth]) -> Result<Utf8PathBuf> {
    let path = folder.join(truth_name(&digest::of_truth(truths)));
    if !path.exists() {
        // Another process may write the same bytes at the same time; whoever is last replaces them by themselves.
        let mut file = WholeFile::create(&path, Overwrite::Force)?;
        write_truth(truths, &mut file)?;
        file.finish()?;
    }
    Ok(path)
}

fn truth_name(digest: &str) -> String {
    format!("truth-{digest}.jsonl.zst")
}

fn find_truth(run: &Utf8Path, digest: &str) -> Option<Utf8PathBuf> {
    let own = run.join(EVALUATIONS);
    let shared = run.parent().map(|parent| parent.join(TRUTHS));
    [Some(own), shared].into_iter().flatten().map(|folder| folder.join(truth_name(digest))).find(|path| path.is_file())
}

/// Evaluated runs, with the truth that they were scored against and what their training logged.
#[derive(Debug, Default)]
pub struct Runs {
    /// Evaluations in the order of the folders, within a folder by file name.
    pub evaluated: Vec<Evaluated>,
    /// Truth by digest. One whose file is gone is not there; its runs then have no figures by query.
    pub truths: IndexMap<String, Vec<Truth>>,
    /// What trainings logged.
    pub logs: Vec<TrainingLog>,
}

impl Runs {
    /// Adds an evaluation that was just made.
    pub fn add(&mut self, evaluated: Evaluated, truths: &[Truth]) {
        self.truths.entry(evaluated.truth.clone()).or_insert_with(|| truths.to_vec());
        self.evaluated.push(evaluated);
    }
}

/// Reads every evaluation of `folders`: run folders, or folders of run folders (one level).
///
/// # Errors
/// When a folder holds no evaluation, and those of [`Evaluated::read`].
pub fn read_runs(folders: &[Utf8PathBuf]) -> Result<Runs> {
    let mut runs = Runs::default();
    let mut found: Vec<(Utf8PathBuf, Utf8PathBuf)> = Vec::new();
    for folder in folders {
        let before = found.len();
        for run in run_folders(folder)? {
            found.extend(evaluation_files(&run)?.into_iter().map(|file| (run.clone(), file)));
            runs.logs.extend(TrainingLog::read(&run)?);
        }
        if found.len() == before {
            return Err(BenchError::NothingEvaluated { path: folder.clone() });
        }
    }
    runs.evaluated = found.par_iter().map(|(_, file)| Evaluated::read(file)).collect::<Result<_>>()?;
    for (evaluated, (run, _)) in runs.evaluated.iter().zip(&found) {
        if runs.truths.contains_key(&evaluated.truth) {
            continue;
        }
        let Some(path) = find_truth(run, &evaluated.truth) else { continue };
        let truths = read_truth(&Source::new(&path), None, &ReadOptions::default())?.queries;
        if truths.len() != evaluated.queries {
            let problem = format!("{} queries, {} were evaluated", truths.len(), evaluated.queries);
            return Err(BenchError::Stored { path, field: "truth", problem });
        }
        runs.truths.insert(evaluated.truth.clone(), truths);
    }
    Ok(runs)
}

/// Whether `folder` holds evaluations of its own.
pub fn is_evaluated(folder: &Utf8Path) -> bool {
    evaluation_files(folder).is_ok_and(|files| !files.is_empty())
}

/// `folder` itself when it is a run, else the runs in it, by name.
fn run_folders(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>> {
    if folder.join(EVALUATIONS).is_dir() {
        return Ok(vec![folder.to_owned()]);
    }
    Ok(entries(folder)?.into_iter().filter(|path| path.join(EVALUATIONS).is_dir()).collect())
}

fn evaluation_files(run: &Utf8Path) -> Result<Vec<Utf8PathBuf>> {
    let folder = run.join(EVALUATIONS);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    Ok(entries(&folder)?.into_iter().filter(|path| path.extension() == Some("json")).collect())
}

/// What lies in `folder`, by name; names that are no text are none of ours.
fn entries(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>> {
    let source = Source::new(folder);
    let mut paths: Vec<Utf8PathBuf> = fs::read_dir(folder)
        .map_err(|error| source.io(error))?
        .filter_map(|entry| Utf8PathBuf::from_path_buf(entry.ok()?.path()).ok())
        .collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Advise as _, Dialect, Progress};

    use super::*;
    use crate::report::testing::{answers, truths};
    use crate::report::{About, Measure};

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        (guard, path)
    }

    fn evaluated(n: usize) -> (Vec<Truth>, Evaluated) {
        let truths = truths(n);
        let predictions = answers(&truths, |n| vec![(10.0 + n as f64 / 7.0, 21.0)]);
        let about = About { model: "m".into(), split: "test".into(), ..About::default() };
        let evaluated = Measure::default().run(about, &truths, &predictions, &Progress::new()).unwrap();
        (truths, evaluated)
    }

    #[test]
    fn what_was_stored_is_read_again_with_its_truth() {
        let (_guard, folder) = folder();
        let (truths, evaluated) = evaluated(9);
        evaluated.store(&folder.join("run"), &truths, Overwrite::Never).unwrap();
        // Both as a run and as a folder of runs.
        for named in [folder.join("run"), folder.clone()] {
            let runs = read_runs(&[named]).unwrap();
            assert_eq!(runs.evaluated.len(), 1);
            assert_eq!(runs.evaluated[0].about, evaluated.about);
            assert_eq!(runs.evaluated[0].metrics["mIoU"].value, evaluated.metrics["mIoU"].value);
            assert_eq!(runs.truths[&evaluated.truth].len(), 9);
        }
        assert!(
            evaluated.store(&folder.join("run"), &truths, Overwrite::Never).is_err(),
            "nothing is replaced unasked"
        );
    }

    #[test]
    fn a_truth_that_runs_share_is_stored_once() {
        let (_guard, folder) = folder();
        let (truths, evaluated) = evaluated(3);
        store_truth(&folder.join("truths"), &truths).unwrap();
        evaluated.store(&folder.join("run"), &truths, Overwrite::Never).unwrap();
        assert_eq!(entries(&folder.join("run/evaluations")).unwrap().len(), 1);
        assert_eq!(read_runs(&[folder]).unwrap().truths.len(), 1);
    }

    #[test]
    fn files_that_do_not_hold_together_are_refused_by_field() {
        let (_guard, folder) = folder();
        let (_, evaluated) = evaluated(3);
        let path = folder.join("e.json");
        let write = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut value = serde_json::to_value(&evaluated).unwrap();
            change(&mut value);
            fs::write(&path, value.to_string()).unwrap();
            Evaluated::read(&path).unwrap_err().to_string()
        };
        assert!(write(&|value| value["queries"] = 4.into()).contains("first.start"));
        assert!(write(&|value| value["version"] = 99.into()).contains("newer"));
        assert!(write(&|value| value["truth"] = "../../x".into()).contains("no digest"));
        assert!(write(&|value| value["metrics"] = serde_json::json!({})).contains("there are none"));
        assert!(write(&|value| value["first"] = 7.into()).contains("evaluation"));
    }

    #[test]
    fn a_folder_without_evaluations_is_an_error_with_advice() {
        let (_guard, folder) = folder();
        let error = read_runs(&[folder]).unwrap_err();
        assert!(error.to_string().contains("holds no evaluated run"));
        assert!(error.advice_in(Dialect::Terminal).unwrap().contains("--pred"));
    }
}
