//! Those who change the index, by commands and by jobs, and those who compare it with what was acknowledged.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use cuemark_core::Rng;
use serde_json::{Value, json};

use super::ledger::Known;
use super::{Behind, Soak};
use crate::client::{ask, get};

/// How often a command is killed in the middle.
const KILLED: f64 = 0.3;

/// Adds and removes films with the program; some calls are killed.
pub(super) fn by_command(soak: &Soak, mut rng: Rng) {
    let films: Vec<&String> = soak.stage.passing.iter().step_by(2).collect();
    while soak.goes_on() {
        let Some(film) = rng.pick(&films) else { return };
        let how = match soak.ledger.known(film) {
            Known::There => How::Remove,
            Known::Gone => How::Add,
            Known::Nothing if rng.chance(0.5) => How::Add,
            Known::Nothing => How::Remove,
        };
        let after = rng.chance(KILLED).then(|| Duration::from_secs_f64(rng.between(0.0, 2.0)));
        if let Err(error) = change(soak, film, how, after) {
            soak.complain(format!("{how:?} {film}: {error:#}"));
        }
        soak.nap(Duration::from_millis(200));
    }
}

#[derive(Debug, Clone, Copy)]
enum How {
    Add,
    Remove,
}

/// One call, killed after a while where that is said, and what it means for the ledger.
fn change(soak: &Soak, film: &str, how: How, killed_after: Option<Duration>) -> Result<()> {
    let _writing = soak.ledger.writing();
    let file = soak.stage.passing_film(film);
    let file = file.to_str().context("a name that is not UTF-8")?;
    let (arguments, after) = match how {
        How::Add => (["index", "add", soak.stage.index(), file, "--json"], Known::There),
        How::Remove => (["index", "remove", soak.stage.index(), film, "--json"], Known::Gone),
    };
    let before = soak.ledger.known(film);
    soak.ledger.note(film, Known::Nothing);
    let mut command = soak.stage.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(time) = killed_after {
        let began = Instant::now();
        while began.elapsed() < time && child.try_wait()?.is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
    }
    let output = child.wait_with_output()?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        soak.count(match how {
            How::Add => "films added by commands",
            How::Remove => "films removed by commands",
        });
        soak.ledger.note(film, after);
        return Ok(());
    }
    if output.status.code().is_none() {
        soak.count("commands killed");
    } else if stderr.contains("is being written") {
        soak.count("commands that found the index locked");
        soak.ledger.note(film, before);
    } else if stdout.contains("\"missing\"") && matches!(how, How::Remove) {
        // It was never there, or a command that was killed had removed it already.
        soak.ledger.note(film, Known::Gone);
        anyhow::ensure!(before != Known::There, "it was acknowledged and is not there");
    } else {
        anyhow::bail!("{}: {stderr}", output.status);
    }
    Ok(())
}

/// Adds films through the server, some of them called off; takes them out with the program.
pub(super) fn by_jobs(soak: &Soak, mut rng: Rng) {
    let films: Vec<&String> = soak.stage.passing.iter().skip(1).step_by(2).collect();
    while soak.goes_on() {
        soak.nap(Duration::from_millis(300));
        let Some(film) = rng.pick(&films) else { return };
        if soak.ledger.known(film) == Known::There {
            if let Err(error) = change(soak, film, How::Remove, None) {
                soak.complain(format!("remove {film}: {error:#}"));
            }
            continue;
        }
        let Some((address, life)) = soak.servers.address() else { continue };
        let _writing = soak.ledger.writing();
        soak.ledger.note(film, Known::Nothing);
        let fate = if rng.chance(0.25) { Fate::CalledOff } else { Fate::Runs };
        match job(soak, &address, film, fate) {
            Ok(()) => {}
            Err(error) if soak.servers.is_same(life) => soak.complain(format!("a job for {film}: {error:#}")),
            Err(_) => soak.count("jobs whose server was killed"),
        }
    }
}

/// What a job meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Runs,
    CalledOff,
}

fn job(soak: &Soak, address: &str, film: &str, fate: Fate) -> Result<()> {
    let body = json!({ "paths": [soak.stage.passing_film(film)] }).to_string();
    let started = ask(address, "POST /api/v1/jobs", "", &body)?;
    if started.status == 409 {
        soak.count("jobs that found another");
        return Ok(());
    }
    anyhow::ensure!(started.status == 202, "status {}", started.status);
    let path = format!("/api/v1/jobs/{}", started.json()?["id"]);
    if fate == Fate::CalledOff {
        let stopped = ask(address, &format!("DELETE {path}"), "", "")?;
        anyhow::ensure!(stopped.status == 202, "status {} for DELETE", stopped.status);
    }
    let began = Instant::now();
    loop {
        let state = get(address, &path)?.json()?;
        match state["phase"].as_str() {
            Some("finished") => {
                let failed = state["failed"].as_array().map_or(0, Vec::len);
                anyhow::ensure!(failed == 0, "{}", state["failed"]);
                // A server that is behind takes a film for known that somebody else has removed.
                if state["unchanged"] != 0 && soak.behind == Behind::Counts {
                    soak.count("jobs that had nothing to add");
                    return Ok(());
                }
                soak.count("films added by jobs");
                soak.ledger.note(film, Known::There);
                return Ok(());
            }
            Some("stopped") => {
                soak.count("jobs called off");
                return Ok(());
            }
            Some("failed") if state["error"].as_str().is_some_and(|error| error.contains("being written")) => {
                soak.count("jobs that found the index locked");
                return Ok(());
            }
            Some("failed") => anyhow::bail!("{}", state["error"]),
            _ => {}
        }
        anyhow::ensure!(began.elapsed() < Duration::from_secs(120), "a job that does not end: {state}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Compares the index with what was acknowledged, every few seconds.
pub(super) fn check_now_and_then(soak: &Soak) {
    while soak.goes_on() {
        soak.nap(Duration::from_secs(8));
        check_index(soak, "meanwhile");
    }
}

/// What the files hold, read by a process of its own, and whether the server knows it.
pub(super) fn check_index(soak: &Soak, when: &str) {
    let _quiet = soak.ledger.comparing();
    let listed = || -> Result<BTreeSet<String>> {
        let output = soak.stage.cuemark(&["index", "status", soak.stage.index(), "--videos", "--json"])?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        names(&serde_json::from_slice(&output.stdout)?)
    };
    compare(soak, "the index", when, listed());
    // A server may take a second to see what another process wrote.
    std::thread::sleep(Duration::from_secs(1));
    let Some(Ok(listed)) = served(soak) else { return };
    let behind = soak.ledger.compare(&listed);
    soak.count(if behind.is_empty() {
        "looks at which the server knew everything"
    } else {
        "looks at which the server was behind"
    });
    if soak.behind == Behind::Fails {
        behind.into_iter().for_each(|wrong| soak.complain(format!("the server {when}: {wrong}")));
    }
}

/// Starts a server while nobody writes: it must know everything that was acknowledged before.
pub(super) fn start_and_compare(soak: &Soak) -> Result<()> {
    let _quiet = soak.ledger.comparing();
    soak.servers.start(soak)?;
    compare(soak, "a new server", "at its start", served(soak).context("no server")?);
    Ok(())
}

fn served(soak: &Soak) -> Option<Result<BTreeSet<String>>> {
    let (address, _) = soak.servers.address()?;
    Some(get(&address, "/api/v1/videos?limit=1000").and_then(|reply| names(&reply.json()?)))
}

fn compare(soak: &Soak, what: &str, when: &str, listed: Result<BTreeSet<String>>) {
    match listed {
        Ok(listed) => {
            soak.count("looks at everything acknowledged");
            soak.ledger.compare(&listed).into_iter().for_each(|wrong| soak.complain(format!("{what} {when}: {wrong}")));
        }
        Err(error) => soak.complain(format!("{what} {when}: {error:#}")),
    }
}

fn names(listing: &Value) -> Result<BTreeSet<String>> {
    let videos = listing["videos"].as_array().context("no list of videos")?;
    Ok(videos.iter().filter_map(|video| Some(video["id"].as_str()?.to_owned())).collect())
}
