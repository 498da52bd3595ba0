//! The numbers under which a corpus knows its videos.
//!
//! Two published layouts are read, `{"name": [duration, number], …}` (TVR-Ranking) and the same once more per split,
//! `{"val": {"name": [duration, number], …}, …}` (TVR); so is the bare `{"name": number, …}` of a TVR submission.

use cuemark_core::{Extra, QueryPredictions, Video, VideoId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value};

use crate::cursor::Cursor;
use crate::fault::{Fault, Walk, shorten};
use crate::{Result, Source};

/// The field of a file as a whole that carries the numbers its predictions were written with.
pub(crate) const VIDEO2IDX: &str = "video2idx";

/// One video: in the list, by its number, and in the table of names that its predictions refer to.
const ENTRY: usize = 256;

/// Videos by number.
#[derive(Debug, Clone, Default)]
pub struct VideoIndex {
    /// Places among the entries.
    by_number: FxHashMap<u32, usize>,
    entries: Vec<(u32, Video)>,
}

impl VideoIndex {
    /// Reads any of the layouts named above.
    ///
    /// # Errors
    /// When the file is none of them, or gives one number to two videos.
    pub fn read(source: &Source) -> Result<Self> {
        let text = source.text()?;
        let mut index = Self::default();
        let mut cursor = Cursor::new(&text, source.meter());
        index
            .walk(&mut cursor, Depth::Root)
            .and_then(|()| cursor.end())
            .map_err(|fault| fault.into_error(source, 1, &text))?;
        Ok(index)
    }

    /// The video with this number.
    #[inline]
    pub fn video(&self, number: u32) -> Option<&VideoId> {
        self.by_number.get(&number).map(|place| &self.entries[*place].1.id)
    }

    /// Number of videos.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every video with its number, in file order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Video)> {
        self.entries.iter().map(|(number, video)| (*number, video))
    }

    /// Notes the numbers in the unknown fields of a prediction file, where writers of numbered layouts look for them.
    pub fn remember_in(&self, extra: &mut Extra) {
        let numbers: Map<_, _> =
            self.iter().map(|(number, video)| (video.id.as_str().to_owned(), Value::from(number))).collect();
        extra.insert(VIDEO2IDX, Value::Object(numbers));
    }

    /// Counts what it takes beside a reading of `source` that began after it.
    pub(crate) fn charge(&self, source: &Source) -> Result<()> {
        let names: usize = self.entries.iter().map(|(_, video)| video.id.as_str().len()).sum();
        source.charge(1, self.entries.len() * ENTRY + 2 * names)
    }

    /// The part of it that `lists` mention, in file order.
    pub(crate) fn only_of(&self, lists: &[QueryPredictions]) -> Self {
        let mentioned: FxHashSet<&VideoId> =
            lists.iter().flat_map(|list| &list.ranked).filter_map(|prediction| prediction.video.as_ref()).collect();
        let mut part = Self::default();
        for (number, video) in self.iter().filter(|(_, video)| mentioned.contains(&video.id)) {
            part.insert(number, video.clone());
        }
        part
    }

    /// Reads a bare `{"name": number, …}`, or whatever else is an index.
    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Walk<Self> {
        let mut index = Self::default();
        index.walk(cursor, Depth::Split)?;
        Ok(index)
    }

    fn walk(&mut self, cursor: &mut Cursor<'_>, depth: Depth) -> Walk<()> {
        cursor.object(|cursor, name| {
            let at = cursor.at();
            cursor.charge(ENTRY + 2 * name.len())?;
            let (number, duration) = match (cursor.peek(), depth) {
                (b'{', Depth::Root) => return self.walk(cursor, Depth::Split),
                (b'[', _) => {
                    let (duration, number) = duration_and_number(cursor)?;
                    (number, Some(duration))
                }
                _ => (cursor.whole()?, None),
            };
            self.insert(number, Video { id: VideoId::from(name), duration }).map_or(Ok(()), |first| {
                Err(Fault::new(at, format!("{number} is the number of `{}` too", shorten(first.as_str()))))
            })
        })
    }

    /// Returns the video that has the number already, if it is another one.
    fn insert(&mut self, number: u32, video: Video) -> Option<VideoId> {
        if let Some(first) = self.video(number) {
            return (*first != video.id).then(|| first.clone());
        }
        self.by_number.insert(number, self.entries.len());
        self.entries.push((number, video));
        None
    }
}

#[derive(Clone, Copy)]
enum Depth {
    Root,
    Split,
}

fn duration_and_number(cursor: &mut Cursor<'_>) -> Walk<(f64, u32)> {
    let (mut duration, mut number) = (None, None);
    cursor.array::<()>(|cursor, place| match place {
        0 => cursor.number().map(|seconds| duration = Some(seconds)),
        1 => cursor.whole().map(|whole| number = Some(whole)),
        _ => Err(cursor.fault("an entry is a duration and a number")),
    })?;
    match (duration, number) {
        (Some(duration), Some(number)) => Ok((duration, number)),
        _ => Err(cursor.fault("an entry is a duration and a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(text: &str) -> Walk<VideoIndex> {
        let mut index = VideoIndex::default();
        index.walk(&mut Cursor::new(text, &crate::Meter::default()), Depth::Root)?;
        Ok(index)
    }

    #[test]
    fn all_three_layouts_are_read() {
        for text in [r#"{"a":[9.5,3],"b":[1,0]}"#, r#"{"val":{"a":[9.5,3]},"test":{"b":[1,0]}}"#, r#"{"a":3,"b":0}"#] {
            let index = index(text).unwrap();
            assert_eq!(index.video(3), Some(&VideoId::from("a")), "{text}");
            assert_eq!(index.video(0), Some(&VideoId::from("b")), "{text}");
            assert_eq!(index.video(1), None, "{text}");
        }
        let durations: Vec<_> = index(r#"{"a":[9.5,3]}"#).unwrap().iter().map(|(_, video)| video.duration).collect();
        assert_eq!(durations, [Some(9.5)]);
    }

    #[test]
    fn what_is_no_index_is_refused() {
        for text in [
            r#"{"a":3,"b":3}"#,
            r#"{"a":[1]}"#,
            r#"{"a":[1,2,3]}"#,
            r#"{"a":-1}"#,
            r#"{"a":1.5}"#,
            "[]",
            r#"{"s":{"t":{"a":1}}}"#,
        ] {
            assert!(index(text).is_err(), "{text}");
        }
    }
}
