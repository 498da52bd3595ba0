//! `cuemark eval`: scores a prediction file.

use cuemark::{Score, Scored};
use cuemark_core::text::counted;
use cuemark_metrics::{LATEX_NEEDS, METRICS, Preset, Report, latex_float};
use serde_json::{Value, json};

use crate::output::{self, Outcome, PrintTable, TableFormat, percent, thousands};
use crate::progress::watched;

/// More metrics than this are shown as the preset's headline, the rest with `--all`.
const SCREENFUL: usize = 12;

/// Score a prediction file.
///
/// Metrics: R@n,IoU=m  dR@n,IoU=m  mIoU  mAP  mAP@m  NDCG@K,IoU=m  VCMR:R@n,IoU=m  SVMR:R@n,IoU=m  VR:R@n
/// MVMR:R@n,IoU=m  DiDeMo:rank@n  DiDeMo:mIoU  HL-mAP/LEVEL  HL-Hit1/LEVEL, each with a part of the queries behind
/// it if wished: /short /middle /long /type=v /verb=open /words=6-10 /length=0-10% /position=last-third. Names that papers
/// print (R1@0.5, MR-full-mAP) are understood, in any case; `--list-metrics` lists them all.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    score: Score,
    /// Show every metric, not only the preset's headline.
    #[arg(long)]
    all: bool,
    /// List every metric and every preset, and end.
    #[arg(long, exclusive = true)]
    list_metrics: bool,
    #[command(flatten)]
    print: PrintTable,
    /// Print to standard error how long reading and evaluating took.
    #[arg(long)]
    timings: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let scored = watched("reading", |progress| args.score.run(progress))?;
    output::say_notes(&scored.notes);
    if args.timings {
        let (read, evaluated) = (scored.took.reading.as_secs_f64(), scored.took.evaluating.as_secs_f64());
        output::say(&format!("timings {}", json!({ "read_s": read, "evaluate_s": evaluated })));
    }
    args.print.result(&scored, |format| {
        let (shown, more) = args.shown(&scored);
        let report = shown.report();
        match format {
            TableFormat::Text | TableFormat::Json => as_text(&shown, more, args.score.ci),
            TableFormat::Markdown => report.to_markdown(),
            TableFormat::Latex => as_latex(report),
            TableFormat::Csv => report.to_csv(),
        }
    })
}

impl Args {
    /// The metrics that are shown, and how many more there are.
    fn shown(&self, scored: &Scored) -> (Scored, usize) {
        let mut shown = scored.clone();
        let asked = self.all || self.score.scoring.metrics.is_some() || !self.score.group_by.is_empty();
        let headline = match scored.plan.preset {
            Some(preset) if !asked && scored.evaluation.columns.len() > SCREENFUL => preset.headline(),
            _ => return (shown, 0),
        };
        let is_shown: Vec<bool> =
            scored.evaluation.columns.iter().map(|column| headline.contains(&column.name)).collect();
        let mut keep = is_shown.iter();
        shown.evaluation.columns.retain(|_| keep.next().copied().unwrap_or(true));
        if let Some(bounds) = &mut shown.intervals {
            let mut keep = is_shown.iter();
            bounds.retain(|_| keep.next().copied().unwrap_or(true));
        }
        let more = scored.evaluation.columns.len() - shown.evaluation.columns.len();
        (shown, more)
    }
}

fn as_latex(report: Report<'_>) -> String {
    let evaluation = report.evaluation;
    let mut caption = format!("Percent of {}.", counted(evaluation.queries, "query", "queries"));
    if evaluation.missing > 0 {
        caption += &format!(" {} without predictions.", thousands(evaluation.missing));
    }
    format!("{LATEX_NEEDS}{}", latex_float(&report.to_latex(), &caption))
}

fn as_text(scored: &Scored, more: usize, level: Option<f64>) -> String {
    let evaluation = &scored.evaluation;
    let bounds = scored.intervals.as_deref();
    let level = level.map(|level| 100.0 * cuemark::confidence(level).unwrap_or(0.0));
    let interval_title = level.map(|level| format!("{} % interval", (level * 1e6).round() / 1e6));
    let mut header = vec!["metric", "percent"];
    header.extend(interval_title.as_deref());
    header.push("queries");
    let rows: Vec<Vec<String>> = evaluation
        .columns
        .iter()
        .enumerate()
        .map(|(position, column)| {
            let mut row = vec![column.name.to_string(), column.mean().map_or_else(String::new, percent)];
            if let Some(bounds) = bounds {
                row.push(format!("{} – {}", percent(bounds[position].low), percent(bounds[position].high)));
            }
            row.push(thousands(column.counted()));
            row
        })
        .collect();
    let mut text = output::table(&header, &rows);
    if more > 0 {
        text.push_str(&format!("\n… {} more: pass `--all`", thousands(more)));
    }
    text.push_str(&format!(
        "\n\n{}, {} without predictions",
        counted(evaluation.queries, "query", "queries"),
        thousands(evaluation.missing)
    ));
    if evaluation.unknown > 0 {
        let lists = counted(evaluation.unknown, "prediction list", "prediction lists");
        text.push_str(&format!(", {lists} for queries the truth does not have"));
    }
    text.push('\n');
    for line in scored.plan.conventions() {
        text.push_str(&format!("{line}\n"));
    }
    for note in &evaluation.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

/// Whether the command line asks for the list of metrics, which needs no files.
pub(crate) fn asks_for_list(words: &[String]) -> bool {
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !word.starts_with("-q") && *word != "--quiet").collect();
    words.first() == Some(&"eval") && words.contains(&"--list-metrics")
}

/// Every metric and every preset.
pub(crate) fn list(words: &[String]) -> Outcome {
    let metric = |card: &cuemark_metrics::MetricCard| json!({ "name": card.name, "example": card.example, "about": card.about, "aliases": card.aliases });
    let preset = |preset: Preset| {
        let headline: Vec<String> = preset.headline().iter().map(ToString::to_string).collect();
        json!({ "name": preset.name(), "about": preset.about(), "headline": headline })
    };
    if words.iter().any(|word| word == "--json") {
        let metrics: Vec<Value> = METRICS.iter().map(metric).collect();
        let presets: Vec<Value> = Preset::ALL.into_iter().map(preset).collect();
        return Outcome::ok(format!("{:#}", json!({ "metrics": metrics, "presets": presets })));
    }
    let metrics: Vec<Vec<String>> =
        METRICS.iter().map(|card| vec![card.name.to_owned(), card.about.to_owned(), card.aliases.join(" ")]).collect();
    let presets: Vec<Vec<String>> =
        Preset::ALL.into_iter().map(|preset| vec![preset.name().to_owned(), preset.about().to_owned()]).collect();
    Outcome::ok(format!(
        "{}\n\nA part of the queries stands behind a name: /short /middle /long /type=v /verb=open /words=6-10 /length=0-10% \
         /position=last-third. A recall without a threshold (R@1) is at 0.3, 0.5 and 0.7.\n\n{}",
        output::text_table(&["metric", "what it measures", "also called"], &metrics),
        output::text_table(&["preset", "whose numbers"], &presets)
    ))
}
