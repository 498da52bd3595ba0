//! `cuemark bench`: a matrix of runs, filled, resumed, tabulated and drawn.

use camino::Utf8PathBuf;
use cuemark::{RanStudy, RunStudy, Study, StudySettings};
use cuemark_bench::matrix::{self, Account, Ended, MatrixFile, State};
use serde_json::json;

use crate::cell_process;
use crate::output::{self, Outcome, Print};
use crate::progress::watched;

/// Run a matrix: datasets × protocols × models × features × seeds.
///
/// Every cell is a run folder below OUT/cells and runs in a process of its own. What is done is skipped, what was begun is
/// resumed, a cell that fails is told at the end while the others go on. Ctrl-C saves everything; the same command goes on.
/// Datasets whose files are not here are left out and said so.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The matrix: a TOML file, or the name of a ready one (`--list`).
    #[arg(required_unless_present_any = ["list", "cell"])]
    matrix: Option<Utf8PathBuf>,
    /// Name the ready matrices.
    #[arg(long)]
    list: bool,
    /// Say what would be done and do nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    settings: StudySettings,
    /// Go on with what was begun. That is what happens anyway; the flag is there for scripts that say so.
    #[arg(long)]
    resume: bool,
    /// Fill one cell: do the job in this file, which the matrix wrote when it started the process.
    #[arg(long, value_name = "JOB.json", hide = true, conflicts_with = "matrix")]
    cell: Option<Utf8PathBuf>,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if let Some(job) = &args.cell {
        let ended = cell_process::fill(job);
        let outcome = Outcome::ok("");
        return Ok(if matches!(ended, Ended::Failed { .. }) { outcome.with_problems() } else { outcome });
    }
    let Some(path) = args.matrix.as_ref().filter(|_| !args.list) else { return list(args.print) };
    let request = study(path.clone(), args.settings.clone())?;
    if args.dry_run {
        return plan(&request.open()?, args.print);
    }
    let ran = watched("cells", |progress| request.run(progress))?;
    let outcome = args.print.result(&ran, || as_text(&ran, path))?;
    Ok(if ran.is_whole() { outcome } else { outcome.with_problems() })
}

/// A study whose cells this very program fills.
pub(crate) fn study(matrix: Utf8PathBuf, settings: StudySettings) -> anyhow::Result<RunStudy> {
    let again = crate::invocation::again().into_iter();
    let program: Vec<String> = again
        .map(|word| word.into_string().map_err(|word| anyhow::anyhow!("{}: not UTF-8", word.display())))
        .collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(
        !program.is_empty(),
        "cannot tell where this program lies, which has to start itself for every cell"
    );
    Ok(RunStudy { matrix, settings, program })
}

fn as_text(ran: &RanStudy, path: &Utf8PathBuf) -> String {
    let mut text = ran.table();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text += &account_text(&ran.account);
    text += &format!("\nresults: {}", ran.out.join("results.json"));
    if let Some(report) = &ran.report {
        text += &format!("\nreport:  {report}");
    }
    if !ran.account.is_complete() {
        text += &format!("\nthe same command does the rest: cuemark bench {path}");
    }
    text
}

fn list(print: Print) -> anyhow::Result<Outcome> {
    let mut rows = Vec::new();
    for (name, text) in matrix::matrices() {
        rows.push(vec![name.to_owned(), MatrixFile::parse(name, text)?.about]);
    }
    let value: Vec<_> = rows.iter().map(|row| json!({ "name": row[0], "about": row[1] })).collect();
    print.result(&value, || output::text_table(&["matrix", "about"], &rows))
}

fn plan(study: &Study, print: Print) -> anyhow::Result<Outcome> {
    let expanded = &study.expanded;
    let tests = |cell: &matrix::Cell| cell.tests.iter().map(|test| test.name.clone()).collect::<Vec<_>>();
    let cells: Vec<_> = expanded.cells.iter().map(|cell| json!({ "cell": cell.name, "tests": tests(cell) })).collect();
    let value = json!({ "matrix": study.matrix.name, "cells": cells, "absent": expanded.absent });
    print.result(&value, || {
        let rows: Vec<_> = expanded.cells.iter().map(|cell| vec![cell.name.clone(), tests(cell).join(", ")]).collect();
        let mut text = output::text_table(&["cell", "tests"], &rows);
        text += &format!("\n\n{} cells", expanded.cells.len());
        for absent in &expanded.absent {
            text += &format!("\nleft out: {}: {}", absent.what, absent.why);
        }
        text
    })
}

/// What became of the cells, the failed ones by name.
pub(crate) fn account_text(account: &Account) -> String {
    let mut text = account.summary();
    if let Some(overhead) = account.overhead() {
        text += &format!(
            "; {:.0} s, {} at a time, {:.1} % of it the matrix's own",
            account.wall_seconds,
            account.jobs,
            100.0 * overhead
        );
    }
    for cell in account.cells.iter().filter(|cell| cell.state == State::Failed) {
        text += &format!("\nfailed: {}: {}", cell.cell, cell.why.as_deref().unwrap_or_default());
        if let Some(hint) = &cell.hint {
            text += &format!("\n  hint: {hint}");
        }
    }
    text
}
