//! Which metrics, in which conventions.

use cuemark_core::{Answers, Progress, Truth};
use cuemark_metrics::{
    Evaluation, Grouping, MetricName, Order, Overrides, Plan, Preset, Suppression, Threshold, TruthSpans, parse_list,
    suitable,
};
use serde::{Deserialize, Serialize};

use crate::belonging::Pairing;
use crate::{Error, Leniency, Note, Result};

/// Which metrics, in which conventions. By default: the metrics that suit the files, as their papers define them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Scoring {
    /// Metrics, separated by commas, in any spelling that papers use (`R1@0.5`, `MR-full-mAP`). Default: what suits the files.
    #[cfg_attr(feature = "clap", arg(long, value_name = "LIST"))]
    pub metrics: Option<String>,
    /// A published evaluator to agree with to the digit: qvhighlights, tvr, 2d-tan, charades-cd, tvr-ranking,
    /// tvr-ranking-paper, mvmr, molef, didemo, tvsum, youtube-highlights; moment-detr, lighthouse, univtg; video-llm.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub preset: Option<String>,
    /// NMS: suppress answers that overlap a better one by more than this, or `none`.
    #[cfg_attr(feature = "clap", arg(long, value_name = "T|none"))]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub nms: Option<Suppression>,
    /// What the ranking is. Default: the order of the file, or the preset's.
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub order: Option<Order>,
    /// Count an answer only when its overlap is above the threshold, not at it.
    #[cfg_attr(feature = "clap", arg(long))]
    pub strict: bool,
    /// Clip true spans to their video first.
    #[cfg_attr(feature = "clap", arg(long))]
    pub clip_truth: bool,
    /// Score files even when they do not seem to belong together.
    #[cfg_attr(feature = "clap", arg(long))]
    pub lenient: bool,
}

/// A [`Scoring`] whose every name exists.
#[derive(Debug, Clone)]
pub struct CheckedScoring {
    metrics: Option<Vec<MetricName>>,
    preset: Option<Preset>,
    overrides: Overrides,
    groupings: Vec<Grouping>,
    leniency: Leniency,
}

/// What came of scoring one list of predictions.
#[derive(Debug, Clone)]
pub struct ScoredLists {
    /// How the numbers were computed.
    pub plan: Plan,
    /// The numbers.
    pub evaluation: Evaluation,
    /// What a reader of the numbers should know about the predictions.
    pub notes: Vec<Note>,
}

impl Scoring {
    /// Refuses names that do not exist, so that no file is read in vain; `group_by` names divisions of the queries that
    /// every metric is reported for too.
    ///
    /// # Errors
    /// The first name that does not exist.
    pub fn check<S: AsRef<str>>(&self, group_by: &[S]) -> Result<CheckedScoring> {
        let overrides = Overrides {
            nms: self.nms,
            order: self.order,
            threshold: self.strict.then_some(Threshold::Strict),
            truth: self.clip_truth.then_some(TruthSpans::Clipped),
        };
        Ok(CheckedScoring {
            metrics: self.metrics.as_deref().map(parse_list).transpose()?,
            preset: self.preset.as_deref().map(str::parse::<Preset>).transpose()?,
            overrides,
            groupings: group_by.iter().map(|name| grouping(name.as_ref())).collect::<Result<_>>()?,
            leniency: if self.lenient { Leniency::Note } else { Leniency::Refuse },
        })
    }
}

fn grouping(name: &str) -> Result<Grouping> {
    Grouping::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = Grouping::ALL.into_iter().map(Grouping::name).collect();
        Error::setting("group_by", format!("`{name}` is not one of {}", known.join(", ")))
    })
}

impl CheckedScoring {
    /// The same for a table that has to stand on a page: of a preset without metrics its headline, not the whole sheet of its
    /// evaluator.
    #[must_use]
    pub fn headline(mut self) -> Self {
        self.metrics = self.metrics.or_else(|| self.preset.map(Preset::headline));
        self
    }

    /// The plan for these files; without metrics or preset, the metrics that suit them.
    pub fn plan(&self, truths: &[Truth], predictions: &dyn Answers) -> Plan {
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

    /// Refuses predictions that cannot belong to `truths`, unless the request is lenient, and notes what looks odd about
    /// them. `file` is what they are called: a path, or the argument that holds them.
    ///
    /// # Errors
    /// [`Error::Mismatch`].
    pub fn belonging(&self, truths: &[Truth], predictions: &dyn Answers, file: &str) -> Result<Vec<Note>> {
        let plan = self.plan(truths, predictions);
        Pairing { plan: &plan, truths, answers: predictions, file, leniency: self.leniency }.check()
    }

    /// Scores lists that are in memory already; `file` is what they are called.
    ///
    /// # Errors
    /// When they do not belong to `truths`, a metric cannot be computed on them, or `progress` was stopped.
    pub fn score(
        &self,
        truths: &[Truth],
        predictions: &dyn Answers,
        file: &str,
        progress: &Progress,
    ) -> Result<ScoredLists> {
        let plan = self.plan(truths, predictions);
        let notes = Pairing { plan: &plan, truths, answers: predictions, file, leniency: self.leniency }.check()?;
        let evaluation = cuemark_metrics::evaluate(&plan, truths, predictions, progress)?;
        Ok(ScoredLists { plan, evaluation, notes })
    }
}
