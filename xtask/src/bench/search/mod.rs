//! `bench search`: the embedded engine against hnswlib on moments of world videos through a trained bi-encoder, its growth,
//! and the server's times.
//!
//! `CUEMARK_BENCH_VIDEOS` sets the number of videos; each has 136 moments. Worlds, run and index are made once and kept
//! below the build folder. The run is trained on a smaller world than the one that is indexed: that is enough for moments
//! that lie as a trained model's do.

pub(super) mod http;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{Options, Report, Table};
use crate::process::{cargo, scratch_folder, target_folder, watch, workspace};
use crate::python;

/// Videos that give a million moments.
const VIDEOS: usize = 7_360;
/// Videos that the bi-encoder is trained on, at most.
const TRAINED_ON: usize = 2_000;
/// Moments of one video.
const PER_VIDEO: usize = 136;
/// Moments of which the growth is shown, as far as there are so many.
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
/// Threads of each side.
const THREADS: usize = 2;
/// The recalls at which speeds are compared, and how ours should stand beside the peer there.
const RECALLS: [(f64, &str); 2] = [(0.95, ">= 1.0x"), (0.99, ">= 1.2x")];
/// The one of the table of growth.
const RECALL: f64 = 0.95;

pub(crate) fn run(_: &Options) -> Result<Report> {
    // Together, so that both stand on the same crates.
    let ours = ["--package", "cuemark-cli", "--bin", "cuemark", "--package", "cuemark-scale", "--bin", "search_speed"];
    if !watch(cargo(&["build", "--release"]).args(ours))?.ok {
        bail!("our side does not build");
    }
    let python = python::interpreter(&[python::NUMPY, python::HNSWLIB])?;
    let videos = std::env::var("CUEMARK_BENCH_VIDEOS").ok().and_then(|videos| videos.parse().ok()).unwrap_or(VIDEOS);
    let folder = scratch_folder("bench-search")?;
    let trained_on = videos.min(TRAINED_ON);
    let [small, world] = [trained_on, videos].map(|videos| folder.join(format!("world-{videos}")));
    let (run, index) = (folder.join(format!("run-{trained_on}")), folder.join(format!("index-{videos}")));
    prepare(&[(trained_on, small), (videos, world.clone())], &run, &index)?;
    let out = folder.join("vectors");
    let sizes: Vec<usize> = SIZES.into_iter().filter(|size| *size <= videos * PER_VIDEO).collect();
    let listed = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let mut speed = Command::new(target_folder()?.join("release/search_speed"));
    speed.env("RAYON_NUM_THREADS", THREADS.to_string()).arg(&index).arg(&run);
    let ours = lines(speed.arg(world.join("splits/train.jsonl")).arg(&out).arg(listed))?;
    let mut theirs = Vec::new();
    for (size, ours) in sizes.iter().zip(&ours) {
        let numbers = [ours["width"].to_string(), THREADS.to_string(), size.to_string()];
        let mut peer = Command::new(&python);
        theirs.extend(lines(peer.arg(python::peer("hnsw_search.py")).arg(&out).args(numbers))?);
    }
    let program = target_folder()?.join("release/cuemark");
    let served = http::measure(&program, &python, &index, &world.join("splits/train.jsonl"), &folder)?;
    report(&ours, &theirs, &served)
}

/// Makes the worlds to train on and to index, the run and the index where they are missing.
fn prepare(worlds: &[(usize, PathBuf); 2], run: &Path, index: &Path) -> Result<()> {
    let cuemark = target_folder()?.join("release/cuemark");
    for (videos, world) in worlds {
        if !world.join("manifest.json").exists() {
            let many = videos.to_string();
            call(Command::new(&cuemark).args(["world", "make", "--videos", &many, "--out"]).arg(world))?;
        }
    }
    let [(_, small), (_, world)] = worlds;
    if !run.join("checkpoints").exists() {
        // Twice 128 numbers: MMN's two spaces side by side. After two epochs all moments still lie on top of each other, and any
        // search finds ten that are as near as the nearest; twelve tell them apart.
        let file = workspace().join("runs/rmmn/world.toml");
        let root = format!("data.root={}", small.display());
        let sets = ["--set", &root, "--set", "model.network.joint=128", "--set", "train.epochs=12"];
        call(Command::new(&cuemark).arg("train").arg(file).args(sets).arg("--out").arg(run))?;
    }
    if !index.join("index.json").exists() {
        let store = world.join("features-motion");
        let mut create = Command::new(&cuemark);
        call(create.args(["index", "create"]).arg(index).arg("--encoder").arg(run).arg("--features").arg(store))?;
    }
    Ok(())
}

fn report(ours: &[Value], theirs: &[Value], served: &Value) -> Result<Report> {
    let (mine, other) = (ours.last().context("no figures of ours")?, theirs.last().context("no figures of hnswlib")?);
    let growth = ours.iter().zip(theirs).map(|(ours, theirs)| grown(ours, theirs)).collect::<Result<_>>()?;
    let curves = [curve("hnswlib", other), curve("ours", mine)].concat();
    let tables = vec![
        ratios(ours, theirs)?,
        Table {
            title: format!(
                "Growth: ours, and hnswlib in brackets, each at its fastest point with recall@10 >= {RECALL}"
            ),
            header: vec![
                "moments",
                "build",
                "memory of the graph",
                "on disk",
                "queries a second",
                "one query",
                "exact",
            ],
            rows: growth,
        },
        Table {
            title: "Recall and speed as effort grows".to_owned(),
            header: vec!["side", "candidates kept", "recall@10", "queries a second"],
            rows: curves,
        },
        http::table(served)?,
    ];
    Ok(Report { tables, figures: json!({ "ours": ours, "hnswlib": theirs, "http": served }) })
}

pub(super) fn number(value: &Value) -> Result<f64> {
    value.as_f64().context("a figure is missing")
}

fn megabytes(bytes: f64) -> String {
    format!("{:.0} MB", bytes / 1e6)
}

/// Every size, side by side.
fn ratios(ours: &[Value], theirs: &[Value]) -> Result<Table> {
    let mut rows = Vec::new();
    for (ours, theirs) in ours.iter().zip(theirs) {
        let moments = ours["moments"].to_string();
        let mut row = |what: &str, theirs: String, ours: String, ratio: f64, goal: &str| {
            rows.push(vec![moments.clone(), what.to_owned(), theirs, ours, format!("{ratio:.2}x"), goal.to_owned()]);
        };
        for (recall, goal) in RECALLS {
            let (mine, other) = (fastest(ours, recall)?, fastest(theirs, recall)?);
            let told = |(recall, qps): (f64, f64)| format!("{qps:.0} (recall {recall:.3})");
            let what = format!("queries a second at recall@10 >= {recall}");
            row(&what, told(other), told(mine), mine.1 / other.1, goal);
        }
        let (graph, memory) = (number(&ours["graph_bytes"])?, number(&theirs["bytes"])?);
        row("memory of the graph", megabytes(memory), megabytes(graph), graph / memory, "<= 0.35x");
        let (build, their_build) = (number(&ours["build_s"])?, number(&theirs["build_s"])?);
        row("build", format!("{their_build:.1} s"), format!("{build:.1} s"), their_build / build, ">= 0.8x");
    }
    let width = ours.first().map_or(Value::Null, |ours| ours["width"].clone());
    let title =
        format!("Moments of {width} numbers, {THREADS} threads, each side at its fastest point that finds enough");
    Ok(Table { title, header: vec!["moments", "what", "hnswlib", "ours", "ratio", "goal"], rows })
}

/// One size.
fn grown(ours: &Value, theirs: &Value) -> Result<Vec<String>> {
    let (mine, other) = (fastest(ours, RECALL)?, fastest(theirs, RECALL)?);
    let points = ours["points"].as_array().cloned().unwrap_or_default();
    let same = |point: &&Value| point["qps"].as_f64() == Some(mine.1);
    let median = points.iter().find(same).and_then(|point| point["median_ms"].as_f64()).unwrap_or(0.0);
    Ok(vec![
        ours["moments"].to_string(),
        format!("{:.1} s ({:.1} s)", number(&ours["build_s"])?, number(&theirs["build_s"])?),
        format!("{} ({})", megabytes(number(&ours["graph_bytes"])?), megabytes(number(&theirs["bytes"])?)),
        megabytes(number(&ours["disk_bytes"])?),
        format!("{:.0} ({:.0})", mine.1, other.1),
        format!("{median:.2} ms"),
        format!("{:.1} ms", number(&ours["exact_ms"])?),
    ])
}

fn curve(side: &str, told: &Value) -> Vec<Vec<String>> {
    let points = told["points"].as_array().cloned().unwrap_or_default();
    let cell = |point: &Value| {
        let (recall, qps) = (point["recall"].as_f64().unwrap_or(0.0), point["qps"].as_f64().unwrap_or(0.0));
        vec![side.to_owned(), point["expansion"].to_string(), format!("{recall:.4}"), format!("{qps:.0}")]
    };
    points.iter().map(cell).collect()
}

/// Recall and speed of the fastest point that finds enough.
fn fastest(told: &Value, least: f64) -> Result<(f64, f64)> {
    let points = told["points"].as_array().context("no points")?;
    let pair = |point: &Value| Some((point["recall"].as_f64()?, point["qps"].as_f64()?));
    let good = points.iter().filter_map(pair).filter(|(recall, _)| *recall >= least);
    good.max_by(|a, b| a.1.total_cmp(&b.1)).with_context(|| format!("no point with recall {least}: {told}"))
}

pub(super) fn call(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    if !command.status().context(name.clone())?.success() {
        bail!("{name} did not end well");
    }
    Ok(())
}

/// Runs a side and reads the lines it prints.
fn lines(command: &mut Command) -> Result<Vec<Value>> {
    let name = format!("{command:?}");
    let output = command.stderr(std::process::Stdio::inherit()).output().context(name.clone())?;
    if !output.status.success() {
        bail!("{name} did not end well");
    }
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
