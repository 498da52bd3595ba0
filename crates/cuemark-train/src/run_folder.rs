//! The plain files that a run leaves.

use std::io::Write as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Predictions};
use cuemark_formats::{Files, Overwrite, PredictionFormat, RealFiles, Source, WholeFile, write_predictions};
use serde::Serialize;
use serde_json::{Value, json};

use crate::published_text::TextPrint;
use crate::{Result, RunFile, TrainError};

/// A run's folder: `run.toml`, `vocabulary.txt`, `verbs.txt`, `versions.json`, `metrics.jsonl`, `predictions.jsonl` (of the best checkpoint on
/// the validation split) and `checkpoints/{best,last}.safetensors`.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: Utf8PathBuf,
    files: Arc<dyn Files>,
}

impl RunFolder {
    /// The folder at `path`, whether or not it is there.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self::on(Arc::new(RealFiles), path)
    }

    /// As [`RunFolder::new`], written with other file operations.
    pub fn on(files: Arc<dyn Files>, path: impl Into<Utf8PathBuf>) -> Self {
        Self { path: path.into(), files }
    }

    /// What it is written with.
    pub(crate) fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// Where it lies.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The checkpoint to resume from.
    pub fn last(&self) -> Utf8PathBuf {
        self.path.join("checkpoints/last.safetensors")
    }

    /// The checkpoint with the best score on the validation split.
    pub fn best(&self) -> Utf8PathBuf {
        self.path.join("checkpoints/best.safetensors")
    }

    /// The weights that a later stage (from 1) began with.
    pub(crate) fn began(&self, stage: usize) -> Utf8PathBuf {
        self.path.join(format!("checkpoints/stage-{stage}-began.safetensors"))
    }

    /// The log, one JSON object a line.
    pub fn metrics(&self) -> Utf8PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// Answers to the validation split by the best checkpoint.
    pub fn predictions(&self) -> Utf8PathBuf {
        self.path.join("predictions.jsonl")
    }

    pub(crate) fn vocabulary(&self) -> Utf8PathBuf {
        self.path.join("vocabulary.txt")
    }

    pub(crate) fn verbs(&self) -> Utf8PathBuf {
        self.path.join("verbs.txt")
    }

    /// What tells the published text encoder of the run from others; only where there is one.
    pub(crate) fn text(&self) -> Utf8PathBuf {
        self.path.join("text.json")
    }

    /// What a search needs to know of the data that the run learned from; only where an index keeps a run.
    pub(crate) fn known(&self) -> Utf8PathBuf {
        self.path.join("search.json")
    }

    pub(crate) fn run_file(&self) -> Utf8PathBuf {
        self.path.join("run.toml")
    }

    /// The run file that it was made from, defaults filled in.
    ///
    /// # Errors
    /// When this is no run folder.
    pub fn read_run(&self) -> Result<RunFile> {
        if !self.run_file().is_file() {
            let problem = "is no run folder: it holds no `run.toml`".to_owned();
            return Err(self.fault(problem, Advice::say("name a folder that ").run("train").and(" wrote")));
        }
        RunFile::read(&self.run_file(), &[])
    }

    /// What tells the text encoder that the run was trained with from others.
    pub(crate) fn read_text_print(&self) -> Result<TextPrint> {
        let text = Source::new(self.text()).text()?;
        serde_json::from_str(&text).map_err(|error| TrainError::Folder {
            path: self.text(),
            problem: format!("is damaged: {error}"),
            hint: "train it again".into(),
        })
    }

    pub(crate) fn write_text_print(&self, print: &TextPrint) -> Result<()> {
        let text = serde_json::to_vec_pretty(print).map_err(|error| TrainError::Folder {
            path: self.text(),
            problem: format!("cannot be kept: {error}"),
            hint: "train it again".into(),
        })?;
        self.write("text.json", &text)
    }

    /// Refuses a folder that holds a run, unless it may be replaced.
    pub(crate) fn check_free(&self, overwrite: Overwrite) -> Result<()> {
        if self.run_file().exists() && overwrite == Overwrite::Never {
            let hint = Advice::say("pass ").set("resume").and(" to go on with it, ").set("force");
            let hint = hint.and(" to start over, or ").setting("out").and(" for another folder");
            return Err(self.fault("holds a run already".to_owned(), hint));
        }
        Ok(())
    }

    /// Makes the folder for a new run; what an earlier one left is removed.
    pub(crate) fn create(&self, run: &RunFile) -> Result<()> {
        let checkpoints = self.path.join("checkpoints");
        let fault = |error| self.fault(format!("cannot be made: {error}"), "name a folder that can be written to");
        self.files.make_folder(&checkpoints).map_err(fault)?;
        for old in [self.last(), self.best(), self.metrics(), self.predictions()] {
            match self.files.remove(&old) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(self.fault(format!("`{old}` cannot be removed: {error}"), "remove it yourself"));
                }
                _ => {}
            }
        }
        // Before the new run file is there: after a power cut an earlier run's checkpoint must not be taken for this one's.
        for folder in [&checkpoints, &self.path] {
            self.files.sync_folder(folder).map_err(fault)?;
        }
        self.write("run.toml", run.to_toml()?.as_bytes())
    }

    /// Refuses to go on with a run under other settings.
    pub(crate) fn check_same(&self, run: &RunFile) -> Result<()> {
        let before = self.read_run()?;
        if before == *run {
            return Ok(());
        }
        let hint = "resume with the settings it was started with, or start over with ";
        let hint = Advice::say(hint).set("force");
        Err(self.fault("was started with other settings".to_owned(), hint))
    }

    /// What the numbers depend on besides the run file.
    pub(crate) fn write_versions(&self, device: &str, recipe: Option<&Value>) -> Result<()> {
        let versions = json!({
            "cuemark": env!("CARGO_PKG_VERSION"),
            "device": device,
            "features": recipe,
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
        });
        self.write("versions.json", versions.to_string().as_bytes())
    }

    /// Puts a file of the folder in the place of an earlier one, whole or not at all.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        Ok(WholeFile::write_all_on(&self.files, self.path.join(name), Overwrite::Force, bytes)?)
    }

    /// Keeps the answers of the best checkpoint.
    pub(crate) fn write_predictions(&self, predictions: &Predictions) -> Result<()> {
        let mut file = WholeFile::create_on(&self.files, self.predictions(), Overwrite::Force)?;
        write_predictions(predictions, PredictionFormat::Cuemark, &mut file)?;
        Ok(file.finish()?)
    }

    /// Adds a line to the log.
    pub(crate) fn log(&self, line: &impl Serialize) -> Result<()> {
        let write = || -> std::io::Result<()> {
            let mut text = serde_json::to_string(line)?;
            text.push('\n');
            let is_new = !self.metrics().exists();
            let mut file = self.files.append(&self.metrics())?;
            // One write, so that a line is there or not; and on disk before any later checkpoint, which is resumed from without
            // saying again what came before it.
            file.write_all(text.as_bytes())?;
            file.sync()?;
            if is_new { self.files.sync_folder(&self.path) } else { Ok(()) }
        };
        write().map_err(|error| self.fault(format!("the log cannot be written: {error}"), "free some space and resume"))
    }

    /// Drops what the log says after `step`: it is about to happen again.
    pub(crate) fn rewind_log(&self, step: usize) -> Result<()> {
        if !self.metrics().is_file() {
            return Ok(());
        }
        let mut kept = String::new();
        Source::new(self.metrics()).for_each_line(|_, line| {
            // A line that was cut off by a crash is one that happens again.
            let at = serde_json::from_str::<Value>(line).ok().and_then(|line| line["step"].as_u64());
            if at.is_some_and(|at| at <= step as u64) {
                kept.push_str(line);
                kept.push('\n');
            }
            Ok(())
        })?;
        self.write("metrics.jsonl", kept.as_bytes())
    }

    fn fault(&self, problem: String, hint: impl Into<Advice>) -> TrainError {
        TrainError::Folder { path: self.path.clone(), problem, hint: hint.into() }
    }
}
