//! From a matrix file to its cells.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_features::FeatureVariant;
use cuemark_train::{Among, DataConfig, RunFile};
use cuemark_world::WorldOptions;
use serde::Serialize;

use super::cell::{Cell, CellTest, Method};
use super::command::Program;
use super::corpus_guess::CorpusGuess;
use super::file::{DatasetEntry, MatrixFile, ModelEntry, ORACLE, Protocol, TestEntry};
use super::memory::parse_bytes;
use super::place::{Place, first_run_file, usual_features};
use crate::Result;
use crate::report::QueryText;

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
        options: WorldOptions,
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
    /// One corpus of a world for ranked retrieval.
    Ranked {
        /// Its folder.
        folder: Utf8PathBuf,
        /// The world.
        root: Utf8PathBuf,
    },
    /// Training queries with their likest moments.
    PseudoMoments {
        /// The file.
        file: Utf8PathBuf,
        /// Where the training split is found.
        data: Box<DataConfig>,
        /// The split whose sentences describe the moments that may be given; `None`: the training split.
        captions: Option<Utf8PathBuf>,
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
    let mut expansion = Expansion { matrix, out, expanded: Expanded::default() };
    for entry in &matrix.dataset {
        let Some(place) = expansion.place(entry) else { continue };
        expansion.baselines(&place)?;
        for model in matrix.model.iter().filter(|model| model.learns_from(&place.label)) {
            match &model.command {
                Some(command) => expansion.command(&place, model, command)?,
                None => expansion.model(&place, model)?,
            }
        }
    }
    let mut expanded = expansion.expanded;
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

/// A matrix on its way to cells.
struct Expansion<'a> {
    matrix: &'a MatrixFile,
    out: &'a Utf8Path,
    expanded: Expanded,
}

impl<'a> Expansion<'a> {
    /// Finds a dataset or plans to make it; notes it as absent when neither can be.
    fn place(&mut self, entry: &'a DatasetEntry) -> Option<Place<'a>> {
        let root = match (&entry.root, entry.filmed()) {
            (Some(root), _) if !root.is_dir() => {
                self.expanded.absent.push(Absent { what: entry.label(), why: format!("`{root}` is not there") });
                return None;
            }
            (Some(root), _) => root.clone(),
            (None, options) => {
                let options = options.unwrap_or_default();
                let folder = self.out.join("data").join(world_name(&options));
                push_once(&mut self.expanded.made, Made::World { folder: folder.clone(), options });
                folder
            }
        };
        let splits = (entry.protocol != Protocol::Own).then(|| {
            let stem = root.file_name().unwrap_or(&entry.name);
            let folder = self.out.join("data").join(format!("{stem}-{}", entry.protocol.name()));
            let made = match entry.protocol {
                Protocol::Ranked => Made::Ranked { folder: folder.clone(), root: root.clone() },
                protocol => {
                    Made::Splits { folder: folder.clone(), dataset: entry.name.clone(), root: root.clone(), protocol }
                }
            };
            push_once(&mut self.expanded.made, made);
            folder
        });
        Some(Place { entry, label: entry.label(), root, splits })
    }

    /// The tests that are asked on a dataset of whoever is asked `of_model`; files that are not there are noted as absent.
    fn tests(&mut self, place: &Place<'_>, of_model: Option<&[String]>) -> Vec<CellTest> {
        let wanted = |test: &&TestEntry| {
            let among = |names: Option<&[String]>| names.is_none_or(|names| names.contains(&test.label()));
            among(place.entry.tests.as_deref()) && among(of_model)
        };
        let mut asked = Vec::new();
        for test in self.matrix.test.iter().filter(wanted) {
            if test.split.contains('/') && !Utf8Path::new(&test.split).is_file() {
                let what = format!("{} on {}", test.label(), place.label);
                push_once(&mut self.expanded.absent, Absent { what, why: format!("`{}` is not there", test.split) });
                continue;
            }
            let own = !test.metrics.is_empty() || test.preset.is_some();
            asked.push(CellTest {
                name: test.label(),
                split: test.split.clone(),
                among: test.among,
                text: test.text,
                footage: test.footage,
                answers: test.answers,
                every: test.every,
                metrics: if own { test.metrics.clone() } else { self.matrix.metrics.clone() },
                preset: test.preset.clone(),
            });
        }
        asked
    }

    /// A cell for every guess.
    fn baselines(&mut self, place: &Place<'_>) -> Result<()> {
        // Guesses read neither words nor pictures and search one video: other tests would only repeat the plain one.
        let plain = |test: &CellTest| {
            (test.among, test.text, test.footage) == (Among::Own, QueryText::Original, FeatureVariant::Seen)
        };
        let corpus = |test: &CellTest| place.entry.protocol == Protocol::Ranked && test.among == Among::Pool;
        let all = self.tests(place, None);
        for baseline in &self.matrix.baselines {
            let oracle = baseline == ORACLE;
            let tests: Vec<CellTest> = match CorpusGuess::find(baseline) {
                Some(_) => all.iter().filter(|test| corpus(test)).cloned().collect(),
                None => all.iter().filter(|test| plain(test)).cloned().collect(),
            };
            if tests.is_empty() || (oracle && (!place.entry.is_world() || place.splits.is_some())) {
                continue;
            }
            self.expanded.cells.push(Cell {
                name: format!("{}.{baseline}", place.label),
                dataset: place.label.clone(),
                dataset_name: place.name(),
                protocol: place.entry.protocol,
                model: baseline.clone(),
                variant: String::new(),
                features: String::new(),
                seed: 0,
                by: if oracle { Method::Oracle } else { Method::Baseline },
                data: place.data()?,
                splits: place.splits.clone(),
                tests,
                needs: Vec::new(),
            });
        }
        Ok(())
    }

    /// A cell of a command for every store of features and every seed, as a model has them.
    fn command(&mut self, place: &Place<'_>, model: &ModelEntry, command: &str) -> Result<()> {
        let tests = self.tests(place, model.tests.as_deref());
        if tests.is_empty() {
            return Ok(());
        }
        let stores = place.entry.features.iter().map(|(label, store)| (label.clone(), Some(store.clone())));
        let none = std::iter::once(("none".to_owned(), None)).filter(|_| place.entry.features.is_empty());
        for (features, store) in stores.chain(none) {
            for seed in model.seeds.as_ref().unwrap_or(&self.matrix.seeds) {
                let program = Program {
                    command: command.to_owned(),
                    features: store.clone(),
                    seconds: model.time_limit,
                    memory: model.memory_limit.as_deref().and_then(parse_bytes),
                };
                self.expanded.cells.push(Cell {
                    name: format!("{}.{}.{features}.seed{seed}", place.label, model.label()),
                    dataset: place.label.clone(),
                    dataset_name: place.name(),
                    protocol: place.entry.protocol,
                    model: model.name.clone(),
                    variant: model.variant.clone(),
                    features: features.clone(),
                    seed: *seed,
                    by: Method::Command(program),
                    data: place.data()?,
                    splits: place.splits.clone(),
                    tests: tests.clone(),
                    needs: Vec::new(),
                });
            }
        }
        Ok(())
    }

    /// A cell of `model` for every store of features and every seed.
    fn model(&mut self, place: &Place<'_>, model: &ModelEntry) -> Result<()> {
        let names = place.run_files(model);
        let Some(written) = first_run_file(&names)? else {
            let why = format!("there is no run file `{}`", names.join("` or `"));
            self.lacking(place, model, why);
            return Ok(());
        };
        let mut tests = self.tests(place, model.tests.as_deref());
        if model.first_stage.is_some() {
            // Only pools have videos to choose from.
            tests.retain(|test| test.among == Among::Pool);
        }
        let stores = place.entry.features.iter().map(|(label, store)| (Some(label), Some(store)));
        let as_in_the_run_file = std::iter::once((None, None)).filter(|_| place.entry.features.is_empty());
        for (features, store) in stores.chain(as_in_the_run_file) {
            for seed in model.seeds.as_ref().unwrap_or(&self.matrix.seeds) {
                let run = place.run(&written, model, store, *seed)?;
                if let Some(lacks) = place.lacks(&run) {
                    self.lacking(place, model, lacks);
                    continue;
                }
                let features = features.cloned().unwrap_or_else(|| usual_features(&run));
                let cell = self.model_cell(place, model, run, features, tests.clone())?;
                self.expanded.cells.push(cell);
            }
        }
        Ok(())
    }

    /// The cell of one run; its seed and data are the run's.
    fn model_cell(
        &mut self,
        place: &Place<'_>,
        model: &ModelEntry,
        mut run: RunFile,
        features: String,
        tests: Vec<CellTest>,
    ) -> Result<Cell> {
        let seed = run.train.seed;
        let name = |model: &str| format!("{}.{model}.{features}.seed{seed}", place.label);
        if let Some(moments) = model.pseudo_moments {
            let file = self.out.join("data").join(format!("{}-{features}-likest{moments}.jsonl", place.label));
            let data = Box::new(run.data.clone());
            let captions = place.captions();
            push_once(&mut self.expanded.made, Made::PseudoMoments { file: file.clone(), data, captions, moments });
            run.data.train = file.into_string();
        }
        let (by, needs) = match &model.first_stage {
            None => (Method::Model { run: run.to_toml()?, pseudo_moments: model.pseudo_moments }, Vec::new()),
            Some(stage) => {
                let (first, second) = (name(&stage.model), name(&model.name));
                let folder = |name: &String| self.out.join("cells").join(name);
                let by = Method::TwoStage { first: folder(&first), second: folder(&second), videos: stage.videos };
                (by, vec![first, second])
            }
        };
        Ok(Cell {
            name: name(&model.label()),
            dataset: place.label.clone(),
            dataset_name: place.name(),
            protocol: place.entry.protocol,
            model: model.name.clone(),
            variant: model.variant.clone(),
            features,
            seed,
            by,
            data: run.data,
            splits: place.splits.clone(),
            tests,
            needs,
        })
    }

    /// Notes that a model cannot learn from a dataset here.
    fn lacking(&mut self, place: &Place<'_>, model: &ModelEntry, why: String) {
        push_once(&mut self.expanded.absent, Absent { what: format!("{} on {}", model.label(), place.label), why });
    }
}

fn push_once<T: PartialEq>(list: &mut Vec<T>, one: T) {
    if !list.contains(&one) {
        list.push(one);
    }
}

/// A folder's name that tells worlds apart: the knobs that are not as usual.
fn world_name(options: &WorldOptions) -> String {
    let usual = WorldOptions::default();
    let mut name = format!("world-{}-bias{}-seed{}", options.videos, options.bias, options.seed);
    for (knob, value, usual) in [
        ("length", options.length, usual.length),
        ("events", options.events as f64, usual.events as f64),
        ("verb-share", options.verb_share, usual.verb_share),
        ("actor-share", options.actor_share, usual.actor_share),
        ("overlong", options.overlong, usual.overlong),
        ("vocabulary", options.vocabulary as f64, usual.vocabulary as f64),
        ("noise", options.noise, usual.noise),
        ("disagreement", options.disagreement, usual.disagreement),
    ] {
        if value != usual {
            name += &format!("-{knob}{value}");
        }
    }
    if options.reels != usual.reels {
        name += "-mp4";
    }
    name
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
        let Method::Model { run, .. } = &cell("world-cd.2d-tan.motion.seed2").by else { panic!("it is trained") };
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
