//! All sides beside each other: built one after the other, then asked in turns.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use crate::sides::{self, HNSWLIB};
use crate::vectors::{Input, Truth};

/// Recalls at which sides are compared.
const TARGETS: [f64; 2] = [0.95, 0.99];
/// Times that everything is built and, `ASKED` times as often, asked.
const ROUNDS: usize = 3;
const ASKED: usize = 3;

/// One side's figures.
struct Figures {
    side: &'static str,
    builds: Vec<Value>,
    opened: Answering,
    memory: Value,
    /// The recall at the largest effort that was tried.
    best: f64,
    points: Vec<Point>,
}

/// A side at the least effort that reaches a recall.
struct Point {
    effort: usize,
    recall: f64,
    /// Seconds of all queries on one thread, on two, and of the processor on one.
    one: Vec<f64>,
    two: Vec<f64>,
    processor: Vec<f64>,
}

pub fn run(input: &Input, python: &str, scratch: &Utf8Path, sides: &[&'static str]) -> anyhow::Result<()> {
    let truth = Truth::new(input)?;
    if scratch.exists() {
        std::fs::remove_dir_all(scratch)?;
    }
    std::fs::create_dir_all(scratch)?;
    let mut builds = vec![Vec::new(); sides.len()];
    for round in 0..ROUNDS {
        for place in in_turn(sides.len(), round) {
            let folder = folder(scratch, sides[place]);
            if folder.exists() {
                std::fs::remove_dir_all(&folder)?;
            }
            let told = command(sides[place], "build", input, python, &folder)?.stderr(Stdio::inherit()).output()?;
            ensure!(told.status.success(), "{} cannot build: {}", sides[place], told.status);
            let figures: Value = serde_json::from_slice(&told.stdout)?;
            eprintln!("built {}: {figures}", sides[place]);
            builds[place].push(figures);
        }
    }
    let mut all = Vec::new();
    for (side, builds) in sides.iter().zip(builds) {
        let mut opened = Answering::start(side, input, python, &folder(scratch, side))?;
        let (memory, best, points) = sweep(side, &mut opened, &truth)?;
        all.push(Figures { side, builds, opened, memory, best, points });
    }
    for round in 0..ROUNDS * ASKED {
        for target in 0..TARGETS.len() {
            for place in in_turn(all.len(), round) {
                let Figures { opened, points, .. } = &mut all[place];
                let Some(point) = points.get_mut(target) else { continue };
                let one = opened.ask(&format!("{} 1", point.effort))?;
                let two = opened.ask(&format!("{} 2", point.effort))?;
                point.one.push(number(&one, "seconds")?);
                point.processor.push(number(&one, "processor")?);
                point.two.push(number(&two, "seconds")?);
            }
        }
    }
    let asked = truth.queries() as f64;
    let lines: Vec<Value> = all.iter().map(|figures| figures.json(asked)).collect::<anyhow::Result<_>>()?;
    println!("{}", serde_json::to_string_pretty(&json!({ "moments": truth.moments(), "sides": lines }))?);
    Ok(())
}

/// Places of `count` sides, each round beginning at another one.
fn in_turn(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |place| (place + round) % count)
}

/// The least efforts that reach each recall; fewer when the largest effort does not.
fn sweep(side: &str, opened: &mut Answering, truth: &Truth) -> anyhow::Result<(Value, f64, Vec<Point>)> {
    let (mut points, mut memory, mut last) = (Vec::new(), Value::Null, None);
    for effort in sides::efforts(side) {
        let told = opened.ask(&format!("{effort} found"))?;
        let found: Vec<Vec<usize>> = serde_json::from_value(told["found"].clone())?;
        let recall = truth.recall(&found);
        eprintln!("{side} at {effort}: {recall:.4}");
        memory = json!({ "own": told["own"], "mapped": told["mapped"] });
        while TARGETS.get(points.len()).is_some_and(|target| recall >= *target) {
            points.push(Point { effort: *effort, recall, one: vec![], two: vec![], processor: vec![] });
        }
        let stuck = last == Some(recall);
        last = Some(recall);
        if points.len() == TARGETS.len() || stuck {
            break;
        }
    }
    Ok((memory, last.unwrap_or(0.0), points))
}

impl Figures {
    fn json(&self, asked: f64) -> anyhow::Result<Value> {
        let of_builds = |field: &str| -> anyhow::Result<Vec<f64>> {
            self.builds.iter().map(|build| number(build, field)).collect()
        };
        let a_second = |seconds: &[f64]| asked / median(seconds);
        let points = self.points.iter().zip(TARGETS).map(|(point, target)| {
            json!({
                "at_recall": target,
                "effort": point.effort,
                "recall": point.recall,
                "one_thread_qps": a_second(&point.one),
                "two_threads_qps": a_second(&point.two),
                "processor_us": 1e6 * median(&point.processor) / asked,
                "spread": spread(&point.processor),
            })
        });
        Ok(json!({
            "side": self.side,
            "build_s": median(&of_builds("seconds")?),
            "build_processor_s": median(&of_builds("processor")?),
            "build_spread": spread(&of_builds("processor")?),
            "build_peak_bytes": median(&of_builds("peak")?),
            "disk_bytes": median(&of_builds("disk")?),
            "open_s": self.opened.seconds,
            "memory": self.memory,
            "best_recall": self.best,
            "points": points.collect::<Vec<_>>(),
        }))
    }
}

/// The largest over the smallest.
fn spread(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::MIN, f64::max) / figures.iter().copied().fold(f64::MAX, f64::min)
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn number(told: &Value, field: &str) -> anyhow::Result<f64> {
    told[field].as_f64().with_context(|| format!("no `{field}` in {told}"))
}

/// The folder of a side.
pub fn folder(scratch: &Utf8Path, side: &str) -> Utf8PathBuf {
    scratch.join(side)
}

/// A process of a side.
pub fn command(side: &str, what: &str, input: &Input, python: &str, folder: &Utf8Path) -> anyhow::Result<Command> {
    let mut command = if side == HNSWLIB {
        let mut command = Command::new(python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/hnswlib_side.py")).arg(what);
        command
    } else {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([what, side]);
        command
    };
    command.args(input.words()).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok(command)
}

/// A process that has opened a side and answers.
pub struct Answering {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Seconds that opening took.
    pub seconds: f64,
}

impl Answering {
    pub fn start(side: &str, input: &Input, python: &str, folder: &Utf8Path) -> anyhow::Result<Self> {
        let mut child = command(side, "answer", input, python, folder)?.spawn()?;
        let to = child.stdin.take().context("no way to ask")?;
        let from = BufReader::new(child.stdout.take().context("no way to hear")?);
        let mut answering = Self { child, to, from, seconds: 0.0 };
        answering.seconds = number(&answering.hear()?, "opened")?;
        Ok(answering)
    }

    pub fn ask(&mut self, line: &str) -> anyhow::Result<Value> {
        writeln!(self.to, "{line}")?;
        self.to.flush()?;
        self.hear()
    }

    /// The next line of JSON; a side's crate may print other things before it.
    fn hear(&mut self) -> anyhow::Result<Value> {
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line)? == 0 {
                bail!("a side ended: {}", self.child.wait()?);
            }
            if line.starts_with('{') {
                return Ok(serde_json::from_str(&line)?);
            }
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
