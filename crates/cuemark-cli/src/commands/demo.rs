//! `cuemark demo`: everything on the built-in world, step by step.

use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_bench::leaderboard::{Kind, RunResult, RunsFile};
use cuemark_bench::matrix::{Account, Expanded, MatrixFile, State, expand};
use cuemark_core::{Query, QueryId, Split, Truth, VideoId};
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::{Overwrite, Source};
use cuemark_protocols::splits::{counts, read_folder};
use cuemark_tensor::Device;
use cuemark_train::{Among, PredictOptions, RunFolder, Trained};
use serde_json::{Value, json};

use crate::commands::bench::account_text;
use crate::matrix_run::{self, Settings};
use crate::output::{self, Outcome, Print, percent, say, thousands};
use crate::stop;

/// The metric of the closing table.
const METRIC: &str = "R@1,IoU=0.5";

/// A first look: everything on built-in material, in minutes.
///
/// Films a world of coloured shapes, trains two small models and a weak one, tests them beside guesses that never see a
/// video, in pools of fifty videos and on graded lists, answers three sentences and writes a report. Nothing is downloaded.
/// What is finished is used again, so a stopped demo goes on where it was.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where everything is written. Default: cuemark-demo, or cuemark-demo-quick
    #[arg(long, value_name = "DIR")]
    out: Option<Utf8PathBuf>,
    /// A smaller world and one epoch: under a minute, and scores to match.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    print: Print,
}

/// What the steps hand on.
struct Stage<'a> {
    out: &'a Utf8Path,
    matrix: MatrixFile,
    expanded: Expanded,
    settings: Settings<'a>,
    account: Option<Account>,
    results: Option<RunsFile>,
    answers: Vec<Value>,
    report: Option<Utf8PathBuf>,
}

/// One step, by the words that announce it.
struct Step {
    about: &'static str,
    run: fn(&mut Stage<'_>) -> anyhow::Result<()>,
}

/// In order. A step finds what an earlier run of the demo has finished.
const STEPS: &[Step] = &[
    Step { about: "filming a world and cutting its splits", run: film },
    Step { about: "training three models, testing them beside guesses", run: train_and_test },
    Step { about: "answering three sentences among all test videos", run: answer_sentences },
    Step { about: "writing the report", run: write_report },
];

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let ending = if args.quick { "-quick" } else { "" };
    let out = args.out.clone().unwrap_or_else(|| format!("cuemark-demo{ending}").into());
    let matrix = MatrixFile::read(Utf8Path::new("demo"))?;
    let matrix = if args.quick { matrix.quickened() } else { matrix };
    let expanded = expand(&matrix, &out)?;
    let settings = Settings {
        out: &out,
        jobs: None,
        memory: None,
        device: "cpu",
        overwrite: Overwrite::Never,
        stop: stop::on_ctrl_c(),
    };
    let mut stage = Stage {
        out: &out,
        matrix,
        expanded,
        settings,
        account: None,
        results: None,
        answers: Vec::new(),
        report: None,
    };
    for (number, step) in STEPS.iter().enumerate() {
        say(&format!("[{}/{}] {}", number + 1, STEPS.len(), step.about));
        (step.run)(&mut stage)?;
        if stage
            .account
            .as_ref()
            .is_some_and(|account| account.count(State::Stopped) + account.count(State::Waiting) > 0)
        {
            say("stopped; the same command goes on");
            break;
        }
    }
    let complete = stage.account.as_ref().is_some_and(Account::is_complete);
    let seconds = began.elapsed().as_secs_f64();
    let outcome = args.print.result(&as_json(&stage, seconds), || as_text(&stage, seconds))?;
    Ok(if complete { outcome } else { outcome.with_problems() })
}

fn film(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    matrix_run::make_data(&stage.expanded.made)?;
    for split in counts(&read_folder(&world(stage).join("splits"))?) {
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
fn world(stage: &Stage<'_>) -> Utf8PathBuf {
    let root = stage.expanded.cells.iter().find_map(|cell| cell.data.root.clone());
    root.unwrap_or_else(|| stage.out.join("data"))
}

fn train_and_test(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let account = matrix_run::fill(&stage.matrix, &stage.expanded, &stage.settings)?;
    say(&account_text(&account).lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"));
    stage.account = Some(account);
    stage.results = Some(matrix_run::results(&stage.matrix, &stage.expanded, stage.out));
    Ok(())
}

/// Sentences that are asked: queries of test-iid, evenly spaced, without the video they were written for.
const SENTENCES: usize = 3;

fn answer_sentences(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let Some(best) = best_model(stage) else { return Ok(()) };
    let trained = Trained::open(&RunFolder::new(stage.out.join("cells").join(&best)), &Device::Cpu)?;
    let test: Split =
        read_truth(&Source::new(world(stage).join("splits/test-iid.jsonl")), None, &ReadOptions::default())?;
    let videos: Vec<VideoId> = test.videos.iter().map(|video| video.id.clone()).collect();
    let step = (test.queries.len() / SENTENCES).max(1);
    let asked: Vec<&Truth> = test.queries.iter().step_by(step).take(SENTENCES).collect();
    let ask = |(number, truth): (usize, &&Truth)| Truth {
        pool: Some(videos.clone()),
        ..Truth::bare(Query { id: QueryId::new(format!("asked-{number}")), text: truth.query.text.clone() })
    };
    let queries: Vec<Truth> = asked.iter().enumerate().map(ask).collect();
    let options = PredictOptions { answers: 3, batch: 64, among: Among::Pool, window: None, variant: None };
    let split = Split { queries, ..test.clone() };
    let predicted = trained.predict(&split, &options, &mut |_, _| {})?.predictions;
    say(&format!("  {} searches {} videos", best, thousands(videos.len())));
    for (truth, list) in asked.iter().zip(predicted.tasks.iter().flat_map(|task| &task.queries)) {
        say(&format!("  “{}”", truth.query.text));
        let mut found = Vec::new();
        for (place, answer) in list.ranked.iter().enumerate() {
            let video = answer.video.as_ref().map_or("", VideoId::as_str);
            let (start, end) = (answer.span.start(), answer.span.end());
            let right =
                truth.right().any(|moment| moment.video.as_str() == video && moment.span.iou(answer.span) >= 0.5);
            let mark = if right { "  ← the moment it was written for" } else { "" };
            say(&format!("    {}. {video} {start:5.1} – {end:5.1} s{mark}", place + 1));
            found.push(json!({ "video": video, "span": [start, end], "right": right }));
        }
        stage.answers.push(json!({ "sentence": truth.query.text, "answers": found }));
    }
    Ok(())
}

/// The trained model that can search many videos and is best on test-iid, as the name of its cell.
fn best_model(stage: &Stage<'_>) -> Option<String> {
    let results = stage.results.as_ref()?;
    let models = results.results.iter().filter(|run| run.kind == Kind::Model);
    let score = |run: &&RunResult| run.plain("test-iid", METRIC).map_or(-1.0, |measure| measure.value);
    let best = models.max_by(|a, b| score(a).total_cmp(&score(b)))?;
    let same = |cell: &&cuemark_bench::matrix::Cell| cell.model == best.model && cell.variant == best.variant;
    stage.expanded.cells.iter().find(same).map(|cell| cell.name.clone())
}

fn write_report(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let Some(account) = &stage.account else { return Ok(()) };
    stage.report = matrix_run::write_all(&stage.matrix, &stage.expanded, account, stage.out).report;
    Ok(())
}

fn as_text(stage: &Stage<'_>, seconds: f64) -> String {
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
    }
    text += &format!("\n{seconds:.0} s; everything is in {}", stage.out);
    if let Some(report) = &stage.report {
        text += &format!("\nreport: {report}");
    }
    text
}

fn as_json(stage: &Stage<'_>, seconds: f64) -> Value {
    json!({
        "out": stage.out,
        "seconds": seconds,
        "account": stage.account,
        "results": stage.results.as_ref().map(|results| &results.results),
        "answers": stage.answers,
        "report": stage.report,
    })
}
