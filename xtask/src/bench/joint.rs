//! `bench joint`: a training step and one answer of the networks of moments and highlights at the published size (75 clips,
//! 32 words, batch 32); Moment-DETR and QD-DETR against the same in PyTorch, two threads each.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::steps::{PARTS, Side, agree, line};
use super::{Options, Report, Table};
use crate::process::{cargo, scratch_folder, target_folder, watch};
use crate::python;

/// Threads of each side.
const THREADS: usize = 2;
/// Steps of each kind in one process, after one that does not count.
const STEPS: usize = 3;
/// Pairs of a training step.
const BATCH: usize = 32;
/// Networks that the peer has as well.
const WITH_PEER: [&str; 2] = ["moment-detr", "qd-detr"];
/// The others.
const ALONE: [&str; 6] = ["eatr", "cg-detr", "uvcom", "tr-detr", "taskweave", "univtg"];
/// How many times as fast as PyTorch each should be.
const WANTED: f64 = 1.0;

pub(crate) fn run(options: &Options) -> Result<Report> {
    let build = ["build", "--release", "--package", "cuemark-models", "--example", "joint_step"];
    if !watch(&mut cargo(&build))?.ok {
        bail!("our side does not build");
    }
    let arena = Arena {
        ours: target_folder()?.join("release/examples/joint_step"),
        python: python::interpreter(&[python::NUMPY, python::SCIPY, python::TORCH])?,
        folder: scratch_folder("bench-joint")?,
    };
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for model in WITH_PEER {
        let (mut peer, mut ours) = (Side::default(), Side::default());
        for _ in 0..options.repeat {
            let mine = arena.ours(model)?;
            let theirs = arena.peer(model)?;
            agree(&theirs, &mine)?;
            ours.add(&mine)?;
            peer.add(&theirs)?;
        }
        for (part, (name, ..)) in PARTS.iter().enumerate() {
            rows.push(vec![
                model.to_owned(),
                (*name).to_owned(),
                peer.wall[part].to_string(),
                ours.wall[part].to_string(),
                format!("{:.2}x", peer.wall[part].median() / ours.wall[part].median()),
                format!("{:.2}x", peer.cpu[part].median() / ours.cpu[part].median()),
                format!("{WANTED:.1}x"),
            ]);
        }
        figures.push(json!({ "model": model, "torch": peer.to_json(), "cuemark": ours.to_json() }));
    }
    for model in ALONE {
        let mut ours = Side::default();
        ours.add(&arena.ours(model)?)?;
        for (part, (name, ..)) in PARTS.iter().enumerate() {
            let none = "-".to_owned();
            let mine = ours.wall[part].to_string();
            rows.push(vec![model.to_owned(), (*name).to_owned(), none.clone(), mine, none.clone(), none.clone(), none]);
        }
        figures.push(json!({ "model": model, "cuemark": ours.to_json() }));
    }
    let title = "moments and highlights, 75 clips of 2,816 numbers, 32 words, batch 32: PyTorch eager (fused attention) against \
                 cuemark, two threads each; inference is one query from features in memory to a ranked list"
        .to_owned();
    let header = vec!["model", "part", "PyTorch", "cuemark", "ratio", "processor time", "wanted"];
    Ok(Report { tables: vec![Table { title, header, rows }], figures: figures.into() })
}

/// The two programs and a folder to work in.
struct Arena {
    ours: PathBuf,
    python: PathBuf,
    folder: PathBuf,
}

impl Arena {
    fn ours(&self, model: &str) -> Result<Value> {
        let mut command = Command::new(&self.ours);
        command.arg(model).args([BATCH.to_string(), STEPS.to_string(), "cpu".to_owned()]).arg(self.start(model));
        line(command.env("RAYON_NUM_THREADS", THREADS.to_string()), &self.folder)
    }

    /// Starts from what our side wrote.
    fn peer(&self, model: &str) -> Result<Value> {
        let mut command = Command::new(&self.python);
        command.arg(python::peer("joint_step.py")).arg(model).args([STEPS.to_string(), "cpu".to_owned()]);
        command.arg(THREADS.to_string()).arg(self.start(model));
        line(command.env("OMP_NUM_THREADS", THREADS.to_string()), &self.folder)
    }

    fn start(&self, model: &str) -> PathBuf {
        self.folder.join(format!("start-{model}.safetensors"))
    }
}
