//! From a matrix file to its cells.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_train::{DataConfig, Override, RunFile};
use serde::Serialize;
use toml::{Table, Value};

use super::cell::{Answerer, Asked, Cell};
use super::file::{DatasetEntry, MatrixFile, ModelEntry, ORACLE, Protocol, TestEntry, WORLD};
use super::ready;
use crate::Result;
use crate::report::{Among, Footage, QueryText};

/// What a matrix comes to on this machine.
#[derive(Debug, Clone, Default)]
pub struct Expanded {
    /// Data that has to be made before, each once.
    pub made: Vec<Made>,
    /// The cells, in the order of the file: datasets, then models, features and seeds.
    pub cells: Vec<Cell>,
    /// What is left out because this machine lacks something, and what it lacks.
    pub absent: Vec<Absent>,
}

/// Data that a matrix makes for itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Made {
    /// A world.
    World {
        /// Its folder.
        folder: Utf8PathBuf,
        /// Its knobs.
        options: cuemark_world::WorldOptions,
    },
    /// Splits of a dataset.
    Splits {
        /// Their folder.
        folder: Utf8PathBuf,
        /// The dataset's own name.
        dataset: String,
        /// Its folder.
        root: Utf8PathBuf,
        /// Who cuts.
        protocol: Protocol,
    },
    /// Training queries with their likest moments.
    PseudoMoments {
        /// The file.
        file: Utf8PathBuf,
        /// Where the training split is found.
        data: Box<DataConfig>,
        /// Moments per query.
        moments: usize,
    },
}

/// Something that is left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// A dataset, or a model on a dataset.
    pub what: String,
    /// What this machine lacks.
    pub why: String,
}

/// Lists the cells of a matrix whose folder is `out`. Nothing is made yet.
///
/// # Errors
/// When a run file is broken or lacks something that the matrix does not say either.
pub fn expand(matrix: &MatrixFile, out: &Utf8Path) -> Result<Expanded> {
    let mut expanded = Expanded::default();
    for entry in &matrix.dataset {
        let Some(place) = place(entry, out, &mut expanded) else { continue };
        baselines(matrix, entry, &place, &mut expanded)?;
        for model in matrix.model.iter().filter(|model| model.learns_from(&entry.label())) {
            models(matrix, entry, &place, model, out, &mut expanded)?;
        }
    }
    // Two-stage cells without the cells they stand on are left out with them.
    let names: Vec<String> = expanded.cells.iter().map(|cell| cell.name.clone()).collect();
    let (kept, lost): (Vec<Cell>, Vec<Cell>) =
        expanded.cells.into_iter().partition(|cell| cell.needs.iter().all(|need| names.contains(need)));
    expanded.cells = kept;
    expanded.absent.extend(lost.into_iter().map(|cell| Absent {
        what: cell.name,
        why: format!("needs {}, which this matrix does not have", cell.needs.join(" and ")),
    }));
    Ok(expanded)
}

/// Where the data of a dataset lies.
struct Place {
    root: Utf8PathBuf,
    splits: Option<Utf8PathBuf>,
}

/// Finds a dataset or plans to make it; notes it as absent when neither can be.
fn place(entry: &DatasetEntry, out: &Utf8Path, expanded: &mut Expanded) -> Option<Place> {
    let root = match &entry.root {
        Some(root) if root.is_dir() => root.clone(),
        Some(root) => {
            expanded.absent.push(Absent { what: entry.label(), why: format!("`{root}` is not there") });
            return None;
        }
        None => {
            let options = entry.world.unwrap_or_default().options();
            let folder = out.join("data").join(world_name(&options));
            push_once(&mut expanded.made, Made::World { folder: folder.clone(), options });
            folder
        }
    };
    let splits = (entry.protocol != Protocol::Own).then(|| {
        let stem = root.file_name().unwrap_or(&entry.name);
        let folder = out.join("data").join(format!("{stem}-{}", entry.protocol.name()));
        let made = Made::Splits {
            folder: folder.clone(),
            dataset: entry.name.clone(),
            root: root.clone(),
            protocol: entry.protocol,
        };
        push_once(&mut expanded.made, made);
        folder
    });
    Some(Place { root, splits })
}

fn push_once<T: PartialEq>(list: &mut Vec<T>, one: T) {
    if !list.contains(&one) {
        list.push(one);
    }
}

/// A folder's name that tells worlds apart: the knobs that are not as usual.
fn world_name(options: &cuemark_world::WorldOptions) -> String {
    let usual = cuemark_world::WorldOptions::default();
    let mut name = format!("world-{}-bias{}-seed{}", options.videos, options.bias, options.seed);
    for (knob, value, usual) in [
        ("length", options.length, usual.length),
        ("events", options.events as f64, usual.events as f64),
        ("overlong", options.overlong, usual.overlong),
        ("vocabulary", options.vocabulary as f64, usual.vocabulary as f64),
        ("noise", options.noise, usual.noise),
    ] {
        if value != usual {
            name += &format!("-{knob}{value}");
        }
    }
    name
}

/// What results call the dataset: published figures go by its own name, worlds of several biases by their labels.
fn name_of(entry: &DatasetEntry) -> String {
    if entry.name == WORLD { entry.label.clone().unwrap_or_else(|| WORLD.to_owned()) } else { entry.name.clone() }
}

/// The tests that are asked of a model on a dataset; files that are not there are noted as absent.
fn tests(
    matrix: &MatrixFile,
    entry: &DatasetEntry,
    of_model: Option<&[String]>,
    expanded: &mut Expanded,
) -> Vec<Asked> {
    let wanted = |test: &&TestEntry| {
        let among = |names: Option<&[String]>| names.is_none_or(|names| names.contains(&test.label()));
        among(entry.tests.as_deref()) && among(of_model)
    };
    let asked = |test: &TestEntry| Asked {
        name: test.label(),
        split: test.split.clone(),
        among: test.among,
        text: test.text,
        footage: test.footage,
        answers: test.answers,
        metrics: if test.metrics.is_empty() && test.preset.is_none() {
            matrix.metrics.clone()
        } else {
            test.metrics.clone()
        },
        preset: test.preset.clone(),
    };
    let mut here = |test: &&TestEntry| {
        let is_here = !test.split.contains('/') || Utf8Path::new(&test.split).is_file();
        if !is_here {
            let why = format!("`{}` is not there", test.split);
            push_once(&mut expanded.absent, Absent { what: format!("{} on {}", test.label(), entry.label()), why });
        }
        is_here
    };
    matrix.test.iter().filter(wanted).filter(|test| here(test)).map(asked).collect()
}

fn baselines(matrix: &MatrixFile, entry: &DatasetEntry, place: &Place, expanded: &mut Expanded) -> Result<()> {
    // Guesses read neither words nor pictures and search one video: other tests would only repeat the plain one.
    let plain =
        |test: &Asked| (test.among, test.text, test.footage) == (Among::Own, QueryText::Original, Footage::Seen);
    let tests: Vec<Asked> = tests(matrix, entry, None, expanded).into_iter().filter(plain).collect();
    for baseline in &matrix.baselines {
        let oracle = baseline == ORACLE;
        if tests.is_empty() || (oracle && (entry.name != WORLD || place.splits.is_some())) {
            continue;
        }
        let label = entry.label();
        let data: Table = Table::from_iter([
            ("dataset".to_owned(), Value::String(entry.name.clone())),
            ("root".to_owned(), Value::String(place.root.to_string())),
        ]);
        expanded.cells.push(Cell {
            name: format!("{label}.{baseline}"),
            dataset: label,
            dataset_name: name_of(entry),
            protocol: entry.protocol,
            model: baseline.clone(),
            variant: String::new(),
            features: String::new(),
            seed: 0,
            by: if oracle { Answerer::Oracle } else { Answerer::Baseline },
            data: data_config(data, &entry.set)?,
            splits: place.splits.clone(),
            tests: tests.clone(),
            needs: Vec::new(),
        });
    }
    Ok(())
}

/// `[data]` with what the matrix sets about it.
fn data_config(mut data: Table, set: &Table) -> Result<DataConfig> {
    for (key, value) in set {
        if let Some(key) = key.strip_prefix("data.") {
            data.insert(key.to_owned(), value.clone());
        }
    }
    // A run about nothing but its data, so that there is one reader of `[data]` and its errors.
    let whole = Table::from_iter([
        ("model".to_owned(), Value::Table(Table::from_iter([("name".to_owned(), Value::String("none".to_owned()))]))),
        ("data".to_owned(), Value::Table(with_features(data))),
        (
            "train".to_owned(),
            Value::Table(Table::from_iter([
                ("epochs".to_owned(), Value::Integer(1)),
                ("rate".to_owned(), Value::Float(1.0)),
            ])),
        ),
    ]);
    Ok(RunFile::from_table("matrix", whole, &[])?.data)
}

/// Whoever looks at no features need not say where they are.
fn with_features(mut data: Table) -> Table {
    data.entry("features").or_insert_with(|| Value::String("none".to_owned()));
    data
}

fn models(
    matrix: &MatrixFile,
    entry: &DatasetEntry,
    place: &Place,
    model: &ModelEntry,
    out: &Utf8Path,
    expanded: &mut Expanded,
) -> Result<()> {
    let label = entry.label();
    let names: Vec<String> = match &model.run {
        Some(run) => vec![run.replace("{dataset}", &entry.name)],
        None if entry.runs.is_empty() => vec![format!("{}/{}", model.name, entry.name)],
        None => entry.runs.iter().map(|dataset| format!("{}/{dataset}", model.name)).collect(),
    };
    let mut found = None;
    for name in &names {
        found = match found {
            None => ready::run_text(name)?,
            found => found,
        };
    }
    let Some((path, text)) = found else {
        let why = format!("there is no run file `{}`", names.join("` or `"));
        expanded.absent.push(Absent { what: format!("{} on {label}", model.label()), why });
        return Ok(());
    };
    let table: Table = text.parse().map_err(|error: toml::de::Error| crate::BenchError::Matrix {
        place: path.clone(),
        problem: error.message().to_owned(),
        hint: None,
    })?;
    let as_in_the_run_file = BTreeMap::from([(String::new(), Utf8PathBuf::new())]);
    let features = if entry.features.is_empty() { &as_in_the_run_file } else { &entry.features };
    let tests = tests(matrix, entry, model.tests.as_deref(), expanded);
    for (features_label, store) in features {
        for seed in model.seeds.as_ref().unwrap_or(&matrix.seeds) {
            let mut overrides = vec![
                over("data.dataset", &Value::String(entry.name.clone())),
                over("data.root", &Value::String(place.root.to_string())),
            ];
            if let Some(splits) = &place.splits {
                for split in ["train", "val"] {
                    let file = splits.join(format!("{split}.jsonl"));
                    overrides.push(over(&format!("data.{split}"), &Value::String(file.into_string())));
                }
            }
            if !store.as_str().is_empty() {
                overrides.push(over("data.features", &Value::String(store.to_string())));
            }
            let sets = entry.set.iter().chain(&model.set);
            overrides.extend(sets.map(|(key, value)| over(key, value)));
            overrides.push(over("train.seed", &Value::Integer(i64::try_from(*seed).unwrap_or(i64::MAX))));
            let mut run = RunFile::from_table(&path, table.clone(), &overrides)?;
            if let Some(lacks) = lacks(entry, place, &run) {
                push_once(&mut expanded.absent, Absent { what: format!("{} on {label}", model.label()), why: lacks });
                continue;
            }
            let features_label = if features_label.is_empty() { usual_features(&run) } else { features_label.clone() };
            let name = |model: &str| format!("{label}.{model}.{features_label}.seed{seed}");
            if let Some(moments) = model.pseudo_moments {
                let stem = format!("{label}-{features_label}-likest{moments}.jsonl");
                let file = out.join("data").join(stem);
                push_once(
                    &mut expanded.made,
                    Made::PseudoMoments { file: file.clone(), data: Box::new(run.data.clone()), moments },
                );
                run.data.train = file.into_string();
            }
            let (by, needs) = match &model.first_stage {
                None => (Answerer::Model { run: run.to_toml()?, pseudo_moments: model.pseudo_moments }, Vec::new()),
                Some(stage) => {
                    let needs = vec![name(&stage.model), name(&model.name)];
                    let folder = |name: &String| out.join("cells").join(name);
                    let (first, second) = (folder(&needs[0]), folder(&needs[1]));
                    (Answerer::TwoStage { first, second, videos: stage.videos }, needs)
                }
            };
            let mut tests = tests.clone();
            if model.first_stage.is_some() {
                tests.retain(|test| test.among == Among::Pool);
            }
            expanded.cells.push(Cell {
                name: name(&model.label()),
                dataset: label.clone(),
                dataset_name: name_of(entry),
                protocol: entry.protocol,
                model: model.name.clone(),
                variant: model.variant.clone(),
                features: features_label,
                seed: *seed,
                by,
                data: run.data.clone(),
                splits: place.splits.clone(),
                tests,
                needs,
            });
        }
    }
    Ok(())
}

fn over(key: &str, value: &Value) -> Override {
    Override { key: key.to_owned(), value: value.to_string(), origin: "the matrix".to_owned() }
}

/// What a run on a real dataset needs and this machine does not have.
fn lacks(entry: &DatasetEntry, place: &Place, run: &RunFile) -> Option<String> {
    if entry.name == WORLD && !place.root.is_dir() {
        return None; // it will be made
    }
    let features = run.data.features();
    let words = run.data.words.clone();
    let missing = std::iter::once(features).chain(words).find(|path| !path.exists())?;
    Some(format!("`{missing}` is not there"))
}

/// A word for the store that a run file names: `features-motion` is `motion`.
fn usual_features(run: &RunFile) -> String {
    let features = run.data.features();
    let stem = features.file_stem().unwrap_or("features");
    stem.strip_prefix("features-").unwrap_or(stem).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Expanded {
        expand(&MatrixFile::parse("m.toml", text).unwrap(), Utf8Path::new("out")).unwrap()
    }

    const WIDE: &str = "
name = 'wide'
about = 'a test'
seeds = [1, 2]
baselines = ['bias-mode', 'oracle']
[[dataset]]
name = 'world'
features = { weak = 'features-weak', motion = 'features-motion' }
[[dataset]]
name = 'world'
protocol = 'cd'
tests = ['test-ood']
[[dataset]]
name = 'tacos'
root = 'no/such/folder'
[[model]]
name = '2d-tan'
set = { train.epochs = 2 }
[[model]]
name = 'mmn'
datasets = ['world']
seeds = [7]
[[test]]
split = 'test-iid'
[[test]]
split = 'test-ood'
[[test]]
split = 'test-ood'
text = 'mask-verb'
";

    #[test]
    fn cells_are_datasets_by_models_by_features_by_seeds() {
        let expanded = expanded(WIDE);
        let names: Vec<&str> = expanded.cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "world.bias-mode",
                "world.oracle",
                "world.2d-tan.motion.seed1",
                "world.2d-tan.motion.seed2",
                "world.2d-tan.weak.seed1",
                "world.2d-tan.weak.seed2",
                "world.mmn.motion.seed7",
                "world.mmn.weak.seed7",
                "world-cd.bias-mode",
                "world-cd.2d-tan.motion.seed1",
                "world-cd.2d-tan.motion.seed2",
            ]
        );
        assert_eq!(expanded.made.len(), 2, "one world for both, and its splits: {:?}", expanded.made);
    }

    #[test]
    fn tests_and_settings_reach_the_cells() {
        let expanded = expanded(WIDE);
        let cell = |name: &str| expanded.cells.iter().find(|cell| cell.name == name).unwrap();
        let asked = |name: &str| cell(name).tests.iter().map(|test| test.name.clone()).collect::<Vec<_>>();
        assert_eq!(asked("world.2d-tan.weak.seed1"), ["test-iid", "test-ood", "test-ood.mask-verb"]);
        assert_eq!(asked("world.bias-mode"), ["test-iid", "test-ood"], "a guess reads no words");
        assert_eq!(asked("world-cd.2d-tan.motion.seed1"), ["test-ood"]);
        let Answerer::Model { run, .. } = &cell("world-cd.2d-tan.motion.seed2").by else { panic!("it is trained") };
        let run = RunFile::from_table("run", run.parse().unwrap(), &[]).unwrap();
        assert_eq!((run.train.seed, run.train.stages[0].epochs), (2, 2));
        assert_eq!(run.data.train, "out/data/world-2000-bias0.8-seed0-cd/train.jsonl");
    }

    #[test]
    fn what_is_not_here_is_left_out_and_said() {
        let absent = expanded(WIDE).absent;
        assert_eq!(absent, [Absent { what: "tacos".to_owned(), why: "`no/such/folder` is not there".to_owned() }]);
    }

    #[test]
    fn a_second_stage_waits_for_both_models() {
        let text = "
name = 'pools'
about = 'a test'
[[dataset]]
name = 'world'
[[model]]
name = 'ms-sl'
[[model]]
name = 'mmn'
[[model]]
name = 'mmn'
variant = 'ms-sl-top5'
first_stage = { model = 'ms-sl', videos = 5 }
[[test]]
split = 'test-iid'
[[test]]
split = 'pools'
among = 'pool'
";
        let expanded = expanded(text);
        let cell = expanded.cells.last().unwrap();
        assert_eq!(cell.needs, ["world.ms-sl.motion.seed0", "world.mmn.motion.seed0"]);
        assert_eq!(cell.tests.len(), 1, "only pools have videos to choose from");
    }

    #[test]
    fn training_is_not_undone_by_another_test() {
        let mut cell = expanded(WIDE).cells[2].clone();
        let (before, asked) = (cell.training_print(), cell.test_print(&cell.tests[0]));
        cell.tests[0].metrics = vec!["mIoU".to_owned()];
        assert_eq!(cell.training_print(), before);
        assert_ne!(cell.test_print(&cell.tests[0]), asked);
        cell.seed = 9;
        assert_ne!(cell.training_print(), before);
    }
}
