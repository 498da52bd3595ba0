//! Ranked lists as an evaluation reads them, wherever they lie: in [`Predictions`], or in somebody else's columns.

use std::collections::BTreeMap;

use indexmap::IndexSet;

use crate::{Prediction, Predictions, QueryId, QueryPredictions, Span, Task, VideoId};

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

    /// Those of the first `depth` predictions of list `place` that lie in one of `videos`, each with its rank from 0, best
    /// first; `None` where they cannot be told without taking up the whole list. Most answers to a search among many
    /// videos lie in others than the right one, and need not be looked at to be wrong.
    fn ranked_in(&self, _place: usize, _depth: usize, _videos: &[&VideoId]) -> Option<Vec<(usize, Answer<'_>)>> {
        None
    }

    /// The videos that the answers lie in, where every one of them refers to a name in one table: two answers lie in the
    /// same video then exactly if their references are the same, which is sooner compared than names.
    fn videos(&self) -> Option<&VideoTable> {
        None
    }

    /// Fields of the records that nobody reads, where they are known.
    fn unread_fields(&self) -> UnreadFields {
        UnreadFields::new()
    }
}

/// Names of videos, each once.
pub type VideoTable = IndexSet<VideoId>;

/// Unknown fields by name: how many lists have them, and which is the first.
pub type UnreadFields = BTreeMap<String, UnreadField>;

/// An unknown field of some lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadField {
    /// How many lists have it.
    pub lists: usize,
    /// The place of the first that does.
    pub first: usize,
}

/// Notes that list `place` has an unknown field of that name; lists come in order.
pub fn note_unread(fields: &mut UnreadFields, name: &str, place: usize) {
    match fields.get_mut(name) {
        Some(field) => field.lists += 1,
        None => {
            fields.insert(name.to_owned(), UnreadField { lists: 1, first: place });
        }
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

    fn unread_fields(&self) -> UnreadFields {
        let mut fields = UnreadFields::new();
        for (place, list) in self.iter().enumerate() {
            for (name, _) in list.extra.iter() {
                note_unread(&mut fields, name, place);
            }
        }
        fields
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
