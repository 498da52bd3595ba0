//! `cuemark report`: what runs, prediction files and datasets show.

mod dataset;
mod files;
mod trained;

use camino::Utf8PathBuf;
use cuemark_bench::report::{self, Films, Intervals, Report, ReportOptions, Runs, TrustVerdict};
use cuemark_formats::Overwrite;
use cuemark_metrics::Sheet;

use crate::input::{Force, OptionalTruthArgs};
use crate::output::{self, Outcome, PrintTable, TableFormat, percent};
use crate::progress::watched;

/// What runs, prediction files and datasets show: tables, trust cards, figures.
///
/// Writes report.html (one file, opens anywhere, no network), report.md, report.tex, report.csv and report.json.
///
/// Run folders: `cuemark report out/mmn-seed0 out/vslnet-seed0 --out report`. Folders of `cuemark bench` hold their
/// evaluations already. For a folder of `cuemark train`, `--split test-iid,test-ood` answers those splits first and `--probe`
/// also with verbs masked, wrong queries and hidden videos; what is computed is kept in the run folder.
///
/// Any prediction file: `cuemark report --pred mine.jsonl --truth test.jsonl --train train.jsonl --out report`.
///
/// A dataset without features: `cuemark report --dataset charades-cd --root DIR --out report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folders of runs, or folders that hold such folders.
    #[arg(value_name = "RUN_DIR")]
    runs: Vec<Utf8PathBuf>,
    /// Where to write the report.
    #[arg(long, value_name = "DIR")]
    out: Utf8PathBuf,
    /// Its title.
    #[arg(long, value_name = "TEXT", default_value = "")]
    title: String,
    /// Splits to answer with trained models; with `--pred`, the name of the split that was answered.
    #[arg(long, value_name = "SPLIT", value_delimiter = ',')]
    split: Vec<String>,
    /// Answer with verbs masked, wrong queries and hidden videos as well, for the trust cards.
    #[arg(long, requires = "runs")]
    probe: bool,
    /// What to compute on: cpu, cuda, cuda:N.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    truth: OptionalTruthArgs,
    #[command(flatten)]
    predictions: cuemark::PredictionReading,
    #[command(flatten)]
    scoring: cuemark::Scoring,
    /// Leave intervals out of the tables for papers and wikis.
    #[arg(long)]
    no_intervals: bool,
    /// A dataset: its section with `--root`, its published figures beside the scores of `--pred`.
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// The dataset's own folder.
    #[arg(long, value_name = "DIR", requires = "dataset")]
    root: Option<Utf8PathBuf>,
    /// The folder of re-annotations (`NAME_test_00.csv` …), for what people reach.
    #[arg(long, value_name = "DIR", requires = "root")]
    people: Option<Utf8PathBuf>,
    /// Where the videos lie: failures come first then and can be watched in the page. Films are linked, not copied.
    #[arg(long, value_name = "DIR")]
    videos: Option<Utf8PathBuf>,
    #[command(flatten)]
    print: PrintTable,
    #[command(flatten)]
    force: Force,
}

/// Prediction files that somebody brings.
#[derive(Debug, clap::Args)]
struct FileArgs {
    /// Predictions for the truth; may be repeated to compare several.
    #[arg(long, value_name = "FILE", requires = "truth")]
    pred: Vec<Utf8PathBuf>,
    /// The training split, in any truth layout: adds blind baselines that learned from it.
    #[arg(long, value_name = "FILE", requires = "pred")]
    train: Option<Utf8PathBuf>,
    /// What the predictions are called. Default: the files' stems
    #[arg(long, value_name = "NAME", requires = "pred")]
    model: Vec<String>,
    /// How the split was made: standard, cd, centre …
    #[arg(long, value_name = "NAME", requires = "pred")]
    protocol: Option<String>,
    /// Predictions of the (first) method for queries whose moments lie elsewhere.
    #[arg(long, value_name = "FILE", requires_all = ["pred", "ood_truth"])]
    ood_pred: Option<Utf8PathBuf>,
    /// The truth of those queries.
    #[arg(long, value_name = "FILE", requires = "ood_pred")]
    ood_truth: Option<Utf8PathBuf>,
    /// Its predictions with each query's verb masked (`cuemark text-bias --mode mask-verb`).
    #[arg(long, value_name = "FILE", requires = "pred")]
    masked_pred: Option<Utf8PathBuf>,
    /// Its predictions for wrong queries (`cuemark text-bias --mode wrong-query`).
    #[arg(long, value_name = "FILE", requires = "pred")]
    wrong_pred: Option<Utf8PathBuf>,
    /// Its predictions without a look at the videos (black frames, zeroed features).
    #[arg(long, value_name = "FILE", requires = "pred")]
    hidden_pred: Option<Utf8PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let overwrite = args.force.overwrite();
    check_free(args, overwrite)?;
    let mut runs = Runs::default();
    let data = watched("scoring", |progress| {
        trained::add(args, &mut runs, progress)?;
        files::add(args, &mut runs, progress)?;
        dataset::section(args, progress)
    })?;
    let data = data.into_iter().collect();
    let films = films(args)?;
    let intervals = if args.no_intervals { Intervals::Hidden } else { Intervals::Shown };
    let options = ReportOptions { title: title(args), notes: Vec::new(), data, films, intervals };
    let report = Report::of(runs, options)?;
    let written = report.write(&args.out, overwrite)?;
    let mut summary = report.summary();
    summary["files"] = written.iter().map(|path| path.as_str()).collect::<Vec<_>>().into();
    args.print.result(&summary, |format| {
        let each = |sheet: fn(&Sheet) -> String| report.sheets().iter().map(sheet).collect::<Vec<_>>().join("\n");
        match format {
            TableFormat::Text | TableFormat::Json => as_text(&report, &written),
            TableFormat::Markdown => each(Sheet::to_markdown),
            TableFormat::Latex => each(Sheet::to_latex),
            TableFormat::Csv => each(Sheet::to_csv),
        }
    })
}

/// The films below `--videos`, as links from the report's folder.
fn films(args: &Args) -> anyhow::Result<Films> {
    let Some(folder) = &args.videos else { return Ok(Films::default()) };
    let found =
        watched("looking for videos", |progress| cuemark_media::find_videos(std::slice::from_ref(folder), progress))?;
    for left_out in &found.left_out {
        output::say(&format!("{}: {}", left_out.what, left_out.problem));
    }
    // Links are made from where the folder really is: videos are found without links too.
    std::fs::create_dir_all(&args.out)?;
    let out = args.out.canonicalize_utf8()?;
    Ok(Films::new(&out, found.videos.into_iter().map(|found| (found.video.to_string(), found.path))))
}

/// Refuses before any work is done.
fn check_free(args: &Args, overwrite: Overwrite) -> anyhow::Result<()> {
    let named = !args.runs.is_empty() || !args.files.pred.is_empty() || args.root.is_some();
    if !named {
        return Err(
            cuemark_bench::BenchError::Nothing { problem: "no run, prediction file or dataset was named" }.into()
        );
    }
    for name in report::FILES {
        overwrite.check(&args.out.join(name))?;
    }
    Ok(())
}

fn title(args: &Args) -> String {
    let about = match (&args.dataset, args.files.pred.as_slice()) {
        _ if !args.title.is_empty() => return args.title.clone(),
        (Some(dataset), _) => dataset.clone(),
        (None, [only]) => only.file_stem().unwrap_or_default().to_owned(),
        _ => return String::new(),
    };
    format!("Moment retrieval report: {about}")
}

fn as_text(report: &Report, written: &[Utf8PathBuf]) -> String {
    let mut text = String::new();
    if !report.cards.is_empty() {
        let rows: Vec<Vec<String>> = report.cards.iter().map(card_row).collect();
        text += &output::table(&["method", "where", "metric", "percent", "95 % interval", "weak spots"], &rows);
        text += "\n\n";
    }
    for data in &report.data {
        let splits: Vec<&str> = data.audit.places.iter().map(|places| places.split.as_str()).collect();
        text += &format!("{}: {}\n", data.dataset, splits.join(", "));
        for note in &data.notes {
            text += &format!("note: {note}\n");
        }
    }
    let files: Vec<&str> = written.iter().map(|path| path.as_str()).collect();
    text + &format!("wrote {}", files.join(", "))
}

/// A card in one line: its score and the checks that speak against it.
fn card_row(card: &report::TrustCard) -> Vec<String> {
    let bad: Vec<&str> =
        card.checks.iter().filter(|check| check.verdict == TrustVerdict::Bad).map(|check| check.name).collect();
    vec![
        card.name.label(),
        card.place.title(),
        card.metric.clone(),
        percent(card.score.value),
        format!("{} – {}", percent(card.score.low), percent(card.score.high)),
        if bad.is_empty() { "–".to_owned() } else { bad.join(", ") },
    ]
}
