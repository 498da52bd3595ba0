//! Which metrics in which conventions: the keyword arguments that stand for the flags of `cuemark eval`.

use cuemark::{CheckedScoring, Scoring};
use cuemark_metrics::{Order, Suppression};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{is_sequence, type_name};
use crate::failure::{Failure, Result};

/// The keyword arguments as they come.
pub(crate) struct ScoringFlags<'a, 'py> {
    pub(crate) metrics: Option<&'a Bound<'py, PyAny>>,
    pub(crate) preset: Option<&'a str>,
    pub(crate) nms: Option<&'a Bound<'py, PyAny>>,
    pub(crate) order: Option<&'a str>,
    pub(crate) strict: bool,
    pub(crate) clip_truth: bool,
    pub(crate) lenient: bool,
    pub(crate) group_by: Option<&'a Bound<'py, PyAny>>,
}

impl ScoringFlags<'_, '_> {
    /// Understands them, before any file is read.
    ///
    /// # Errors
    /// The first name or number that cannot be.
    pub(crate) fn understand(&self) -> Result<CheckedScoring> {
        let groups = self.group_by.map(|groups| words(groups, "group_by")).transpose()?.unwrap_or_default();
        let groups: Vec<&str> = groups.iter().flat_map(|names| names.split(',')).map(str::trim).collect();
        Ok(self.scoring()?.check(&groups)?)
    }

    /// The same as a request has it, names unchecked.
    ///
    /// # Errors
    /// When an argument is of the wrong type.
    pub(crate) fn scoring(&self) -> Result<Scoring> {
        let names = self.metrics.map(|metrics| words(metrics, "metrics")).transpose()?;
        let order = match self.order {
            None => None,
            Some("file") => Some(Order::File),
            Some("score") => Some(Order::Score),
            Some(other) => return Err(Failure::argument("order", format!("`{other}` is not file or score"))),
        };
        Ok(Scoring {
            metrics: names.map(|names| names.join(",")),
            preset: self.preset.map(str::to_owned),
            nms: self.nms.map(suppression).transpose()?,
            order,
            strict: self.strict,
            clip_truth: self.clip_truth,
            lenient: self.lenient,
        })
    }
}

/// One text, or several.
pub(crate) fn words(object: &Bound<'_, PyAny>, argument: &str) -> Result<Vec<String>> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(vec![text.to_cow()?.into_owned()]);
    }
    let wrong = |place: String, what: &Bound<'_, PyAny>| {
        Failure::wrong_type(place, format!("a `{}` is neither text nor a list of texts", type_name(what)))
    };
    if !is_sequence(object) {
        return Err(wrong(argument.to_owned(), object));
    }
    let mut words = Vec::new();
    for (at, word) in object.try_iter()?.enumerate() {
        let word = word?;
        words.push(word.extract::<String>().map_err(|_| wrong(format!("{argument}[{at}]"), &word))?);
    }
    Ok(words)
}

/// A threshold, or `"none"`.
fn suppression(object: &Bound<'_, PyAny>) -> Result<Suppression> {
    if let Ok(text) = object.cast::<PyString>()
        && text.to_cow()? == "none"
    {
        return Ok(Suppression::Off);
    }
    let problem = || {
        format!(
            "{} is not a threshold between 0 and 1, nor \"none\"",
            object.str().map_or_else(|_| "this".to_owned(), |text| text.to_string())
        )
    };
    let threshold = object.extract::<f64>().ok().and_then(|threshold| Suppression::above(threshold).ok());
    threshold.ok_or_else(|| Failure::argument("nms", problem()))
}
