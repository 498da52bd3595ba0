//! The server's processes, one after another, and what they take.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use cuemark_core::Progress;

use super::Soak;
use crate::client::Served;

/// Resident memory that a server of a small index may never pass, in bytes.
const MOST_MEMORY: u64 = 1 << 30;
/// What a server may gain in a calm besides a tenth, in bytes: allocators breathe.
const BREATH: u64 = 48 << 20;
/// Handles and threads that a server at rest may hold more than a new one.
const SPARE: usize = 16;

/// The server that runs now, and figures of all.
#[derive(Default)]
pub(super) struct Servers {
    running: Mutex<Option<Running>>,
    /// Lives of servers, the last one running; none of an earlier one is kept but its peaks.
    lives: Mutex<Lives>,
}

struct Running {
    served: Served,
    life: usize,
}

#[derive(Default)]
struct Lives {
    count: usize,
    peak: Sample,
    /// One a second, of the life that goes on.
    samples: Vec<Sample>,
    slowest_start: Duration,
    slowest_end: Duration,
}

/// What a process takes.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    /// Resident, in bytes.
    memory: u64,
    threads: usize,
    handles: usize,
    decoders: usize,
}

impl Servers {
    /// Starts a server and waits until it listens.
    pub(super) fn start(&self, soak: &Soak) -> Result<()> {
        let began = Instant::now();
        let passing = soak.stage.path("passing")?;
        let arguments = ["serve", soak.stage.index(), "--listen", "127.0.0.1:0", "--allow-add", &passing];
        let served = Served::start(&mut soak.stage.command(&arguments))?;
        let mut lives = held(&self.lives);
        lives.count += 1;
        lives.samples.clear();
        lives.slowest_start = lives.slowest_start.max(began.elapsed());
        *held(&self.running) = Some(Running { served, life: lives.count });
        Ok(())
    }

    /// Where the server listens and which one it is; `None` between two.
    pub(super) fn address(&self) -> Option<(String, usize)> {
        held(&self.running).as_ref().map(|running| (running.served.address.clone(), running.life))
    }

    /// Whether this very server still runs: otherwise a failed request is no fault.
    pub(super) fn is_same(&self, life: usize) -> bool {
        held(&self.running).as_mut().is_some_and(|running| {
            running.life == life && running.served.child.try_wait().is_ok_and(|ended| ended.is_none())
        })
    }

    /// `kill -9`.
    pub(super) fn kill(&self) {
        drop(held(&self.running).take());
    }

    /// SIGTERM; how long it took to end, `None` when it did not within half a minute.
    pub(super) fn terminate(&self) -> Result<Option<Duration>> {
        let Some(mut running) = held(&self.running).take() else { return Ok(Some(Duration::ZERO)) };
        let began = Instant::now();
        Command::new("kill").args(["-TERM", &running.served.child.id().to_string()]).status().context("kill")?;
        while began.elapsed() < Duration::from_secs(30) {
            if running.served.child.try_wait()?.is_some() {
                let took = began.elapsed();
                let mut lives = held(&self.lives);
                lives.slowest_end = lives.slowest_end.max(took);
                return Ok(Some(took));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(None)
    }

    /// Looks at the server once a second until told to end.
    pub(super) fn watch(&self, watching: &Progress) {
        while !watching.is_stopped() {
            std::thread::sleep(Duration::from_secs(1));
            let id = held(&self.running).as_ref().map(|running| running.served.child.id());
            if let Some(sample) = id.and_then(sample) {
                let mut lives = held(&self.lives);
                lives.samples.push(sample);
                lives.peak = Sample {
                    memory: lives.peak.memory.max(sample.memory),
                    threads: lives.peak.threads.max(sample.threads),
                    handles: lives.peak.handles.max(sample.handles),
                    decoders: lives.peak.decoders.max(sample.decoders),
                };
            }
        }
    }

    /// What is wrong with the last life, which must be at rest by now.
    pub(super) fn judge(&self) -> Vec<String> {
        let lives = held(&self.lives);
        let (Some(first), Some(last)) = (lives.samples.first(), lives.samples.last()) else {
            // Not Linux, most likely: nobody knows what the process takes.
            return Vec::new();
        };
        let mut wrong = Vec::new();
        let third = lives.samples.len() / 3;
        let median = |samples: &[Sample]| {
            let mut memory: Vec<u64> = samples.iter().map(|sample| sample.memory).collect();
            memory.sort_unstable();
            memory.get(memory.len() / 2).copied().unwrap_or(0)
        };
        let (middle, late) = (median(&lives.samples[third..2 * third]), median(&lives.samples[2 * third..]));
        if late > middle + middle / 10 + BREATH {
            wrong.push(format!("memory grows: {} MB, later {} MB", middle >> 20, late >> 20));
        }
        if lives.peak.memory > MOST_MEMORY {
            wrong.push(format!("memory reached {} MB", lives.peak.memory >> 20));
        }
        for (what, at_first, at_last) in
            [("handles", first.handles, last.handles), ("threads", first.threads, last.threads)]
        {
            if at_last > at_first + SPARE {
                wrong.push(format!("{at_last} {what} at rest, {at_first} at the beginning"));
            }
        }
        // One for each core that makes pictures, and two for a job.
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        if lives.peak.decoders > cores + 2 {
            wrong.push(format!("{} decoders at a time", lives.peak.decoders));
        }
        if last.decoders > 0 {
            wrong.push(format!("{} decoders at rest", last.decoders));
        }
        wrong
    }

    /// Lines of the report.
    pub(super) fn figures(&self) -> Vec<String> {
        let lives = held(&self.lives);
        let (first, last) = (lives.samples.first(), lives.samples.last());
        let of = |what: &str, number: fn(&Sample) -> u64, unit: &str| {
            let one = |sample: Option<&Sample>| sample.map_or("?".to_owned(), |sample| number(sample).to_string());
            format!(
                "{what:<20} last server: {:>6} at first, {:>6} at rest; {:>6} at most {unit}",
                one(first),
                one(last),
                one(Some(&lives.peak))
            )
        };
        vec![
            format!("{:<44} {:>8}", "servers", lives.count),
            format!("{:<44} {:>8.2} s", "slowest start", lives.slowest_start.as_secs_f64()),
            format!("{:<44} {:>8.2} s", "slowest end after SIGTERM", lives.slowest_end.as_secs_f64()),
            of("resident memory", |sample| sample.memory >> 20, "MB"),
            of("handles", |sample| sample.handles as u64, ""),
            of("threads", |sample| sample.threads as u64, ""),
            of("decoders", |sample| sample.decoders as u64, ""),
        ]
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What the process takes now, where the system has `/proc`.
fn sample(id: u32) -> Option<Sample> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let handles = std::fs::read_dir(format!("/proc/{id}/fd")).ok()?.count();
    let (memory, threads) = (1024 * number("VmRSS:")?, number("Threads:")? as usize);
    Some(Sample { memory, threads, handles, decoders: decoders(id) })
}

/// Children of the process that decode.
fn decoders(id: u32) -> usize {
    let parent = format!("PPid:\t{id}\n");
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let is_one = |folder: &std::path::Path| {
        let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
        status.contains(&parent) && status.starts_with("Name:\tff") && !status.contains("State:\tZ")
    };
    processes.filter_map(std::result::Result::ok).filter(|entry| is_one(&entry.path())).count()
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
