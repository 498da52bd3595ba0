//! `cuemark reproduce`: a published result, made again.

use cuemark::{BesideFigure, Need, Reproduce, Reproduced, Standing};
use cuemark_core::text::percent;

use crate::output::{self, Outcome, Print};
use crate::progress::watched;

/// Train a method as published, three seeds, and print published beside ours; or say what is missing and where it is to be had.
///
/// The run file is `runs/METHOD/DATASET.toml`. Annotations and features are held to their cards first: exit code 1 while one is
/// missing, or other than published and `--anyway` was not given. What is stopped goes on with the same command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    request: Reproduce,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let done = watched("reproducing", |progress| args.request.run(progress))?;
    let outcome = args.print.result(&done, || as_text(&done))?;
    Ok(if done.ready { outcome } else { outcome.with_problems() })
}

fn as_text(done: &Reproduced) -> String {
    let mut text = format!("{} on {}: {}\n\n", done.method, done.dataset, done.run_file);
    let rows: Vec<Vec<String>> = done.needs.iter().map(row_of_need).collect();
    text += &output::text_table(&["needed", "looked for at", "", "what was found"], &rows);
    let wanting = |standing| done.needs.iter().filter(move |need| need.standing == standing);
    for need in wanting(Standing::Missing).chain(wanting(Standing::Differs)) {
        text += &format!("\n{}: from {}", need.what, need.from);
    }
    for note in &done.notes {
        text += &format!("\nnote: {note}");
    }
    if !done.ready {
        let missing = wanting(Standing::Missing).count();
        text += &match missing {
            0 => "\nnothing was trained: what is there is not what was published; `--anyway` trains with it".to_owned(),
            _ => format!("\nnothing was trained: {missing} missing"),
        };
        return text;
    }
    for run in &done.runs {
        let best = run.best.map_or_else(|| "–".to_owned(), percent);
        text += &format!("\nseed {}: {} steps, best on validation {best}, {}", run.seed, run.steps, run.folder);
    }
    if !done.figures.is_empty() {
        let rows: Vec<Vec<String>> = done.figures.iter().map(row_of_figure).collect();
        let header = ["split", "metric", "published", "ours", "± seeds", "difference", "printed in", "features there"];
        text += &format!("\n\n{}", output::table(&header, &rows));
    }
    text
}

fn row_of_need(need: &Need) -> Vec<String> {
    let standing = match need.standing {
        Standing::Published => "as published",
        Standing::There => "there",
        Standing::Differs => "OTHER",
        Standing::Missing => "MISSING",
    };
    vec![need.what.clone(), need.at.clone(), standing.to_owned(), need.says.clone()]
}

fn row_of_figure(figure: &BesideFigure) -> Vec<String> {
    let doubtful = if figure.doubt.is_some() { "?" } else { "" };
    vec![
        figure.split.clone(),
        figure.metric.clone(),
        percent(figure.published) + doubtful,
        percent(figure.ours),
        figure.deviation.map_or_else(|| "–".to_owned(), percent),
        format!("{:+.2}", 100.0 * figure.difference),
        figure.paper.clone(),
        figure.features.clone(),
    ]
}
