//! What a method answers.

use std::fmt;

use crate::{Extra, QueryId, RowCounts, Span, VideoId};

/// One scored span; `video` may be left out when the truth names one.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The video it lies in.
    pub video: Option<VideoId>,
    /// Where, in seconds.
    pub span: Span,
    /// How sure the method is; only the order matters. `None` when the file gives an order and nothing else.
    pub score: Option<f64>,
}

/// The ranked answer to one query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPredictions {
    /// The query.
    pub query: QueryId,
    /// Its predictions in **file order**, best first by contract; steps that re-order say so.
    pub ranked: Vec<Prediction>,
    /// Predicted saliency per clip, for highlight metrics.
    pub saliency: Option<Vec<f64>>,
    /// Fields that cuemark does not know.
    pub extra: Extra,
}

/// Which question a list answers. Most files answer one; TVR's submission format answers three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// Whatever is asked: the file names no task.
    Any,
    /// Moments anywhere in a corpus of videos.
    Vcmr,
    /// Moments inside the one right video.
    Svmr,
    /// Whole videos of a corpus.
    Vr,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::Vcmr => "VCMR",
            Self::Svmr => "SVMR",
            Self::Vr => "VR",
        })
    }
}

/// The answers to one task, in file order.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskPredictions {
    /// The task.
    pub task: Task,
    /// One list per query.
    pub queries: Vec<QueryPredictions>,
}

/// Everything one prediction file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Predictions {
    /// Lists by task, in file order.
    pub tasks: Vec<TaskPredictions>,
    /// Predicted spans that had to be read differently from what the file says.
    pub rows: RowCounts,
    /// What a reader of the numbers should know about the file: how many free-text answers could not be read, and why.
    pub notes: Vec<String>,
    /// Fields of the file as a whole that cuemark does not know.
    pub extra: Extra,
}

impl Predictions {
    /// Answers to whatever is asked.
    pub fn any(queries: Vec<QueryPredictions>) -> Self {
        Self { tasks: vec![TaskPredictions { task: Task::Any, queries }], ..Self::default() }
    }

    /// The lists for `task`; a file that names no task answers every one.
    pub fn for_task(&self, task: Task) -> Option<&[QueryPredictions]> {
        let named = |wanted| self.tasks.iter().find(|list| list.task == wanted);
        named(task).or_else(|| named(Task::Any)).map(|list| list.queries.as_slice())
    }
}
