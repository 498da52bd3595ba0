//! What a side's own processes do. Each answer is one line of JSON.

use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use anyhow::Context as _;
use camino::Utf8Path;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::vectors::Input;
use crate::{sides, system};

fn say(line: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Builds a side in an empty folder and says what that took.
pub fn build(side: &str, input: &Input, folder: &Utf8Path) -> anyhow::Result<()> {
    let moments = input.moments()?;
    // The highest mark so far is forgotten.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = system::memory("VmRSS");
    let (began, processor) = (Instant::now(), system::processor_seconds()?);
    let built = sides::build(side, &moments, folder)?;
    let (seconds, processor) = (began.elapsed().as_secs_f64(), system::processor_seconds()? - processor);
    let peak = system::memory("VmHWM").saturating_sub(before);
    drop(built);
    say(&json!({ "seconds": seconds, "processor": processor, "peak": peak, "disk": system::disk(folder)? }))
}

/// Builds a side, says so, and writes it over itself until it is killed; each rewrite's seconds are said.
pub fn rewrite(side: &str, input: &Input, folder: &Utf8Path) -> anyhow::Result<()> {
    let mut built = sides::build(side, &input.moments()?, folder)?;
    loop {
        say(&json!({ "ready": true }))?;
        let began = Instant::now();
        built.rewrite()?;
        say(&json!({ "seconds": began.elapsed().as_secs_f64() }))?;
    }
}

/// Opens a side and answers every line `EFFORT THREADS` with the seconds that all queries took, or `EFFORT found` with what was found.
pub fn answer(side: &str, input: &Input, folder: &Utf8Path) -> anyhow::Result<()> {
    let queries = input.queries()?;
    let queries: Vec<&[f32]> = queries.rows().collect();
    let began = Instant::now();
    let (own, mapped) = (system::memory("RssAnon"), system::memory("RssFile"));
    // Threads of a pool end some time after it: with pools that stay, no thread's time gets lost.
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let (one, two) = (pool(1)?, pool(2)?);
    let opened = sides::open(side, input.width, folder)?;
    say(&json!({ "opened": began.elapsed().as_secs_f64() }))?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (effort, how) = line.split_once(' ').context("`EFFORT THREADS` or `EFFORT found`")?;
        let effort: usize = effort.parse()?;
        if how == "found" {
            let found: Vec<_> = queries.iter().map(|query| opened.nearest(query, effort)).collect::<Result<_, _>>()?;
            let own = system::memory("RssAnon").saturating_sub(own);
            let mapped = system::memory("RssFile").saturating_sub(mapped);
            say(&json!({ "found": found, "own": own, "mapped": mapped }))?;
            continue;
        }
        let pool = if how == "1" { &one } else { &two };
        let (began, processor) = (Instant::now(), system::thread_seconds()?);
        pool.install(|| queries.par_iter().try_for_each(|query| opened.nearest(query, effort).map(drop)))?;
        let seconds = began.elapsed().as_secs_f64();
        say(&json!({ "seconds": seconds, "processor": system::thread_seconds()? - processor }))?;
    }
    Ok(())
}
