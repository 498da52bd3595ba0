//! What is run on what: the TOML file that a matrix starts from.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_features::FeatureVariant;
use cuemark_formats::world_folder::WORLD;
use cuemark_protocols::splits::SplitProtocol;
use cuemark_train::Among;
use cuemark_world::WorldOptions;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::check::{broken, is_plain};
use super::memory::parse_bytes;
use super::ready;
use crate::Result;
use crate::report::QueryText;

/// A matrix file, checked. Unknown keys are errors.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixFile {
    /// A short word; the default folder is called after it.
    pub name: String,
    /// What the study asks, in a sentence.
    pub about: String,
    /// Seeds of every model that names none. Default: 0
    #[serde(default = "seeds")]
    pub seeds: Vec<u64>,
    /// Metrics of every test that names none. Default: the report's.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// Guesses that never see a video, by name, and `oracle` for the world; under the protocol `ranked` those over a corpus
    /// ([`CorpusGuess`](super::CorpusGuess)). Default: none
    #[serde(default)]
    pub baselines: Vec<String>,
    /// Cells side by side, where more would spoil what is measured. Default: one per core
    pub jobs: Option<usize>,
    /// What is learnt from: one `[[dataset]]` each.
    pub dataset: Vec<DatasetEntry>,
    /// What learns: one `[[model]]` each.
    #[serde(default)]
    pub model: Vec<ModelEntry>,
    /// What is asked of every model: one `[[test]]` each.
    pub test: Vec<TestEntry>,
    /// What `--quick` changes.
    #[serde(default)]
    pub quick: Quick,
}

/// Data to learn from: `[[dataset]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetEntry {
    /// A dataset by name, `world` for the built-in one.
    pub name: String,
    /// What it is called in results. Default: its name, with its protocol when that is not its own
    pub label: Option<String>,
    /// Its folder. The world is filmed when this is left out.
    pub root: Option<Utf8PathBuf>,
    /// Knobs of a world that is filmed for this matrix; what is left out stays as `cuemark world make` has it.
    pub world: Option<WorldOptions>,
    /// Who cuts it into splits. Default: own
    #[serde(default)]
    pub protocol: Protocol,
    /// Feature stores by label, run in the order of their labels. Left out: the one that the run file names.
    #[serde(default)]
    pub features: BTreeMap<String, Utf8PathBuf>,
    /// Datasets whose run files are taken, the first that a model has. Default: its name
    #[serde(default)]
    pub runs: Vec<String>,
    /// The tests that are asked of it, by name. Default: all
    pub tests: Option<Vec<String>>,
    /// Keys of the run file that are set for all models.
    #[serde(default, deserialize_with = "dotted")]
    pub set: Table,
}

/// Who cuts a dataset into splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Its authors; for the world, the world. Default.
    #[default]
    Own,
    /// The published parts, with a validation split where none is published.
    Standard,
    /// Rare places to test-ood.
    Cd,
    /// The last tenth by moment centre to test-ood.
    Centre,
    /// Known words together as never before, and new words, to tests of their own.
    Composition,
    /// Imprecise queries that all search one corpus, their likest captioned moments graded; the world alone has it.
    Ranked,
}

impl Protocol {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Standard => "standard",
            Self::Cd => "cd",
            Self::Centre => "centre",
            Self::Composition => "composition",
            Self::Ranked => "ranked",
        }
    }

    /// The protocol of ours that cuts; `None` when the dataset's own parts are taken as they are, or the world's log makes others.
    pub fn maker(self) -> Option<SplitProtocol> {
        match self {
            Self::Own | Self::Ranked => None,
            Self::Standard => Some(SplitProtocol::Standard),
            Self::Cd => Some(SplitProtocol::Cd),
            Self::Centre => Some(SplitProtocol::Centre),
            Self::Composition => Some(SplitProtocol::Composition),
        }
    }
}

/// A model with its settings: `[[model]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// Its name, as `cuemark models list` has it.
    pub name: String,
    /// What sets it apart from others of the same name. Default: nothing
    #[serde(default)]
    pub variant: String,
    /// Its run file: a path, or a name such as `rmmn/world-both-steps`; `{dataset}` stands for the dataset's name.
    /// Default: `NAME/DATASET`
    pub run: Option<String>,
    /// Keys of the run file that are set for it.
    #[serde(default, deserialize_with = "dotted")]
    pub set: Table,
    /// The datasets it learns from, by label. Default: all
    pub datasets: Option<Vec<String>>,
    /// Its seeds. Default: the matrix's
    pub seeds: Option<Vec<u64>>,
    /// It learns from so many moments per training query, the likest by their captions, instead of the true one.
    pub pseudo_moments: Option<usize>,
    /// It is not trained, but answers with the model of the same name after another one has chosen videos.
    pub first_stage: Option<FirstStageEntry>,
    /// It is not ours: this command reads queries and writes predictions, see `docs/benchmark.md`. No run file is needed.
    pub command: Option<String>,
    /// **Seconds** that the command may take for one test. Default: as long as it likes
    pub time_limit: Option<f64>,
    /// Memory that the command may have: `8GiB`. Default: no limit
    pub memory_limit: Option<String>,
    /// The tests that are asked of it, by name. Default: all
    pub tests: Option<Vec<String>>,
}

/// The model that chooses videos before another one looks for moments in them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstStageEntry {
    /// Its name; it must be in the matrix too.
    pub model: String,
    /// Videos that it leaves.
    pub videos: usize,
}

/// What is asked of every model: `[[test]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestEntry {
    /// What it is called. Default: the split, and what is changed about it
    pub name: Option<String>,
    /// The split, by name or as a truth file.
    pub split: String,
    /// Where each query is searched. Default: own
    #[serde(default)]
    pub among: Among,
    /// What is done to the queries. Default: original
    #[serde(default)]
    pub text: QueryText,
    /// What the model is shown. Default: seen
    #[serde(default)]
    pub footage: FeatureVariant,
    /// Answers kept per query. Default: the run file's, or as many as the metrics look at
    pub answers: Option<usize>,
    /// Only the first of every so many queries is asked, where all of them would take too long. Default: 1
    pub every: Option<NonZeroUsize>,
    /// Metrics. Default: the matrix's
    #[serde(default)]
    pub metrics: Vec<String>,
    /// A published evaluator to agree with.
    pub preset: Option<String>,
}

/// What `--quick` changes: `[quick]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Videos of a filmed world. Default: 120
    #[serde(default = "quick_videos")]
    pub videos: usize,
    /// Models that are kept, by name. Default: all
    pub models: Option<Vec<String>>,
    /// Seeds. Default: the first of each
    pub seeds: Option<Vec<u64>>,
    /// Keys of every run file. Default: `train.epochs = 1`
    #[serde(default = "quick_set", deserialize_with = "dotted")]
    pub set: Table,
}

/// Settings under dotted keys, whichever way they were written: `{ train.epochs = 3 }` or `{ "train.epochs" = 3 }`.
fn dotted<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Table, D::Error> {
    fn flatten(before: &str, table: Table, flat: &mut Table) {
        for (key, value) in table {
            let key = format!("{before}{key}");
            match value {
                Value::Table(inner) => flatten(&format!("{key}."), inner, flat),
                value => {
                    flat.insert(key, value);
                }
            }
        }
    }
    let mut flat = Table::new();
    flatten("", Table::deserialize(deserializer)?, &mut flat);
    Ok(flat)
}

fn seeds() -> Vec<u64> {
    vec![0]
}

fn quick_videos() -> usize {
    120
}

fn quick_set() -> Table {
    Table::from_iter([("train.epochs".to_owned(), Value::Integer(1))])
}

impl Default for Quick {
    fn default() -> Self {
        Self { videos: quick_videos(), models: None, seeds: None, set: quick_set() }
    }
}

impl DatasetEntry {
    /// What it is called in results.
    pub fn label(&self) -> String {
        let with_protocol = || match self.protocol {
            Protocol::Own => self.name.clone(),
            protocol => format!("{}-{}", self.name, protocol.name()),
        };
        self.label.clone().unwrap_or_else(with_protocol)
    }

    /// Whether it is the built-in world, which is filmed where it is not there and has a log of what happens.
    pub(super) fn is_world(&self) -> bool {
        self.name == WORLD
    }

    /// The world that is filmed for it; `None` when its data is somewhere already.
    pub fn filmed(&self) -> Option<WorldOptions> {
        (self.is_world() && self.root.is_none()).then(|| self.world.clone().unwrap_or_default())
    }
}

impl ModelEntry {
    /// Its name and variant, as one word that can be a file's name: `N=20` becomes `N_20`.
    pub fn label(&self) -> String {
        let safe = |c: char| if is_plain(c) { c } else { '_' };
        let variant: String = self.variant.chars().map(safe).collect();
        if variant.is_empty() { self.name.clone() } else { format!("{}+{variant}", self.name) }
    }

    /// What cannot be about its command.
    pub(super) fn command_problem(&self) -> Option<String> {
        if self.command.is_none() && (self.time_limit.is_some() || self.memory_limit.is_some()) {
            return Some("`time_limit` and `memory_limit` are for a `command`".to_owned());
        }
        if self.command.is_some()
            && (self.run.is_some()
                || !self.set.is_empty()
                || self.first_stage.is_some()
                || self.pseudo_moments.is_some())
        {
            return Some("a `command` has no `run`, `set`, `first_stage` or `pseudo_moments`".to_owned());
        }
        if let Some(limit) = self.time_limit.filter(|limit| !(limit.is_finite() && *limit > 0.0)) {
            return Some(format!("`time_limit`: {limit} s cannot be"));
        }
        let memory = self.memory_limit.as_deref()?;
        parse_bytes(memory).is_none().then(|| format!("`memory_limit`: `{memory}` is no amount of memory such as 8GiB"))
    }

    /// Whether it learns from the dataset of that label.
    pub fn learns_from(&self, dataset: &str) -> bool {
        self.datasets.as_ref().is_none_or(|datasets| datasets.iter().any(|label| label == dataset))
    }
}

impl TestEntry {
    /// What it is called in results.
    pub fn label(&self) -> String {
        let stem = Utf8Path::new(&self.split).file_stem().unwrap_or(&self.split).to_owned();
        let changed = [
            (self.text != QueryText::Original).then(|| self.text.name()),
            (self.footage != FeatureVariant::Seen).then(|| self.footage.name()),
            (self.among != Among::Own).then(|| self.among.name()),
        ];
        let parts = std::iter::once(stem.as_str()).chain(changed.into_iter().flatten());
        self.name.clone().unwrap_or_else(|| parts.collect::<Vec<_>>().join("."))
    }
}

impl MatrixFile {
    /// Reads a matrix: a file, or the name of a ready one.
    ///
    /// # Errors
    /// For an unknown or missing key, a name that is no metric, preset or baseline, a label that could not be a file's name.
    pub fn read(path: &Utf8Path) -> Result<Self> {
        Self::parse(path.as_str(), &ready::matrix_text(path)?)
    }

    /// The matrix that `text` describes; `path` names it in errors.
    ///
    /// # Errors
    /// As [`MatrixFile::read`].
    pub fn parse(path: &str, text: &str) -> Result<Self> {
        let matrix: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            broken(path, line, error.message())
        })?;
        matrix.check(path)?;
        Ok(matrix)
    }

    /// The same, small: a minute instead of hours.
    #[must_use]
    pub fn quickened(mut self) -> Self {
        let quick = self.quick.clone();
        for dataset in &mut self.dataset {
            if dataset.filmed().is_some() {
                dataset.world.get_or_insert_default().videos = quick.videos;
            }
            dataset.set.extend(quick.set.clone());
        }
        if let Some(kept) = &quick.models {
            self.model.retain(|model| kept.contains(&model.name));
        }
        let first = |seeds: &[u64]| quick.seeds.clone().unwrap_or_else(|| seeds.iter().take(1).copied().collect());
        let seeds = first(&self.seeds);
        self.seeds = seeds;
        for model in &mut self.model {
            model.seeds = model.seeds.as_deref().map(first);
            // What is quick wins over what the model says.
            for key in quick.set.keys() {
                model.set.remove(key);
            }
        }
        self
    }
}

/// Who answers from the world's log.
pub(super) const ORACLE: &str = "oracle";

#[cfg(test)]
mod tests {
    use cuemark_core::{Advise as _, Dialect};

    use super::*;

    const SMALL: &str = "
name = 'small'
about = 'a test'
[[dataset]]
name = 'world'
[[model]]
name = '2d-tan'
set = { train.epochs = 3 }
[[test]]
split = 'test-iid'
";

    fn problem(text: &str) -> (String, String) {
        let error = MatrixFile::parse("m.toml", text).unwrap_err();
        (error.to_string(), error.advice_in(Dialect::Terminal).unwrap_or_default())
    }

    #[test]
    fn defaults_are_filled_in() {
        let matrix = MatrixFile::parse("m.toml", SMALL).unwrap();
        assert_eq!((matrix.seeds.as_slice(), matrix.test[0].label().as_str()), (&[0][..], "test-iid"));
        assert_eq!(matrix.dataset[0].label(), "world");
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_line_and_the_right_one() {
        let (error, hint) = problem(&SMALL.replace("about", "abuot"));
        assert_eq!((error.as_str(), hint.as_str()), ("m.toml:3: unknown key `abuot`", "did you mean `about`?"));
        let (error, hint) = problem(&SMALL.replace("split =", "spilt ="));
        assert!(error.contains("unknown key `spilt`"), "{error}");
        assert_eq!(hint, "did you mean `split`?");
    }

    #[test]
    fn names_that_are_nothing_are_named() {
        for (from, to, expected) in [
            ("about = 'a test'", "about = ''\nbaselines = ['bias-mod']", "there is no `bias-mod`"),
            ("split = 'test-iid'", "split = 'test-iid'\nmetrics = ['R@1,IuO=0.5']", "is not a metric"),
            ("set = { train.epochs = 3 }", "datasets = ['wrld']", "there is no `wrld`"),
            ("name = 'world'", "name = 'world'\nlabel = '../up'", "expected letters"),
            ("name = 'world'", "name = 'charades-sta'", "`root` is missing"),
            ("[[test]]", "[[model]]\nname = '2d-tan'\n[[test]]", "two models are called `2d-tan`"),
            ("name = 'world'", "name = 'world'\nworld = { bias = 2.0 }", "not between 0 and 1"),
        ] {
            let (error, _) = problem(&SMALL.replace(from, to));
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn a_command_needs_no_run_file_and_takes_no_settings_of_one() {
        let with = |lines: &str| SMALL.replace("set = { train.epochs = 3 }", lines);
        let matrix =
            MatrixFile::parse("m.toml", &with("command = 'python mine.py'\ntime_limit = 60\nmemory_limit = '8GiB'"));
        assert_eq!(matrix.unwrap().model[0].command.as_deref(), Some("python mine.py"));
        for (lines, expected) in [
            ("command = 'x'\nset = { train.epochs = 3 }", "a `command` has no `run`"),
            ("time_limit = 60", "are for a `command`"),
            ("command = 'x'\ntime_limit = -1", "-1 s cannot be"),
            ("command = 'x'\nmemory_limit = 'plenty'", "is no amount of memory"),
        ] {
            let (error, _) = problem(&with(lines));
            assert!(error.contains(expected), "{lines}: {error}");
        }
    }

    #[test]
    fn a_test_is_called_after_what_is_changed() {
        let text = SMALL.replace("split = 'test-iid'", "split = 'pools'\namong = 'pool'\ntext = 'mask-verb'");
        assert_eq!(MatrixFile::parse("m.toml", &text).unwrap().test[0].label(), "pools.mask-verb.pool");
    }

    #[test]
    fn quick_is_smaller_and_wins_over_the_models_own_settings() {
        let text = SMALL.replace("name = 'small'", "name = 'small'\nseeds = [4, 5]");
        let quick = MatrixFile::parse("m.toml", &text).unwrap().quickened();
        assert_eq!(quick.dataset[0].world.as_ref().unwrap().videos, 120);
        assert_eq!((quick.seeds.as_slice(), quick.dataset[0].set["train.epochs"].as_integer()), (&[4][..], Some(1)));
    }

    #[test]
    fn every_ready_matrix_parses() {
        for (name, text) in ready::matrices() {
            let matrix = MatrixFile::parse(name, text).unwrap();
            assert_eq!(matrix.name, name);
            let _ = matrix.quickened();
        }
    }
}
