//! Which metrics, through which steps, judged how.

use std::fmt;
use std::str::FromStr;

use cuemark_core::Nms;
use serde::{Deserialize, Serialize};

use crate::{Grouping, Judge, Metric, MetricName, Preset, Step, Threshold, Ties};

/// What happens to a query that the predictions do not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// It is a miss. Default.
    #[default]
    Miss,
    /// It is left out of the mean, as in TVR-Ranking's evaluator.
    Skip,
    /// Nothing is evaluated, as in TVR's and QVHighlights' evaluators.
    Refuse,
}

/// Metrics that share their steps and their judge.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// What lists go through first, in order.
    pub steps: Vec<Step>,
    /// When a prediction counts.
    pub judge: Judge,
    /// What is measured then: positions in [`Plan::metrics`].
    pub metrics: Vec<usize>,
}

/// What somebody changes about a plan; what is `None` stays as the plan has it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Overrides {
    /// Suppression of answers that overlap a better one (NMS).
    pub nms: Option<Suppression>,
    /// What the ranking is.
    pub order: Option<Order>,
    /// Whether an overlap at the threshold counts.
    pub threshold: Option<Threshold>,
    /// Whether true spans are clipped to their video first.
    pub truth: Option<TruthSpans>,
}

/// Whether answers that overlap a better one are suppressed (NMS). As text: a threshold in 0 to 1, or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "SuppressionText", try_from = "SuppressionText")]
pub enum Suppression {
    /// None is.
    Off,
    /// Those that overlap by more than this IoU.
    Above(f64),
}

/// What a file may say of suppression: a number, or a word.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SuppressionText {
    Threshold(f64),
    Word(String),
}

impl Suppression {
    /// Suppression above `threshold`.
    ///
    /// # Errors
    /// When it is not in 0 to 1.
    pub fn above(threshold: f64) -> Result<Self, String> {
        let wrong = || format!("{threshold} is not a threshold between 0 and 1, nor `none`");
        (0.0..=1.0).contains(&threshold).then_some(Self::Above(threshold)).ok_or_else(wrong)
    }
}

impl FromStr for Suppression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::Off),
            text => Self::above(text.parse().map_err(|_| "a threshold between 0 and 1, or `none`".to_owned())?),
        }
    }
}

impl From<Suppression> for SuppressionText {
    fn from(suppression: Suppression) -> Self {
        match suppression {
            Suppression::Off => Self::Word("none".to_owned()),
            Suppression::Above(threshold) => Self::Threshold(threshold),
        }
    }
}

impl TryFrom<SuppressionText> for Suppression {
    type Error = String;

    fn try_from(text: SuppressionText) -> Result<Self, String> {
        match text {
            SuppressionText::Threshold(threshold) => Self::above(threshold),
            SuppressionText::Word(word) => word.parse(),
        }
    }
}

/// What a list's ranking is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Order {
    /// The order of the file.
    File,
    /// The score, highest first.
    Score,
}

/// Whether true spans may reach past their video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TruthSpans {
    /// They are clipped first.
    Clipped,
}

/// Everything that an evaluation does.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The preset it comes from.
    pub preset: Option<Preset>,
    /// What happens to unanswered queries.
    pub missing: Missing,
    /// Every metric, in the order they are reported.
    pub metrics: Vec<MetricName>,
    /// The same metrics by shared steps.
    pub stages: Vec<Stage>,
    /// Divisions of the queries that every metric is reported for as well.
    pub groupings: Vec<Grouping>,
}

impl Plan {
    /// Scores `metrics` as their papers define them: file order, no suppression, inclusive thresholds, a query without predictions is a miss.
    pub fn plain(metrics: Vec<MetricName>, overrides: Overrides) -> Self {
        Self::build(None, Missing::Miss, metrics, overrides, |_| (Vec::new(), Judge::default()))
    }

    /// Scores as a published evaluator does: its own metrics, or `metrics` in its conventions.
    pub fn preset(preset: Preset, metrics: Option<Vec<MetricName>>, overrides: Overrides) -> Self {
        let metrics = metrics.unwrap_or_else(|| preset.metrics());
        Self::build(Some(preset), preset.missing(), metrics, overrides, |metric| preset.conventions(metric))
    }

    /// How the numbers are computed, a line per set of steps.
    pub fn conventions(&self) -> Vec<String> {
        let name = self.preset.map_or_else(|| "as defined".to_owned(), |preset| format!("preset {preset}"));
        let lines = self.stages.iter().map(|stage| {
            let first = stage.metrics.first().map_or(String::new(), |position| self.metrics[*position].to_string());
            let others = stage.metrics.len().saturating_sub(1);
            let more = if others > 0 { format!(" and {others} more") } else { String::new() };
            let judged = stage.metrics.iter().any(|position| self.metrics[*position].metric.has_threshold());
            let how = if judged { stage.to_string() } else { stage.steps_alone() };
            format!("{name}: {first}{more}: {how}")
        });
        let differs = self.preset.and_then(Preset::differs).map(|differs| format!("{name}: {differs}"));
        lines.chain(differs).collect()
    }

    fn build(
        preset: Option<Preset>,
        missing: Missing,
        metrics: Vec<MetricName>,
        overrides: Overrides,
        conventions: impl Fn(&Metric) -> (Vec<Step>, Judge),
    ) -> Self {
        let mut stages: Vec<Stage> = Vec::new();
        for (position, name) in metrics.iter().enumerate() {
            let (steps, judge) = conventions(&name.metric);
            let (steps, judge) = overrides.apply(steps, judge);
            match stages.iter_mut().find(|stage| stage.steps == steps && stage.judge == judge) {
                Some(stage) => stage.metrics.push(position),
                None => stages.push(Stage { steps, judge, metrics: vec![position] }),
            }
        }
        let groupings = preset.map_or(Vec::new(), Preset::groupings);
        Self { preset, missing, metrics, stages, groupings }
    }
}

impl Overrides {
    fn apply(self, mut steps: Vec<Step>, mut judge: Judge) -> (Vec<Step>, Judge) {
        if let Some(order) = self.order {
            let sorts = |step: &Step| matches!(step, Step::SortByScore(_));
            match order {
                Order::File => steps.retain(|step| !sorts(step)),
                Order::Score if !steps.iter().any(sorts) => steps.insert(0, Step::SortByScore(Ties::ByPlace)),
                Order::Score => {}
            }
        }
        if let Some(nms) = self.nms {
            let present = steps.iter().position(|step| matches!(step, Step::Suppress(_)));
            match (present, nms) {
                (Some(at), Suppression::Above(threshold)) => {
                    if let Step::Suppress(nms) = &mut steps[at] {
                        nms.threshold = threshold;
                    }
                }
                (Some(at), Suppression::Off) => drop(steps.remove(at)),
                (None, Suppression::Above(threshold)) => steps.push(Step::Suppress(Nms::new(threshold))),
                (None, Suppression::Off) => {}
            }
        }
        if self.truth == Some(TruthSpans::Clipped) && !steps.contains(&Step::ClipTruth) {
            steps.insert(0, Step::ClipTruth);
        }
        if let Some(threshold) = self.threshold {
            judge.threshold = threshold;
        }
        (steps, judge)
    }
}

impl Stage {
    /// How metrics without a threshold were computed.
    fn steps_alone(&self) -> String {
        let steps: Vec<String> = self.steps.iter().map(ToString::to_string).collect();
        if steps.is_empty() { "in the order of the file".to_owned() } else { steps.join("; ") }
    }
}

impl fmt::Display for Stage {
    /// What a report says about how these metrics were computed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            write!(f, "{step}; ")?;
        }
        let sign = match self.judge.threshold {
            Threshold::Inclusive => ">=",
            Threshold::Strict => ">",
        };
        write!(f, "counts when IoU {sign} m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_list;

    #[test]
    fn metrics_with_the_same_steps_share_a_stage() {
        let metrics = parse_list("R@1,IoU=0.5,R@5,IoU=0.5,mIoU").unwrap();
        assert_eq!(Plan::plain(metrics.clone(), Overrides::default()).stages.len(), 1);
        let molef = Plan::preset(Preset::Molef, Some(metrics), Overrides::default());
        assert_eq!(molef.stages.len(), 2, "suppression depends on the threshold");
    }

    #[test]
    fn the_command_line_replaces_one_step_and_leaves_the_others() {
        let overrides = Overrides {
            nms: Some(Suppression::Above(0.4)),
            threshold: Some(Threshold::Inclusive),
            ..Overrides::default()
        };
        let plan = Plan::preset(Preset::Tan2d, None, overrides);
        let nms = plan.stages[0].steps.iter().find_map(|step| match step {
            Step::Suppress(nms) => Some(nms.threshold),
            _ => None,
        });
        assert_eq!(nms, Some(0.4));
        assert_eq!(plan.stages[0].judge.threshold, Threshold::Inclusive);
        let off = Plan::preset(Preset::Tan2d, None, Overrides { nms: Some(Suppression::Off), ..Overrides::default() });
        assert!(off.stages[0].steps.is_empty());
    }
}
