//! `cuemark compare`: is one prediction file better than another?

use cuemark::{Compare, Compared, ComparedPair};
use cuemark_core::text::{counted, p_value};
use cuemark_metrics::{Sheet, SheetCell, SheetRow};

use crate::output::{self, Outcome, PrintTable, TableFormat, percent, thousands};
use crate::progress::watched;

/// From this corrected p-value on, a difference is marked.
const SIGNIFICANT: f64 = 0.05;

/// Is one prediction file better than another?
///
/// All are scored on the same queries. The difference B - A comes with a paired bootstrap interval, the p-value of a
/// paired randomisation test, the effect size (mean difference over its standard deviation) and the queries won and lost.
/// With three files or more every pair is compared, and p-values are corrected for it (Holm, over the pairs of a metric).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    compare: Compare,
    /// Print the best of each metric in bold, with the letters of the files that it beats (p < 0.05, corrected).
    #[arg(long)]
    marks: bool,
    /// Leave out the intervals.
    #[arg(long)]
    no_intervals: bool,
    #[command(flatten)]
    print: PrintTable,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let compare = &args.compare;
    let compared = watched("reading", |progress| compare.run(progress))?;
    output::say_notes(&compared.notes);
    args.print.result(&compared, |format| match format {
        TableFormat::Text | TableFormat::Json => args.as_text(&compared),
        TableFormat::Markdown => args.sheet(&compared).to_markdown(),
        TableFormat::Latex => args.sheet(&compared).to_latex(),
        TableFormat::Csv => args.sheet(&compared).to_csv(),
    })
}

impl Args {
    fn as_text(&self, compared: &Compared) -> String {
        let mut text = String::new();
        for (place, file) in compared.files.iter().enumerate() {
            text += &format!("{} = {}\n", letter(place), file.path);
        }
        if compared.files.len() > 2 {
            text += &format!("\n{}\n", self.scores(compared));
        }
        let is_one = compared.pairs.len() == 1;
        let title = format!("{} % interval", (compared.percent * 1e6).round() / 1e6);
        let mut header = if is_one { vec!["metric", "A", "B", "B - A"] } else { vec!["metric", "pair", "difference"] };
        header.extend((!self.no_intervals).then_some(title.as_str()));
        header.extend(if is_one { &["p", "effect"][..] } else { &["p", "p, Holm", "effect"] });
        header.extend(if is_one { ["B wins", "ties", "A wins"] } else { ["wins", "ties", "losses"] });
        let mut rows = Vec::new();
        for name in &compared.metrics {
            for pair in &compared.pairs {
                rows.extend(self.row(compared, pair, name));
            }
        }
        text += &format!("\n{}\n\n", output::table(&header, &rows));
        let queries = compared.pairs.iter().flat_map(|pair| &pair.metrics).map(|metric| metric.comparison.queries);
        text + &format!(
            "{}, {} resamples, seed {}",
            counted(queries.max().unwrap_or(0), "query", "queries"),
            thousands(self.compare.resampling.resamples),
            self.compare.resampling.seed
        )
    }

    fn row(&self, compared: &Compared, pair: &ComparedPair, name: &str) -> Option<Vec<String>> {
        let is_one = compared.pairs.len() == 1;
        let metric = pair.metrics.iter().find(|metric| metric.name == name)?;
        let r = &metric.comparison;
        let mut row = vec![name.to_owned()];
        if is_one {
            row.extend([percent(r.a), percent(r.b)]);
        } else {
            row.push(format!("{} - {}", letter(pair.b), letter(pair.a)));
        }
        row.push(format!("{:+.2}", 100.0 * r.difference));
        if !self.no_intervals {
            row.push(format!("{:+.2} – {:+.2}", 100.0 * r.interval.low, 100.0 * r.interval.high));
        }
        row.push(p_value(r.p_value));
        row.extend((!is_one).then(|| p_value(metric.p_corrected)));
        row.push(format!("{:+.3}", r.effect_size));
        row.extend([r.wins, r.ties, r.losses].map(thousands));
        Some(row)
    }

    /// Every file's score in every metric, the best with a star, and how many queries each wins against each.
    fn scores(&self, compared: &Compared) -> String {
        let letters: Vec<String> = (0..compared.files.len()).map(letter).collect();
        let mut header = vec!["metric"];
        header.extend(letters.iter().map(String::as_str));
        let row = |(place, name): (usize, &String)| {
            let values: Vec<Option<f64>> = compared.files.iter().map(|file| file.means[place]).collect();
            let best = values.iter().flatten().copied().fold(f64::MIN, f64::max);
            let cell = |value: &Option<f64>| match value {
                Some(value) if *value == best => format!("{} *", percent(*value)),
                Some(value) => format!("{}  ", percent(*value)),
                None => "–".to_owned(),
            };
            std::iter::once(name.clone()).chain(values.iter().map(cell)).collect()
        };
        let scores: Vec<Vec<String>> = compared.metrics.iter().enumerate().map(row).collect();
        let first = compared.metrics.first().map_or("", String::as_str);
        let wins: Vec<Vec<String>> = (0..compared.files.len())
            .map(|row| {
                let cell = |column: usize| won(compared, row, column, first).map_or_else(|| "·".to_owned(), thousands);
                std::iter::once(letter(row)).chain((0..compared.files.len()).map(cell)).collect()
            })
            .collect();
        let title = format!("wins in {first} of");
        let mut over = vec![title.as_str()];
        let against: Vec<String> = letters.iter().map(|letter| format!("over {letter}")).collect();
        over.extend(against.iter().map(String::as_str));
        format!("{}\n\n{}", output::table(&header, &scores), output::table(&over, &wins))
    }

    /// The table of a paper: a row per file, a column per metric.
    fn sheet(&self, compared: &Compared) -> Sheet {
        let rows = compared.files.iter().enumerate().map(|(place, file)| {
            let cell = |(column, name): (usize, &String)| {
                let value = file.means[column]?;
                let best = compared.files.iter().filter_map(|file| file.means[column]).fold(f64::MIN, f64::max);
                let mark: String = if self.marks { beaten(compared, place, name) } else { String::new() };
                Some(SheetCell {
                    text: percent(value),
                    is_bold: self.marks && value == best,
                    mark: mark.to_lowercase(),
                    ..SheetCell::default()
                })
            };
            let name = file.path.file_stem().unwrap_or(file.path.as_str()).to_owned();
            let name = if self.marks { format!("{} {name}", letter(place).to_lowercase()) } else { name };
            SheetRow { name, cells: compared.metrics.iter().enumerate().map(cell).collect(), rule: false }
        });
        let queries = counted(compared.queries, "query", "queries");
        let mut notes = Vec::new();
        if self.marks {
            notes.push(
                "Superscripts: files that it beats, paired randomisation test, p < 0.05 after Holm's correction."
                    .to_owned(),
            );
        }
        let missing = compared.files.iter().filter(|file| file.missing > 0);
        notes.extend(missing.map(|file| {
            let name = file.path.file_stem().unwrap_or(file.path.as_str());
            format!("{name} leaves {} of {queries} unanswered.", thousands(file.missing))
        }));
        Sheet {
            title: format!("Percent of {queries}."),
            corner: "method".to_owned(),
            columns: compared.metrics.clone(),
            rows: rows.collect(),
            notes,
        }
    }
}

/// A, B, C … and F27 where the alphabet ends.
fn letter(place: usize) -> String {
    match u8::try_from(place) {
        Ok(n @ 0..26) => char::from(b'A' + n).to_string(),
        _ => format!("F{}", place + 1),
    }
}

/// Queries on which file `row` scores higher than file `column`.
fn won(compared: &Compared, row: usize, column: usize, metric: &str) -> Option<usize> {
    let (a, b) = (row.min(column), row.max(column));
    let pair = compared.pairs.iter().find(|pair| (pair.a, pair.b) == (a, b))?;
    let found = &pair.metrics.iter().find(|found| found.name == metric)?.comparison;
    Some(if row == b { found.wins } else { found.losses })
}

/// The letters of the files that `place` beats significantly.
fn beaten(compared: &Compared, place: usize, metric: &str) -> String {
    let mut letters = String::new();
    for pair in compared.pairs.iter().filter(|pair| pair.a == place || pair.b == place) {
        let Some(found) = pair.metrics.iter().find(|found| found.name == metric) else { continue };
        let lead = if pair.b == place { found.comparison.difference } else { -found.comparison.difference };
        if lead > 0.0 && found.p_corrected < SIGNIFICANT {
            letters += &letter(if pair.b == place { pair.a } else { pair.b });
        }
    }
    letters
}
