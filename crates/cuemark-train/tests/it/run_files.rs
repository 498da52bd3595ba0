//! Every run file that we ship reads, builds, keeps to the schema, and says where its values come from.

#[path = "../../../cuemark-models/examples/zoo_step/draw.rs"]
mod draw;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise as _, Dialect, Rng};
use cuemark_models::{BertSize, Given, ModelCard, Text, TokenVectors, registry};
use cuemark_tensor::{DType, Device, Params, Pass, Tensor};
use cuemark_train::{RunFile, TextTraining};

/// The methods of the benchmark paper, in the order of its table, and its datasets.
const METHODS: [&str; 17] = [
    "tgn",
    "cmin",
    "csmgan",
    "ia-net",
    "2d-tan",
    "ranet",
    "mgpn",
    "trm",
    "lgi",
    "plrn",
    "drn",
    "vslnet",
    "tmlga",
    "lvtr",
    "reloclnet",
    "cnm",
    "cpl",
];
const DATASETS: [&str; 7] = ["charades-sta", "activitynet-captions", "tacos", "didemo", "youcook2", "msr-vtt", "tvr"];

/// The methods that papers compare on splits whose locations change, and those that they compare on pools of many videos.
const ON_CHANGED: [&str; 10] = ["ctrl", "acrn", "ablr", "scdm", "2d-tan", "drn", "tsp-prl", "wssl", "tcn-dcm", "mdd"];
const CHANGED: [&str; 2] = ["charades-cd", "activitynet-cd"];
const ON_POOLS: [&str; 4] = ["cet", "bet", "mmn", "rmmn"];
const POOLS: [&str; 3] = ["mvmr-charades", "mvmr-activitynet", "mvmr-tacos"];

/// Widths of the features that run files name, by what their names hold; published ones of the features card.
const WIDTHS: [(&str, usize); 11] = [
    ("resnet-i3d", 3072),
    ("resnet-slowfast", 4352),
    ("slowfast-clip", 2816),
    ("c3d-fc6", 4096),
    ("activitynet-c3d", 500),
    ("c3d", 4096),
    ("vgg", 4096),
    ("i3d", 1024),
    ("s3d", 512),
    ("clip", 512),
    ("slowfast", 2304),
];

/// Tokens of the uncased BERT family.
const TOKENS: usize = 30_522;

/// What the features that a run names give its model.
fn given(run: &RunFile) -> Given {
    let features = run.data.features.as_ref().map_or("world", |path| path.file_name().unwrap());
    let visual = WIDTHS.iter().find(|(name, _)| features.contains(name)).map_or(500, |(_, width)| *width);
    let queries = run.data.query_features.as_ref().map(|path| path.as_str());
    let words = match (&run.data.text, queries, &run.data.queries, &run.data.words) {
        (Some(_), ..) => 768,
        (None, Some(path), ..) => {
            if path.contains("large") {
                1024
            } else {
                768
            }
        }
        (None, None, Some(_), _) => 512,
        (None, None, None, Some(_)) => 300,
        (None, None, None, None) => run.data.word_width,
    };
    let verbs = Tensor::zeros((80, words), DType::F32, &Device::Cpu).unwrap();
    let tokens = match run.data.text.as_ref().map(|text| text.training) {
        None => TokenVectors::Own,
        Some(TextTraining::Frozen) => TokenVectors::Given,
        Some(TextTraining::FineTuned) => TokenVectors::Published(BertSize::default()),
    };
    let subtitle = if run.data.subtitles.is_some() { 768 } else { 0 };
    let vocabulary = if run.data.text.is_some() { TOKENS } else { 8000 };
    Given { visual, subtitle, audio: 0, words, vocabulary, tokens, verbs: Some(verbs) }
}

fn run_files() -> Vec<Utf8PathBuf> {
    let runs = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../runs"));
    let folders = runs.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).filter(|path| path.is_dir());
    let mut files: Vec<Utf8PathBuf> = folders
        .flat_map(|folder| folder.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).collect::<Vec<_>>())
        .collect();
    files.sort();
    files
}

#[test]
fn every_run_file_reads_and_its_model_builds() {
    for path in run_files() {
        let run = RunFile::read(&path, &[])
            .unwrap_or_else(|error| panic!("{error} ({:?})", error.advice_in(Dialect::Terminal)));
        assert_eq!(path.parent().unwrap().file_name(), Some(run.model.as_str()), "{path}");
        let card = registry::find(&run.model).unwrap();
        let params = Params::counted();
        card.build(&run.settings, &given(&run), params.builder()).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(params.count() > 0, "{path}");
    }
}

/// One batch of made-up features through a network: a finite loss, and spans in order of their scores. The vocabulary is small, so
/// that tables of words are, and an encoder of text has one layer; nothing else is but what `settings` say.
fn answers_a_batch(path: &Utf8Path, settings: impl Fn(&ModelCard, &RunFile) -> toml::Table) {
    let run = RunFile::read(path, &[]).unwrap();
    let own = Given { vocabulary: 1000, ..given(&run) };
    let small = TokenVectors::Published(BertSize { layers: 1, ..BertSize::default() });
    let own = match &own.tokens {
        TokenVectors::Published(_) => Given { tokens: small, ..own },
        _ => own,
    };
    let params = Params::seeded(1, &Device::Cpu);
    let card = registry::find(&run.model).unwrap();
    let model =
        card.build(&settings(card, &run), &own, params.builder()).unwrap_or_else(|error| panic!("{path}: {error}"));
    let input = model.input();
    assert!(input.text == Text::Tokens || !matches!(own.tokens, TokenVectors::Published(_)), "{path}");
    let batch = draw::Draw { input: &input, given: &own, size: 2, per_video: 1 }.batch(1).unwrap();
    let loss = model.loss(&batch, &Pass::training(0, 1, Rng::new(1))).unwrap_or_else(|error| panic!("{path}: {error}"));
    let loss = loss.total.to_scalar::<f32>().unwrap();
    assert!(loss.is_finite(), "{path}: {loss}");
    let ranked = model.propose(&batch).unwrap();
    assert!(ranked.len() == 2 && ranked.iter().all(|list| !list.is_empty()), "{path}");
    for list in ranked {
        assert!(list.is_sorted_by(|a, b| a.score >= b.score), "{path}");
    }
}

/// What makes a network of a run another one.
fn network(run: &RunFile) -> String {
    let own = given(run);
    format!("{} {:?} {} {} {} {:?}", run.model, run.settings, own.visual, own.subtitle, own.words, own.tokens)
}

fn parameters(run: &RunFile) -> usize {
    let params = Params::counted();
    registry::find(&run.model).unwrap().build(&run.settings, &given(run), params.builder()).unwrap();
    params.count()
}

/// The run files of all cells, one for each network: the same settings and widths make the same one.
fn networks() -> Vec<Utf8PathBuf> {
    let (mut seen, mut paths) = (Vec::new(), Vec::new());
    for (method, dataset) in all_cells() {
        let path = runs().join(method).join(format!("{dataset}.toml"));
        let network = network(&RunFile::read(&path, &[]).unwrap());
        if !seen.contains(&network) {
            seen.push(network);
            paths.push(path);
        }
    }
    paths
}

/// Settings that are the width of something inside a network.
const INNER_WIDTHS: [&str; 21] = [
    "align_hidden",
    "attention",
    "branch",
    "captioner_words",
    "channels",
    "dim",
    "ffn",
    "first",
    "head",
    "hidden",
    "joint",
    "localiser_words",
    "lstm",
    "middle",
    "position",
    "project",
    "pyramid",
    "query",
    "query_hidden",
    "regression_hidden",
    "width",
];
/// What they are divided by, so that hundreds of millions of numbers are a few.
const NARROWER: i64 = 8;

/// All settings of a run, its inner widths divided.
fn narrow(card: &ModelCard, run: &RunFile) -> toml::Table {
    let mut settings = card.settings(&run.settings).unwrap();
    divide(&mut settings);
    settings
}

/// Still a multiple of eight, since heads and groups divide widths.
fn narrower(width: i64) -> i64 {
    (width / NARROWER).max(1).cast_unsigned().next_multiple_of(8).cast_signed()
}

fn divide(table: &mut toml::Table) {
    for (name, value) in table.iter_mut() {
        match value {
            // Lengths in clips are no widths.
            toml::Value::Table(inner) if name != "anchors" => divide(inner),
            toml::Value::Integer(width) if INNER_WIDTHS.contains(&name.as_str()) => *width = narrower(*width),
            toml::Value::Array(widths) if INNER_WIDTHS.contains(&name.as_str()) => {
                for width in widths.iter_mut() {
                    *width = narrower(width.as_integer().unwrap()).into();
                }
            }
            _ => {}
        }
    }
}

/// Every network of every cell, with all its layers, clips, heads and losses, narrower inside: whole ones are in the ignored test, and
/// all are built without weights above.
#[test]
fn the_network_of_every_cell_answers_a_batch_of_made_up_features_narrower_inside() {
    let paths = networks();
    assert!(paths.len() >= 100, "{}", paths.len());
    for path in paths {
        answers_a_batch(&path, narrow);
    }
}

#[test]
#[ignore = "networks of full size: minutes"]
fn the_network_of_every_cell_answers_a_batch_of_made_up_features() {
    for path in networks() {
        answers_a_batch(&path, |_, run| run.settings.clone());
    }
}

fn runs() -> &'static Utf8Path {
    Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../runs"))
}

fn cells() -> impl Iterator<Item = (&'static str, &'static str)> {
    METHODS.iter().flat_map(|method| DATASETS.iter().map(|dataset| (*method, *dataset)))
}

/// Those of the benchmark paper, then those on changed splits, then those on pools.
fn all_cells() -> impl Iterator<Item = (&'static str, &'static str)> {
    let changed = ON_CHANGED.iter().flat_map(|method| CHANGED.iter().map(|dataset| (*method, *dataset)));
    let pools = ON_POOLS.iter().flat_map(|method| POOLS.iter().map(|dataset| (*method, *dataset)));
    cells().chain(changed).chain(pools)
}

/// The values of a run file: how many, how many of them are ours, and the first that names no source.
///
/// A comment `# Source: …` below a table's header stands for the whole table; one behind a value for that value; `# ours` says that
/// the value is a choice of ours.
fn sources(text: &str) -> (usize, usize, Option<String>) {
    let (mut values, mut ours, mut unnamed) = (0, 0, None);
    let mut of_table = false;
    for line in text.lines().map(str::trim) {
        match line {
            _ if line.starts_with('[') => of_table = false,
            _ if line.starts_with("# Source: ") => of_table = true,
            _ if line.is_empty() || line.starts_with('#') => {}
            _ => {
                let comment = line.split_once(" # ").map(|(_, comment)| comment.trim());
                values += 1;
                ours += usize::from(comment.is_some_and(|comment| comment.starts_with("ours")));
                if !of_table && comment.is_none() {
                    unnamed.get_or_insert_with(|| line.to_owned());
                }
            }
        }
    }
    (values, ours, unnamed)
}

#[test]
fn every_value_of_a_published_dataset_names_its_source() {
    // Those of the world are ours altogether, and say so in their first lines.
    let published = run_files().into_iter().filter(|path| !path.file_name().unwrap().starts_with("world"));
    for path in published {
        let (values, _, unnamed) = sources(&std::fs::read_to_string(&path).unwrap());
        assert!(values > 5 && unnamed.is_none(), "{path}: {unnamed:?}");
    }
    assert_eq!(sources("[a]\nx = 1\n").2.as_deref(), Some("x = 1"));
    assert_eq!(sources("[a]\n# Source: card\nx = 1\n[b]\ny = 2 # ours: why\n"), (2, 1, None));
}

/// The dataset that the benchmark paper counts parameters on.
const COUNTED_ON: &str = "activitynet-captions";

/// Why the benchmark paper's count is another than ours.
const OTHER_COUNTS: [(&str, &str); 4] = [
    ("drn", "hold the whole GloVe table of 2.2 million words and a part that is not used"),
    ("lgi", "hold the table of its training words (3.3 M), which lies beside the network here"),
    ("ranet", "are those of the convolution stack of its ablation"),
    ("vslnet", "hold a frozen GloVe table"),
];

/// Millions of parameters that the benchmark paper prints (its table 6), by method.
fn counted_by_molef() -> BTreeMap<String, f64> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../cuemark-bench/published/molef-2024.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let count = |line: &str| match line.split(',').collect::<Vec<_>>()[..] {
        ["6", COUNTED_ON, _, _, method, _, _, "params", value, "millions", ..] => {
            Some((method.to_owned(), value.parse().unwrap()))
        }
        _ => None,
    };
    text.lines().filter_map(count).collect()
}

fn millions(method: &str, dataset: &str) -> f64 {
    parameters(&RunFile::read(&runs().join(method).join(format!("{dataset}.toml")), &[]).unwrap()) as f64 / 1e6
}

/// One sentence for every count of the benchmark paper, which rounds to whole millions, that is not ours.
fn other_counts() -> String {
    let published = counted_by_molef();
    assert_eq!(published.len(), 9);
    let mut sentences = Vec::new();
    for (method, printed) in published {
        let ours = millions(&method, COUNTED_ON);
        let why = OTHER_COUNTS.iter().find(|(name, _)| *name == method);
        assert_eq!((ours - printed).abs() > 1.0, why.is_some(), "{method}: {printed} printed, {ours} counted");
        if let Some((_, why)) = why {
            sentences.push(format!("the {printed} M of {method} ({ours:.1} M here) {why}"));
        }
    }
    format!("Where the two differ by more than rounding: {}.\n", sentences.join("; "))
}

/// A table of methods and datasets: parameters, and how many values are ours; `published` adds a column of printed counts. How many
/// cells have a run file.
fn table_of(methods: &[&str], datasets: &[&str], published: Option<&BTreeMap<String, f64>>) -> (String, usize) {
    let more = if published.is_some() { format!(" MoLEF's count, {COUNTED_ON} |") } else { String::new() };
    let rules = "---|".repeat(datasets.len() + usize::from(published.is_some()));
    let mut table = format!("| method | {} |{more}\n|---|{rules}\n", datasets.join(" | "));
    let mut found = 0;
    for method in methods {
        write!(table, "| {method} |").unwrap();
        for dataset in datasets {
            let path = runs().join(method).join(format!("{dataset}.toml"));
            let Ok(text) = std::fs::read_to_string(&path) else {
                table.push_str(" not yet |");
                continue;
            };
            found += 1;
            let (values, ours, _) = sources(&text);
            write!(table, " {:.1} M, {ours} of {values} ours |", millions(method, dataset)).unwrap();
        }
        if let Some(published) = published {
            let printed = published.get(*method).map_or_else(|| "-".to_owned(), |printed| format!("{printed} M"));
            write!(table, " {printed} |").unwrap();
        }
        table.push('\n');
    }
    (table, found)
}

/// Holds what stands between two marks of `docs/models.md` to `wanted`; `CUEMARK_WRITE_DOCS=1` writes it.
fn hold(mark: &str, wanted: &str) {
    let path = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md"));
    let text = std::fs::read_to_string(path).unwrap();
    let (begin, end) = (format!("<!-- {mark}: begin -->\n"), format!("<!-- {mark}: end -->"));
    let (before, rest) = text.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    let now = format!("{before}{begin}{wanted}{end}{after}");
    if std::env::var_os("CUEMARK_WRITE_DOCS").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    assert_eq!(text, now, "run this test once with CUEMARK_WRITE_DOCS=1");
}

/// The tables of `docs/models.md`, as the run files are.
#[test]
fn the_tables_of_methods_and_datasets_are_as_the_run_files_are() {
    let (table, found) = table_of(&METHODS, &DATASETS, Some(&counted_by_molef()));
    let (changed, on_changed) = table_of(&ON_CHANGED, &CHANGED, None);
    let (pools, on_pools) = table_of(&ON_POOLS, &POOLS, None);
    assert_eq!((found, on_changed, on_pools), (119, 20, 12));
    let cells = METHODS.len() * DATASETS.len();
    hold("cells", &format!("{table}\n{found} of {cells} cells have a run file. {}", other_counts()));
    hold("changed", &changed);
    hold("pools", &pools);
}

#[test]
fn every_model_has_a_run_file_for_the_world() {
    let files = run_files();
    for card in registry::MODELS {
        assert!(files.iter().any(|path| path.ends_with(format!("{}/world.toml", card.name))), "{} has none", card.name);
    }
}

#[test]
fn run_files_keep_to_the_schema_and_what_the_reader_refuses_the_schema_refuses() {
    let schema =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/run.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let json = |path: &Utf8Path| {
        serde_json::to_value(std::fs::read_to_string(path).unwrap().parse::<toml::Table>().unwrap()).unwrap()
    };
    for path in run_files() {
        let errors: Vec<String> = schema.iter_errors(&json(&path)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{path}: {errors:?}");
    }
    for (table, key) in [("data", "feature"), ("train", "epoch"), ("eval", "metrics")] {
        let mut run = json(&run_files()[0]);
        run[table][key] = 1.into();
        assert!(!schema.is_valid(&run), "{table}.{key}");
    }
}
