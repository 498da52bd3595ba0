//! `bench python`: `cuemark.evaluate` on arrays in memory against the field's Python evaluators, and two threads at once.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::inputs;
use super::spread::Spread;
use super::{Options, Report, Table};
use crate::package::{Environment, Profile, wheel};
use crate::process::{scratch_folder, time, workspace};

/// How many times faster evaluating in memory should be.
const WANTED: f64 = 50.0;

/// Both parts, with a wheel as people get it.
pub(crate) fn run(options: &Options) -> Result<Report> {
    let wheel = wheel(Profile::Release)?;
    let size = std::fs::metadata(&wheel)?.len();
    let environment = Environment::fresh(&wheel, &["numpy", "scikit-learn"])?;
    let folder = scratch_folder("bench-eval")?;
    let (ranked, videos) = inputs::ranked(&folder)?;
    let script = |name: &str| {
        let mut python = environment.python();
        python.arg(workspace().join("crates/cuemark-py/benches").join(name));
        python
    };
    let measure = |command: &mut Command| -> Result<Value> {
        let timed = time(command, &folder)?;
        serde_json::from_str(&timed.stdout).context("what it printed is not JSON")
    };
    let repeat = options.repeat.to_string();
    let contests = [
        ("TVR, 10,895 queries x 3 tasks x 100", "tvr", inputs::tvr(&folder)?, None),
        (
            "QVHighlights, 1,550 queries x 10, all ranges and highlights",
            "qvhighlights",
            inputs::qvhighlights(&folder)?,
            None,
        ),
        ("NDCG, 500 queries x 100", "ranked", ranked, Some(videos)),
    ];
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for (name, case, files, videos) in contests {
        let mut command = script("evaluate.py");
        command.args([case, &repeat]).arg(&files.truth).arg(&files.predictions).args(&videos);
        let told = measure(&mut command).with_context(|| name)?;
        let (peer, ours) = (spread(&told["peer_s"])?, spread(&told["cuemark_s"])?);
        let ratio = peer.median() / ours.median();
        rows.push(vec![
            name.to_owned(),
            peer.to_string(),
            ours.to_string(),
            format!("{ratio:.0}x"),
            format!("{WANTED:.0}x"),
        ]);
        figures.push(json!({"name": name, "peer_s": peer.to_json(), "cuemark_s": ours.to_json(), "ratio": ratio,
            "figures_compared": told["figures"]}));
    }
    let contests = Table {
        title: "In memory: evaluating alone, both in one process".to_owned(),
        header: vec!["what", "Python and NumPy", "cuemark.evaluate", "ratio", "wanted"],
        rows,
    };
    let plain = inputs::plain(&folder, 100_000)?;
    let told = measure(script("threads.py").arg(&repeat).arg(&plain.truth).arg(&plain.predictions))?;
    let mut rows = Vec::new();
    for (what, one, two) in [
        ("evaluate a file of 100,000 queries (each call uses every core)", "file", "two_files"),
        ("a call that uses one core (nms of 6,000 spans)", "single", "two_singles"),
    ] {
        let (one, two) = (spread(&told[one])?, spread(&told[two])?);
        let ratio = two.median() / one.median();
        rows.push(vec![what.to_owned(), one.to_string(), two.to_string(), format!("{ratio:.2}x")]);
    }
    let threads = Table {
        title: "Two threads at once: the interpreter's lock is released (1x: no waiting, 2x: one after the other)"
            .to_owned(),
        header: vec!["call", "one thread", "two threads, a call each", "two / one"],
        rows,
    };
    let wheel = Table {
        title: "The wheel".to_owned(),
        header: vec!["size", "wanted"],
        rows: vec![vec![format!("{:.1} MB", size as f64 / 1e6), "under 15 MB".to_owned()]],
    };
    let figures = json!({"contests": figures, "threads": told, "wheel_bytes": size});
    Ok(Report { tables: vec![contests, threads, wheel], figures })
}

fn spread(runs: &Value) -> Result<Spread> {
    let mut spread = Spread::default();
    for run in runs.as_array().context("no runs were told of")? {
        spread.push(run.as_f64().context("a run without seconds")?);
    }
    Ok(spread)
}
