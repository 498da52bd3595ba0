//! `bench search`: the embedded engine against hnswlib on moments of world videos through a trained bi-encoder.
//!
//! `CUEMARK_BENCH_VIDEOS` sets the number of videos; each has 136 moments. The world and the run are made once and kept
//! below the build folder.

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{Options, Report, Table};
use crate::process::{cargo, scratch_folder, target_folder, watch, workspace};
use crate::python;

/// Videos that give a million moments.
const VIDEOS: usize = 7_360;
/// Threads of each side.
const THREADS: usize = 2;
/// The recall at which speeds are compared.
const RECALL: f64 = 0.95;

pub(crate) fn run(_: &Options) -> Result<Report> {
    for build in [
        ["build", "--release", "--package", "cuemark-cli", "--bin", "cuemark"],
        ["build", "--release", "--package", "cuemark-search", "--example", "search_speed"],
    ] {
        if !watch(&mut cargo(&build))?.ok {
            bail!("our side does not build");
        }
    }
    let python = python::interpreter(&[python::NUMPY, python::HNSWLIB])?;
    let videos = std::env::var("CUEMARK_BENCH_VIDEOS").ok().and_then(|videos| videos.parse().ok()).unwrap_or(VIDEOS);
    let folder = scratch_folder("bench-search")?;
    let (world, run, index) = (folder.join("world"), folder.join("run"), folder.join(format!("index-{videos}")));
    let cuemark = target_folder()?.join("release/cuemark");
    if !world.join("manifest.json").exists() {
        let many = videos.to_string();
        call(Command::new(&cuemark).args(["world", "make", "--videos", &many, "--out"]).arg(&world))?;
    }
    if !run.join("checkpoints").exists() {
        // Twice 128 numbers: MMN's two spaces side by side.
        let file = workspace().join("runs/rmmn/world.toml");
        let root = format!("data.root={}", world.display());
        let sets = ["--set", &root, "--set", "model.network.joint=128", "--set", "train.epochs=2"];
        call(Command::new(&cuemark).arg("train").arg(file).args(sets).arg("--out").arg(&run))?;
    }
    if !index.join("index.json").exists() {
        let store = world.join("features-motion");
        let mut create = Command::new(&cuemark);
        call(create.args(["index", "create"]).arg(&index).arg("--encoder").arg(&run).arg("--features").arg(store))?;
    }
    let out = folder.join("vectors");
    let mut speed = Command::new(target_folder()?.join("release/examples/search_speed"));
    speed.env("RAYON_NUM_THREADS", THREADS.to_string()).arg(&index).arg(&run);
    let ours = line(speed.arg(world.join("splits/train.jsonl")).arg(&out))?;
    let width = ours["width"].to_string();
    let mut peer = Command::new(python);
    let theirs = line(peer.arg(python::peer("hnsw_search.py")).arg(&out).args([&width, &THREADS.to_string()]))?;
    report(&ours, &theirs)
}

fn report(ours: &Value, theirs: &Value) -> Result<Report> {
    let (mine, other) = (fastest(ours)?, fastest(theirs)?);
    let number = |value: &Value| value.as_f64().context("a figure is missing");
    let (graph, memory) = (number(&ours["graph_bytes"])?, number(&theirs["bytes"])?);
    let (build, their_build) = (number(&ours["build_s"])?, number(&theirs["build_s"])?);
    let megabytes = |bytes: f64| format!("{:.0} MB", bytes / 1e6);
    let row = |what: &str, theirs: String, ours: String, ratio: f64, goal: &str| {
        vec![what.to_owned(), theirs, ours, format!("{ratio:.2}x"), goal.to_owned()]
    };
    let rows = vec![
        row(
            &format!("queries a second at recall@10 >= {RECALL}"),
            format!("{:.0} (recall {:.3})", other.1, other.0),
            format!("{:.0} (recall {:.3})", mine.1, mine.0),
            mine.1 / other.1,
            ">= 1.0x",
        ),
        row("memory of the graph", megabytes(memory), megabytes(graph), graph / memory, "<= 0.6x"),
        row("build", format!("{their_build:.1} s"), format!("{build:.1} s"), their_build / build, ">= 0.8x"),
    ];
    let title = format!("{} moments of {} numbers, {THREADS} threads", ours["moments"], ours["width"]);
    let header = vec!["what", "hnswlib", "ours", "ratio", "goal"];
    let curve = |side: &str, told: &Value| -> Vec<Vec<String>> {
        let points = told["points"].as_array().cloned().unwrap_or_default();
        let cell = |point: &Value| {
            let (recall, qps) = (point["recall"].as_f64().unwrap_or(0.0), point["qps"].as_f64().unwrap_or(0.0));
            vec![side.to_owned(), point["expansion"].to_string(), format!("{recall:.4}"), format!("{qps:.0}")]
        };
        points.iter().map(cell).collect()
    };
    let curves = [curve("hnswlib", theirs), curve("ours", ours)].concat();
    let tables = vec![
        Table { title, header, rows },
        Table {
            title: "Recall and speed as effort grows".to_owned(),
            header: vec!["side", "candidates kept", "recall@10", "queries a second"],
            rows: curves,
        },
    ];
    Ok(Report { tables, figures: json!({ "ours": ours, "hnswlib": theirs }) })
}

/// Recall and speed of the fastest point that finds enough.
fn fastest(told: &Value) -> Result<(f64, f64)> {
    let points = told["points"].as_array().context("no points")?;
    let pair = |point: &Value| Some((point["recall"].as_f64()?, point["qps"].as_f64()?));
    let good = points.iter().filter_map(pair).filter(|(recall, _)| *recall >= RECALL);
    good.max_by(|a, b| a.1.total_cmp(&b.1)).with_context(|| format!("no point with recall {RECALL}: {told}"))
}

fn call(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    if !command.status().context(name.clone())?.success() {
        bail!("{name} did not end well");
    }
    Ok(())
}

/// Runs a side and reads the line it prints.
fn line(command: &mut Command) -> Result<Value> {
    let name = format!("{command:?}");
    let output = command.stderr(std::process::Stdio::inherit()).output().context(name.clone())?;
    if !output.status.success() {
        bail!("{name} did not end well");
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
