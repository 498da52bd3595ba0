//! What is trained on what, and how: the TOML file that a run starts from.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Advice;
use cuemark_core::nearest::nearest;
use cuemark_formats::Source;
use cuemark_metrics::{MetricName, parse_list};
use cuemark_tensor::Precision;
use cuemark_tensor::optim::Clip;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::{Averaging, Result, Schedule, TextConfig, TrainError};

/// A run file, checked. Unknown keys are errors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunFile {
    /// The model's name.
    #[serde(skip)]
    pub model: String,
    /// The model's settings without its name.
    #[serde(rename = "model")]
    pub settings: Table,
    /// What it learns from.
    pub data: DataConfig,
    /// How it learns.
    pub train: TrainConfig,
    /// How it is judged on the way.
    pub eval: EvalConfig,
}

/// What a run learns from: `[data]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// A dataset by name, `world` for the built-in one. Left out: `train` and `val` are files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The dataset's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Utf8PathBuf>,
    /// The training split: a name of the dataset's, or a truth file. Default: train
    #[serde(default = "train_split")]
    pub train: String,
    /// The split on which the best checkpoint is chosen. Default: val
    #[serde(default = "val_split")]
    pub val: String,
    /// Clip features, in any layout that `cuemark features info` reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Utf8PathBuf>,
    /// The stream of clip features. Default: visual
    #[serde(default = "visual_stream")]
    pub stream: String,
    /// The stream of subtitle features, in the same store; left out: models run without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<String>,
    /// Further streams of clip features, in the same store, whose rows stand beside those of `stream`. Default: none
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// The stream of audio features, in the same store; left out: models run without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<String>,
    /// The stream of word features, in the same store, one row per word under the query's id. Left out: word vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries: Option<String>,
    /// Word features of the queries in a store of their own, in any layout that `cuemark features info` reads, one row per word
    /// under the query's id; `queries` names the stream where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_features: Option<Utf8PathBuf>,
    /// A published text encoder that reads the queries: `[data.text]`. Left out: words of the training queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextConfig>,
    /// Seconds per row, for layouts that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_length: Option<f64>,
    /// Rows share the video's duration evenly, for layouts that do not say. Default: false
    #[serde(default)]
    pub rows_span_duration: bool,
    /// A file of word vectors (GloVe). Left out: vectors are trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Utf8PathBuf>,
    /// Width of trained word vectors. Default: 64
    #[serde(default = "word_width")]
    pub word_width: usize,
    /// Words that occur less often in the training queries are unknown. Default: 1
    #[serde(default = "one")]
    pub least_count: usize,
    /// What says that a video shows what a query means though it was not written for it, for models that leave such pairs out:
    /// `tfidf`, `minilm`, `encoder:NAME`, or `log`, the event log of the built-in world. Default: tfidf
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<String>,
    /// Parses of the queries, for models that read them. Left out: our shallow parser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parses: Option<Utf8PathBuf>,
    /// What another model answered to the training queries among all training videos: where a second stage (CONQUER) draws its
    /// negatives. Left out: from other videos of the batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_stage: Option<Utf8PathBuf>,
}

/// How a model learns: `[train]`, and one `[[train.stage]]` per stage that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainConfig {
    /// Seed of everything random. Default: 0
    pub seed: u64,
    /// Threads that prepare batches. Default: 1
    pub workers: usize,
    /// Arithmetic of matrix products on a GPU. Default: tf32
    pub precision: Precision,
    /// Weights to start from, by the reference's names: safetensors or PyTorch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<Utf8PathBuf>,
    /// Minutes after which training ends, shared among the stages by their epochs; schedules are shortened to fit, so that the
    /// rate still falls to its end. What comes out depends on the machine. Left out: as long as the epochs take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// What is done, in order.
    #[serde(rename = "stage")]
    pub stages: Vec<StageConfig>,
}

/// One stage of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// Passes over the training split.
    pub epochs: usize,
    /// Pairs per step, or videos for models that learn from whole videos. Default: 32
    #[serde(default = "batch")]
    pub batch: usize,
    /// Learning rate.
    pub rate: f64,
    /// Default: adam
    #[serde(default)]
    pub optimiser: Optimiser,
    /// Default: [0.9, 0.999]
    #[serde(default = "betas")]
    pub betas: [f64; 2],
    /// Default: 1e-8
    #[serde(default = "eps")]
    pub eps: f64,
    /// Default: 0
    #[serde(default)]
    pub weight_decay: f64,
    /// What stays of earlier gradients in a step of `sgd`. Default: 0
    #[serde(default)]
    pub momentum: f64,
    /// Gradients that are longer than this all together are shortened to it; left out: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Each tensor's gradient that is longer than this is shortened to it; left out: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_tensor_norm: Option<f64>,
    /// Every number of a gradient is kept within plus and minus this; left out: none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_value: Option<f64>,
    /// How the rate changes. Default: constant
    #[serde(default)]
    pub schedule: Schedule,
    /// Judges and keeps an average of the weights; left out: the weights themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average: Option<Averaging>,
}

/// How steps are made from gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimiser {
    /// Weight decay is part of the gradient. Default.
    #[default]
    Adam,
    /// Weight decay is apart from the gradient.
    Adamw,
    /// Gradient descent with `momentum`; weight decay is part of the gradient.
    Sgd,
}

impl StageConfig {
    /// How gradients are kept within bounds; a checked run file says one way at most.
    pub fn clip(&self) -> Clip {
        match (self.clip_norm, self.clip_tensor_norm, self.clip_value) {
            (Some(limit), ..) => Clip::Norm(limit),
            (None, Some(limit), _) => Clip::EachTensor(limit),
            (None, None, Some(limit)) => Clip::EachNumber(limit),
            (None, None, None) => Clip::Never,
        }
    }
}

/// How a run is judged on the way: `[eval]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalConfig {
    /// The metric that chooses the best checkpoint, or several whose mean does. Default: R@1,IoU=0.5
    #[serde(default = "metric")]
    pub metric: Metrics,
    /// Epochs between evaluations; parts of one are fine. Default: 1.0
    #[serde(default = "every")]
    pub every: f64,
    /// Evaluations without anything better after which the stage ends; left out: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<usize>,
    /// Answers kept per query. Default: 10
    #[serde(default = "answers")]
    pub answers: usize,
    /// Pairs per step of an evaluation. Default: 64
    #[serde(default = "eval_batch")]
    pub batch: usize,
}

/// One metric or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Metrics {
    /// One.
    One(String),
    /// Their mean counts.
    Mean(Vec<String>),
}

fn train_split() -> String {
    "train".to_owned()
}

fn val_split() -> String {
    "val".to_owned()
}

fn visual_stream() -> String {
    "visual".to_owned()
}

fn word_width() -> usize {
    64
}

fn one() -> usize {
    1
}

fn batch() -> usize {
    32
}

fn betas() -> [f64; 2] {
    [0.9, 0.999]
}

fn eps() -> f64 {
    1e-8
}

fn metric() -> Metrics {
    Metrics::One("R@1,IoU=0.5".to_owned())
}

fn every() -> f64 {
    1.0
}

fn answers() -> usize {
    10
}

fn eval_batch() -> usize {
    64
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self { metric: metric(), every: every(), patience: None, answers: answers(), batch: eval_batch() }
    }
}

impl EvalConfig {
    /// The metrics whose mean chooses the best checkpoint.
    ///
    /// # Errors
    /// For a name that is no metric.
    pub fn metrics(&self) -> Result<Vec<MetricName>> {
        let names = match &self.metric {
            Metrics::One(name) => vec![name],
            Metrics::Mean(names) => names.iter().collect(),
        };
        let mut metrics = Vec::new();
        for name in names {
            metrics.extend(parse_list(name)?);
        }
        Ok(metrics)
    }
}

/// A key set from outside the file, such as `train.epochs=3`, and where that was said.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// Keys joined by dots.
    pub key: String,
    /// TOML, or plain text.
    pub value: String,
    /// Who said so: a flag or an environment variable.
    pub origin: String,
}

impl RunFile {
    /// Reads a run file and lays `overrides` over it, later ones last.
    ///
    /// # Errors
    /// For an unknown or missing key, a value out of range, a test split to choose on, each named.
    pub fn read(path: &Utf8Path, overrides: &[Override]) -> Result<Self> {
        let text = Source::new(path).text()?;
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            fault(&format!("{path}:{line}"), error.message())
        })?;
        Self::from_table(path.as_str(), table, overrides)
    }

    /// The run that a table describes; `path` names it in errors.
    ///
    /// # Errors
    /// As [`RunFile::read`].
    pub fn from_table(path: &str, mut table: Table, overrides: &[Override]) -> Result<Self> {
        for over in overrides {
            set(&mut table, over)?;
        }
        let mut section = |name: &str| match table.remove(name) {
            Some(Value::Table(section)) => Ok(section),
            None => Ok(Table::new()),
            Some(other) => Err(fault(path, &format!("`{name}` is a {}, expected a table", other.type_str()))),
        };
        let (mut settings, data, train, eval) =
            (section("model")?, section("data")?, section("train")?, section("eval")?);
        if let Some(unknown) = table.keys().next() {
            return Err(unknown_key(path, "", unknown, &["model", "data", "train", "eval"]));
        }
        let Some(Value::String(model)) = settings.remove("name") else {
            return Err(fault(path, "`model.name` is missing: which model is it about?"));
        };
        let run = Self {
            model,
            settings,
            data: parse(path, "data", data)?,
            train: TrainConfig::from_table(path, train)?,
            eval: parse(path, "eval", eval)?,
        };
        run.check(path)?;
        Ok(run)
    }

    fn check(&self, path: &str) -> Result<()> {
        self.data.check(path)?;
        if self.data.features.is_none() && self.data.dataset.as_deref() != Some("world") {
            return Err(fault(path, "`data.features` is missing: where are the clip features?"));
        }
        let positive = |key: &str, value: f64| {
            (value > 0.0 && value.is_finite())
                .then_some(())
                .ok_or_else(|| fault(path, &format!("`{key}` is {value}, expected more than 0")))
        };
        positive("eval.every", self.eval.every)?;
        positive("data.word_width", self.data.word_width as f64)?;
        positive("eval.batch", self.eval.batch as f64)?;
        positive("train.minutes", self.train.minutes.unwrap_or(1.0))?;
        for stage in &self.train.stages {
            positive("train.epochs", stage.epochs as f64)?;
            positive("train.batch", stage.batch as f64)?;
            positive("train.rate", stage.rate)?;
            let clips = [
                ("train.clip_norm", stage.clip_norm),
                ("train.clip_tensor_norm", stage.clip_tensor_norm),
                ("train.clip_value", stage.clip_value),
            ];
            let said: Vec<(&str, f64)> = clips.iter().filter_map(|(key, limit)| Some((*key, (*limit)?))).collect();
            for (key, limit) in &said {
                positive(key, *limit)?;
            }
            if let [(one, _), (other, _), ..] = said[..] {
                return Err(fault(path, &format!("`{one}` and `{other}` cannot both hold")));
            }
            if let Some(Averaging { decay }) = stage.average.filter(|average| !(0.0..1.0).contains(&average.decay)) {
                return Err(fault(path, &format!("`train.average.decay` is {decay}, expected 0 to 1")));
            }
            if !(0.0..1.0).contains(&stage.momentum) {
                return Err(fault(path, &format!("`train.momentum` is {}, expected 0 to 1", stage.momentum)));
            }
            if stage.momentum > 0.0 && stage.optimiser != Optimiser::Sgd {
                return Err(fault(path, "`train.momentum` is for `optimiser = \"sgd\"`; others have `betas`"));
            }
        }
        self.eval.metrics().map(|_| ())
    }

    /// The whole run as TOML, defaults filled in: what a run folder keeps.
    ///
    /// # Errors
    /// When a setting cannot be written, which no checked run file has.
    pub fn to_toml(&self) -> Result<String> {
        let mut table = Table::try_from(self).map_err(|error| fault("run.toml", &error.to_string()))?;
        if let Some(Value::Table(model)) = table.get_mut("model") {
            model.insert("name".to_owned(), Value::String(self.model.clone()));
        }
        toml::to_string(&table).map_err(|error| fault("run.toml", &error.to_string()))
    }
}

impl DataConfig {
    /// The data that a table describes, for whoever answers without looking at features: `[data]` alone. `path` names it in
    /// errors.
    ///
    /// # Errors
    /// As [`RunFile::read`], for this section.
    pub fn from_table(path: &str, table: Table) -> Result<Self> {
        let data: Self = parse(path, "data", table)?;
        data.check(path)?;
        Ok(data)
    }

    fn check(&self, path: &str) -> Result<()> {
        let stem = Utf8Path::new(&self.val).file_stem().unwrap_or(&self.val);
        if stem.split(['-', '_', '.']).any(|part| part.eq_ignore_ascii_case("test")) {
            return Err(TrainError::ChosenOnTest { path: path.to_owned(), split: self.val.clone() });
        }
        if self.dataset.is_some() && self.root.is_none() {
            return Err(fault(path, "`data.root` is missing: where is the dataset?"));
        }
        let Some(text) = &self.text else { return Ok(()) };
        let others = [
            ("data.query_features", self.query_features.is_some()),
            ("data.queries", self.queries.is_some()),
            ("data.words", self.words.is_some()),
        ];
        if let Some((other, _)) = others.iter().find(|(_, said)| *said) {
            return Err(fault(
                path,
                &format!("`data.text` and `{other}` both say where the vectors of words come from"),
            ));
        }
        text.check().map_err(|problem| fault(path, &problem))
    }
}

/// Keys of `[train]` that hold for the whole run; the rest belongs to stages.
#[derive(Deserialize, Default)]
#[serde(default)]
struct WholeRun {
    seed: u64,
    workers: Option<usize>,
    minutes: Option<f64>,
    precision: Precision,
    weights: Option<Utf8PathBuf>,
    stage: Vec<Table>,
}

impl TrainConfig {
    fn from_table(path: &str, mut table: Table) -> Result<Self> {
        let keys = ["seed", "workers", "precision", "weights", "minutes", "stage"];
        let whole: Table = keys.iter().filter_map(|key| Some(((*key).to_owned(), table.remove(*key)?))).collect();
        let whole: WholeRun = parse(path, "train", whole)?;
        let laid_over = |stage: &Table| {
            let mut joined = table.clone();
            joined.extend(stage.clone());
            parse(path, "train", joined)
        };
        let only = [Table::new()];
        let stages = if whole.stage.is_empty() { &only[..] } else { &whole.stage[..] };
        Ok(Self {
            seed: whole.seed,
            workers: whole.workers.unwrap_or(1),
            precision: whole.precision,
            weights: whole.weights,
            minutes: whole.minutes,
            stages: stages.iter().map(laid_over).collect::<Result<_>>()?,
        })
    }
}

fn parse<T: serde::de::DeserializeOwned>(path: &str, section: &str, table: Table) -> Result<T> {
    Value::Table(table).try_into().map_err(|error: toml::de::Error| {
        let message = error.message().trim();
        match unknown_field(message) {
            Some((unknown, known)) => unknown_key(path, section, unknown, &known),
            None => fault(path, &format!("`[{section}]`: {}", message.replace('\n', " "))),
        }
    })
}

/// The key and the known ones out of serde's ``unknown field `a`, expected one of `b`, `c` ``.
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest = message.strip_prefix("unknown field `")?;
    let (unknown, known) = rest.split_once('`')?;
    Some((unknown, known.split('`').skip(1).step_by(2).collect()))
}

fn unknown_key(path: &str, section: &str, unknown: &str, known: &[&str]) -> TrainError {
    let hint = match nearest(unknown, known.iter().copied()) {
        Some(key) => Advice::nearest(key),
        None => format!("known keys: {}", known.join(", ")).into(),
    };
    let key = if section.is_empty() { unknown.to_owned() } else { format!("{section}.{unknown}") };
    TrainError::RunFile { path: path.to_owned(), problem: format!("unknown key `{key}`"), hint: Some(hint) }
}

fn fault(path: &str, problem: &str) -> TrainError {
    let hint = Advice::say("`docs/training.md` describes run files; `runs/` has one per published recipe");
    TrainError::RunFile { path: path.to_owned(), problem: problem.to_owned(), hint: Some(hint) }
}

fn set(table: &mut Table, over: &Override) -> Result<()> {
    let value = format!("value = {}", over.value).parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    let value = value.unwrap_or_else(|| Value::String(over.value.clone()));
    let mut keys: Vec<&str> = over.key.split('.').collect();
    let last = keys.pop().filter(|key| !key.is_empty()).ok_or_else(|| fault(&over.origin, "names no key"))?;
    let mut inner = table;
    for key in keys {
        let entry = inner.entry(key).or_insert_with(|| Value::Table(Table::new()));
        inner = entry.as_table_mut().ok_or_else(|| fault(&over.origin, &format!("`{key}` is no table")))?;
    }
    inner.insert(last.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use cuemark_core::Advise as _;

    use super::*;

    const SMALL: &str = "
        [model]
        name = '2d-tan'
        kernel = 3
        [data]
        train = 'train.jsonl'
        val = 'val.jsonl'
        features = 'store'
        [train]
        epochs = 3
        rate = 1e-3
    ";

    fn read(text: &str, overrides: &[Override]) -> Result<RunFile> {
        RunFile::from_table("run.toml", text.parse().unwrap(), overrides)
    }

    fn over(key: &str, value: &str) -> Override {
        Override { key: key.to_owned(), value: value.to_owned(), origin: "--set".to_owned() }
    }

    #[test]
    fn defaults_are_filled_in_and_survive_being_written() {
        let run = read(SMALL, &[]).unwrap();
        assert_eq!((run.model.as_str(), run.train.stages.len(), run.train.stages[0].batch), ("2d-tan", 1, 32));
        let again = read(&run.to_toml().unwrap(), &[]).unwrap();
        assert_eq!(run, again);
    }

    #[test]
    fn a_line_that_is_no_toml_is_named_by_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("run.toml")).unwrap();
        for (text, line) in
            [("= 1\n", 1), ("[model]\nname = 'x'\n= 3\n", 3), ("a = 1\nb = 2 3\n", 2), ("a = 1\na = 2", 2)]
        {
            std::fs::write(&path, text).unwrap();
            let error = RunFile::read(&path, &[]).unwrap_err().to_string();
            assert!(error.contains(&format!("run.toml:{line}")), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_misspelt_key_is_named_with_the_right_one() {
        for (wrong, key, right) in [
            ("epoch = 1", "train.epoch", "epochs"),
            ("[eval]\nmetrics = 'mIoU'", "eval.metrics", "metric"),
            ("[evaluation]\nevery = 1", "evaluation", "eval"),
        ] {
            let error = read(&format!("{SMALL}\n{wrong}"), &[]).unwrap_err();
            assert!(error.to_string().contains(&format!("unknown key `{key}`")), "{error}");
            assert_eq!(error.advice().unwrap(), Advice::nearest(right));
        }
    }

    #[test]
    fn data_alone_needs_no_features_and_is_checked_alike() {
        let of = |text: &str| DataConfig::from_table("matrix", text.parse().unwrap());
        let data = of("dataset = 'world'\nroot = 'w'").unwrap();
        assert_eq!((data.train.as_str(), data.features), ("train", None));
        assert!(of("dataset = 'world'").unwrap_err().to_string().contains("`data.root` is missing"));
        assert!(matches!(of("val = 'test.jsonl'").unwrap_err(), TrainError::ChosenOnTest { .. }));
        assert!(of("rot = 'w'").unwrap_err().to_string().contains("unknown key `data.rot`"));
    }

    #[test]
    fn later_overrides_win_and_are_parsed_as_toml() {
        let run =
            read(SMALL, &[over("train.epochs", "7"), over("train.epochs", "9"), over("model.fill", "conv")]).unwrap();
        assert_eq!(run.train.stages[0].epochs, 9);
        assert_eq!(run.settings["fill"].as_str(), Some("conv"));
    }

    #[test]
    fn stages_take_over_what_they_do_not_say() {
        let run = read(&format!("{SMALL}\n[[train.stage]]\n[[train.stage]]\nrate = 1e-4\nepochs = 1"), &[]).unwrap();
        let rates: Vec<_> = run.train.stages.iter().map(|stage| (stage.epochs, stage.rate)).collect();
        assert_eq!(rates, [(3, 1e-3), (1, 1e-4)]);
    }

    #[test]
    fn no_checkpoint_is_chosen_on_a_test_split() {
        for split in ["test", "test-iid", "splits/test_ood.jsonl", "charades_sta_test.txt"] {
            let error = read(SMALL, &[over("data.val", split)]).unwrap_err();
            assert!(matches!(error, TrainError::ChosenOnTest { .. }), "{split}: {error}");
        }
        assert!(read(SMALL, &[over("data.val", "latest-val.jsonl")]).is_ok());
    }

    #[test]
    fn values_out_of_range_are_named() {
        for (key, value) in [("train.rate", "0"), ("train.rate", "nan"), ("eval.every", "-1"), ("train.batch", "0")] {
            let error = read(SMALL, &[over(key, value)]).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
        let error = read(SMALL, &[over("train.average", "{ decay = 1.5 }")]).unwrap_err();
        assert!(error.to_string().contains("train.average.decay"), "{error}");
        for (key, value) in [("train.momentum", "1.5"), ("train.momentum", "0.5"), ("train.clip_value", "-1")] {
            let error = read(SMALL, &[over(key, value)]).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
        assert!(read(SMALL, &[over("train.momentum", "0.5"), over("train.optimiser", "sgd")]).is_ok());
        let error = read(SMALL, &[over("train.clip_norm", "1"), over("train.clip_value", "1")]).unwrap_err();
        assert!(error.to_string().contains("`train.clip_norm` and `train.clip_value`"), "{error}");
        let error = read(SMALL, &[over("eval.metric", "R@1,IoU=x")]).unwrap_err();
        assert!(error.to_string().contains("R@1,IoU=x"), "{error}");
    }
}
