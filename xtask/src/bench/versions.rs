//! `bench versions`: two versions of the program in turns, this tree's and the one that `CUEMARK_BENCH_OTHER` names: adding stored
//! features to a new index, and answers over HTTP.
//!
//! Both read the same features through the same run, which the older one trained: a newer program reads what an older one wrote.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::search::{call, http, number};
use super::spread::Spread;
use super::{Options, Report, Table};
use crate::process::{cargo, scratch_folder, target_folder, time, watch, workspace};
use crate::python;

/// Videos that are indexed, 136 moments each: more than either version answers without its graph.
const VIDEOS: usize = 300;

/// One version and what it took.
#[derive(Default)]
struct Version {
    program: PathBuf,
    create: Spread,
    create_cpu: Spread,
    new: Spread,
    known: Spread,
    known_p99: Spread,
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    let other = std::env::var_os("CUEMARK_BENCH_OTHER").context("CUEMARK_BENCH_OTHER names no other program")?;
    if !watch(&mut cargo(&["build", "--release", "--package", "cuemark-cli", "--bin", "cuemark"]))?.ok {
        bail!("our side does not build");
    }
    let python = python::interpreter(&[python::NUMPY])?;
    let folder = scratch_folder("bench-versions")?;
    let mut versions = [
        Version { program: std::path::absolute(other)?, ..Version::default() },
        Version { program: target_folder()?.join("release/cuemark"), ..Version::default() },
    ];
    let (world, run) = prepare(&versions[0].program, &folder)?;
    // The first round finds files cold that the later ones find warm, whichever version goes first: it does not count.
    for round in 0..=options.repeat {
        for version in &mut versions {
            let index = folder.join("index");
            if index.exists() {
                std::fs::remove_dir_all(&index)?;
            }
            let mut create = Command::new(&version.program);
            create.args(["index", "create"]).arg(&index).arg("--encoder").arg(&run);
            let took = time(create.arg("--features").arg(world.join("features-motion")), &folder)?;
            let served = http::measure(&version.program, &python, &index, &world.join("splits/train.jsonl"), &folder)?;
            if let Some(load) = ["new", "known"].into_iter().find(|load| served[load]["failed"] != 0) {
                bail!("{}: {} refused some of the questions", version.program.display(), load);
            }
            if round > 0 {
                version.create.push(took.wall_s);
                version.create_cpu.push(took.cpu_s);
                version.new.push(number(&served["new"]["median_ms"])? / 1e3);
                version.known.push(number(&served["known"]["median_ms"])? / 1e3);
                version.known_p99.push(number(&served["known"]["p99_ms"])? / 1e3);
            }
        }
    }
    let [other, ours] = &versions;
    Ok(Report {
        tables: vec![table(other, ours)],
        figures: json!({ "other": other.to_json(), "ours": ours.to_json() }),
    })
}

/// A world of features and a run of a few epochs, made by `program` where they are missing.
fn prepare(program: &Path, folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let (world, run) = (folder.join("world"), folder.join("run"));
    if !world.join("manifest.json").exists() {
        let many = VIDEOS.to_string();
        call(Command::new(program).args(["world", "make", "--videos", &many, "--out"]).arg(&world))?;
    }
    if !run.join("checkpoints").exists() {
        let root = format!("data.root={}", world.display());
        let mut train = Command::new(program);
        train.arg("train").arg(workspace().join("runs/rmmn/world.toml")).args(["--set", &root]);
        call(train.args(["--set", "train.epochs=4", "--out"]).arg(&run))?;
    }
    Ok((world, run))
}

fn table(other: &Version, ours: &Version) -> Table {
    let row = |what: &str, other: &Spread, ours: &Spread, wanted: &str| {
        let ratio = format!("{:.2}x", ours.median() / other.median());
        vec![what.to_owned(), other.to_string(), ours.to_string(), ratio, wanted.to_owned()]
    };
    let rows = vec![
        row("making an index", &other.create, &ours.create, "<= 1.05x"),
        row("the same, processor time", &other.create_cpu, &ours.create_cpu, ""),
        row("a question whose words are new, median", &other.new, &ours.new, "<= 1.0x"),
        row("one that was asked before, median", &other.known, &ours.known, "<= 1.0x"),
        row("one that was asked before, 99 of 100", &other.known_p99, &ours.known_p99, ""),
    ];
    let title = format!("{VIDEOS} videos of stored features, 136 moments each; time of ours by the other version's");
    Table { title, header: vec!["what", "other version", "this one", "ratio", "wanted"], rows }
}

impl Version {
    fn to_json(&self) -> Value {
        json!({
            "program": self.program, "create_s": self.create.to_json(), "create_cpu_s": self.create_cpu.to_json(),
            "new_s": self.new.to_json(), "known_s": self.known.to_json(), "known_p99_s": self.known_p99.to_json(),
        })
    }
}
