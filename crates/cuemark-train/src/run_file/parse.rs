//! From TOML to a run: sections, stages, overrides, and what is said of a key that is none.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Advice;
use cuemark_core::nearest::nearest;
use cuemark_formats::Source;
use cuemark_tensor::Precision;
use serde::Deserialize;
use toml::{Table, Value};

use super::{DataConfig, Override, RunFile, TrainConfig};
use crate::{Result, TrainError};

impl RunFile {
    /// Reads a run file and lays `overrides` over it, later ones last.
    ///
    /// # Errors
    /// For an unknown or missing key, a value out of range, a test split to choose on, each named.
    pub fn read(path: &Utf8Path, overrides: &[Override]) -> Result<Self> {
        Self::parse(path.as_str(), &Source::new(path).text()?, overrides)
    }

    /// The run that a text describes; `path` names it in errors.
    ///
    /// # Errors
    /// As [`RunFile::read`].
    pub fn parse(path: &str, text: &str, overrides: &[Override]) -> Result<Self> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            fault(&format!("{path}:{line}"), error.message())
        })?;
        Self::from_table(path, table, overrides)
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

pub(super) fn fault(path: &str, problem: &str) -> TrainError {
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
