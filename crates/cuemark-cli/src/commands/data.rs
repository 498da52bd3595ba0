//! `cuemark data`: read, check, describe and convert the public datasets.

use camino::Utf8PathBuf;
use clap::Subcommand;
use cuemark::{CheckFile, CheckedFile, DatasetFolder, TruthReading};
use cuemark_core::text::counted;
use cuemark_data::check::{CheckReport, CheckVerdict, Figure, check};
use cuemark_data::stats::{Range, SplitStats, Stats, stats};
use cuemark_data::{DATASETS, Dataset, DatasetCard, TruthFormat};
use cuemark_formats::{WholeFile, write_truth};
use cuemark_protocols::splits::audit;
use serde_json::{Value, json};

use crate::input::Force;
use crate::output::{self, Outcome, Print, thousands};
use crate::progress::watched;

/// Read, check, describe and convert the public datasets.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Every dataset that can be read.
    List {
        /// List the layouts that `--truth-format` takes instead.
        #[arg(long)]
        formats: bool,
        #[command(flatten)]
        print: Print,
    },
    /// Prove a dataset's folder against the published counts, or look at a truth file of your own; exit 1 when something is
    /// wrong.
    Check {
        #[command(flatten)]
        check: CheckArgs,
        #[command(flatten)]
        print: Print,
    },
    /// The table that benchmark papers print about a dataset.
    Stats {
        #[command(flatten)]
        dataset: DatasetArgs,
        /// Draw where moments lie and how long they are, as SVG files in this folder.
        #[arg(long, value_name = "DIR")]
        plots: Option<Utf8PathBuf>,
        #[command(flatten)]
        print: Print,
        #[command(flatten)]
        force: Force,
    },
    /// Write a dataset as our JSON lines, or as Parquet when the name ends in `.parquet`.
    Convert {
        #[command(flatten)]
        dataset: DatasetArgs,
        /// One split, by its name or its file. Default: all of them, joined
        #[arg(long, value_name = "SPLIT|FILE")]
        file: Option<String>,
        /// Where to write it: `FILE.jsonl`, `.jsonl.gz`, `.jsonl.zst` or `.parquet`.
        #[arg(long, value_name = "FILE")]
        out: Utf8PathBuf,
        #[command(flatten)]
        force: Force,
    },
}

/// A dataset in a folder, or a file.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The dataset, as `cuemark data list` names it, or a truth file of your own.
    #[arg(value_name = "NAME|FILE")]
    name: String,
    /// The dataset's own folder (for TACoS the variant's).
    #[arg(long, value_name = "DIR")]
    root: Option<Utf8PathBuf>,
    #[command(flatten)]
    reading: TruthReading,
}

/// A dataset in a folder, its name given first.
#[derive(Debug, clap::Args)]
pub(crate) struct DatasetArgs {
    /// The dataset, as `cuemark data list` names it.
    name: String,
    #[command(flatten)]
    folder: DatasetFolder,
}

impl DatasetArgs {
    fn load(&self) -> anyhow::Result<Dataset> {
        watched("reading", |progress| self.folder.load(&self.name, progress))
    }
}

pub(crate) fn run(action: Action) -> anyhow::Result<Outcome> {
    match action {
        Action::List { formats: false, print } => list(print),
        Action::List { formats: true, print } => list_formats(print),
        Action::Check { check: CheckArgs { name, root: None, reading }, print } => check_file(&name, reading, print),
        Action::Check { check: CheckArgs { name, root: Some(root), reading }, print } => {
            let TruthReading { durations, bad_rows, .. } = reading;
            let folder = DatasetFolder { root, durations, bad_rows };
            let report = check(&watched("reading", |progress| folder.load(&name, progress))?);
            let outcome = print.result(&report, || check_text(&report))?;
            Ok(if report.is_ok() { outcome } else { outcome.with_problems() })
        }
        Action::Stats { dataset, plots, print, force } => {
            let dataset = dataset.load()?;
            note_dataset(&dataset);
            let figures = stats(&dataset, &cuemark_text::verbs);
            if let Some(folder) = plots {
                for path in audit::draw(&dataset.splits, &folder, force.overwrite())? {
                    output::say(&format!("drew {path}"));
                }
            }
            print.result(&figures, || stats_text(&figures))
        }
        Action::Convert { dataset, file, out, force } => convert(&dataset.load()?, file.as_deref(), &out, &force),
    }
}

/// A look at a file of one's own.
fn check_file(name: &str, reading: TruthReading, print: Print) -> anyhow::Result<Outcome> {
    let path = Utf8PathBuf::from(name);
    if !path.exists() && path.as_str() != cuemark_formats::source::STDIN {
        // A dataset without its folder, or a slip in its name.
        let card = cuemark_data::find(name)?;
        let problem = format!("`{}` is a dataset: say where it lies", card.name);
        return Err(cuemark::Error::setting("root", problem).into());
    }
    let found = watched("reading", |progress| CheckFile { path, reading }.run(progress))?;
    let outcome = print.result(&found, || checked_text(&found))?;
    Ok(if found.is_ok() { outcome } else { outcome.with_problems() })
}

fn checked_text(found: &CheckedFile) -> String {
    let mut text = format!("{}: {}\n", found.path, found.layout.as_deref().unwrap_or("of no known layout"));
    if let Some(problem) = &found.problem {
        text += &format!("WRONG: {problem}\n");
    } else {
        let (queries, videos, moments) = (
            counted(found.queries, "query", "queries"),
            counted(found.videos, "video", "videos"),
            counted(found.moments, "moment", "moments"),
        );
        text += &format!("{queries} about {videos}, {moments}\n");
    }
    for note in &found.notes {
        text += &format!("look at: {note}\n");
    }
    if found.is_ok() { text + "nothing wrong was found" } else { text }
}

fn list(print: Print) -> anyhow::Result<Outcome> {
    let all = DATASETS.iter().map(|card| {
        let files =
            card.files.iter().map(|file| json!({ "split": file.split, "path": file.path, "layout": file.layout.name }));
        json!({
            "name": card.name, "title": card.title, "origin": card.origin, "licence": card.licence,
            "files": files.collect::<Vec<Value>>(),
        })
    });
    print.result(&json!({ "datasets": all.collect::<Vec<Value>>() }), || {
        let row = |card: &&DatasetCard| {
            let splits: Vec<&str> = card.files.iter().map(|file| file.split).collect();
            vec![card.name.to_owned(), card.title.to_owned(), splits.join(" "), card.origin.to_owned()]
        };
        let rows: Vec<Vec<String>> = DATASETS.iter().map(row).collect();
        output::text_table(&["dataset", "what it is", "splits", "from"], &rows)
    })
}

fn list_formats(print: Print) -> anyhow::Result<Outcome> {
    let formats = || TruthFormat::ALL.iter();
    let all: Vec<Value> = formats().map(|format| json!({ "name": format.name(), "about": format.about() })).collect();
    print.result(&json!({ "formats": all }), || {
        let rows: Vec<Vec<String>> =
            formats().map(|format| vec![format.name().to_owned(), format.about().to_owned()]).collect();
        output::text_table(&["layout", "what it looks like"], &rows)
    })
}

fn check_text(report: &CheckReport) -> String {
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    for split in report.splits.iter().chain(&report.overall) {
        if split.figures.is_empty() {
            rows.push(vec![
                split.split.clone(),
                split.file.clone(),
                String::new(),
                String::new(),
                String::new(),
                word(split.verdict),
            ]);
        }
        for (position, figure) in split.figures.iter().enumerate() {
            let (name, file) =
                if position == 0 { (split.split.clone(), split.file.clone()) } else { Default::default() };
            rows.push(figure_row(name, file, figure));
        }
        let faults: Vec<String> =
            split.faults.iter().map(|fault| format!("{} {}", thousands(fault.rows), fault.fault)).collect();
        if !faults.is_empty() {
            notes.push(format!(
                "{}: {}; {} changed, {} left out",
                split.split,
                faults.join(", "),
                split.changed,
                split.dropped
            ));
        }
    }
    for side in &report.sides {
        let name = side.files.join(" ");
        if side.figures.is_empty() {
            rows.push(vec![
                String::new(),
                name.clone(),
                String::new(),
                String::new(),
                String::new(),
                word(side.verdict),
            ]);
        }
        for (position, figure) in side.figures.iter().enumerate() {
            rows.push(figure_row(String::new(), if position == 0 { name.clone() } else { String::new() }, figure));
        }
        notes.extend(side.problem.clone());
    }
    let table = output::text_table(&["split", "file", "figure", "published", "found", "verdict"], &rows);
    let verdict = if report.is_ok() { "everything that is there agrees" } else { "WRONG: a figure does not agree" };
    let notes: String = notes.iter().map(|note| format!("rows: {note}\n")).collect();
    format!("{} in {}\n\n{table}\n\n{notes}{verdict}", report.dataset, report.root)
}

fn figure_row(name: String, file: String, figure: &Figure) -> Vec<String> {
    let found = figure.found.map_or_else(|| "–".to_owned(), number);
    vec![name, file, figure.name.clone(), number(figure.published), found, word(figure.verdict)]
}

fn word(verdict: CheckVerdict) -> String {
    match verdict {
        CheckVerdict::Ok => "ok",
        CheckVerdict::Wrong => "WRONG",
        CheckVerdict::Absent => "absent",
        CheckVerdict::Unpublished => "nothing published",
    }
    .to_owned()
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { thousands(value as usize) } else { format!("{value:.2}") }
}

fn stats_text(figures: &Stats) -> String {
    let all: Vec<&SplitStats> = figures.splits.iter().chain(std::iter::once(&figures.overall)).collect();
    let names: Vec<String> = all.iter().map(|split| split.split.clone()).collect();
    let mut header = vec![figures.dataset.as_str()];
    header.extend(names.iter().map(String::as_str));
    let row = |title: &str, value: &dyn Fn(&SplitStats) -> String| {
        std::iter::once(title.to_owned()).chain(all.iter().map(|split| value(split))).collect::<Vec<String>>()
    };
    let range = |range: Option<Range>| {
        range.map_or_else(|| "–".to_owned(), |r| format!("{:.2} ({:.2} – {:.2})", r.mean, r.min, r.max))
    };
    let rows = [
        row("videos", &|s| thousands(s.videos)),
        row("moments", &|s| thousands(s.moments)),
        row("queries", &|s| thousands(s.queries)),
        row("query-moment pairs", &|s| thousands(s.pairs)),
        row("moments per video", &|s| format!("{:.2}", s.annotations_per_video)),
        row("vocabulary", &|s| thousands(s.vocabulary)),
        row("verbs", &|s| thousands(s.verbs)),
        row("video hours", &|s| format!("{:.2}", s.video_hours)),
        row("moment hours", &|s| format!("{:.2}", s.moment_hours)),
        row("moment / video", &|s| s.moment_to_video.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.3}"))),
        row("right moments per query", &|s| format!("{:.2}", s.relevant_moments_per_query)),
        row("video, s", &|s| range(s.video_seconds)),
        row("moment, s", &|s| range(s.moment_seconds)),
        row("query, words", &|s| range(s.query_words)),
    ];
    format!("{}\n\nlengths: mean (least – greatest)", output::table(&header, &rows))
}

fn convert(dataset: &Dataset, file: Option<&str>, out: &Utf8PathBuf, force: &Force) -> anyhow::Result<Outcome> {
    note_dataset(dataset);
    let split = match file {
        Some(name) => dataset.split(split_of_file(dataset, name))?.into_owned(),
        None => dataset.all(),
    };
    if out.extension() == Some("parquet") {
        cuemark_data::parquet::write_parquet(&split, out, force.overwrite())?;
    } else {
        let mut file = WholeFile::create(out, force.overwrite())?;
        write_truth(&split.queries, &mut file)?;
        file.finish()?;
    }
    Ok(Outcome::ok(format!(
        "wrote {} with {} to {out}",
        counted(split.queries.len(), "query", "queries"),
        counted(split.pairs(), "moment", "moments")
    )))
}

/// The split that lies in the file called `name`; `name` itself when no file is called so.
fn split_of_file<'a>(dataset: &'a Dataset, name: &'a str) -> &'a str {
    let called_so =
        |file: &str| file == name || file.strip_suffix(".gz").or_else(|| file.strip_suffix(".zst")) == Some(name);
    let found = dataset.splits.iter().find(|split| called_so(&split.file));
    found.map_or(name, |split| split.name.as_str())
}

/// Says on standard error what is not there and what is wrong with the rows.
fn note_dataset(dataset: &Dataset) {
    cuemark::dataset_notes(dataset).iter().for_each(|note| output::say(note));
}
