//! Writing the entries.

use cuemark_core::{Prediction, QueryPredictions, VideoId};
use rustc_hash::FxHashMap;
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, SerializeTuple, Serializer};
use serde_json::{Map, Value};

use crate::fault::shorten;
use crate::predicted::{Finite, ForeignId};

/// The numbers that videos are written with.
#[derive(Default)]
pub(crate) struct Numbers(FxHashMap<VideoId, u64>);

impl Numbers {
    /// Those that a file was read with.
    pub(crate) fn remembered(fields: &Map<String, Value>) -> Self {
        Self(
            fields.iter().filter_map(|(name, number)| Some((VideoId::from(name.as_str()), number.as_u64()?))).collect(),
        )
    }

    /// Gives every video of `lists` that has no number the next free one; returns those videos in order of appearance.
    pub(crate) fn complete<'p>(
        &mut self,
        lists: impl Iterator<Item = &'p QueryPredictions>,
    ) -> Vec<(&'p VideoId, u64)> {
        let mut next = self.0.values().max().map_or(0, |largest| largest + 1);
        let mut added = Vec::new();
        for video in lists.flat_map(|list| &list.ranked).filter_map(|prediction| prediction.video.as_ref()) {
            if !self.0.contains_key(video) {
                self.0.insert(video.clone(), next);
                added.push((video, next));
                next += 1;
            }
        }
        added
    }
}

/// One list of entries, as JSON.
pub(crate) struct Entries<'a> {
    pub(crate) id_field: &'static str,
    pub(crate) numbers: &'a Numbers,
    pub(crate) lists: &'a [QueryPredictions],
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.lists.iter().map(|list| Entry { entries: self, list }))
    }
}

struct Entry<'a> {
    entries: &'a Entries<'a>,
    list: &'a QueryPredictions,
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Entries { id_field, numbers, .. } = self.entries;
        let mut entry = serializer.serialize_map(None)?;
        entry.serialize_entry(id_field, &ForeignId(&self.list.query))?;
        for (field, value) in self.list.extra.iter().filter(|(field, _)| field != id_field && *field != "predictions") {
            entry.serialize_entry(field, value)?;
        }
        entry.serialize_entry("predictions", &Rows { numbers, list: self.list })?;
        entry.end()
    }
}

struct Rows<'a> {
    numbers: &'a Numbers,
    list: &'a QueryPredictions,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.list.ranked.len()))?;
        for prediction in &self.list.ranked {
            let query = shorten(self.list.query.as_str());
            let video = prediction.video.as_ref();
            let video =
                video.ok_or_else(|| S::Error::custom(format!("a prediction of query `{query}` names no video")))?;
            let number = self.numbers.0.get(video);
            let number = number.ok_or_else(|| S::Error::custom(format!("video `{video}` has no number")))?;
            rows.serialize_element(&Row { number: *number, prediction })?;
        }
        rows.end()
    }
}

struct Row<'a> {
    number: u64,
    prediction: &'a Prediction,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Prediction { span, score, .. } = self.prediction;
        let mut row = serializer.serialize_tuple(3 + usize::from(score.is_some()))?;
        row.serialize_element(&self.number)?;
        row.serialize_element(&span.start())?;
        row.serialize_element(&span.end())?;
        if let Some(score) = score {
            row.serialize_element(&Finite(*score))?;
        }
        row.end()
    }
}
