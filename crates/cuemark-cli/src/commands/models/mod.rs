//! `cuemark models`: what the zoo holds, and whether it agrees with its references.

mod list;

use anyhow::Context as _;
use camino::Utf8PathBuf;
use clap::Subcommand;
use cuemark::{ExportModel, ExportedModel, LoadCheckpoint, Progress};
use cuemark_bench::{leaderboard, on_full_world, on_world};
use cuemark_models::check::{Fixture, ParityReport, TensorCheck, check};
use cuemark_models::registry::{self, Reference};
use cuemark_models::{FullSize, ModelCard};
use serde_json::{Value, json};

use crate::output::{self, Outcome, Print};

/// Published methods: what there is, their settings, their agreement with the references.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Every model: family, tasks, supervision, size, agreement with its fixtures, result on the built-in world.
    List(list::Args),
    /// One model: paper, settings with their defaults, published configurations.
    Show {
        /// Its name.
        name: String,
        /// List the parameters of its first published configuration: names as in the authors' code, and shapes.
        #[arg(long)]
        parameters: bool,
        #[command(flatten)]
        print: Print,
    },
    /// Hold a published checkpoint to a model, name by name; exit code 1 unless all of them fit.
    Load {
        #[command(flatten)]
        request: LoadCheckpoint,
        #[command(flatten)]
        print: Print,
    },
    /// Write the weights of a trained run for other programs, under the names of the authors' code.
    Export {
        #[command(flatten)]
        request: ExportModel,
        #[command(flatten)]
        print: Print,
    },
    /// Compare a model with its reference, tensor by tensor.
    Check {
        /// Its name.
        name: String,
        /// A fixture: `NAME.safetensors`, with `NAME.json` beside it.
        #[arg(long, value_name = "FILE")]
        fixture: Utf8PathBuf,
        /// What to compute on: cpu, cuda, cuda:N.
        #[arg(long, value_name = "DEVICE", default_value = "cpu")]
        device: String,
        #[command(flatten)]
        print: Print,
    },
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::List(args) => list::run(args),
        Action::Show { name, parameters: true, print } => show_parameters(registry::find(name)?, *print),
        Action::Show { name, parameters: false, print } => show(registry::find(name)?, *print),
        Action::Load { request, print } => load(request, *print),
        Action::Export { request, print } => {
            let written = request.run(&Progress::new())?;
            let ExportedModel { path, tensors, numbers } = &written;
            print.result(&written, || format!("wrote {path}: {tensors} tensors, {numbers} numbers"))
        }
        Action::Check { name, fixture, device, print } => compare(name, fixture, device, *print),
    }
}

fn summary(card: &ModelCard) -> anyhow::Result<Value> {
    let size = card.full_sizes.first();
    let parameters = size.map(|size| card.parameters(size)).transpose()?;
    let bi_encoder = size.map(|size| card.is_bi_encoder(size)).transpose()?;
    Ok(json!({
        "name": card.name,
        "title": card.title,
        "paper": card.paper,
        "family": card.family,
        "tasks": card.tasks,
        "supervision": card.supervision,
        "bi_encoder": bi_encoder,
        "parameters": parameters,
        "reference": card.reference(),
        "idea": card.idea,
    }))
}

fn show(card: &ModelCard, print: Print) -> anyhow::Result<Outcome> {
    let size = |size: &FullSize| -> anyhow::Result<Value> {
        let settings = card.settings(&size.settings.parse()?)?;
        Ok(json!({
            "dataset": size.dataset,
            "visual": size.visual,
            "words": size.words,
            "parameters": card.parameters(size)?,
            "published_millions": size.millions,
            "settings": settings,
        }))
    };
    let results = leaderboard::carried()?;
    let world = on_world(&results).remove(card.name);
    let full_world = on_full_world(&results).remove(card.name);
    let mut told = summary(card)?;
    told["world"] = serde_json::to_value(&world)?;
    told["full_world"] = serde_json::to_value(&full_world)?;
    told["configurations"] = card.full_sizes.iter().map(size).collect::<anyhow::Result<Vec<_>>>()?.into();
    print.result(&told, || {
        let mut text = format!("{} ({})\n{}\n{}\n", card.title, card.name, card.paper, card.idea);
        if card.reference() == Reference::Rederived {
            text += "reference: written anew from its description, the authors' code was not run\n";
        }
        if let Some(world) = &world {
            text += &format!("on the built-in world, test-iid: {world}\n");
        }
        if let Some(world) = &full_world {
            text += &format!("on the world of 20,000 films, its best variant, test-iid: {world}\n");
        }
        for (size, told) in card.full_sizes.iter().zip(told["configurations"].as_array().into_iter().flatten()) {
            let millions = told["parameters"].as_f64().unwrap_or(0.0) / 1e6;
            let published = size.millions.map_or_else(String::new, |millions| format!(", published {millions} M"));
            text +=
                &format!("\n{}: {millions:.2} M parameters{published}, features {} wide\n", size.dataset, size.visual);
            let settings = serde_json::from_value::<toml::Table>(told["settings"].clone()).unwrap_or_default();
            text += &toml::to_string(&settings)
                .unwrap_or_default()
                .lines()
                .map(|line| format!("  {line}\n"))
                .collect::<String>();
        }
        text
    })
}

fn show_parameters(card: &ModelCard, print: Print) -> anyhow::Result<Outcome> {
    let size = card.full_sizes.first().with_context(|| format!("`{}` has no published configuration", card.name))?;
    let shapes = card.shapes(size)?;
    let told = json!({ "name": card.name, "configuration": size.dataset, "parameters": shapes });
    print.result(&told, || {
        let rows: Vec<_> = shapes.iter().map(|(name, shape)| vec![name.clone(), by(shape)]).collect();
        output::text_table(&["parameter", "shape"], &rows)
    })
}

fn load(request: &LoadCheckpoint, print: Print) -> anyhow::Result<Outcome> {
    let loaded = request.run(&Progress::new())?;
    let outcome = print.result(&loaded, || loaded.to_string())?;
    Ok(if loaded.whole { outcome } else { outcome.with_problems() })
}

/// `512 × 256`, or `one number`.
fn by(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "one number".to_owned();
    }
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ")
}

fn compare(name: &str, fixture: &Utf8PathBuf, device: &str, print: Print) -> anyhow::Result<Outcome> {
    let card = registry::find(name)?;
    let device = cuemark_tensor::device(device)?;
    let fixture = Fixture::open(fixture, &device)?;
    if fixture.model() != card.name {
        return Err(fixture.fault("model", format!("is `{}`, not `{name}`", fixture.model())).into());
    }
    let report = check(card, &fixture, &device)?;
    let outcome = print.result(&report, || table(&report))?;
    Ok(if report.passed { outcome } else { outcome.with_problems() })
}

fn table(report: &ParityReport) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1e}"));
    let row = |tensor: &TensorCheck| {
        let verdict =
            if tensor.ok { "ok".to_owned() } else { tensor.problem.clone().unwrap_or_else(|| "OFF".to_owned()) };
        vec![tensor.name.clone(), number(tensor.max_abs), number(tensor.max_rel), verdict]
    };
    let rows: Vec<_> = report.tensors.iter().map(row).collect();
    let wrong = report.tensors.iter().filter(|tensor| !tensor.ok).count();
    let verdict = if wrong == 0 {
        format!("all {} tensors agree", rows.len())
    } else {
        format!("{wrong} of {} tensors are off", rows.len())
    };
    format!("{}\n{verdict}", output::text_table(&["tensor", "largest deviation", "relative", ""], &rows))
}
