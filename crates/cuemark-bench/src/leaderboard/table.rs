//! The table that is made of files of runs.

use indexmap::IndexMap;

use super::{Measure, RunResult, RunsFile};
use crate::report::Answerer;

/// Where the table stands in a Markdown file.
const BEGIN: &str = "<!-- leaderboard:begin -->";
const END: &str = "<!-- leaderboard:end -->";

/// A split and a metric.
type Column = (&'static str, &'static str);

/// The tables of a section: what each is about, and its columns.
const TABLES: [(&str, &[Column]); 2] = [
    (
        "",
        &[("test-iid", "R@1,IoU=0.5"), ("test-iid", "R@1,IoU=0.7"), ("test-iid", "mIoU"), ("test-ood", "R@1,IoU=0.5")],
    ),
    (
        "Clips scored for the query, against the ratings of three simulated people (`HL-Hit1` is HIT@1):",
        &[
            ("test-iid", "HL-mAP/VeryGood"),
            ("test-iid", "HL-Hit1/VeryGood"),
            ("test-ood", "HL-mAP/VeryGood"),
            ("test-ood", "HL-Hit1/VeryGood"),
        ],
    ),
];

/// The runs of one section by model, variant and features.
type Rows<'a> = IndexMap<(&'a str, &'a str, &'a str), Vec<Told<'a>>>;

/// What the files say of one run, the latest last.
type Told<'a> = Vec<&'a RunResult>;

/// The tables of all runs in Markdown, a section per dataset and protocol, in it one table of moments and, where runs have scored
/// clips, one of highlights; best in the first column first.
///
/// Percent. With several seeds the mean and the standard deviation over seeds, with one the 95 % interval over queries.
/// Of a run that stands in two files the later one counts, of a guess's figure too; a run with no figure of any column is left
/// out. Empty when there is none.
pub fn table(files: &[RunsFile]) -> String {
    let mut same: IndexMap<_, Told> = IndexMap::new();
    for run in files.iter().flat_map(|file| &file.results) {
        same.entry(run.key()).or_default().push(run);
    }
    let mut sections: IndexMap<(&str, &str), Rows> = IndexMap::new();
    for told in same.into_values() {
        let Some(run) = told.first() else { continue };
        let section = sections.entry((&run.dataset, &run.protocol)).or_default();
        section.entry((&run.model, &run.variant, &run.features)).or_default().push(told);
    }
    let mut text = String::new();
    for ((dataset, protocol), rows) in &sections {
        let tables: Vec<String> =
            TABLES.into_iter().filter_map(|(about, columns)| table_of(rows, about, columns)).collect();
        if tables.is_empty() {
            continue;
        }
        let about =
            files.iter().rev().find_map(|file| file.datasets.get(*dataset)).map_or("", |about| about.about.as_str());
        let protocol = if *protocol == "own" { String::new() } else { format!(", {protocol}") };
        text += &format!("**{dataset}{protocol}**{}{about}\n\n", if about.is_empty() { "" } else { ": " });
        text += &tables.concat();
    }
    text.trim_end().to_owned()
}

/// The runs of a section in those of the columns for which one has a figure; `None` when none has.
fn table_of(rows: &Rows, about: &str, columns: &[Column]) -> Option<String> {
    let cell = |runs: &[Told], (split, metric): Column| figure(runs, split, metric);
    let filled = |column: &Column| rows.values().any(|runs| cell(runs, *column).is_some());
    let columns: Vec<Column> = columns.iter().copied().filter(filled).collect();
    let best = *columns.first()?;
    let heads: Vec<String> = columns.iter().map(|(split, metric)| format!("{split} {metric}")).collect();
    let mut text = if about.is_empty() { String::new() } else { format!("{about}\n\n") };
    text += &format!(
        "| method | features | seeds | {} |\n|---|---|---|{}\n",
        heads.join(" | "),
        "---|".repeat(columns.len())
    );
    let mut rows: Vec<_> = rows.iter().collect();
    let first = |runs: &[Told]| cell(runs, best).map_or(-1.0, |(value, _)| value);
    rows.sort_by(|a, b| first(b.1).total_cmp(&first(a.1)).then(a.0.cmp(b.0)));
    for ((model, variant, features), runs) in rows {
        let name = if variant.is_empty() { (*model).to_owned() } else { format!("{model}, {variant}") };
        let cells: Vec<String> =
            columns.iter().map(|column| cell(runs, *column).map_or(String::new(), |(_, words)| words)).collect();
        if cells.iter().all(String::is_empty) {
            continue;
        }
        let is_model = runs.iter().flatten().any(|run| run.kind == Answerer::Model);
        let seeds = if is_model { runs.len().to_string() } else { String::new() };
        text += &format!("| {name} | {features} | {seeds} | {} |\n", cells.join(" | "));
    }
    text.push('\n');
    Some(text)
}

/// The mean over the runs that have the figure, a fraction, and how it is printed.
fn figure(runs: &[Told], split: &str, metric: &str) -> Option<(f64, String)> {
    // A model that was trained twice is two runs, of which the later counts; a guess says the same every time.
    let latest = |told: &Told| match told.last() {
        Some(run) if run.kind == Answerer::Model => run.plain(split, metric),
        _ => told.iter().rev().find_map(|run| run.plain(split, metric)),
    };
    let found: Vec<Measure> = runs.iter().filter_map(latest).collect();
    let mean = found.iter().map(|measure| measure.value).sum::<f64>() / found.len().max(1) as f64;
    match found[..] {
        [] => None,
        [Measure { low: Some(low), high: Some(high), .. }] => {
            Some((mean, format!("{:.1} ({:.1} – {:.1})", 100.0 * mean, 100.0 * low, 100.0 * high)))
        }
        [_] => Some((mean, format!("{:.1}", 100.0 * mean))),
        _ => {
            let squares: f64 = found.iter().map(|measure| (measure.value - mean).powi(2)).sum();
            let sd = (squares / (found.len() - 1) as f64).sqrt();
            Some((mean, format!("{:.1} ± {:.1}", 100.0 * mean, 100.0 * sd)))
        }
    }
}

/// `document` with the table between its two markers; `None` when it lacks them.
pub fn laid_into(document: &str, table: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let table = if table.is_empty() { String::new() } else { format!("{table}\n\n") };
    Some(format!("{before}{BEGIN}\n\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaderboard::tests::{file, run};
    use crate::report::QueryText;

    #[test]
    fn the_best_stands_first_and_seeds_are_joined() {
        let table = table(&[file(vec![run("weak", 0, 0.2), run("strong", 0, 0.4), run("strong", 1, 0.5)])]);
        let rows: Vec<&str> = table.lines().skip(4).collect();
        // Mean 45, deviation sqrt(2 · 0.05²) = 7.07.
        assert_eq!(rows, ["| strong | motion | 2 | 45.0 ± 7.1 |", "| weak | motion | 1 | 20.0 (15.0 – 25.0) |"]);
    }

    #[test]
    fn runs_that_score_clips_have_a_table_of_their_own_besides() {
        let mut both = run("both", 0, 0.4);
        let rated = Measure { value: 0.5, low: None, high: None };
        both.tests[0].metrics.insert("HL-mAP/VeryGood".to_owned(), rated);
        let table = table(&[file(vec![run("moments", 0, 0.6), both])]);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        let wanted = [
            "| method | features | seeds | test-iid R@1,IoU=0.5 |",
            "|---|---|---|---|",
            "| moments | motion | 1 | 60.0 (55.0 – 65.0) |",
            "| both | motion | 1 | 40.0 (35.0 – 45.0) |",
            "",
            TABLES[1].0,
            "",
            "| method | features | seeds | test-iid HL-mAP/VeryGood |",
            "|---|---|---|---|",
            "| both | motion | 1 | 50.0 |",
        ];
        assert_eq!(rows, wanted);
    }

    #[test]
    fn a_later_file_replaces_the_same_run() {
        let table = table(&[file(vec![run("one", 0, 0.2)]), file(vec![run("one", 0, 0.3)])]);
        assert!(table.contains("30.0") && !table.contains("20.0"), "{table}");
    }

    #[test]
    fn a_figure_that_only_an_earlier_file_has_stays_of_guesses_and_not_of_models() {
        let measure = Measure { value: 0.5, low: None, high: None };
        let rated = |kind: Answerer| {
            let (mut before, mut after) = (run("one", 0, 0.2), run("one", 0, 0.3));
            before.tests[0].metrics.insert("HL-mAP/VeryGood".to_owned(), measure);
            (before.kind, after.kind) = (kind, kind);
            table(&[file(vec![before]), file(vec![after])])
        };
        let guess = rated(Answerer::Baseline);
        assert!(guess.contains("| one | motion |  | 30.0 (25.0 – 35.0) |"), "{guess}");
        assert!(guess.contains("| one | motion |  | 50.0 |"), "{guess}");
        assert!(!rated(Answerer::Model).contains("50.0 |"));
    }

    #[test]
    fn tests_with_changed_queries_are_no_plain_figures() {
        let mut masked = run("one", 0, 0.2);
        masked.tests[0].text = QueryText::MaskVerb;
        assert_eq!(masked.plain("test-iid", "R@1,IoU=0.5"), None);
        assert_eq!(table(&[file(vec![masked])]), "");
    }

    #[test]
    fn the_table_is_laid_between_the_markers() {
        let document = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(laid_into(&document, "new").unwrap(), format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n"));
        assert_eq!(laid_into("no markers", "new"), None);
    }
}
