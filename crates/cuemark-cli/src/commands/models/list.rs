//! `cuemark models list`: the zoo as one table.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_bench::{OnWorld, leaderboard, on_world};
use cuemark_core::{Progress, Stopped};
use cuemark_models::check::{Fixture, check};
use cuemark_models::registry::MODELS;
use cuemark_tensor::Device;
use serde_json::Value;

use super::summary;
use crate::output::{self, Outcome, Print};
use crate::progress::watched;

/// The environment variable that says where published files lie; fixtures are in its `parity` folder.
const SHARED: &str = "CUEMARK_SHARED";

/// What `cuemark models list` looks at.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder of fixtures to check every model by. Default: `parity` in the folder that `CUEMARK_SHARED` names.
    #[arg(long, value_name = "DIR")]
    fixtures: Option<Utf8PathBuf>,
    /// A folder of `runs-*.json`, as `cuemark bench` writes them, for what models reach on the built-in world. Default: what
    /// came with the program.
    #[arg(long, value_name = "DIR")]
    results: Option<Utf8PathBuf>,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let shared = || std::env::var(SHARED).ok().map(|shared| Utf8PathBuf::from(shared).join("parity"));
    let fixtures = match args.fixtures.clone().or_else(|| shared().filter(|folder| folder.is_dir())) {
        Some(folder) => Some(check_all(&folder)?),
        None => None,
    };
    let files = match &args.results {
        Some(folder) => leaderboard::read_folder(folder)?,
        None => leaderboard::carried()?,
    };
    let world = on_world(&files);
    let mut cards = Vec::new();
    for card in MODELS {
        let mut told = summary(card)?;
        told["fixture"] = match &fixtures {
            Some(checked) => match checked.get(card.name) {
                Some(true) => "passes".into(),
                Some(false) => "FAILS".into(),
                None => "no fixture".into(),
            },
            None => Value::Null,
        };
        told["world"] = serde_json::to_value(world.get(card.name))?;
        cards.push(told);
    }
    args.print.result(&cards, || {
        let rows: Vec<Vec<String>> = cards.iter().map(|card| row(card, world.get(name(card)))).collect();
        let header = ["model", "family", "tasks", "supervision", "size", "fixture", "on the world, test-iid"];
        let hint = match fixtures {
            Some(_) => "",
            None => "\nfixtures were not checked: pass `--fixtures DIR`",
        };
        format!("{}{hint}", output::text_table(&header, &rows))
    })
}

fn name(card: &Value) -> &str {
    card["name"].as_str().unwrap_or_default()
}

fn row(card: &Value, world: Option<&OnWorld>) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let tasks = card["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    let millions = card["parameters"].as_f64().map_or_else(|| "-".to_owned(), |count| format!("{:.1} M", count / 1e6));
    vec![
        text(&card["name"]),
        text(&card["family"]),
        tasks.iter().map(text).collect::<Vec<_>>().join(", "),
        text(&card["supervision"]),
        millions,
        fixture(card),
        world.map_or_else(|| "-".to_owned(), ToString::to_string),
    ]
}

/// Whether it agrees with its fixtures, and whether those are not of the authors' code.
fn fixture(card: &Value) -> String {
    let verdict = card["fixture"].as_str().unwrap_or("-");
    let rederived = card["reference"] == "rederived";
    if rederived { format!("{verdict} (re-derived)") } else { verdict.to_owned() }
}

/// For every model with a fixture in `folder`, whether it agrees with all of its.
fn check_all(folder: &Utf8Path) -> anyhow::Result<BTreeMap<&'static str, bool>> {
    let mut files: Vec<Utf8PathBuf> = Vec::new();
    for entry in folder.read_dir_utf8().map_err(|error| anyhow::anyhow!("cannot read `{folder}`: {error}"))? {
        let path = entry?.into_path();
        if path.extension() == Some("safetensors") {
            files.push(path);
        }
    }
    files.sort();
    watched("checking fixtures", |progress| check_files(&files, progress))
}

fn check_files(files: &[Utf8PathBuf], progress: &Progress) -> Result<BTreeMap<&'static str, bool>, Stopped> {
    progress.announce(files.len());
    let mut checked: BTreeMap<&'static str, bool> = BTreeMap::new();
    for file in files {
        // Some fixtures are of metrics and baselines.
        let model = model_of(file);
        if let Some(card) = MODELS.iter().find(|card| model.as_deref() == Some(card.name)) {
            let fixture = Fixture::open(file, &Device::Cpu);
            let passed = fixture.and_then(|fixture| check(card, &fixture, &Device::Cpu)).is_ok_and(|told| told.passed);
            *checked.entry(card.name).or_insert(true) &= passed;
        }
        progress.advance(1)?;
    }
    Ok(checked)
}

/// Which model a fixture is of, by the file beside it.
fn model_of(fixture: &Utf8Path) -> Option<String> {
    let text = cuemark_formats::Source::new(fixture.with_extension("json")).text().ok()?;
    let told: Value = serde_json::from_str(&text).ok()?;
    Some(told.get("model")?.as_str()?.to_owned())
}
