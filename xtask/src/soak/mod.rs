//! `cargo xtask verify soak`: a server with writers, readers, jobs, hostile clients and kills, watched for minutes.
//!
//! A storm first, in which the server and the writers are killed at random; then a calm, in which one server bears everything
//! but kills and may not grow; then rest, at which everything must have been given back. All on the loopback address, all in
//! one folder below the build folder, seeded.

mod harm;
mod ledger;
mod readers;
mod server;
mod stage;
mod writers;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use cuemark_core::{Progress, Rng};

use self::ledger::Ledger;
use self::server::Servers;
use self::stage::Stage;
use crate::option;

/// Which part of the time is storm.
const STORM: f64 = 0.6;
/// How long a server that was asked to end may take.
const ENDING: Duration = Duration::from_secs(5);
/// How long after the last client everything must have been given back: clients that do not read are cut off after 20 s, idle
/// threads end after 10.
const REST: Duration = Duration::from_secs(35);

/// What everybody who takes part shares.
struct Soak {
    stage: Stage,
    servers: Servers,
    ledger: Ledger,
    /// Stopped when the clients should end.
    clients: Progress,
    counts: Mutex<Vec<(&'static str, u64)>>,
    complaints: Mutex<Vec<String>>,
    slowest_search: Mutex<Duration>,
    behind: Behind,
}

/// What a server that does not know what another process wrote a second ago means (D14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    Counts,
    Fails,
}

impl std::str::FromStr for Behind {
    type Err = std::io::Error;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        match text {
            "counts" => Ok(Self::Counts),
            "fails" => Ok(Self::Fails),
            _ => Err(std::io::Error::other("neither `counts` nor `fails`")),
        }
    }
}

impl Soak {
    fn on(stage: Stage, behind: Behind) -> Self {
        Self {
            servers: Servers::default(),
            ledger: Ledger::of(&stage.films),
            stage,
            clients: Progress::new(),
            counts: Mutex::default(),
            complaints: Mutex::default(),
            slowest_search: Mutex::default(),
            behind,
        }
    }

    /// Counts something for the report.
    fn count(&self, what: &'static str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => counts.push((what, 1)),
        }
    }

    /// Something that must not happen.
    fn complain(&self, what: String) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if complaints.len() < 100 {
            eprintln!("soak: {what}");
            complaints.push(what);
        }
    }

    fn goes_on(&self) -> bool {
        !self.clients.is_stopped()
    }

    /// Sleeps unless the clients are to end.
    fn nap(&self, time: Duration) {
        let until = Instant::now() + time;
        while self.goes_on() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50).min(time));
        }
    }
}

/// Runs it; whether everything held.
pub(crate) fn run(options: &[&str]) -> Result<bool> {
    let minutes: f64 = option(options, "--minutes")?.unwrap_or(30.0);
    let seed: u64 = option(options, "--seed")?.unwrap_or(1);
    let stage = Stage::prepare(option(options, "--program")?)?;
    let soak = Soak::on(stage, option(options, "--behind")?.unwrap_or(Behind::Counts));
    soak.servers.start(&soak)?;
    let (storm, calm) =
        (Duration::from_secs_f64(60.0 * minutes * STORM), Duration::from_secs_f64(60.0 * minutes * (1.0 - STORM)));
    let watching = Progress::new();
    std::thread::scope(|scope| -> Result<()> {
        scope.spawn(|| soak.servers.watch(&watching));
        scope.spawn(|| writers::by_command(&soak, Rng::stream(seed, "writer")));
        scope.spawn(|| writers::by_jobs(&soak, Rng::stream(seed, "jobs")));
        scope.spawn(|| writers::check_now_and_then(&soak));
        for name in ["reader-1", "reader-2"] {
            scope.spawn(|| readers::read(&soak, Rng::stream(seed, name)));
        }
        scope.spawn(|| harm::harm(&soak, Rng::stream(seed, "harm")));
        let held = weather(&soak, storm, calm, Rng::stream(seed, "kills"));
        soak.clients.stop();
        // Rest is judged while nobody asks for anything but the watcher.
        let held = held.and_then(|()| rest(&soak));
        watching.stop();
        held
    })?;
    end(&soak)?;
    Ok(report(&soak, minutes))
}

/// Kills a server with a job at hand `count` times; after each, the next one must know everything that was acknowledged.
pub(crate) fn kill_jobs(program: PathBuf, count: usize, seed: u64) -> Result<()> {
    let stage = Stage::prepare(Some(program))?;
    let soak = Soak::on(stage, Behind::Counts);
    soak.servers.start(&soak)?;
    std::thread::scope(|scope| -> Result<()> {
        scope.spawn(|| writers::by_jobs(&soak, Rng::stream(seed, "jobs")));
        let mut rng = Rng::stream(seed, "kills");
        let killed = (0..count).try_for_each(|_| {
            soak.nap(Duration::from_secs_f64(rng.between(0.1, 1.5)));
            soak.servers.kill();
            writers::start_and_compare(&soak)
        });
        soak.clients.stop();
        killed
    })?;
    end(&soak)?;
    let complaints = soak.complaints.into_inner().unwrap_or_else(PoisonError::into_inner);
    anyhow::ensure!(complaints.is_empty(), "{}", complaints.join("; "));
    Ok(())
}

/// Storm, then calm.
fn weather(soak: &Soak, storm: Duration, calm: Duration, mut rng: Rng) -> Result<()> {
    let began = Instant::now();
    println!("soak: storm for {:.0} s", storm.as_secs_f64());
    while began.elapsed() < storm {
        soak.nap(Duration::from_secs_f64(rng.between(5.0, 18.0)));
        if rng.chance(0.5) {
            soak.servers.kill();
            soak.count("servers killed");
        } else {
            stop_kindly(soak)?;
        }
        writers::start_and_compare(soak)?;
    }
    println!("soak: calm for {:.0} s", calm.as_secs_f64());
    std::thread::sleep(calm);
    Ok(())
}

fn stop_kindly(soak: &Soak) -> Result<()> {
    let took = soak.servers.terminate()?;
    soak.count("servers asked to end");
    match took {
        Some(took) if took <= ENDING => {}
        Some(took) => soak.complain(format!("the server ended {:.1} s after SIGTERM", took.as_secs_f64())),
        None => soak.complain("the server did not end after SIGTERM and was killed".to_owned()),
    }
    Ok(())
}

/// Nobody asks any more: handles, threads and decoders must be given back.
fn rest(soak: &Soak) -> Result<()> {
    println!("soak: rest for {:.0} s", REST.as_secs_f64());
    std::thread::sleep(REST);
    for complaint in soak.servers.judge() {
        soak.complain(complaint);
    }
    Ok(())
}

fn end(soak: &Soak) -> Result<()> {
    stop_kindly(soak)?;
    writers::check_index(soak, "at the end");
    let verified = soak.stage.cuemark(&["index", "verify", soak.stage.index(), "--json"])?;
    if !verified.status.success() {
        soak.complain(format!("index verify: {}", String::from_utf8_lossy(&verified.stdout)));
    }
    Ok(())
}

fn report(soak: &Soak, minutes: f64) -> bool {
    println!("\nsoak of {minutes} minutes");
    for (what, count) in soak.counts.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        println!("  {what:<44} {count:>8}");
    }
    let slowest = *soak.slowest_search.lock().unwrap_or_else(PoisonError::into_inner);
    println!("  {:<44} {:>8.2} s", "slowest search", slowest.as_secs_f64());
    for line in soak.servers.figures() {
        println!("  {line}");
    }
    let complaints = soak.complaints.lock().unwrap_or_else(PoisonError::into_inner);
    for complaint in complaints.iter() {
        println!("  NOT HELD: {complaint}");
    }
    println!("  {}", if complaints.is_empty() { "everything held" } else { "something did not hold" });
    complaints.is_empty()
}
