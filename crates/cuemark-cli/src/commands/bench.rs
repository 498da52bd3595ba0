//! `cuemark bench`: a matrix of runs, filled, resumed, tabulated and drawn.

use camino::Utf8PathBuf;
use cuemark_bench::leaderboard;
use cuemark_bench::matrix::{self, Account, Ended, Expanded, MatrixFile, State, expand, parse_bytes};
use serde_json::json;

use crate::input::Force;
use crate::matrix_run::{self, Left, Settings};
use crate::output::{self, Outcome, Print, say};
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
    /// The matrix's folder. Default: out/NAME, or out/NAME-quick
    #[arg(long, value_name = "DIR")]
    out: Option<Utf8PathBuf>,
    /// A small version: a world of a hundred films, one epoch, one seed.
    #[arg(long)]
    quick: bool,
    /// Say what would be done and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Cells side by side. Default: one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Memory that all cells together may have, such as 4GiB. Default: four fifths of what is free
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,
    /// What to compute on: cpu, cuda, cuda:N.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Go on with what was begun. That is what happens anyway; the flag is there for scripts that say so.
    #[arg(long)]
    resume: bool,
    /// Fill the one cell in this folder; what the matrix starts for each.
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "matrix")]
    cell: Option<Utf8PathBuf>,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "a size such as 4GiB or 800M".to_owned())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if let Some(folder) = &args.cell {
        let ended = matrix_run::fill_cell(folder, &args.device, args.force.overwrite());
        let outcome = Outcome::ok("");
        return Ok(if matches!(ended, Ended::Failed { .. }) { outcome.with_problems() } else { outcome });
    }
    let Some(path) = args.matrix.as_ref().filter(|_| !args.list) else { return list(args.print) };
    let matrix = MatrixFile::read(path)?;
    let matrix = if args.quick { matrix.quickened() } else { matrix };
    let ending = if args.quick { "-quick" } else { "" };
    let out = args.out.clone().unwrap_or_else(|| format!("out/{}{ending}", matrix.name).into());
    let expanded = expand(&matrix, &out)?;
    if args.dry_run {
        return plan(&matrix, &expanded, args.print);
    }
    for absent in &expanded.absent {
        say(&format!("left out: {}: {}", absent.what, absent.why));
    }
    let settings = Settings {
        out: &out,
        jobs: args.jobs.map(usize::from).or(matrix.jobs),
        memory: args.memory,
        device: &args.device,
        overwrite: args.force.overwrite(),
    };
    let account = watched("cells", |progress| matrix_run::fill(&matrix, &expanded, &settings, progress))?;
    let Left { results, report, whole } = matrix_run::write_all(&matrix, &expanded, &account, &out);
    let value = json!({
        "matrix": matrix.name,
        "out": out,
        "account": account,
        "overhead": account.overhead(),
        "report": report,
        "results": results.results,
    });
    let outcome = args.print.result(&value, || {
        let mut text = leaderboard::table(std::slice::from_ref(&results));
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text += &account_text(&account);
        text += &format!("\nresults: {}", out.join("results.json"));
        if let Some(report) = &report {
            text += &format!("\nreport:  {report}");
        }
        if !account.is_complete() {
            text += &format!("\nthe same command does the rest: cuemark bench {path}");
        }
        text
    })?;
    Ok(if account.is_complete() && whole { outcome } else { outcome.with_problems() })
}

fn list(print: Print) -> anyhow::Result<Outcome> {
    let mut rows = Vec::new();
    for (name, text) in matrix::matrices() {
        rows.push(vec![name.to_owned(), MatrixFile::parse(name, text)?.about]);
    }
    let value: Vec<_> = rows.iter().map(|row| json!({ "name": row[0], "about": row[1] })).collect();
    print.result(&value, || output::text_table(&["matrix", "about"], &rows))
}

fn plan(matrix: &MatrixFile, expanded: &Expanded, print: Print) -> anyhow::Result<Outcome> {
    let tests = |cell: &matrix::Cell| cell.tests.iter().map(|test| test.name.clone()).collect::<Vec<_>>();
    let cells: Vec<_> = expanded.cells.iter().map(|cell| json!({ "cell": cell.name, "tests": tests(cell) })).collect();
    let value = json!({ "matrix": matrix.name, "cells": cells, "absent": expanded.absent });
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
