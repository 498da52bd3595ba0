//! Every file operation in the life of an index fails once in every way, or is where the power is cut.
//!
//! `CUEMARK_FAULTS=all` (`cargo xtask verify faults`) takes every operation; without it every so manieth is taken.
#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod disk;
mod life;
#[path = "../it/toy.rs"]
mod toy;

use cuemark_testkit::faults::Fault;
use disk::{Broken, TestDisk};
use life::{judge, live};
use rayon::prelude::*;

/// Subsets of the pages that nobody waited for.
const SUBSETS: u64 = 16;
const ENOSPC: i32 = 28;
const EIO: i32 = 5;
const EINTR: i32 = 4;

fn is_exhaustive() -> bool {
    std::env::var("CUEMARK_FAULTS").is_ok_and(|which| which == "all")
}

/// The operations to take, of all that a life has.
fn places(few: usize) -> Vec<usize> {
    let disk = TestDisk::new(None, Broken::No);
    let life = live(&disk);
    assert_eq!(life.problems, Vec::<String>::new(), "an undisturbed life");
    let (all, writes) = (disk.operations(), disk.log_writes());
    assert_eq!(judge(&disk, &life), Vec::<String>::new(), "an undisturbed life");
    assert!(all > 300, "the script does too little: {all} operations");
    let step = if is_exhaustive() { 1 } else { all.div_ceil(few) };
    let mut places: Vec<usize> = (1..=all).step_by(step).chain(writes).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// The operations that write to the log, and those right behind them.
fn writes() -> Vec<usize> {
    let disk = TestDisk::new(None, Broken::No);
    live(&disk);
    let writes = disk.log_writes();
    assert!(writes.len() > 8, "the script writes too little: {writes:?}");
    writes.into_iter().flat_map(|place| [place, place + 1]).collect()
}

/// What went wrong in any of the lives in which the power is cut at one of `places`.
fn cuts(places: &[usize], broken: Broken) -> Vec<String> {
    let at = |place: &usize| {
        let disk = TestDisk::new(Some((*place, Fault::PowerCut)), broken);
        let life = live(&disk);
        let after = |seed: u64| {
            let found = judge(&disk.after_power_cut(seed), &life);
            found.into_iter().map(move |problem| format!("cut at {place}, subset {seed}: {problem}"))
        };
        (0..SUBSETS).flat_map(after).collect::<Vec<String>>()
    };
    places.par_iter().flat_map_iter(at).collect()
}

/// What went wrong in any of the lives in which an operation at one of `places` fails.
fn failures(places: &[usize], broken: Broken) -> Vec<String> {
    let at = |place: &usize| {
        let faults = [Fault::Errno(ENOSPC), Fault::Errno(EIO), Fault::Errno(EINTR), Fault::Short];
        let of = |fault: Fault| {
            let disk = TestDisk::new(Some((*place, fault)), broken);
            let life = live(&disk);
            judge(&disk, &life).into_iter().map(move |problem| format!("{fault:?} at {place}: {problem}"))
        };
        faults.into_iter().flat_map(of).collect::<Vec<String>>()
    };
    places.par_iter().flat_map_iter(at).collect()
}

fn assert_none(problems: &[String], lives: usize) {
    let first: Vec<&String> = problems.iter().take(5).collect();
    assert!(problems.is_empty(), "{} problems in {lives} lives, such as {first:#?}", problems.len());
}

#[test]
fn no_power_cut_loses_what_was_acknowledged_or_brings_back_what_was_removed() {
    let places = places(80);
    assert_none(&cuts(&places, Broken::No), places.len() * SUBSETS as usize);
}

#[test]
fn no_failing_operation_loses_what_was_acknowledged_or_brings_back_what_was_removed() {
    let places = places(120);
    assert_none(&failures(&places, Broken::No), 4 * places.len());
}

#[test]
fn an_engine_that_does_not_wait_for_its_commits_is_caught() {
    assert!(!cuts(&writes(), Broken::LogIsNotSynced).is_empty());
}

#[test]
fn an_engine_that_does_not_take_the_lock_is_caught() {
    let disk = TestDisk::new(None, Broken::LockIsNotTaken);
    let life = live(&disk);
    assert!(!judge(&disk, &life).is_empty());
}

#[test]
fn an_engine_that_cuts_too_much_off_is_caught() {
    assert!(!failures(&writes(), Broken::CutsTooFar).is_empty());
    assert!(!cuts(&writes(), Broken::CutsTooFar).is_empty());
}

#[test]
fn a_graph_that_does_not_fit_on_the_disk_leaves_nothing_behind() {
    let failed = life::graphs_on_full_disks(ENOSPC);
    assert!(failed > 5, "{failed} operations failed");
}
