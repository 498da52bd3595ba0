//! Whether a matrix says what can be: names, labels, metrics, tests that ask the same.

use cuemark_core::Advice;
use cuemark_metrics::{MetricName, Preset, parse_list};

use super::corpus_guess::CorpusGuess;
use super::file::{DatasetEntry, MatrixFile, ModelEntry, ORACLE, Protocol, TestEntry};
use crate::{BenchError, Result};

impl MatrixFile {
    pub(super) fn check(&self, path: &str) -> Result<()> {
        let fault = |problem: String| BenchError::Matrix { place: path.to_owned(), problem, hint: None };
        if self.dataset.is_empty() || self.test.is_empty() {
            return Err(fault("a matrix needs at least one `[[dataset]]` and one `[[test]]`".to_owned()));
        }
        if self.model.is_empty() && self.baselines.is_empty() {
            return Err(fault("nothing is tested: neither a `[[model]]` nor `baselines`".to_owned()));
        }
        let labels = |what: &str, labels: Vec<String>| -> Result<Vec<String>> {
            for (position, label) in labels.iter().enumerate() {
                if label.is_empty() || label.starts_with('.') || !label.chars().all(is_plain) {
                    return Err(fault(format!("{what} `{label}`: expected letters, digits and `-_+.`")));
                }
                if labels[..position].contains(label) {
                    return Err(fault(format!("two {what}s are called `{label}`: give one a label or variant")));
                }
            }
            Ok(labels)
        };
        labels("matrix", vec![self.name.clone()])?;
        let datasets = labels("dataset", self.dataset.iter().map(DatasetEntry::label).collect())?;
        let tests = labels("test", self.test.iter().map(TestEntry::label).collect())?;
        for dataset in &datasets {
            let learn = self.model.iter().filter(|model| model.learns_from(dataset));
            labels("model", learn.map(ModelEntry::label).collect())?;
        }
        for dataset in &self.dataset {
            labels("feature store", dataset.features.keys().cloned().collect())?;
            known(path, "dataset.tests", dataset.tests.as_deref(), &tests)?;
            if !dataset.is_world() && dataset.root.is_none() {
                return Err(fault(format!("dataset `{}`: `root` is missing: where is it?", dataset.label())));
            }
            if dataset.protocol == Protocol::Ranked && !dataset.is_world() {
                return Err(fault(format!(
                    "dataset `{}`: the protocol `ranked` is made from the world's log",
                    dataset.label()
                )));
            }
            if let Some(knobs) = &dataset.world {
                knobs.check()?;
            }
        }
        for model in &self.model {
            known(path, "model.datasets", model.datasets.as_deref(), &datasets)?;
            known(path, "model.tests", model.tests.as_deref(), &tests)?;
            if let Some(problem) = model.command_problem() {
                return Err(fault(format!("model `{}`: {problem}", model.label())));
            }
            if let Some(first) = &model.first_stage {
                let names: Vec<String> =
                    self.model.iter().filter(|other| other.first_stage.is_none()).map(ModelEntry::label).collect();
                known(path, "model.first_stage", Some(std::slice::from_ref(&first.model)), &names)?;
                known(path, "model.name", Some(std::slice::from_ref(&model.name)), &names)?;
            }
        }
        let mut baselines: Vec<String> =
            cuemark_protocols::baselines::BASELINES.iter().map(|card| card.name.to_owned()).collect();
        baselines.push(ORACLE.to_owned());
        baselines.extend(CorpusGuess::ALL.map(|guess| guess.name().to_owned()));
        known(path, "baselines", Some(&self.baselines), &baselines)?;
        for (position, test) in self.test.iter().enumerate() {
            let same = |other: &&TestEntry| {
                let of = |test: &TestEntry| (test.split.clone(), test.text, test.footage, test.among);
                of(other) == of(test)
            };
            if let Some(other) = self.test[..position].iter().find(same) {
                let problem =
                    format!("tests `{}` and `{}` ask the same: give one all the metrics", other.label(), test.label());
                return Err(fault(problem));
            }
            metrics(&test.metrics)?;
            test.preset.as_deref().map(str::parse::<Preset>).transpose()?;
        }
        metrics(&self.metrics)?;
        Ok(())
    }
}

/// The metrics called so; none for none.
pub(super) fn metrics(names: &[String]) -> Result<Vec<MetricName>> {
    let lists = names.iter().map(|name| parse_list(name)).collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(lists.concat())
}

/// Whether a character may stand in a folder's name.
pub(super) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_+.".contains(c)
}

fn known(path: &str, key: &str, names: Option<&[String]>, known: &[String]) -> Result<()> {
    let Some(unknown) = names.unwrap_or_default().iter().find(|name| !known.contains(name)) else { return Ok(()) };
    let problem = format!("`{key}`: there is no `{unknown}`");
    Err(BenchError::Matrix {
        place: path.to_owned(),
        problem,
        hint: Some(nearest(unknown, known.iter().map(String::as_str))),
    })
}

/// What TOML's reader says about a line, with the key that was meant.
pub(super) fn broken(path: &str, line: usize, message: &str) -> BenchError {
    let place = format!("{path}:{line}");
    let message = message.trim();
    let field = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    let Some((unknown, known)) = field else {
        return BenchError::Matrix { place, problem: message.replace('\n', " "), hint: None };
    };
    let known = known.split('`').skip(1).step_by(2);
    BenchError::Matrix { place, problem: format!("unknown key `{unknown}`"), hint: Some(nearest(unknown, known)) }
}

fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Advice {
    let known: Vec<&str> = known.collect();
    match cuemark_core::nearest::nearest(unknown, known.iter().copied()) {
        Some(name) => Advice::nearest(name),
        None => format!("known: {}", known.join(", ")).into(),
    }
}
