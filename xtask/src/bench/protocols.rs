//! `bench protocols`: kernel density against SciPy and its growth, and the likest sentences against a plain product.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{Options, Report, Table};
use crate::process::{cargo, scratch_folder, shared_folder, target_folder, time, watch};
use crate::python;

/// Points of the contests: all moments of Charades-STA, all of ActivityNet Captions.
const CONTESTS: [usize; 2] = [16_128, 71_957];
/// How many times faster than SciPy the exact density should be.
const WANTED: f64 = 20.0;
/// Points that show how time grows, doubled each time.
const GROWTH: [usize; 4] = [8_994, 17_989, 35_978, 71_957];
/// Points of the binned density.
const BINNED: usize = 10_000_000;

pub(crate) fn run(options: &Options) -> Result<Report> {
    let build =
        ["build", "--release", "--package", "cuemark-cli", "--package", "cuemark-protocols", "--bins", "--examples"];
    if !watch(&mut cargo(&build))?.ok {
        bail!("cuemark does not build");
    }
    let folder = scratch_folder("bench-protocols")?;
    let points = points(&folder)?;
    let (contests, contest_figures) = contests(&folder, &points, options)?;
    let (growth, growth_figures) = growth(&folder, &points)?;
    let (likest, likest_figures) = likest()?;
    Ok(Report {
        tables: vec![contests, growth, likest],
        figures: json!({ "kde": contest_figures, "growth": growth_figures, "top_k": likest_figures }),
    })
}

/// Normalised starts and ends of every ActivityNet moment as doubles; drawn ones when the annotations are not there.
fn points(folder: &Path) -> Result<PathBuf> {
    let file = folder.join("points.f64");
    let annotations = shared_folder().join("data/activitynet-captions");
    let mut bytes = Vec::new();
    let mut push = |start: f64, end: f64| {
        bytes.extend(start.to_le_bytes());
        bytes.extend(end.to_le_bytes());
    };
    if annotations.exists() {
        let truth = folder.join("activitynet.jsonl");
        let mut convert = Command::new(release("cuemark")?);
        convert.args(["data", "convert", "activitynet-captions", "--force", "--root"]).arg(&annotations);
        time(convert.arg("--out").arg(&truth), folder)?;
        for line in std::fs::read_to_string(&truth)?.lines() {
            let record: Value = serde_json::from_str(line)?;
            let number = |value: &Value| value.as_f64().context("a truth file of ours without numbers");
            let duration = number(&record["duration"])?;
            let span = &record["spans"][0];
            push(number(&span[0])? / duration, number(&span[1])? / duration);
        }
    } else {
        eprintln!("no ActivityNet annotations beside the checkout: points are drawn");
        // A low-discrepancy sequence in the triangle: no randomness is needed to time a density.
        for n in 0..CONTESTS[1] {
            let (a, b) = ((n as f64 * 0.754_877_666).fract(), (n as f64 * 0.569_840_291).fract());
            push(a.min(b), a.max(b));
        }
    }
    std::fs::write(&file, bytes)?;
    Ok(file)
}

fn release(program: &str) -> Result<PathBuf> {
    Ok(target_folder()?.join("release").join(program))
}

/// One side's answers, a line of JSON per size.
fn lines(command: &mut Command, folder: &Path) -> Result<Vec<Value>> {
    let said = time(command, folder)?.stdout;
    said.lines().map(|line| serde_json::from_str(line).context("what it printed is not JSON")).collect()
}

fn ours(folder: &Path, points: &Path, form: &str, sizes: &[usize]) -> Result<Vec<Value>> {
    let mut command = Command::new(release("examples/kde_speed")?);
    lines(command.arg(points).arg(form).args(sizes.iter().map(usize::to_string)), folder)
}

fn number(line: &Value, field: &str) -> Result<f64> {
    line[field].as_f64().with_context(|| format!("no `{field}` in {line}"))
}

fn contests(folder: &Path, points: &Path, options: &Options) -> Result<(Table, Value)> {
    let python = python::interpreter(&[python::NUMPY, python::SCIPY])?;
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for size in CONTESTS {
        let (mut best_peer, mut best_ours) = (f64::INFINITY, f64::INFINITY);
        // SciPy takes the better part of a minute at the larger size: two runs of it are enough.
        for _ in 0..options.repeat.min(2) {
            let mut peer = Command::new(&python);
            let peer = lines(peer.arg(python::peer("kde_scipy.py")).arg(points).arg(size.to_string()), folder)?;
            let own = ours(folder, points, "exact", &[size])?;
            let (peer, own) = (peer.first().context("no line")?, own.first().context("no line")?);
            let (theirs, mine) = (number(peer, "checksum")?, number(own, "checksum")?);
            if ((theirs - mine) / theirs).abs() > 1e-10 {
                bail!("the sides disagree at {size} points: {theirs} and {mine}");
            }
            best_peer = best_peer.min(number(peer, "seconds")?);
            best_ours = best_ours.min(number(own, "seconds")?);
        }
        let ratio = best_peer / best_ours;
        rows.push(vec![
            size.to_string(),
            format!("{best_peer:.3}"),
            format!("{best_ours:.4}"),
            format!("{ratio:.1}×"),
            format!("{WANTED}×"),
        ]);
        figures.push(json!({ "points": size, "scipy_s": best_peer, "ours_s": best_ours, "ratio": ratio }));
    }
    let title = "Exact kernel density of n points at themselves, best of the runs".to_owned();
    let header = vec!["points", "SciPy, s", "ours, s", "ratio", "wanted"];
    Ok((Table { title, header, rows }, figures.into()))
}

fn growth(folder: &Path, points: &Path) -> Result<(Table, Value)> {
    let mut figures = ours(folder, points, "exact", &GROWTH)?;
    figures.extend(ours(folder, points, "binned", &[BINNED])?);
    let row = |line: &Value| -> Result<Vec<String>> {
        let bound = number(line, "error_bound")? / number(line, "densest")?;
        let bound = if bound > 0.0 { format!("{bound:.1e} of the densest") } else { "exact".to_owned() };
        Ok(vec![line["n"].to_string(), format!("{:.4}", number(line, "seconds")?), bound])
    };
    let rows = figures.iter().map(row).collect::<Result<Vec<_>>>()?;
    let title = "How the density's time grows; beyond a million points, binned".to_owned();
    Ok((Table { title, header: vec!["points", "seconds", "error"], rows }, figures.into()))
}

/// The bench in `cuemark-text` measures both sides itself and prints a line for each.
fn likest() -> Result<(Table, Value)> {
    let watched = watch(&mut cargo(&["bench", "--package", "cuemark-text", "--bench", "top_k"]))?;
    if !watched.ok {
        bail!("the bench of the likest sentences did not end well");
    }
    let wanted = |line: &&str| ["×", "product", "top-k", "%", "peak"].iter().any(|word| line.contains(word));
    let lines: Vec<&str> = watched.output.lines().map(str::trim).filter(wanted).collect();
    let rows = lines.iter().map(|line| vec![(*line).to_owned()]).collect();
    let title = "Top-40 of 70,000 × 70,000 × 384 in blocks, beside a plain product of the same numbers (wanted: 70 %)"
        .to_owned();
    Ok((Table { title, header: vec!["measured"], rows }, json!(lines)))
}
