//! Two programs that compute the same steps of a network, ours and PyTorch's, in turns in one run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::steps::{PARTS, Side, agree, line};
use crate::process::{cargo, scratch_folder, target_folder, watch};
use crate::python::{self, Package};

/// Threads of each side where a bench does not say otherwise.
const THREADS: usize = 2;
/// How many times as fast as PyTorch a step should be where a bench does not say otherwise.
const WANTED: f64 = 1.0;
/// Names of the columns of [`Arena::versus`] and [`Arena::alone`].
pub(crate) const HEADER: [&str; 7] = ["what", "part", "PyTorch", "cuemark", "ratio", "processor time", "wanted"];

/// The two programs and a folder to work in.
pub(crate) struct Arena {
    ours: PathBuf,
    python: PathBuf,
    script: PathBuf,
    /// Where files of the sides lie.
    pub(crate) folder: PathBuf,
    /// Threads of each side.
    pub(crate) threads: usize,
    steps: usize,
}

/// What one side is asked to compute.
pub(crate) struct Words<'a> {
    /// Words before the number of steps and the device, for our example.
    pub(crate) ours: &'a [String],
    /// The same for the peer.
    pub(crate) peer: &'a [String],
    /// The file that our side writes and the peer starts from.
    pub(crate) start: &'a str,
    /// A file of settings after that, for our example.
    pub(crate) settings: Option<&'a Path>,
}

impl Arena {
    /// Builds our side, an example of `cuemark-models`, and Python for the peer, a script of `benches/peers`. Each process
    /// does `steps` steps of each kind, after one that does not count.
    pub(crate) fn open(example: &str, script: &str, packages: &[Package], steps: usize) -> Result<Self> {
        let build = ["build", "--release", "--package", "cuemark-models", "--example", example];
        if !watch(&mut cargo(&build))?.ok {
            bail!("our side does not build");
        }
        Ok(Self {
            ours: target_folder()?.join("release/examples").join(example),
            python: python::interpreter(packages)?,
            script: python::peer(script),
            folder: scratch_folder(&format!("bench-{example}"))?,
            threads: THREADS,
            steps,
        })
    }

    /// One run of ours, which writes what the peer starts from.
    pub(crate) fn ours(&self, words: &Words) -> Result<Value> {
        let mut command = Command::new(&self.ours);
        command.args(words.ours).args([self.steps.to_string(), "cpu".to_owned()]).arg(self.folder.join(words.start));
        // candle's own threads as the program has them.
        command
            .args(words.settings.iter())
            .env("RAYON_NUM_THREADS", self.threads.to_string())
            .env("CANDLE_NUM_THREADS", "1");
        line(&mut command, &self.folder)
    }

    /// One run of the peer.
    pub(crate) fn peer(&self, words: &Words) -> Result<Value> {
        let mut command = Command::new(&self.python);
        command.arg(&self.script).args(words.peer).args([
            self.steps.to_string(),
            "cpu".to_owned(),
            self.threads.to_string(),
        ]);
        line(command.arg(self.folder.join(words.start)).env("OMP_NUM_THREADS", self.threads.to_string()), &self.folder)
    }

    /// Both sides `repeat` times in turns: a row for each part, and every figure.
    ///
    /// # Errors
    /// Where the two do not compute the same loss: a ratio of unequal work says nothing.
    pub(crate) fn versus(&self, name: &str, words: &Words, repeat: usize) -> Result<(Vec<Vec<String>>, Value)> {
        let (mut peer, mut ours) = (Side::default(), Side::default());
        for _ in 0..repeat {
            let mine = self.ours(words)?;
            let theirs = self.peer(words)?;
            agree(&theirs, &mine).with_context(|| name.to_owned())?;
            ours.add(&mine)?;
            peer.add(&theirs)?;
        }
        let row = |(part, (of, ..)): (usize, &(&str, &str, &str))| {
            vec![
                name.to_owned(),
                (*of).to_owned(),
                peer.wall[part].to_string(),
                ours.wall[part].to_string(),
                format!("{:.2}x", peer.wall[part].median() / ours.wall[part].median()),
                format!("{:.2}x", peer.cpu[part].median() / ours.cpu[part].median()),
                format!("{WANTED:.1}x"),
            ]
        };
        let rows = PARTS.iter().enumerate().map(row).collect();
        Ok((rows, json!({ "what": name, "torch": peer.to_json(), "cuemark": ours.to_json() })))
    }

    /// Our side once, where there is no peer.
    pub(crate) fn alone(&self, name: &str, words: &Words) -> Result<(Vec<Vec<String>>, Value)> {
        let mut ours = Side::default();
        ours.add(&self.ours(words)?)?;
        let row = |(part, (of, ..)): (usize, &(&str, &str, &str))| {
            let none = || "-".to_owned();
            vec![name.to_owned(), (*of).to_owned(), none(), ours.wall[part].to_string(), none(), none(), none()]
        };
        let rows = PARTS.iter().enumerate().map(row).collect();
        Ok((rows, json!({ "what": name, "cuemark": ours.to_json() })))
    }
}
