//! The program, and indexes of the films.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Options;
use crate::process::{cargo, scratch_folder, target_folder, watch};
use crate::weights;

/// What sees, hears and reads.
const WEIGHTS: [&str; 6] = ["minilm", "i3d", "efficientnet-lite0", "whisper-tiny-en", "silero-vad", "pp-ocrv4"];
/// How often it is said how many films are in the index.
const NEWS: Duration = Duration::from_secs(60);

/// Programs and folders.
pub(super) struct Stage {
    program: PathBuf,
    cache: PathBuf,
    /// Films of one seed.
    pub(super) films: PathBuf,
    /// Indexes of so many of them.
    indexes: PathBuf,
}

/// How long it took to add films to an index, the program's start among it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Indexing {
    index: String,
    films: usize,
    /// How long the films are.
    film_s: f64,
    wall_s: f64,
}

impl Stage {
    /// Builds the program unless one is given, and sees that its weights are there.
    pub(super) fn prepare(options: &Options) -> Result<Self> {
        let program = match &options.program {
            Some(program) => program.clone(),
            None => built()?,
        };
        let films = scratch_folder(&format!("tracks/seed-{}", options.seed))?;
        let indexes = scratch_folder(&format!("tracks/seed-{}/index-{}", options.seed, options.films))?;
        let stage = Self { program, cache: weights::cache()?, films, indexes };
        if !watch(stage.cuemark(&["weights", "pull"]).args(WEIGHTS))?.ok {
            bail!("without weights nothing is heard or read");
        }
        Ok(stage)
    }

    /// A call of the program.
    pub(super) fn cuemark(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).env("CUEMARK_CACHE", &self.cache);
        command
    }

    /// The folder of an index.
    pub(super) fn index(&self, name: &str) -> Result<String> {
        Ok(self.indexes.join(name).to_str().context("the build folder's name is not UTF-8")?.to_owned())
    }

    /// Adds what is missing of `files` to the index, which begins as a copy of `of` or empty; how long it took. `None`
    /// where an earlier run that did the same was stopped.
    pub(super) fn add(&self, name: &str, of: Option<&str>, files: &[&Path]) -> Result<Option<Indexing>> {
        let index = self.index(name)?;
        if let (false, Some(of)) = (Path::new(&index).exists(), of) {
            copy(Path::new(&self.index(of)?), Path::new(&index))?;
        }
        let is_there = Path::new(&index).exists();
        let before = if is_there { self.durations(&index)? } else { Vec::new() };
        let verb: &[&str] =
            if is_there { &["index", "add", &index] } else { &["index", "create", &index, "--encoder", "concepts"] };
        println!("tracks: cuemark {}: {} films, {} in the index", verb.join(" "), files.len(), before.len());
        let began = Instant::now();
        let mut child = self.cuemark(verb).args(files).stdin(Stdio::null()).spawn().context("cuemark index")?;
        let mut told = began;
        let ended = loop {
            if let Some(ended) = child.try_wait()? {
                break ended;
            }
            std::thread::sleep(Duration::from_millis(100));
            if told.elapsed() > NEWS {
                told = Instant::now();
                // Not there yet, perhaps.
                let count = self.durations(&index).map_or(0, |now| now.len() - before.len());
                println!(
                    "tracks: {name}: {count} films more in the index after {:.0} s",
                    began.elapsed().as_secs_f64()
                );
            }
        };
        if !ended.success() {
            bail!("the films cannot be indexed");
        }
        let now = self.durations(&index)?;
        // Films that cannot be read are left out.
        let wanted = files.len() + of.map_or(Ok(0), |of| self.durations(&self.index(of)?).map(|films| films.len()))?;
        ensure!(now.len() >= wanted, "{} of {wanted} films are in the index; the same command goes on", now.len());
        self.timed(Indexing {
            index: name.to_owned(),
            films: now.len() - before.len(),
            film_s: now.iter().sum::<f64>() - before.iter().sum::<f64>(),
            wall_s: began.elapsed().as_secs_f64(),
        })
    }

    /// Keeps what was measured when films were added, for later runs that add none.
    fn timed(&self, indexing: Indexing) -> Result<Option<Indexing>> {
        let kept = self.indexes.join(format!("{}.json", indexing.index));
        if indexing.films > 0 {
            std::fs::write(&kept, serde_json::to_string(&indexing)?)?;
            return Ok(Some(indexing));
        }
        Ok(std::fs::read_to_string(kept).ok().and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Of the films in the index, in seconds.
    fn durations(&self, index: &str) -> Result<Vec<f64>> {
        let mut command = self.cuemark(&["index", "status", index, "--videos", "--json"]);
        let output = command.output().context("cuemark index status")?;
        let status: Value = serde_json::from_slice(&output.stdout).with_context(|| format!("status of {index}"))?;
        let videos = status["videos"].as_array().context("no videos")?;
        videos.iter().map(|video| video["duration"].as_f64().context("a video without duration")).collect()
    }
}

impl Indexing {
    /// One line of a table.
    pub(super) fn to_markdown(&self) -> String {
        let Self { index, films, film_s, wall_s } = self;
        format!("| {index} | {films} | {film_s:.0} s | {wall_s:.0} s | {:.2} s |\n", film_s / wall_s)
    }
}

fn built() -> Result<PathBuf> {
    if !watch(&mut cargo(&["build", "--release", "--package", "cuemark-cli"]))?.ok {
        bail!("cuemark does not build");
    }
    Ok(target_folder()?.join("release/cuemark"))
}

/// A folder of files and folders; there whole or not at all.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let part = to.with_extension("part");
    if part.exists() {
        std::fs::remove_dir_all(&part)?;
    }
    copy_into(from, &part).with_context(|| from.display().to_string())?;
    Ok(std::fs::rename(part, to)?)
}

fn copy_into(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_into(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
