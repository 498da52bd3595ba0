//! `cargo xtask verify kills`: `kill -9` at random points of everything that writes, thousands of times.
//!
//! Writers, compaction and the making of an index are killed by the crash tests of `cuemark-search` with a larger count;
//! training by [`training`]; jobs of a server by the soak's own means. After each kill everything that was acknowledged must be
//! there, nothing that was removed may be back, and a training run that goes on must end as one that was never disturbed.

mod training;

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::process::{cargo, scratch_folder, target_folder, watch};
use crate::test::FEATURES;
use crate::{needs, option, soak};

/// Crash tests, and which part of the kills each makes.
const CRASHES: &[(&str, &str, f64)] = &[
    ("writers", "everything_acknowledged_survives_being_killed_at_fifty_random_points", 0.35),
    ("compaction", "a_compaction_killed_at_forty_random_points_loses_nothing", 0.2),
    ("making an index", "an_index_whose_making_was_killed_at_thirty_random_points_opens_or_can_be_made", 0.1),
];
/// Which part of them meets training, and which jobs of a server.
const TRAINING: f64 = 0.25;
const JOBS: f64 = 0.1;

/// Runs it; whether nothing was lost.
pub(crate) fn run(options: &[&str]) -> Result<bool> {
    let count: f64 = option(options, "--count")?.unwrap_or(2_000.0);
    let seed: u64 = option(options, "--seed")?.unwrap_or(1);
    let (program, crash) = programs(option(options, "--program")?, option(options, "--crash")?)?;
    let part = |share: f64| (count * share).ceil() as usize;
    let mut rows: Vec<(String, usize, f64, Result<()>)> = Vec::new();
    for (what, test, share) in CRASHES {
        let (kills, began) = (part(*share), Instant::now());
        println!("kills: {what}, {kills}");
        let mut command = Command::new(&crash);
        command.args([test, "--exact", "--nocapture"]).env("CUEMARK_KILLS", kills.to_string());
        let held = watch(&mut command)?.ok;
        let held = if held { Ok(()) } else { Err(anyhow::anyhow!("{test} failed")) };
        rows.push(((*what).to_owned(), kills, began.elapsed().as_secs_f64(), held));
    }
    let began = Instant::now();
    println!("kills: training, {}", part(TRAINING));
    let done = training::kill(&program, part(TRAINING), seed);
    let killed = done.as_ref().map_or(0, |done| done.kills);
    rows.push(("training".to_owned(), killed, began.elapsed().as_secs_f64(), done.map(|_| ())));
    if needs::find_program("ffmpeg").is_some() {
        let began = Instant::now();
        println!("kills: server jobs, {}", part(JOBS));
        let done = soak::kill_jobs(program, part(JOBS), seed);
        rows.push(("server jobs".to_owned(), part(JOBS), began.elapsed().as_secs_f64(), done));
    } else {
        println!("kills: server jobs left out, for there is no ffmpeg here");
    }
    Ok(report(&rows))
}

fn report(rows: &[(String, usize, f64, Result<()>)]) -> bool {
    println!("\n| killed | times | seconds | lost |\n| --- | ---: | ---: | --- |");
    for (what, kills, seconds, held) in rows {
        let lost = held.as_ref().err().map_or_else(|| "nothing".to_owned(), |error| format!("{error:#}"));
        println!("| {what} | {kills} | {seconds:.0} | {lost} |");
    }
    println!(
        "| all | {} | {:.0} | |",
        rows.iter().map(|row| row.1).sum::<usize>(),
        rows.iter().map(|row| row.2).sum::<f64>()
    );
    rows.iter().all(|(_, _, _, held)| held.is_ok())
}

/// The program and the crash tests; built unless both are given.
fn programs(program: Option<PathBuf>, crash: Option<PathBuf>) -> Result<(PathBuf, PathBuf)> {
    if let (Some(program), Some(crash)) = (&program, &crash) {
        return Ok((std::path::absolute(program)?, std::path::absolute(crash)?));
    }
    // As the tests build it, so that nothing is compiled twice.
    let build = ["build", "--workspace", "--all-targets", FEATURES, "--message-format=json-render-diagnostics"];
    let built = cargo(&build).stderr(std::process::Stdio::inherit()).output().context("cargo build")?;
    if !built.status.success() {
        bail!("the programs cannot be built");
    }
    let is_it = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_test = message["target"]["name"] == "crash" && message["profile"]["test"] == true;
        is_test.then(|| message["executable"].as_str().map(PathBuf::from))?
    };
    let found = String::from_utf8_lossy(&built.stdout).lines().rev().find_map(is_it);
    let crash = crash.or(found).context("cargo built no crash tests")?;
    Ok((program.unwrap_or(target_folder()?.join("debug/cuemark")), crash))
}

/// A folder of this check's own, empty.
fn empty_folder(name: &str) -> Result<PathBuf> {
    let folder = scratch_folder("kills")?.join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}
