//! What is left when a writer is killed, and what a changed byte does.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use camino::Utf8Path;
use cuemark_core::Rng;
use serde_json::{Value, json};

use crate::compare::{command, folder};
use crate::vectors::{Input, Truth};

/// Writers killed, and folders damaged, per side.
const TRIES: usize = 12;
/// Bytes changed in each of a damaged folder's files.
const FLIPS: usize = 64;
/// Recall below which an index that opens is called wrong.
const RIGHT: f64 = 0.9;

pub fn run(input: &Input, python: &str, scratch: &Utf8Path, sides: &[&'static str]) -> anyhow::Result<()> {
    let truth = Truth::new(input)?;
    let mut told = Vec::new();
    for side in sides {
        let mut killed = BTreeMap::new();
        let mut rng = Rng::new(7);
        for _ in 0..TRIES {
            empty(scratch)?;
            kill_while_writing(side, input, python, scratch, rng.uniform())?;
            *killed.entry(look(side, input, &truth, python, &folder(scratch, side))?).or_insert(0) += 1;
        }
        empty(scratch)?;
        command(side, "build", input, python, &folder(scratch, side))?.stdout(Stdio::null()).status()?;
        let sound = scratch.join("sound");
        std::fs::rename(folder(scratch, side), &sound)?;
        let mut changed = BTreeMap::new();
        for _ in 0..TRIES {
            let folder = folder(scratch, side);
            crate::system::copy(&sound, &folder)?;
            flip(&folder, &mut rng)?;
            *changed.entry(look(side, input, &truth, python, &folder)?).or_insert(0) += 1;
            std::fs::remove_dir_all(&folder)?;
        }
        let line = json!({ "side": side, "killed": killed, "changed": changed });
        eprintln!("{line}");
        told.push(line);
    }
    println!("{}", serde_json::to_string_pretty(&json!(told))?);
    Ok(())
}

fn empty(scratch: &Utf8Path) -> anyhow::Result<()> {
    if scratch.exists() {
        std::fs::remove_dir_all(scratch)?;
    }
    Ok(std::fs::create_dir_all(scratch)?)
}

/// Kills a writer `share` of a rewrite's time into its second rewrite.
fn kill_while_writing(side: &str, input: &Input, python: &str, scratch: &Utf8Path, share: f64) -> anyhow::Result<()> {
    let mut child = command(side, "rewrite", input, python, &folder(scratch, side))?.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no way to hear")?).lines();
    let mut seconds = None;
    for line in &mut lines {
        let Ok(told) = serde_json::from_str::<Value>(&line?) else { continue };
        seconds = told["seconds"].as_f64().or(seconds);
        if let (Some(seconds), true) = (seconds, told["ready"].is_boolean()) {
            std::thread::sleep(Duration::from_secs_f64(seconds * share));
            break;
        }
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Changes bytes in every file of a folder.
fn flip(folder: &Utf8Path, rng: &mut Rng) -> anyhow::Result<()> {
    for path in crate::system::files(folder)? {
        let mut file = std::fs::OpenOptions::new().read(true).write(true).open(&path)?;
        let length = file.metadata()?.len();
        if length == 0 {
            continue;
        }
        for _ in 0..FLIPS {
            let at = rng.below(length as usize) as u64;
            let mut byte = [0];
            file.read_exact_at(&mut byte, at)?;
            file.seek(SeekFrom::Start(at))?;
            file.write_all(&[byte[0] ^ (1 << rng.below(8))])?;
        }
    }
    Ok(())
}

/// What becomes of a process that opens the folder and asks everything.
fn look(side: &str, input: &Input, truth: &Truth, python: &str, folder: &Utf8Path) -> anyhow::Result<String> {
    let mut child = command(side, "answer", input, python, folder)?.stderr(Stdio::piped()).spawn()?;
    let effort = if side == "arroy" { 40_960 } else { 256 };
    // One that has ended already does not listen.
    let _ = writeln!(child.stdin.take().context("no way to ask")?, "{effort} found");
    let told = child.wait_with_output()?;
    if let Some(signal) = told.status.signal() {
        return Ok(format!("ended by signal {signal}"));
    }
    let found = String::from_utf8_lossy(&told.stdout);
    let found = found.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found = found.filter_map(|line| serde_json::from_value::<Vec<Vec<usize>>>(line["found"].clone()).ok()).next();
    if let Some(found) = found {
        return Ok(if truth.recall(&found) >= RIGHT { "answers right" } else { "answers wrong" }.to_owned());
    }
    let error = String::from_utf8_lossy(&told.stderr);
    Ok(if error.contains("panicked") { "panic" } else { "refused with an error" }.to_owned())
}
