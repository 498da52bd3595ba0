//! `bench report`: a report over hundreds of evaluated runs, its time and its memory.

use std::process::Command;

use anyhow::{Result, bail};
use serde_json::json;

use super::spread::Spread;
use super::{Options, Report, Table};
use crate::process::{cargo, scratch_folder, target_folder, time, watch};

/// Runs and queries of the case that counts, and a small one that shows what does not grow.
const CASES: [(usize, usize); 2] = [(30, 17_505), (300, 17_505)];
/// Seconds that the largest case may take.
const WANTED_S: f64 = 20.0;
/// Gigabytes that it may hold.
const WANTED_GB: f64 = 2.0;

pub(crate) fn run(options: &Options) -> Result<Report> {
    let build =
        ["build", "--release", "--package", "cuemark-cli", "--package", "cuemark-bench", "--bins", "--examples"];
    if !watch(&mut cargo(&build))?.ok {
        bail!("cuemark does not build");
    }
    let release = target_folder()?.join("release");
    let folder = scratch_folder("bench-report")?;
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for (runs, queries) in CASES {
        let inputs = folder.join(format!("runs-{runs}-{queries}"));
        if !inputs.exists() {
            let mut make = Command::new(release.join("examples/many_runs"));
            time(make.arg(&inputs).args([runs.to_string(), queries.to_string()]), &folder)?;
        }
        let (mut wall, mut cpu, mut peak) = (Spread::default(), Spread::default(), 0);
        for _ in 0..options.repeat {
            let mut report = Command::new(release.join("cuemark"));
            report.arg("report").arg(&inputs).arg("--out").arg(folder.join("out")).args(["--force", "--json"]);
            let timed = time(&mut report, &folder)?;
            wall.push(timed.wall_s);
            cpu.push(timed.cpu_s);
            peak = peak.max(timed.peak_bytes);
        }
        let gigabytes = peak as f64 / 1e9;
        let page = std::fs::metadata(folder.join("out/report.html"))?.len() as f64 / 1e6;
        rows.push(vec![
            format!("{runs} × {queries}"),
            wall.to_string(),
            cpu.to_string(),
            format!("{gigabytes:.2} GB"),
            format!("{page:.1} MB"),
        ]);
        figures.push(json!({
            "runs": runs, "queries": queries, "wall_s": wall.to_json(), "cpu_s": cpu.to_json(), "peak_bytes": peak,
        }));
    }
    let title = format!("A report over stored evaluations (wanted at 300 × 17505: {WANTED_S} s, {WANTED_GB} GB)");
    let header = vec!["runs × queries", "wall", "CPU", "most memory", "page"];
    Ok(Report { tables: vec![Table { title, header, rows }], figures: figures.into() })
}
