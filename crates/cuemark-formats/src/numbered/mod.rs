//! The entries that TVR and TVR-Ranking submissions are made of, in which a video is a number.
//!
//! ```json
//! {"desc_id": 90200, "desc": "…", "predictions": [[video number, start, end, score], …]}
//! ```
//! The score may be left out. A submission can hold three million rows on one line, so it is read in blocks of entries that
//! all cores decode, and kept in columns ([`NumberedAnswers`]) of 28 bytes a row or less.

mod decode;
mod write;

use std::ops::Range;
use std::sync::Arc;

use cuemark_core::{
    Answer, Answers, Extra, Lists, Prediction, QueryId, QueryPredictions, RowCounts, Span, Task, TaskPredictions,
    UnreadFields, VideoId, VideoTable,
};
use serde_json::{Map, Value};

pub(crate) use decode::{Codes, read_list};
pub(crate) use write::{Entries, Numbers};

use crate::{Result, Source};

/// What a submission answers, as an evaluation reads it: in columns, its videos by number.
#[derive(Debug)]
pub struct NumberedAnswers {
    pub(crate) tasks: Vec<(Task, NumberedLists)>,
    /// Predicted spans that had to be read differently from what the file says.
    pub rows: RowCounts,
}

impl Answers for NumberedAnswers {
    fn tasks(&self) -> Vec<Task> {
        self.tasks.iter().map(|(task, _)| *task).collect()
    }

    fn named(&self, task: Task) -> Option<&dyn Lists> {
        self.tasks.iter().find(|(known, _)| *known == task).map(|(_, lists)| lists as &dyn Lists)
    }
}

impl NumberedAnswers {
    /// The same as lists of predictions.
    ///
    /// # Errors
    /// When they would pass the memory budget of `source`, which is what was read.
    pub(crate) fn into_tasks(self, source: &Source) -> Result<Vec<TaskPredictions>> {
        let owned =
            |(task, lists): (Task, NumberedLists)| Ok(TaskPredictions { task, queries: lists.into_owned(source)? });
        self.tasks.into_iter().map(owned).collect()
    }
}

/// The lists of one task.
#[derive(Debug)]
pub(crate) struct NumberedLists {
    videos: Arc<VideoTable>,
    lists: Vec<List>,
    /// Rows of some lists each.
    chunks: Vec<Packed>,
    unread: UnreadFields,
}

/// One list: its query, where its rows are, and the fields that nobody knows.
#[derive(Debug)]
struct List {
    query: QueryId,
    chunk: u32,
    from: u32,
    to: u32,
    /// As the JSON text that they stand in; there are as many as queries, and hardly anybody asks.
    fields: Option<Box<str>>,
}

/// Rows of predictions, one column for each number.
#[derive(Debug, Default)]
struct Columns {
    /// Places in the table of videos.
    video: Vec<u32>,
    start: Vec<f64>,
    end: Vec<f64>,
    /// NaN where there is none: no file can say that.
    score: Vec<f64>,
}

impl Columns {
    /// Bytes that one row takes.
    const ROW: usize = size_of::<u32>() + 3 * size_of::<f64>();

    fn push(&mut self, video: u32, span: Span, score: Option<f64>) {
        self.video.push(video);
        self.start.push(span.start());
        self.end.push(span.end());
        self.score.push(score.unwrap_or(f64::NAN));
    }

    fn len(&self) -> usize {
        self.video.len()
    }

    fn clear(&mut self) {
        self.video.clear();
        self.start.clear();
        self.end.clear();
        self.score.clear();
    }

    /// A copy in as little memory as it needs.
    fn pack(&self) -> Packed {
        Packed {
            video: self.video.clone(),
            start: Column::of(&self.start),
            end: Column::of(&self.end),
            score: Column::of(&self.score),
        }
    }
}

/// Columns that nothing is added to any more.
#[derive(Debug)]
struct Packed {
    video: Vec<u32>,
    start: Column,
    end: Column,
    score: Column,
}

/// Numbers, exactly as they were read. Predicted times mostly lie on a grid of clips, which half the bytes hold as well.
#[derive(Debug)]
enum Column {
    /// One number in every row: answers that name no time say 0 and 0.
    Same(f64),
    Narrow(Vec<f32>),
    Wide(Vec<f64>),
}

impl Column {
    fn of(values: &[f64]) -> Self {
        if let Some(first) = values.first()
            && values.iter().fold(true, |same, value| same & (value.to_bits() == first.to_bits()))
        {
            return Self::Same(*first);
        }
        let narrow = |value: &f64| *value as f32;
        let is_kept = |value: &f64| f64::from(narrow(value)).to_bits() == value.to_bits();
        // No early end, so that several are looked at at once.
        match values.iter().fold(true, |kept, value| kept & is_kept(value)) {
            true => Self::Narrow(values.iter().map(narrow).collect()),
            false => Self::Wide(values.to_vec()),
        }
    }

    fn get(&self, row: usize) -> f64 {
        match self {
            Self::Same(value) => *value,
            Self::Narrow(values) => f64::from(values[row]),
            Self::Wide(values) => values[row],
        }
    }
}

impl NumberedLists {
    /// The columns that hold list `place`, and its rows in them.
    fn rows(&self, place: usize) -> (&Packed, Range<usize>) {
        let List { chunk, from, to, .. } = &self.lists[place];
        (&self.chunks[*chunk as usize], *from as usize..*to as usize)
    }

    #[inline]
    fn answer(&self, columns: &Packed, row: usize) -> Answer<'_> {
        let score = columns.score.get(row);
        Answer {
            video: self.videos.get_index(columns.video[row] as usize),
            // Both came out of a span.
            span: Span::new(columns.start.get(row), columns.end.get(row)).unwrap_or(Span::whole(0.0)),
            score: (!score.is_nan()).then_some(score),
        }
    }

    fn into_owned(self, source: &Source) -> Result<Vec<QueryPredictions>> {
        let rows: usize = self.chunks.iter().map(|columns| columns.video.len()).sum();
        source.charge(1, rows * size_of::<Prediction>() + self.lists.len() * size_of::<QueryPredictions>())?;
        let owned = |place: usize| QueryPredictions {
            query: self.lists[place].query.clone(),
            ranked: self
                .ranked(place)
                .into_iter()
                .map(|Answer { video, span, score }| Prediction { video: video.cloned(), span, score })
                .collect(),
            saliency: None,
            extra: self.lists[place].extra(),
        };
        Ok((0..self.lists.len()).map(owned).collect())
    }
}

impl List {
    fn extra(&self) -> Extra {
        // The text was decoded when it was read.
        let fields = self.fields.as_deref().and_then(|fields| serde_json::from_str::<Map<String, Value>>(fields).ok());
        Extra::new(fields.unwrap_or_default())
    }
}

impl Lists for NumberedLists {
    fn count(&self) -> usize {
        self.lists.len()
    }

    fn query(&self, place: usize) -> &QueryId {
        &self.lists[place].query
    }

    fn is_unanswered(&self, place: usize) -> bool {
        self.lists[place].from == self.lists[place].to
    }

    fn saliency(&self, _: usize) -> Option<&[f64]> {
        None
    }

    fn ranked(&self, place: usize) -> Vec<Answer<'_>> {
        let (columns, rows) = self.rows(place);
        rows.map(|row| self.answer(columns, row)).collect()
    }

    fn ranked_in(&self, place: usize, depth: usize, videos: &[&VideoId]) -> Option<Vec<(usize, Answer<'_>)>> {
        let (columns, rows) = self.rows(place);
        let first = rows.start;
        let rows = first..rows.end.min(first.saturating_add(depth));
        let code = |video: &&VideoId| self.videos.get_index_of(*video).map(|code| code as u32);
        let codes: Vec<u32> = videos.iter().filter_map(code).collect();
        let rows = &columns.video[rows];
        // Nearly every query has one right video, and one number is compared with a hundred sooner than a list is searched.
        let is_right = |code: &u32| match codes.as_slice() {
            [only] => code == only,
            many => many.contains(code),
        };
        // Counted first: that is quicker than growing.
        let mut found = Vec::with_capacity(rows.iter().filter(|code| is_right(code)).count());
        let right = rows.iter().enumerate().filter(|(_, code)| is_right(code));
        found.extend(right.map(|(rank, _)| (rank, self.answer(columns, first + rank))));
        Some(found)
    }

    fn videos(&self) -> Option<&VideoTable> {
        Some(&self.videos)
    }

    fn unread_fields(&self) -> UnreadFields {
        self.unread.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_keep_every_number_to_the_bit_in_half_the_room_where_that_can_be() {
        for (values, narrow) in [
            (vec![0.0, 1.5, 34.5, 0.25], true),
            (vec![1.5, 19.9], false),
            (vec![f64::from(f32::MAX), f64::MAX], false),
            (vec![-0.0, 0.0], true),
            (vec![1.0, 16_777_217.0], false),
            (vec![], true),
        ] {
            let column = Column::of(&values);
            assert_eq!(matches!(column, Column::Narrow(_)), narrow, "{values:?}");
            for (row, value) in values.iter().enumerate() {
                assert_eq!(column.get(row).to_bits(), value.to_bits());
            }
        }
        assert!(Column::of(&[f64::NAN]).get(0).is_nan());
        let same = Column::of(&[-0.0; 3]);
        assert!(matches!(same, Column::Same(_)) && same.get(2).to_bits() == (-0.0f64).to_bits());
    }
}
