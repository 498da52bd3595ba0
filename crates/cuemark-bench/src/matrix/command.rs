//! Anybody's method in a cell: a command that reads queries and writes predictions.
//!
//! It runs in a shell, in the cell's own folder, which it keeps from test to test and from session to session. What it is told
//! stands in its environment:
//!
//! | variable | holds |
//! | --- | --- |
//! | `CUEMARK_QUERIES` | the queries as JSON lines: `qid`, `query`, `video`, `duration`, `pool`; never a moment |
//! | `CUEMARK_PREDICTIONS` | the file to write, in any layout that `cuemark eval` reads, free-text answers included |
//! | `CUEMARK_TRAIN`, `CUEMARK_VAL` | the training and validation splits with their moments, in our layout |
//! | `CUEMARK_FEATURES` | the feature store of this cell, where the matrix names one |
//! | `CUEMARK_ROOT` | the dataset's folder |
//! | `CUEMARK_SEED`, `CUEMARK_SPLIT`, `CUEMARK_TEXT`, `CUEMARK_AMONG` | the seed, and what is asked |
//! | `CUEMARK_FOOTAGE` | `seen`, or `shuffled` or `zeroed`: then the method must look at no more than that |
//!
//! Queries come as the test asks them, their verb masked or swapped for another's. A command that fails, takes too long or
//! too much memory fails its cell, with the last line that it said; its tests that are done stay done.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Predictions, Progress, Split, Truth};
use cuemark_formats::{
    Overwrite, PredictionFormat, PredictionOptions, ReadError, Source, WholeFile, answers, match_sentences,
    read_predictions, write_truth,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cell::{Cell, CellTest};
use super::memory;
use crate::{BenchError, Result};

/// A command that answers the tests of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The command, as a shell reads it.
    pub command: String,
    /// The feature store that it may look at.
    pub features: Option<Utf8PathBuf>,
    /// **Seconds** that it may take for one test; `None` for as long as it likes.
    pub seconds: Option<f64>,
    /// Bytes that it and what it starts may have together; `None` for no limit.
    pub memory: Option<u64>,
}

/// What a command came to.
pub(super) struct Said {
    pub(super) predictions: Predictions,
    /// **Seconds** that it took.
    pub(super) seconds: f64,
    /// The most MiB that it and what it started were seen to have.
    pub(super) peak_mib: u64,
}

/// How often a command is looked at.
const TICK: Duration = Duration::from_millis(50);

/// What a command learns from.
pub(super) struct Learning<'a> {
    pub(super) train: &'a [Truth],
    pub(super) val: &'a [Truth],
}

impl Program {
    /// Runs the command on one test; `split` has the queries as they are asked, `truths` those of the dataset.
    ///
    /// # Errors
    /// When it fails, takes more than it may, writes nothing that can be read, or `progress` was stopped.
    pub(super) fn answer(
        &self,
        cell: &Cell,
        folder: &Utf8Path,
        test: &CellTest,
        split: &Split,
        learning: &Learning<'_>,
        progress: &Progress,
    ) -> Result<Said> {
        let fault = |problem: String| BenchError::Cell { folder: folder.to_owned(), problem };
        let files = folder.join("command");
        let queries = files.join(format!("{}.queries.jsonl", test.name));
        let out = files.join(format!("{}.answers", test.name));
        write_queries(&queries, &split.queries)?;
        for (name, truths) in [("train", learning.train), ("val", learning.val)] {
            let mut file = WholeFile::create(files.join(format!("{name}.jsonl")), Overwrite::Force)?;
            write_truth(truths, &mut file)?;
            file.finish()?;
        }
        // What an earlier session left is no answer to this one.
        if out.exists() {
            std::fs::remove_file(&out).map_err(|source| ReadError::Write { path: out.clone(), source })?;
        }
        let log = folder.join("command.log");
        let io = |source| ReadError::Write { path: log.clone(), source };
        let absolute = |path: &Utf8Path| {
            path.canonicalize_utf8().map_err(|source| ReadError::Io { path: path.to_owned(), source })
        };
        let files = absolute(&files)?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command).current_dir(folder).stdin(Stdio::null());
        command.stdout(File::create(&log).map_err(io)?).stderr(File::options().append(true).open(&log).map_err(io)?);
        command
            .env("CUEMARK_QUERIES", files.join(format!("{}.queries.jsonl", test.name)))
            .env("CUEMARK_PREDICTIONS", files.join(format!("{}.answers", test.name)))
            .env("CUEMARK_TRAIN", files.join("train.jsonl"))
            .env("CUEMARK_VAL", files.join("val.jsonl"))
            .env("CUEMARK_SEED", cell.seed.to_string())
            .env("CUEMARK_SPLIT", &split.name)
            .env("CUEMARK_TEXT", test.text.name())
            .env("CUEMARK_AMONG", test.among.name())
            .env("CUEMARK_FOOTAGE", test.footage.name());
        if let Some(features) = &self.features {
            command.env("CUEMARK_FEATURES", absolute(features)?);
        }
        if let Some(root) = &cell.data.root {
            command.env("CUEMARK_ROOT", absolute(root)?);
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let began = Instant::now();
        let child = command.spawn().map_err(|error| fault(format!("no shell could be started: {error}")))?;
        let (peak, ended) = self.watch(child, began, progress)?;
        if let Some(problem) = ended {
            let text = Source::new(&log).text().unwrap_or_default();
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            return Err(fault(format!("`{}` on {}: {problem}; its last line: {last}", self.command, test.name)));
        }
        let seconds = began.elapsed().as_secs_f64();
        if !out.is_file() {
            return Err(fault(format!(
                "`{}` on {}: it wrote no predictions to $CUEMARK_PREDICTIONS",
                self.command, test.name
            )));
        }
        let options = PredictionOptions::default();
        let (format, mut predictions) = read_predictions(&Source::new(&out), &options)?;
        match_sentences(&mut predictions, &split.queries);
        if format == PredictionFormat::Answers {
            answers::with_durations(&mut predictions, &split.queries, &options.answers.parser);
        }
        Ok(Said { predictions, seconds, peak_mib: peak >> 20 })
    }

    /// Waits for the end; the most bytes that were seen, and what was wrong.
    fn watch(&self, child: Child, began: Instant, progress: &Progress) -> Result<(u64, Option<String>)> {
        let mut child = Watched(child);
        let mut peak = 0;
        loop {
            match child.0.try_wait() {
                Ok(Some(status)) if status.success() => return Ok((peak, None)),
                Ok(Some(status)) => return Ok((peak, Some(format!("it ended with {status}")))),
                Ok(None) => {}
                Err(error) => return Ok((peak, Some(error.to_string()))),
            }
            let now = memory::of_family(child.0.id());
            peak = peak.max(now);
            if let Some(limit) = self.memory.filter(|limit| now > *limit) {
                return Ok((peak, Some(format!("it had {} MiB where {} MiB are allowed", now >> 20, limit >> 20))));
            }
            if let Some(limit) = self.seconds.filter(|limit| began.elapsed().as_secs_f64() > *limit) {
                return Ok((peak, Some(format!("it took more than {limit} s"))));
            }
            progress.check().map_err(cuemark_metrics::EvalError::from)?;
            std::thread::sleep(TICK);
        }
    }
}

/// A command that is ended with everything it started when nobody waits for it any more.
struct Watched(Child);

impl Drop for Watched {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        // The shell's own `kill` reaches the whole group.
        let group = format!("kill -KILL -{}", self.0.id());
        let _ = Command::new("sh").arg("-c").arg(group).stderr(Stdio::null()).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The queries without what is right about them.
fn write_queries(path: &Utf8Path, truths: &[Truth]) -> Result<()> {
    let mut file = WholeFile::create(path, Overwrite::Force)?;
    for truth in truths {
        let mut line = Map::new();
        line.insert("qid".to_owned(), truth.query.id.as_str().into());
        line.insert("query".to_owned(), truth.query.text.as_str().into());
        if let Some(video) = &truth.video {
            line.insert("video".to_owned(), video.id.as_str().into());
            line.extend(video.duration.map(|duration| ("duration".to_owned(), json!(duration))));
        }
        if let Some(pool) = &truth.pool {
            line.insert("pool".to_owned(), pool.iter().map(|video| Value::from(video.as_str())).collect());
        }
        file.put(format!("{}\n", Value::Object(line)).as_bytes())?;
    }
    Ok(file.finish()?)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)] // clippy.toml knows `cfg(test)` alone as a test
mod tests {
    use cuemark_core::{Query, QueryId, Span, Video};

    use super::*;

    fn split() -> Split {
        let query = Query { id: QueryId::from("q1"), text: "she waves".to_owned() };
        let truth = Truth::single(query, Video::new("v", 80.0), [Span::new(12.25, 17.5).unwrap()]);
        Split { name: "test".to_owned(), queries: vec![truth], ..Split::default() }
    }

    fn run(command: &str, change: impl FnOnce(&mut Program), progress: &Progress) -> (Result<Said>, tempfile::TempDir) {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        let mut program = Program { command: command.to_owned(), features: None, seconds: Some(60.0), memory: None };
        change(&mut program);
        let cell: Cell = serde_json::from_value(json!({
            "name": "c", "dataset": "d", "dataset_name": "d", "protocol": "own", "model": "mine", "variant": "", "features": "",
            "seed": 3, "by": { "kind": "baseline" }, "splits": null, "tests": [], "needs": [],
            "data": { "dataset": "d", "features": "none", "train": "train", "val": "val" },
        }))
        .unwrap();
        let asked: CellTest = serde_json::from_value(json!({
            "name": "test", "split": "test", "among": "own", "text": "original", "footage": "zeroed", "answers": null,
            "metrics": [], "preset": null,
        }))
        .unwrap();
        let split = split();
        let learning = Learning { train: &split.queries, val: &[] };
        (program.answer(&cell, &folder, &asked, &split, &learning, progress), guard)
    }

    #[test]
    fn a_command_reads_queries_and_writes_predictions_in_any_layout() {
        let answer = r#"echo '{"qid": "q1", "text": "from 10% to 25%, seed '$CUEMARK_SEED', '$CUEMARK_FOOTAGE'"}' > "$CUEMARK_PREDICTIONS""#;
        let (said, guard) = run(answer, |_| {}, &Progress::new());
        let list = &said.unwrap().predictions.tasks[0].queries[0];
        assert_eq!((list.ranked[0].span.start(), list.ranked[0].span.end()), (8.0, 20.0));
        assert!(list.extra.get("text").unwrap().as_str().unwrap().ends_with("seed 3, zeroed"));
        let asked = std::fs::read_to_string(guard.path().join("command/test.queries.jsonl")).unwrap();
        assert!(asked.contains("she waves") && !asked.contains("12.25"), "the truth is not told: {asked}");
        assert!(std::fs::read_to_string(guard.path().join("command/train.jsonl")).unwrap().contains("12.25"));
    }

    #[test]
    fn a_command_that_fails_is_quoted_with_its_code_and_last_line() {
        let (said, _guard) = run("echo 'no such checkpoint' >&2; exit 3", |_| {}, &Progress::new());
        let error = said.err().unwrap().to_string();
        assert!(error.contains("exit status: 3") && error.contains("no such checkpoint"), "{error}");
        let (said, _guard) = run("true", |_| {}, &Progress::new());
        assert!(said.err().unwrap().to_string().contains("wrote no predictions"));
    }

    #[test]
    fn a_command_that_takes_too_long_or_is_stopped_is_ended_with_what_it_started() {
        let began = Instant::now();
        let command = "sleep 300 & echo $! > child; sleep 300";
        let (said, guard) = run(command, |program| program.seconds = Some(1.0), &Progress::new());
        assert!(said.err().unwrap().to_string().contains("more than 1 s"));
        let child = std::fs::read_to_string(guard.path().join("child")).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.trim())).unwrap_or_default();
        assert!(!status.contains("S (sleeping)"), "what the command started goes on: {status}");
        let stopped = Progress::new();
        stopped.stop();
        let (said, _guard) = run("sleep 300", |_| {}, &stopped);
        assert!(said.err().unwrap().is_stopped());
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_command_that_takes_too_much_memory_is_ended() {
        let (said, _guard) = run("sleep 300", |program| program.memory = Some(4096), &Progress::new());
        assert!(said.err().unwrap().to_string().contains("are allowed"));
    }
}
