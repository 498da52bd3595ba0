//! `cuemark split`: splits that expose bias, made and audited.

use camino::Utf8Path;
use clap::Subcommand;
use cuemark::{AuditSplits, MakeSplits};
use cuemark_protocols::splits::audit::AuditReport;

use crate::output::{self, Outcome, Print, percent, thousands};
use crate::progress::watched;

/// Splits that expose bias.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Part a dataset into train, val and test, with a manifest beside them.
    Make(Make),
    /// What a set of splits shares, how far apart its parts lie, and what guesses reach on each.
    Audit(Audit),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    audit: AuditSplits,
    #[command(flatten)]
    print: Print,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Make {
    #[command(flatten)]
    make: MakeSplits,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::Make(args) => make(args),
        Action::Audit(args) => {
            let found = watched("reading", |progress| args.audit.run(progress))?;
            found.drawn.iter().for_each(|path| output::say(&format!("drew {path}")));
            args.print.result(&found, || audit_text(&args.audit.dir, &found.report))
        }
    }
}

fn make(args: &Make) -> anyhow::Result<Outcome> {
    let written = watched("reading", |progress| args.make.run(progress))?;
    let found = serde_json::to_value(&written.manifest.outcome.found)?;
    args.print.result(&written, || {
        let splits = written.manifest.outcome.splits.iter();
        let rows: Vec<Vec<String>> =
            splits.map(|split| vec![split.name.clone(), thousands(split.videos), thousands(split.queries)]).collect();
        let table = output::table(&["split", "videos", "queries"], &rows);
        let found: String = found
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| format!("{}: {}\n", name.replace('_', " "), said(value)))
            .collect();
        format!("{table}\n\n{found}wrote {}", written.out)
    })
}

/// A figure as people read it: three decimals, and no more than it has.
fn said(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(|| number.to_string(), |value| format!("{value:.3}"))
        }
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => items.iter().map(said).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn audit_text(dir: &Utf8Path, report: &AuditReport) -> String {
    let splits: Vec<Vec<String>> = report
        .splits
        .iter()
        .zip(&report.places)
        .map(|(split, place)| {
            let density = place.training_density.map_or_else(|| "–".to_owned(), |q| format!("{:.2}", q.median));
            vec![
                split.name.clone(),
                thousands(split.videos),
                thousands(split.queries),
                format!("{:.3}", place.mean_start),
                format!("{:.3}", place.mean_end),
                format!("{:.3}", place.mean_length),
                percent(place.longer_than_half),
                density,
            ]
        })
        .collect();
    let header = ["split", "videos", "queries", "start", "end", "length", "% > half", "training density"];
    let mut text = format!("{dir}\n\n{}\n", output::table(&header, &splits));
    let shared: Vec<String> = report
        .shared_videos
        .iter()
        .filter(|pair| pair.videos > 0)
        .map(|pair| format!("{} and {} share {} videos", pair.left, pair.right, thousands(pair.videos)))
        .collect();
    text.push_str(&format!(
        "\n{}\n\n",
        if shared.is_empty() { "no video is shared".to_owned() } else { shared.join("\n") }
    ));
    let distances: Vec<Vec<String>> = report
        .distances
        .iter()
        .map(|d| vec![format!("{} – {}", d.left, d.right), format!("{:.4}", d.energy), format!("{:.3}", d.p_value)])
        .collect();
    text.push_str(&output::table(&["energy distance of locations", "distance", "p"], &distances));
    if !report.baselines.is_empty() {
        let rows: Vec<Vec<String>> = report
            .baselines
            .iter()
            .flat_map(|b| {
                b.scores.iter().enumerate().map(|(n, s)| {
                    let (name, split) =
                        if n == 0 { (b.baseline.to_owned(), b.split.clone()) } else { Default::default() };
                    let spread = |sd: f64| if b.seeds > 1 { format!(" ± {}", percent(sd)) } else { String::new() };
                    vec![
                        name,
                        split,
                        s.threshold.to_string(),
                        format!("{}{}", percent(s.recall), spread(s.recall_sd)),
                        format!("{}{}", percent(s.discounted), spread(s.discounted_sd)),
                    ]
                })
            })
            .collect();
        text.push_str(&format!("\n\n{}", output::table(&["baseline", "split", "IoU", "R@1", "dR@1"], &rows)));
    }
    if !report.gaps.is_empty() {
        let rows: Vec<Vec<String>> = report
            .gaps
            .iter()
            .map(|g| {
                let interval = format!("{} – {}", percent(g.low), percent(g.high));
                vec![g.baseline.to_owned(), percent(g.iid), percent(g.ood), percent(g.gap), interval]
            })
            .collect();
        let header = ["dR@1,IoU=0.5", "test-iid", "test-ood", "gap", "95 % interval"];
        text.push_str(&format!("\n\n{}", output::table(&header, &rows)));
    }
    let top: Vec<&str> = report.verbs.top.iter().take(10).map(|verb| verb.verb.as_str()).collect();
    let coverage: Vec<String> = report
        .verbs
        .splits
        .iter()
        .zip(&report.verbs.coverage)
        .map(|(split, share)| format!("{split} {}", percent(*share)))
        .collect();
    text.push_str(&format!(
        "\n\nmost frequent verbs: {}\nthe 30 most frequent cover, %: {}",
        top.join(", "),
        coverage.join(", ")
    ));
    text
}
