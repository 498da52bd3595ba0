//! Which metrics in which conventions: the keyword arguments that stand for the flags of `cuemark eval`.

use cuemark_core::Truth;
use cuemark_metrics::{
    Answers, Comparison, Grouping, MetricName, Order, Overrides, Plan, Preset, TruthSpans, parse_list, suitable,
};
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
    pub(crate) group_by: Option<&'a Bound<'py, PyAny>>,
}

/// The same, understood: every name exists.
#[derive(Debug, Clone)]
pub(crate) struct Scoring {
    metrics: Option<Vec<MetricName>>,
    preset: Option<Preset>,
    overrides: Overrides,
    groupings: Vec<Grouping>,
}

impl ScoringFlags<'_, '_> {
    /// Understands them, before any file is read.
    ///
    /// # Errors
    /// The first name or number that cannot be.
    pub(crate) fn understand(&self) -> Result<Scoring> {
        let names = self.metrics.map(|metrics| words(metrics, "metrics")).transpose()?;
        let metrics = names.map(|names| parse_list(&names.join(","))).transpose()?;
        let preset = self.preset.map(str::parse::<Preset>).transpose()?;
        let order = match self.order {
            None => None,
            Some("file") => Some(Order::File),
            Some("score") => Some(Order::Score),
            Some(other) => return Err(Failure::argument("order", format!("`{other}` is not file or score"))),
        };
        let groups = self.group_by.map(|groups| words(groups, "group_by")).transpose()?.unwrap_or_default();
        let mut groupings = Vec::new();
        for name in groups.iter().flat_map(|names| names.split(',')).map(str::trim) {
            groupings.push(Grouping::from_name(name).ok_or_else(|| {
                let known: Vec<&str> = Grouping::ALL.into_iter().map(Grouping::name).collect();
                Failure::argument("group_by", format!("`{name}` is not one of {}", known.join(", ")))
            })?);
        }
        let overrides = Overrides {
            nms: self.nms.map(suppression).transpose()?,
            order,
            comparison: self.strict.then_some(Comparison::Strict),
            truth: self.clip_truth.then_some(TruthSpans::Clipped),
        };
        Ok(Scoring { metrics, preset, overrides, groupings })
    }
}

impl Scoring {
    /// The plan for these files; without metrics or preset, the metrics that suit them.
    pub(crate) fn plan(&self, truths: &[Truth], predictions: &dyn Answers) -> Plan {
        let mut plan = match self.preset {
            Some(preset) => Plan::preset(preset, self.metrics.clone(), self.overrides),
            None => {
                let metrics = self.metrics.clone().unwrap_or_else(|| suitable(truths, predictions));
                Plan::plain(metrics, self.overrides)
            }
        };
        plan.groupings.extend(&self.groupings);
        plan.groupings.dedup();
        plan
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
fn suppression(object: &Bound<'_, PyAny>) -> Result<Option<f64>> {
    if let Ok(text) = object.cast::<PyString>()
        && text.to_cow()? == "none"
    {
        return Ok(None);
    }
    let threshold = object.extract::<f64>().ok().filter(|threshold| (0.0..=1.0).contains(threshold));
    let problem = || {
        format!(
            "{} is not a threshold between 0 and 1, nor \"none\"",
            object.str().map_or_else(|_| "this".to_owned(), |text| text.to_string())
        )
    };
    threshold.map(Some).ok_or_else(|| Failure::argument("nms", problem()))
}
