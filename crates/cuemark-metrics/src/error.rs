//! Why an evaluation cannot be done.

use cuemark_core::{Advice, Advise, QueryId, Stopped, Task};

/// Why an evaluation cannot be done as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvalError {
    /// A metric's name is not one we know.
    #[error("`{name}` is not a metric{}", reason(.problem))]
    UnknownMetric {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        problem: String,
        /// The nearest name that exists.
        nearest: Option<String>,
    },
    /// A preset's name is not one we know.
    #[error("`{name}` is not a preset")]
    UnknownPreset {
        /// The name as given.
        name: String,
        /// The nearest name that exists.
        nearest: Option<String>,
    },
    /// The predictions do not answer what a metric asks.
    #[error("`{metric}` needs answers to {task}, but the predictions only answer {}", .answered.join(", "))]
    NoTask {
        /// The metric.
        metric: String,
        /// The task it asks about.
        task: Task,
        /// The tasks that the file answers.
        answered: Vec<String>,
    },
    /// The published evaluator refuses such a file, so the preset does too.
    #[error(
        "{count} of {queries} queries have no predictions{}, the first is `{first}`; the published evaluator refuses such a file",
        for_task(*.task)
    )]
    Missing {
        /// How many queries have none.
        count: usize,
        /// How many queries there are.
        queries: usize,
        /// The task.
        task: Task,
        /// The first of them.
        first: QueryId,
    },
    /// A query's id stands for two queries.
    #[error("query `{query}` stands in the {place} twice")]
    Duplicate {
        /// The id.
        query: QueryId,
        /// `truth`, or which predictions.
        place: String,
    },
    /// A metric needs the duration of a video and no file states it.
    #[error("`{metric}` needs the duration of the video of query `{query}`")]
    NoDuration {
        /// The metric.
        metric: String,
        /// The query.
        query: QueryId,
    },
    /// A step sorts by score and a prediction has none.
    #[error("a prediction for query `{query}` has no score to sort by")]
    NoScore {
        /// The query.
        query: QueryId,
    },
    /// A prediction has to name its video and does not.
    #[error("a prediction for query `{query}` names no video, and its truth names more than one")]
    NoVideo {
        /// The query.
        query: QueryId,
    },
    /// It was called off.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A metric needs something that no query of the truth has.
    #[error("`{metric}` cannot be computed: {problem}")]
    NothingToScore {
        /// The metric.
        metric: String,
        /// What is lacking.
        problem: String,
    },
}

fn reason(problem: &str) -> String {
    if problem.is_empty() { String::new() } else { format!(": {problem}") }
}

fn for_task(task: Task) -> String {
    if task == Task::Any { String::new() } else { format!(" for {task}") }
}

impl Advise for EvalError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::UnknownMetric { nearest: Some(nearest), .. } | Self::UnknownPreset { nearest: Some(nearest), .. } => {
                Some(Advice::nearest(nearest))
            }
            Self::UnknownMetric { .. } => Some(Advice::command("eval --list-metrics").and(" lists every metric")),
            Self::UnknownPreset { .. } => Some(Advice::command("eval --list-metrics").and(" lists every preset")),
            Self::NoTask { task: Task::Any, .. } => {
                Some(Advice::say("ask for `VCMR:`, `SVMR:` or `VR:` metrics, or pass ").set_to("preset", "tvr"))
            }
            Self::NoTask { .. } => None,
            Self::Missing { .. } => {
                let without = "without a preset such queries count as misses and are shown; pass ";
                Some(Advice::say(without).setting("metrics").and(" instead"))
            }
            Self::Duplicate { .. } => Some("give every query an id of its own".into()),
            Self::NoDuration { .. } => {
                let pass = Advice::say("add `duration` to the truth, or pass ").set_any("durations", "FILE");
                Some(pass.and(" for layouts that state none"))
            }
            Self::NoScore { .. } => {
                Some(Advice::say("pass ").set_to("order", "file").and(" to rank by the order of the file"))
            }
            Self::NoVideo { .. } => Some("add `video` to every prediction".into()),
            Self::NothingToScore { .. } | Self::Stopped(_) => None,
        }
    }
}
