//! `cuemark demo`: everything on the built-in world, step by step.

mod collection;
mod questions;
mod shipped;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Instant;

use camino::Utf8PathBuf;
use cuemark::{Study, StudySettings};
use cuemark_bench::leaderboard::{RunResult, RunsFile};
use cuemark_bench::matrix::{Account, State};
use cuemark_bench::report::{Answerer, TrustCard, TrustVerdict};
use cuemark_core::Progress;
use cuemark_core::text::{percent, thousands};
use cuemark_protocols::splits::{counts, read_folder};
use cuemark_search::Index;
use cuemark_server::ServerOptions;
use serde_json::{Value, json};

use crate::commands::bench::{self, account_text};
use crate::output::{self, Outcome, Print, say};
use crate::progress::shown;
use crate::stop;

/// The metric of the closing table.
const METRIC: &str = "R@1,IoU=0.5";

/// A first look: everything on built-in material, in minutes.
///
/// Films a world of coloured shapes, trains two small models and a weak one, tests them beside guesses that never see a
/// video, in pools of fifty videos and on graded lists, says which of them to trust and why, makes test videos searchable by an
/// encoder that comes with the program, asks three sentences and a fourth that no film answers, and writes a report. Nothing is
/// downloaded. What is finished is used again, so a stopped demo goes on where it was.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where everything is written. Default: cuemark-demo, or cuemark-demo-quick
    #[arg(long, value_name = "DIR")]
    out: Option<Utf8PathBuf>,
    /// A smaller world and one epoch: under a minute, and scores to match.
    #[arg(long)]
    quick: bool,
    /// Which sentences are asked.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// At the end, open the search page on the indexed videos, on this machine only, until Ctrl-C.
    #[arg(long)]
    serve: bool,
    /// Where the page listens.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878", requires = "serve")]
    listen: SocketAddr,
    #[command(flatten)]
    print: Print,
}

/// What the steps hand on.
struct Stage {
    study: Study,
    /// A smaller world and one epoch.
    quick: bool,
    /// Of the sentences that are asked.
    seed: u64,
    /// Of all steps; Ctrl-C stops it.
    progress: Progress,
    account: Option<Account>,
    results: Option<RunsFile>,
    index: Option<Index>,
    answers: Vec<Value>,
    report: Option<Utf8PathBuf>,
    cards: Vec<TrustCard>,
    /// Whether Ctrl-C ended a step before its time.
    stopped: bool,
}

/// One step, by the words that announce it.
struct Step {
    about: &'static str,
    run: fn(&mut Stage) -> anyhow::Result<()>,
}

/// In order. A step finds what an earlier run of the demo has finished.
const STEPS: &[Step] = &[
    Step { about: "filming a world and cutting its splits", run: film },
    Step { about: "training three models, testing them beside guesses", run: train_and_test },
    Step { about: "making the test videos searchable", run: collection::index },
    Step { about: "asking three sentences, and a fourth that no film answers", run: questions::ask },
    Step { about: "writing the report", run: write_report },
];

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let ending = if args.quick { "-quick" } else { "" };
    let out = args.out.clone().unwrap_or_else(|| format!("cuemark-demo{ending}").into());
    let settings = StudySettings { out: Some(out), quick: args.quick, ..StudySettings::default() };
    let study = bench::study("demo".into(), settings)?.open()?;
    let progress = Progress::new();
    let _wired = stop::on_ctrl_c(&progress);
    let mut stage = Stage {
        study,
        quick: args.quick,
        seed: args.seed,
        progress,
        account: None,
        results: None,
        index: None,
        answers: Vec::new(),
        report: None,
        cards: Vec::new(),
        stopped: false,
    };
    for (number, step) in STEPS.iter().enumerate() {
        say(&format!("[{}/{}] {}", number + 1, STEPS.len(), step.about));
        (step.run)(&mut stage)?;
        if stage.is_stopped() {
            say("stopped; the same command goes on");
            break;
        }
    }
    let complete = !stage.stopped && stage.account.as_ref().is_some_and(Account::is_complete);
    let seconds = began.elapsed().as_secs_f64();
    let outcome = args.print.result(&as_json(&stage, seconds)?, || as_text(&stage, seconds))?;
    let outcome = if complete { outcome } else { outcome.with_problems() };
    match stage.index.take().filter(|_| args.serve && !stage.is_stopped()) {
        Some(index) => {
            outcome.print();
            serve(index, args.listen)
        }
        None => Ok(outcome),
    }
}

/// Serves the page until Ctrl-C.
fn serve(index: Index, listen: SocketAddr) -> anyhow::Result<Outcome> {
    let options = ServerOptions { listen, ..ServerOptions::default() };
    cuemark_server::serve(index, options, |address| {
        let page = format!("http://{address}");
        say(&format!("the search page is at {page} until Ctrl-C"));
        show_in_browser(&page);
    })?;
    Ok(Outcome::ok(""))
}

/// Shows a page where a person sits in front of a desktop; elsewhere its address, which was said, has to do.
fn show_in_browser(page: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = match std::env::consts::OS {
        "macos" => "open",
        "linux" if has_desktop => "xdg-open",
        _ => return,
    };
    if std::io::stderr().is_terminal() {
        let _ = Command::new(program).arg(page).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
}

impl Stage {
    /// Whether Ctrl-C has left something to do.
    fn is_stopped(&self) -> bool {
        let left = |account: &Account| account.count(State::Stopped) + account.count(State::Waiting);
        self.stopped || self.account.as_ref().is_some_and(|account| left(account) > 0)
    }
}

fn film(stage: &mut Stage) -> anyhow::Result<()> {
    let made = shown(&stage.progress, "filming", || stage.study.prepare(&stage.progress));
    if stage.progress.is_stopped() {
        stage.stopped = true;
        return Ok(());
    }
    made?;
    for split in counts(&read_folder(&world(stage).join("splits"), &stage.progress)?) {
        say(&format!(
            "  {:9} {:>5} videos, {:>6} queries",
            split.name,
            thousands(split.videos),
            thousands(split.queries)
        ));
    }
    Ok(())
}

/// The world's folder.
fn world(stage: &Stage) -> Utf8PathBuf {
    let root = stage.study.expanded.cells.iter().find_map(|cell| cell.data.root.clone());
    root.unwrap_or_else(|| stage.study.out.join("data"))
}

fn train_and_test(stage: &mut Stage) -> anyhow::Result<()> {
    let account = shown(&stage.progress, "cells", || stage.study.fill(&stage.progress))?;
    say(&account_text(&account).lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"));
    stage.account = Some(account);
    let figures = shown(&stage.progress, "reading results", || anyhow::Ok(stage.study.figures(&stage.progress)))?;
    stage.results = Some(figures);
    Ok(())
}

fn write_report(stage: &mut Stage) -> anyhow::Result<()> {
    let Some(account) = &stage.account else { return Ok(()) };
    let written = shown(&stage.progress, "writing", || anyhow::Ok(stage.study.write(account, &stage.progress)))?;
    stage.report = written.report;
    stage.cards = written.cards;
    Ok(())
}

/// What the trust cards hold against the trained models: the reason why there is a laboratory. Nobody would trust a score of 0.
fn caught(cards: &[TrustCard]) -> String {
    let mut text = String::new();
    let is_model = |card: &&TrustCard| card.name.kind == Answerer::Model && card.score.value > 0.0;
    for card in cards.iter().filter(is_model).filter(|card| card.metric == METRIC) {
        let mut against = card.checks.iter().filter(|check| check.verdict == TrustVerdict::Bad).peekable();
        if against.peek().is_none() {
            continue;
        }
        let name = match card.name.variant.as_str() {
            "" => card.name.model.clone(),
            variant => format!("{}, {variant}", card.name.model),
        };
        text += &format!("\n{name} has {} %, but do not trust it yet:\n", percent(card.score.value));
        against.for_each(|check| text += &format!("  - {}: {}\n", check.name, check.words));
    }
    text
}

fn as_text(stage: &Stage, seconds: f64) -> String {
    let mut text = String::new();
    if let Some(results) = &stage.results {
        let cell = |run: &RunResult, split: &str| {
            run.plain(split, METRIC).map_or_else(String::new, |measure| {
                let bound = |bound: Option<f64>| bound.map_or_else(String::new, percent);
                format!("{} ({} – {})", percent(measure.value), bound(measure.low), bound(measure.high))
            })
        };
        let rows: Vec<Vec<String>> = results
            .results
            .iter()
            .map(|run| {
                let name =
                    if run.variant.is_empty() { run.model.clone() } else { format!("{}, {}", run.model, run.variant) };
                let of = |split: &str| run.plain(split, METRIC).map(|measure| measure.value);
                let gap = of("test-iid")
                    .zip(of("test-ood"))
                    .map_or_else(String::new, |(iid, ood)| format!("{:+.2}", 100.0 * (ood - iid)));
                vec![name, cell(run, "test-iid"), cell(run, "test-ood"), gap]
            })
            .collect();
        text += &output::table(&[METRIC, "test-iid", "test-ood", "gap"], &rows);
        text += "\n\nPercent with 95 % intervals over queries. In this world the place of a moment can be guessed from its verb; test-ood\n\
                 reverses that rule. Whoever learnt the rule instead of looking loses there; the oracle, which reads the event log,\n\
                 does not.\n";
        if stage.quick {
            text += "\nThese models have seen a small world once: the methods can do better. `cuemark demo` without --quick takes minutes.\n";
        }
    }
    text += &caught(&stage.cards);
    if stage.index.is_some() {
        let index = stage.study.out.join("index");
        text += &format!("\nAsk it yourself: cuemark search {index} \"a red ball spins\", or cuemark serve {index}\n");
    }
    text += &format!("\n{seconds:.0} s; everything is in {}", stage.study.out);
    if let Some(report) = &stage.report {
        text += &format!("\nreport: {report}");
    }
    text
}

fn as_json(stage: &Stage, seconds: f64) -> anyhow::Result<Value> {
    Ok(json!({
        "out": stage.study.out,
        "seconds": seconds,
        "account": stage.account,
        "results": stage.results.as_ref().map(|results| &results.results),
        "index": collection::as_json(stage)?,
        "answers": stage.answers,
        "report": stage.report,
    }))
}
