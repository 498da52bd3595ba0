//! The plain files that a run leaves.

use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Advice;
use cuemark_formats::{Overwrite, Source, WholeFile};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Result, RunFile, TrainError};

/// A run's folder: `run.toml`, `vocabulary.txt`, `verbs.txt`, `versions.json`, `metrics.jsonl`, `predictions.jsonl` (of the best checkpoint on
/// the validation split) and `checkpoints/{best,last}.safetensors`.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: Utf8PathBuf,
}

impl RunFolder {
    /// The folder at `path`, whether or not it is there.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { path: path.into() }
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

    fn run_file(&self) -> Utf8PathBuf {
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
        std::fs::create_dir_all(&checkpoints)
            .map_err(|error| self.fault(format!("cannot be made: {error}"), "name a folder that can be written to"))?;
        for old in [self.last(), self.best(), self.metrics(), self.predictions()] {
            match std::fs::remove_file(&old) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(self.fault(format!("`{old}` cannot be removed: {error}"), "remove it yourself"));
                }
                _ => {}
            }
        }
        WholeFile::write_all_to(self.run_file(), Overwrite::Force, run.to_toml()?.as_bytes())?;
        Ok(())
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
        let mut file = WholeFile::create(self.path.join("versions.json"), Overwrite::Force)?;
        file.put_json(&versions)?;
        Ok(file.finish()?)
    }

    /// Adds a line to the log.
    pub(crate) fn log(&self, line: &impl Serialize) -> Result<()> {
        let write = || -> std::io::Result<()> {
            let mut text = serde_json::to_string(line)?;
            text.push('\n');
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(self.metrics())?;
            // One write, so that a line is there or not.
            file.write_all(text.as_bytes())
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
        Ok(WholeFile::write_all_to(self.metrics(), Overwrite::Force, kept.as_bytes())?)
    }

    fn fault(&self, problem: String, hint: impl Into<Advice>) -> TrainError {
        TrainError::Folder { path: self.path.clone(), problem, hint: hint.into() }
    }
}
