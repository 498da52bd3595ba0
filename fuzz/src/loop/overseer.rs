//! Gives every core a target to run, watches the processes, and counts.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use cuemark_fuzz::coverage::Coverage;

use crate::Places;
use crate::worker::keep;

/// How long one process runs. Short, so that what one finds the others soon know; long beside the seconds that it takes to read
/// every seed in every way first.
const SLICE: Duration = Duration::from_secs(30);
/// A process whose input is older than this hangs.
const HANGS: Duration = Duration::from_secs(30);
/// A process that holds more than this, in bytes, has found something that grows.
const MOST_MEMORY: u64 = 2 << 30;
/// A target whose processes ended so often before it ran once is left out.
const HOPELESS: u64 = 5;
/// Between two looks at the processes.
const PAUSE: Duration = Duration::from_millis(50);
/// Between two lines about how far everything is.
const REPORT: Duration = Duration::from_secs(30);
/// Where files are memory.
const IN_MEMORY: &str = "/dev/shm";

/// How much is done.
pub(crate) struct Limits {
    pub(crate) time: Duration,
    pub(crate) cores: usize,
    /// Of each target; 0: as many as the time allows.
    pub(crate) executions: u64,
}

/// What is known about one target.
#[derive(Default)]
struct Tally {
    executions: u64,
    /// Inputs that panicked a reader or took too long.
    bad: u64,
    /// Processes that ended by a signal, hung or grew.
    ended: u64,
    new: u64,
    /// Processes that have run it.
    slices: u64,
    /// Processes that run it now.
    running: u64,
    edges: Vec<u8>,
}

struct Process {
    target: &'static str,
    child: Child,
    folder: PathBuf,
}

/// Runs everything; whether nothing was found.
pub(crate) fn oversee(names: &[&'static str], limits: &Limits, places: &Places) -> io::Result<bool> {
    let begin = Instant::now();
    let mut tallies: BTreeMap<&'static str, Tally> = names.iter().map(|name| (*name, Tally::default())).collect();
    let mut processes: Vec<Process> = Vec::new();
    let (mut number, mut reported) = (0, Instant::now());
    // Every input is a file. On a disk, writing one over another waits for it: that is ten times slower than all readers.
    let scratch = tempfile::tempdir_in(IN_MEMORY).or_else(|_| tempfile::tempdir())?;
    loop {
        let left = limits.time.saturating_sub(begin.elapsed());
        while processes.len() < limits.cores && !left.is_zero() {
            let Some(target) = next(&tallies, limits.executions) else { break };
            number += 1;
            let folder = scratch.path().join(format!("{number}"));
            std::fs::create_dir(&folder)?;
            processes.push(start(target, SLICE.min(left), folder, number, places)?);
            tallies.entry(target).or_default().running += 1;
        }
        if processes.is_empty() {
            break;
        }
        std::thread::sleep(PAUSE);
        let mut still = Vec::new();
        for mut process in processes {
            match look(&mut process)? {
                None => still.push(process),
                Some(how) => settle(&process, how.as_deref(), &mut tallies, places)?,
            }
        }
        processes = still;
        if reported.elapsed() > REPORT {
            reported = Instant::now();
            let (least, total) = (tallies.values().map(|tally| tally.executions).min(), sum(&tallies));
            eprintln!(
                "{:>5.0} s: {total} executions, {} of the slowest",
                begin.elapsed().as_secs_f64(),
                least.unwrap_or(0)
            );
        }
    }
    print(&tallies, begin.elapsed());
    Ok(tallies.values().all(|tally| tally.bad + tally.ended == 0))
}

fn sum(tallies: &BTreeMap<&str, Tally>) -> u64 {
    tallies.values().map(|tally| tally.executions).sum()
}

/// The target that has run least, what those that run now will do counted in; `None` when all have run enough.
fn next(tallies: &BTreeMap<&'static str, Tally>, enough: u64) -> Option<&'static str> {
    let expected = |tally: &Tally| {
        let each = (tally.executions / tally.slices.max(1)).max(1);
        tally.executions + tally.running * each
    };
    let wanting = tallies.iter().filter(|(_, tally)| enough == 0 || expected(tally) < enough + tally.running);
    // One that never gets past its seeds would take all cores and all of the time from the others.
    let wanting = wanting.filter(|(_, tally)| tally.executions > 0 || tally.ended < HOPELESS);
    wanting.min_by_key(|(_, tally)| expected(tally)).map(|(name, _)| *name)
}

fn start(target: &'static str, time: Duration, folder: PathBuf, seed: u64, places: &Places) -> io::Result<Process> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    // Where it was started through another program (a loader of its own, say), that is what starts it again.
    let own = std::env::var_os("FUZZ_LOOP").map_or_else(std::env::current_exe, |program| Ok(program.into()))?;
    let child = Command::new(own)
        .args(["worker", target, &time.as_secs_f64().to_string()])
        .arg(&folder)
        .args([&places.corpus, &places.fixtures, &places.out])
        // Another stream of changes every time: what a fixed seed finds is found by the tests.
        .arg((now ^ seed << 48).to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("TMPDIR", &folder)
        // Readers have buffers of a quarter of a megabyte, which glibc would ask the system for and give back every time.
        .env("MALLOC_MMAP_THRESHOLD_", "8388608")
        .env("MALLOC_TRIM_THRESHOLD_", "67108864")
        // A process has one core. Readers that share an input out among threads would wake some for every few bytes.
        .env("RAYON_NUM_THREADS", "1")
        .spawn()?;
    Ok(Process { target, child, folder })
}

/// How a process has ended: in order (`Some(None)`), or not; `None` while it runs.
fn look(process: &mut Process) -> io::Result<Option<Option<String>>> {
    if let Some(status) = process.child.try_wait()? {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal: Option<i32> = None;
        let why = signal.map(|signal| format!("signal-{signal}"));
        return Ok(Some(why.or_else(|| (!status.success()).then(|| "exit".to_owned()))));
    }
    let written = process.folder.join("input").metadata().and_then(|data| data.modified());
    let why = if written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > HANGS)) {
        "hang"
    } else if memory_of(&process.child).is_some_and(|bytes| bytes > MOST_MEMORY) {
        "memory"
    } else {
        return Ok(None);
    };
    process.child.kill()?;
    process.child.wait()?;
    Ok(Some(Some(why.to_owned())))
}

/// Bytes that a process holds; `None` where the system does not say.
fn memory_of(child: &Child) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/statm", child.id())).ok()?;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}

/// Counts what a process did, keeps the input that ended it, and clears up behind it.
fn settle(
    process: &Process,
    how: Option<&str>,
    tallies: &mut BTreeMap<&'static str, Tally>,
    places: &Places,
) -> io::Result<()> {
    let tally = tallies.entry(process.target).or_default();
    tally.running = tally.running.saturating_sub(1);
    tally.slices += 1;
    let counts = std::fs::read_to_string(process.folder.join("count")).unwrap_or_default();
    let mut counts = counts.split(' ').map(|count| count.parse().unwrap_or(0));
    tally.executions += counts.next().unwrap_or(0);
    tally.bad += counts.next().unwrap_or(0);
    tally.new += counts.next().unwrap_or(0);
    let edges = std::fs::read(process.folder.join("edges")).unwrap_or_default();
    tally.edges.resize(tally.edges.len().max(edges.len()), 0);
    tally.edges.iter_mut().zip(edges).for_each(|(all, these)| *all |= these);
    if let Some(how) = how {
        tally.ended += 1;
        if let Ok(input) = std::fs::read(process.folder.join("input")) {
            keep(&places.out.join("finds"), &format!("{}-{how}-{}", process.target, tally.ended), &input);
        }
    }
    std::fs::remove_dir_all(&process.folder)
}

fn print(tallies: &BTreeMap<&str, Tally>, time: Duration) {
    let all = Coverage::begin().map(|coverage| coverage.edges());
    println!("| target | executions | crashes | panics, hangs | inputs that reached more | edges reached |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    let ones = |bits: &[u8]| bits.iter().map(|byte| byte.count_ones()).sum::<u32>();
    let mut union: Vec<u8> = Vec::new();
    for (name, Tally { executions, bad, ended, new, edges, .. }) in tallies {
        union.resize(union.len().max(edges.len()), 0);
        union.iter_mut().zip(edges).for_each(|(all, these)| *all |= these);
        println!("| {name} | {executions} | {ended} | {bad} | {new} | {} |", ones(edges));
    }
    let (bad, ended) = tallies.values().fold((0, 0), |sum, tally| (sum.0 + tally.bad, sum.1 + tally.ended));
    let new: u64 = tallies.values().map(|tally| tally.new).sum();
    println!("| all | {} | {ended} | {bad} | {new} | {} |", sum(tallies), ones(&union));
    println!();
    match all {
        Some(edges) => println!(
            "{:.0} s; {edges} edges in all that were compiled in, most of which no reader leads to",
            time.as_secs_f64()
        ),
        None => println!(
            "{:.0} s; not compiled to count edges, so nothing guides and no coverage is measured",
            time.as_secs_f64()
        ),
    }
}
