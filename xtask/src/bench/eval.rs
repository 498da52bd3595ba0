//! `bench eval`: `cuemark eval` against the field's Python evaluators, its growth, and the cost of intervals.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use super::inputs::{self, Inputs};
use super::spread::{Spread, seconds};
use super::{Options, Report, Table};
use crate::process::{Timed, cargo, scratch_folder, target_folder, time, watch};
use crate::python;

/// One computation that both sides do.
struct Contest {
    name: &'static str,
    /// Script in `benches/peers/`, and what follows the files on its command line.
    peer: &'static str,
    peer_options: &'static [&'static str],
    preset: &'static str,
    inputs: Inputs,
    /// The index that some layouts need.
    videos: Option<PathBuf>,
    /// How many times faster the process should be, where the project says so.
    wanted_process: Option<f64>,
    /// How many times faster evaluating alone should be, where the project says so.
    wanted_alone: Option<f64>,
}

/// What one side took.
#[derive(Default)]
struct Side {
    process: Spread,
    /// The process again, right after one of the other side: memory is cold then.
    in_turns: Spread,
    cpu: Spread,
    read: Spread,
    alone: Spread,
    peak_bytes: u64,
    metrics: Map<String, Value>,
}

impl Side {
    fn add(&mut self, timed: &Timed) -> Result<()> {
        self.process.push(timed.wall_s);
        self.cpu.push(timed.cpu_s);
        for (key, spread) in [("read_s", &mut self.read), ("evaluate_s", &mut self.alone)] {
            spread.push(timed.timings[key].as_f64().with_context(|| format!("no `{key}` among the timings"))?);
        }
        self.peak_bytes = self.peak_bytes.max(timed.peak_bytes);
        let output: Value = serde_json::from_str(&timed.stdout).context("what it printed is not JSON")?;
        self.metrics = output["metrics"].as_object().context("no `metrics` in what it printed")?.clone();
        Ok(())
    }

    fn to_json(&self) -> Value {
        json!({
            "process_s": self.process.to_json(), "process_in_turns_s": self.in_turns.to_json(), "cpu_s": self.cpu.to_json(), "read_s": self.read.to_json(), "evaluate_s": self.alone.to_json(),
            "peak_bytes": self.peak_bytes,
        })
    }
}

/// The program under test and a folder to work in.
struct Arena {
    cuemark: PathBuf,
    folder: PathBuf,
}

impl Arena {
    fn eval(&self, inputs: &Inputs, options: &[&str]) -> Result<Timed> {
        let mut command = Command::new(&self.cuemark);
        command.args(["eval", "--json", "--timings", "--truth"]).arg(&inputs.truth);
        command.arg("--pred").arg(&inputs.predictions).args(options);
        time(&mut command, &self.folder)
    }
}

/// Runs all three parts.
pub(crate) fn run(options: &Options) -> Result<Report> {
    if !watch(&mut cargo(&["build", "--release", "--package", "cuemark-cli"]))?.ok {
        bail!("cuemark does not build");
    }
    let arena = Arena { cuemark: target_folder()?.join("release/cuemark"), folder: scratch_folder("bench-eval")? };
    let (contests, contest_figures) = contests(&arena, options)?;
    let (growth, growth_figures) = growth(&arena, options)?;
    let (intervals, interval_figures) = intervals(&arena, options)?;
    let figures = json!({"contests": contest_figures, "growth": growth_figures, "intervals": interval_figures});
    Ok(Report { tables: vec![contests, growth, intervals], figures })
}

fn contests(arena: &Arena, options: &Options) -> Result<(Table, Value)> {
    let python = python::interpreter(&[python::NUMPY, python::SKLEARN])?;
    let (ranked, videos) = inputs::ranked(&arena.folder)?;
    let list = [
        Contest {
            name: "TVR, 10,895 queries x 3 tasks x 100",
            peer: "tvr.py",
            peer_options: &[],
            preset: "tvr",
            inputs: inputs::tvr(&arena.folder)?,
            videos: None,
            wanted_process: Some(25.0),
            wanted_alone: Some(100.0),
        },
        Contest {
            name: "QVHighlights, 1,550 queries x 10, all ranges and highlights",
            peer: "qvhighlights.py",
            peer_options: &[],
            preset: "qvhighlights",
            inputs: inputs::qvhighlights(&arena.folder)?,
            videos: None,
            wanted_process: Some(200.0),
            wanted_alone: None,
        },
        Contest {
            name: "the same, against NumPy without scikit-learn",
            peer: "qvhighlights.py",
            peer_options: &["--lean"],
            preset: "qvhighlights",
            inputs: inputs::qvhighlights(&arena.folder)?,
            videos: None,
            wanted_process: None,
            wanted_alone: None,
        },
        Contest {
            name: "NDCG, 500 queries x 100",
            peer: "ranked.py",
            peer_options: &[],
            preset: "tvr-ranking",
            inputs: ranked,
            videos: Some(videos),
            wanted_process: Some(50.0),
            wanted_alone: None,
        },
    ];
    let mut rows = Vec::new();
    let mut figures = Vec::new();
    for contest in &list {
        let (peer, ours) = compete(arena, contest, &python, options.repeat)?;
        let agreed = agree(&peer.metrics, &ours.metrics).with_context(|| contest.name)?;
        let parts = [
            ("process, warm", &peer.process, &ours.process, contest.wanted_process),
            ("process, in turns", &peer.in_turns, &ours.in_turns, contest.wanted_process),
            ("processor time", &peer.cpu, &ours.cpu, None),
            ("reading", &peer.read, &ours.read, None),
            ("evaluating alone", &peer.alone, &ours.alone, contest.wanted_alone),
        ];
        for (part, theirs, mine, wanted) in parts {
            rows.push(vec![
                contest.name.to_owned(),
                part.to_owned(),
                theirs.to_string(),
                mine.to_string(),
                format!("{:.0}x", theirs.median() / mine.median()),
                wanted.map(|ratio| format!("{ratio:.0}x")).unwrap_or_default(),
            ]);
        }
        figures.push(json!({
            "name": contest.name, "peer": peer.to_json(), "cuemark": ours.to_json(), "figures_compared": agreed,
            "ratio_process": peer.process.median() / ours.process.median(),
            "ratio_alone": peer.alone.median() / ours.alone.median(),
        }));
    }
    let header = vec!["what", "part", "Python and NumPy", "cuemark", "ratio", "wanted"];
    Ok((Table { title: "Against Python evaluators".to_owned(), header, rows }, json!(figures)))
}

/// Each side by itself, after a run that does not count, and then both in turns.
///
/// The two differ a good deal: a virtual machine takes idle memory back, whoever asks for it next waits for it, and a
/// process of a fifth of a second feels that more than one of seven. Both are reported; neither is the only truth.
fn compete(arena: &Arena, contest: &Contest, python: &Path, repeat: usize) -> Result<(Side, Side)> {
    let (mut peer, mut ours) = (Side::default(), Side::default());
    let mut flags = vec!["--preset", contest.preset];
    if let Some(videos) = contest.videos.as_ref().and_then(|path| path.to_str()) {
        flags.extend(["--video-index", videos]);
    }
    let theirs = || {
        let mut script = Command::new(python);
        script.arg(python::peer(contest.peer)).arg(&contest.inputs.truth).arg(&contest.inputs.predictions);
        time(script.args(&contest.videos).args(contest.peer_options), &arena.folder)
    };
    theirs()?;
    for _ in 0..repeat {
        peer.add(&theirs()?)?;
    }
    arena.eval(&contest.inputs, &flags)?;
    for _ in 0..repeat {
        ours.add(&arena.eval(&contest.inputs, &flags)?)?;
    }
    for _ in 0..repeat {
        peer.in_turns.push(theirs()?.wall_s);
        ours.in_turns.push(arena.eval(&contest.inputs, &flags)?.wall_s);
    }
    Ok((peer, ours))
}

/// How many figures both sides gave; an error when one differs, since a ratio of unequal work says nothing.
fn agree(peer: &Map<String, Value>, ours: &Map<String, Value>) -> Result<usize> {
    for (name, theirs) in peer {
        let Some(mine) = ours.get(name) else { bail!("cuemark does not give `{name}`") };
        let off = (theirs.as_f64().unwrap_or(f64::NAN) - mine.as_f64().unwrap_or(f64::NAN)).abs();
        if off.is_nan() || off > 1e-9 {
            bail!("the two sides disagree on `{name}`: {theirs} and {mine}");
        }
    }
    Ok(peer.len())
}

fn growth(arena: &Arena, options: &Options) -> Result<(Table, Value)> {
    let mut rows = Vec::new();
    let mut figures = Vec::new();
    for queries in [10_000, 100_000, 1_000_000] {
        let inputs = inputs::plain(&arena.folder, queries)?;
        let mut side = Side::default();
        for _ in 0..options.repeat {
            side.add(&arena.eval(&inputs, &[])?)?;
        }
        let (median, mebibytes) = (side.process.median(), side.peak_bytes as f64 / f64::from(1 << 20));
        rows.push(vec![
            queries.to_string(),
            side.process.to_string(),
            format!("{:.2} us", median / queries as f64 * 1e6),
            format!("{mebibytes:.0} MiB"),
        ]);
        figures.push(json!({"queries": queries, "cuemark": side.to_json()}));
    }
    let title = "Growth: our own JSONL, 10 predictions a query (wanted: linear, under 2 GB)".to_owned();
    Ok((Table { title, header: vec!["queries", "process", "per query", "peak memory"], rows }, json!(figures)))
}

fn intervals(arena: &Arena, options: &Options) -> Result<(Table, Value)> {
    let inputs = inputs::plain(&arena.folder, 17_505)?;
    let (mut without, mut with) = (Side::default(), Side::default());
    for _ in 0..options.repeat {
        without.add(&arena.eval(&inputs, &[])?)?;
        with.add(&arena.eval(&inputs, &["--ci", "95", "--resamples", "10000"])?)?;
    }
    let added = with.process.median() - without.process.median();
    let row = |what: &str, side: &Side| vec![what.to_owned(), side.process.to_string()];
    let rows = vec![
        row("without intervals", &without),
        row("with 10,000 resamples", &with),
        vec!["added (wanted: under 1 s)".to_owned(), seconds(added)],
    ];
    let title = "Bootstrap intervals of 17,505 queries".to_owned();
    let figures = json!({"without": without.to_json(), "with": with.to_json(), "added_s": added});
    Ok((Table { title, header: vec!["what", "process"], rows }, figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(value: f64) -> Map<String, Value> {
        Map::from_iter([("R@1,IoU=0.5".to_owned(), json!(value))])
    }

    #[test]
    fn a_ratio_of_unequal_work_is_refused() {
        assert_eq!(agree(&metrics(0.5), &metrics(0.5)).unwrap(), 1);
        assert!(agree(&metrics(0.5), &metrics(0.6)).is_err());
        assert!(agree(&metrics(f64::NAN), &metrics(f64::NAN)).is_err());
        assert!(agree(&metrics(0.5), &Map::new()).is_err());
    }
}
