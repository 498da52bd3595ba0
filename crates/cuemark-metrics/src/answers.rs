//! Ranked lists as an evaluation reads them, wherever they lie: in [`Predictions`], or in somebody else's columns.

use cuemark_core::{Extra, Prediction, Predictions, QueryId, QueryPredictions, Span, Task, VideoId};

/// One prediction; without a video it lies in the one that its query is about.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The video it lies in.
    pub video: Option<&'a VideoId>,
    /// Where, in seconds.
    pub span: Span,
    /// How sure the method is.
    pub score: Option<f64>,
}

/// One ranked list per query.
pub trait Lists: Sync {
    /// Number of lists.
    fn count(&self) -> usize;

    /// The query that list `place` answers.
    fn query(&self, place: usize) -> &QueryId;

    /// Whether list `place` holds no prediction.
    fn is_unanswered(&self, place: usize) -> bool;

    /// Predicted saliency per clip, for highlight metrics.
    fn saliency(&self, place: usize) -> Option<&[f64]>;

    /// The predictions of list `place`, best first.
    fn ranked(&self, place: usize) -> Vec<Answer<'_>>;

    /// Fields of list `place` that nobody reads, where they are kept.
    fn extra(&self, _place: usize) -> Option<&Extra> {
        None
    }
}

/// Lists by task.
pub trait Answers: Sync {
    /// The tasks that are answered, in their order.
    fn tasks(&self) -> Vec<Task>;

    /// The lists under this very task.
    fn named(&self, task: Task) -> Option<&dyn Lists>;

    /// What a reader of the numbers should know about the lists as a whole.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The lists for `task`; lists for [`Task::Any`] answer every one.
    fn lists(&self, task: Task) -> Option<&dyn Lists> {
        self.named(task).or_else(|| self.named(Task::Any))
    }
}

impl Lists for Vec<QueryPredictions> {
    fn count(&self) -> usize {
        self.len()
    }

    fn query(&self, place: usize) -> &QueryId {
        &self[place].query
    }

    fn is_unanswered(&self, place: usize) -> bool {
        self[place].ranked.is_empty()
    }

    fn saliency(&self, place: usize) -> Option<&[f64]> {
        self[place].saliency.as_deref()
    }

    fn ranked(&self, place: usize) -> Vec<Answer<'_>> {
        let predictions = self[place].ranked.iter();
        predictions
            .map(|Prediction { video, span, score }| Answer { video: video.as_ref(), span: *span, score: *score })
            .collect()
    }

    fn extra(&self, place: usize) -> Option<&Extra> {
        Some(&self[place].extra)
    }
}

impl Answers for Predictions {
    fn tasks(&self) -> Vec<Task> {
        self.tasks.iter().map(|lists| lists.task).collect()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn named(&self, task: Task) -> Option<&dyn Lists> {
        self.tasks.iter().find(|lists| lists.task == task).map(|lists| &lists.queries as &dyn Lists)
    }
}
