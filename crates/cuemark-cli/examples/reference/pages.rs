//! The pages, each from the cards of one crate.

use std::error::Error;
use std::fmt::Write as _;

use cuemark_bench::leaderboard::carried;
use cuemark_bench::{Figure, Key, OnWorld, Published, on_full_world, on_world};
use cuemark_core::text::thousands;
use cuemark_data::{DATASETS, DatasetCard, Expected, QueryIds};
use cuemark_encoders::visual::ENCODERS;
use cuemark_encoders::weights::WEIGHTS;
use cuemark_metrics::{METRICS, Overrides, Plan, Preset};
use cuemark_models::registry::MODELS;
use cuemark_models::{ModelCard, Supervision, Task};
use cuemark_protocols::baselines::{BASELINES, Needs};
use serde::Serialize;

type Made = Result<String, Box<dyn Error>>;

/// A page below `docs/reference/`.
pub(crate) struct Page {
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

/// Says at the top of a page where it comes from.
const HEAD: &str = "<!-- Written by `cargo xtask site --write` from the code; not to be edited. -->\n";

/// Methods whose fixture was not made by running the authors' code but re-derived from a description or a published graph:
/// agreeing with it is a check of consistency, not of the authors' numbers.
pub(crate) const REDERIVED: [&str; 8] = ["tgn", "mdd", "ctrl", "acrn", "ablr", "scdm", "cet", "bet"];

/// The source of every reader and of the protocols, whose first comments say what is odd and what they do.
macro_rules! sources {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../", $folder, "/", $name, ".rs")))),+]
    };
}

const READERS: &[(&str, &str)] = sources!("cuemark-data/src/readers":
    "activitynet_captions", "activitynet_cd", "charades_cd", "charades_sta", "cuemark_jsonl", "didemo",
    "human_reannotations", "msr_vtt", "mvmr", "qvhighlights", "tacos", "tacos_2dtan", "tacos_raw", "tvr", "tvr_ranking",
    "tvsum", "world", "youcook2", "youtube_highlights");

const PROTOCOLS: &[(&str, &str)] = sources!("cuemark-protocols/src":
    "splits/standard", "splits/ood", "splits/centre", "splits/composition", "pools/mod", "ranked/mod", "human_ceiling");

/// Every page.
pub(crate) fn all() -> Result<Vec<Page>, Box<dyn Error>> {
    Ok(vec![
        Page { name: "metrics.md", text: metrics()? },
        Page { name: "presets.md", text: presets()? },
        Page { name: "datasets.md", text: datasets()? },
        Page { name: "methods.md", text: methods()? },
        Page { name: "encoders.md", text: encoders()? },
        Page { name: "protocols.md", text: protocols()? },
    ])
}

fn metrics() -> Made {
    let mut page = format!("{HEAD}# Metrics\n\n");
    page += "`n` and `k` are numbers of answers, `m` is an overlap. `cuemark eval --metrics` takes a name or any of the names that \
             others use. [Metrics and presets](../evaluation.md) says how they are computed.\n\n";
    page += "| metric | for example | what it measures | also called |\n| --- | --- | --- | --- |\n";
    for card in METRICS {
        let also: Vec<String> = card.aliases.iter().map(|name| code(name)).collect();
        writeln!(
            page,
            "| {} | {} | {} | {} |",
            code(card.name),
            code(card.example),
            cell(card.about),
            also.join(", ")
        )?;
    }
    Ok(page)
}

fn presets() -> Made {
    let mut page = format!("{HEAD}# Presets\n\n");
    page += "A preset is the plan that gives the numbers of one published evaluator: `cuemark eval --preset NAME`.\n";
    for preset in Preset::ALL {
        writeln!(page, "\n## {}\n\n{}.\n", preset.name(), sentence(preset.about()))?;
        let headline: Vec<String> = preset.headline().iter().map(|metric| code(&metric.to_string())).collect();
        writeln!(page, "In tables: {}; {} metrics in all.\n", headline.join(", "), preset.metrics().len())?;
        for line in Plan::preset(preset, None, Overrides::default()).conventions() {
            writeln!(page, "- {}", cell(&line))?;
        }
    }
    Ok(page)
}

fn datasets() -> Made {
    let mut page = format!("{HEAD}# Datasets\n\n");
    page += "No published dataset comes with cuemark: each is read from the files that its authors publish; `world` is made by `cuemark world make`. `cuemark data check NAME --root \
             DIR` holds a folder to the figures below. Licences are those that the origin states, for annotations; films have \
             their own.\n\n";
    page += "| dataset | what it is | origin | licence |\n| --- | --- | --- | --- |\n";
    for card in DATASETS {
        let link = format!("[{}](#{})", card.name, card.name);
        writeln!(page, "| {link} | {} | {} | {} |", cell(card.title), code(card.origin), cell(card.licence))?;
    }
    for card in DATASETS {
        writeln!(page, "\n## {}\n\n{}", card.name, about_reader(card)?)?;
        let ids = match card.ids {
            QueryIds::Published => "stated by the files",
            QueryIds::Running => "the running number of the pair in its file, from 0",
        };
        writeln!(page, "\nQuery ids: {ids}.\n\n| split | file | published |\n| --- | --- | --- |")?;
        for file in card.files {
            writeln!(page, "| {} | {} | {} |", file.split, code(file.path), figures(&file.expected))?;
        }
        if !card.overall.is_nothing() {
            writeln!(page, "| all | | {} |", figures(&card.overall))?;
        }
    }
    Ok(page)
}

/// What stands at the top of the reader's file.
fn about_reader(card: &DatasetCard) -> Made {
    let file = card.name.replace('-', "_");
    let (_, source) = READERS.iter().find(|(name, _)| *name == file).ok_or_else(|| format!("no reader `{file}`"))?;
    Ok(opening(source))
}

/// Published figures of a file in words.
fn figures(expected: &Expected) -> String {
    let Expected { videos, queries, pairs, video_seconds, moment_seconds, words } = expected;
    let count = |number: &Option<usize>, what: &str| number.map(|number| format!("{} {what}", thousands(number)));
    let mean = |number: &Option<f64>, what: &str| number.map(|number| format!("{number} {what}"));
    let told = [
        count(videos, "videos"),
        count(queries, "queries"),
        count(pairs, "pairs"),
        mean(video_seconds, "s a video"),
        mean(moment_seconds, "s a moment"),
        mean(words, "words a query"),
    ];
    told.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn methods() -> Made {
    let published = Published::load()?;
    let files = carried()?;
    let (world, full) = (on_world(&files), on_full_world(&files));
    let mut page = format!("{HEAD}# Methods\n\n");
    writeln!(
        page,
        "{} methods. Each is held tensor by tensor to a fixture ([how](../models.md#checked-against-the-references)): made by \
         running the authors' code, or, for the {} marked *re-derived*, from a description or a published graph, which checks that \
         ours is consistent with it and says nothing about the authors' numbers. Figures of papers are what the benchmark papers \
         in `crates/cuemark-bench/published/` print; figures of our own are from the [synthetic world](../findings.md) and \
         cannot be compared with them.\n",
        MODELS.len(),
        REDERIVED.len()
    )?;
    page += "| method | family | learns from | asked for | parameters | reference | R@1,IoU=0.5 in papers: Charades-STA | \
             ActivityNet Captions | TACoS | on the world | of 20,000 films |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for card in MODELS {
        page += &method_row(card, &published, [world.get(card.name), full.get(card.name)])?;
    }
    for card in MODELS {
        writeln!(page, "\n## {}\n\n**{}**: {}.\n\n{}.", card.name, card.title, sentence(card.idea), card.paper)?;
        let rows: Vec<String> = card.full_sizes.iter().map(|size| full_size(card, size)).collect::<Result<_, _>>()?;
        if !rows.is_empty() {
            page += "\n| configuration of the paper | clip features | word vectors | parameters |\n| --- | --- | --- | --- |\n";
            page += &rows.concat();
        }
    }
    Ok(page)
}

fn method_row(card: &ModelCard, published: &Published, worlds: [Option<&OnWorld>; 2]) -> Made {
    let supervision = match card.supervision {
        Supervision::Full => "spans",
        Supervision::Weak => "pairs",
        Supervision::None => "nothing",
    };
    let tasks: Vec<&str> = card
        .tasks
        .iter()
        .map(|task| match task {
            Task::SingleVideo => "one video",
            Task::Corpus => "many videos",
            Task::Ranked => "ranked lists",
            Task::Highlights => "highlights",
        })
        .collect();
    let size = card.full_sizes.first().map(|size| card.parameters(size)).transpose()?;
    let size = size.map_or_else(String::new, |count| format!("{:.1} M", count as f64 / 1e6));
    let reference = if REDERIVED.contains(&card.name) { "*re-derived*" } else { "authors' code" };
    let printed =
        ["charades-sta", "activitynet-captions", "tacos"].map(|dataset| printed(published, card.name, dataset));
    Ok(format!(
        "| [{}](#{}) | {} | {supervision} | {} | {size} | {reference} | {} | {} |\n",
        card.name,
        card.name,
        word(&card.family)?,
        tasks.join(", "),
        printed.join(" | "),
        worlds.map(|world| world.map_or_else(String::new, ToString::to_string)).join(" | ")
    ))
}

/// What papers print for a method on the standard split, with the paper.
fn printed(published: &Published, model: &str, dataset: &str) -> String {
    let key = Key { model: Some(model), dataset: Some(dataset), metric: Some("R@1,IoU=0.5"), ..Key::default() };
    let plain =
        |figure: &&&Figure| figure.protocol == "standard" && figure.variant.is_empty() && figure.doubt.is_none();
    let found = published.find(&key);
    let told = found.iter().filter(plain).filter_map(|figure| Some((figure.printed.as_deref()?, figure.paper.key)));
    let mut told: Vec<String> = told.map(|(value, paper)| format!("{value} ({paper})")).collect();
    told.dedup();
    told.join(", ")
}

fn full_size(card: &ModelCard, size: &cuemark_models::FullSize) -> Made {
    let count = card.parameters(size)? as f64 / 1e6;
    let stated = size.millions.map_or_else(String::new, |millions| format!(" (its card says {millions} M)"));
    Ok(format!("| {} | {} | {} | {count:.1} M{stated} |\n", size.dataset, size.visual, size.words))
}

fn encoders() -> Made {
    let mut page = format!("{HEAD}# Encoders and their weights\n\n");
    page += "[Encoders and weights](../encoders.md) says how they are used and what they were held to. Nothing is downloaded unless \
             you ask: `cuemark weights pull NAME`.\n\n## What looks at films\n\n| encoder | rows | weights |\n| --- | --- | --- |\n";
    for card in ENCODERS {
        let weights = card.weights.map_or_else(|| "a file of yours".to_owned(), code);
        writeln!(page, "| {} | {} | {weights} |", code(card.name), cell(card.about))?;
    }
    page += "\n## Weights\n\n| name | what for | licence | from |\n| --- | --- | --- | --- |\n";
    for card in WEIGHTS {
        let from = code(&card.source.describe());
        writeln!(page, "| {} | {} | {} | {from} |", code(card.name), cell(card.about), cell(card.licence))?;
    }
    Ok(page)
}

fn protocols() -> Made {
    let mut page = format!("{HEAD}# Protocols\n\n");
    page +=
        "Seeded recipes that turn a dataset into splits, pools and graded sets; [how to use them](../protocols.md).\n";
    for (name, source) in PROTOCOLS {
        writeln!(page, "\n## {}\n\n{}", name.trim_end_matches("/mod").replace(['/', '_'], " "), opening(source))?;
    }
    page +=
        "\n## Guesses that never see a video\n\n| name | what it answers | has to be shown |\n| --- | --- | --- |\n";
    for card in BASELINES {
        let needs = match card.needs {
            Needs::Nothing => "durations only",
            Needs::TrainingMoments => "where moments of the training split lie",
        };
        writeln!(page, "| {} | {} | {needs} |", code(card.name), cell(card.summary))?;
    }
    Ok(page)
}

/// The comment that opens a file, without links that only the library's documentation resolves.
fn opening(source: &str) -> String {
    let lines =
        source.lines().map_while(|line| line.strip_prefix("//!")).map(|line| line.strip_prefix(' ').unwrap_or(line));
    let mut text = lines.collect::<Vec<_>>().join("\n").replace("[`", "`").replace("`]", "`").trim().to_owned();
    for kind in ["(fn@", "(mod@"] {
        while let Some(at) = text.find(kind) {
            let end = text[at..].find(')').map_or(text.len(), |end| at + end + 1);
            text.replace_range(at..end, "");
        }
    }
    text
}

/// A name as code; bars would end the cell of a table.
fn code(name: &str) -> String {
    format!("`{}`", name.replace('|', "\\|"))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// With a capital letter, and without the full stop that some cards have.
fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The word that commands use for a choice.
fn word(choice: &impl Serialize) -> Made {
    Ok(serde_json::to_value(choice)?.as_str().unwrap_or_default().to_owned())
}
