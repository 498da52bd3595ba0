//! Puts a split together row by row: judges spans, counts faults, keeps videos and ids straight.

use cuemark_core::{Query, QueryId, RawSpan, RowFault, RowPolicy, Span, SpanFault, Split, Truth, Video, VideoId};
use cuemark_formats::{ReadError, Result, Source};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ReadOptions;
use crate::durations::checked;

/// Where in a file something stands: its line and the way to the field.
pub(crate) type Place = (usize, String);

/// Bytes of one query beside its texts: itself in a list that grows, its moment, and what is remembered to find repeats.
const PAIR: u64 = 2 * size_of::<Truth>() as u64 + 192;

/// A split in the making.
pub(crate) struct SplitBuilder<'a> {
    source: &'a Source,
    policy: RowPolicy,
    split: Split,
    videos: FxHashMap<VideoId, Option<f64>>,
    queries: FxHashMap<QueryId, usize>,
    rows: FxHashSet<(VideoId, u64, u64, String)>,
}

impl<'a> SplitBuilder<'a> {
    /// An empty split of the file `source`.
    pub(crate) fn new(source: &'a Source, options: &ReadOptions) -> Self {
        Self {
            source,
            policy: options.bad_rows,
            split: Split::default(),
            videos: FxHashMap::default(),
            queries: FxHashMap::default(),
            rows: FxHashSet::default(),
        }
    }

    /// The same under a name, for files that hold several splits.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.split.name = name.to_owned();
        self
    }

    /// The video called `id`, added to the split when it is new there.
    ///
    /// # Errors
    /// When it cannot last `duration` seconds, or lasted otherwise on an earlier row.
    pub(crate) fn video(&mut self, id: &str, duration: Option<f64>, place: impl FnOnce() -> Place) -> Result<Video> {
        if let Some((known, before)) = self.videos.get_key_value(id) {
            return match (*before, duration) {
                (Some(before), Some(now)) if before != now => {
                    let (line, field) = place();
                    Err(self.source.record(line, field, format!("`{id}` lasts {now} s here and {before} s further up")))
                }
                (before, _) => Ok(Video { id: known.clone(), duration: before }),
            };
        }
        if let Some(Err(problem)) = duration.map(checked) {
            let (line, field) = place();
            return Err(self.source.record(line, field, problem));
        }
        let video = Video { id: VideoId::from(id), duration };
        self.videos.insert(video.id.clone(), duration);
        self.split.videos.push(video.clone());
        Ok(video)
    }

    /// As [`SplitBuilder::video`], for files in which every video stands once.
    ///
    /// # Errors
    /// As there, and when the video is not new.
    pub(crate) fn new_video(
        &mut self,
        id: &str,
        duration: Option<f64>,
        place: impl FnOnce() -> Place,
    ) -> Result<Video> {
        if self.videos.contains_key(id) {
            let (line, _) = place();
            return Err(self.source.record(line, id, "this video stands in the file twice"));
        }
        self.video(id, duration, place)
    }

    /// A query id that the file states.
    ///
    /// # Errors
    /// When an earlier row has the same.
    pub(crate) fn query_id(&mut self, id: QueryId, line: usize, field: &str) -> Result<QueryId> {
        self.source.charge(line, PAIR as usize)?;
        match self.queries.insert(id.clone(), line) {
            None => Ok(id),
            Some(earlier) => Err(self.source.record(line, field, format!("query `{id}` stands on line {earlier} too"))),
        }
    }

    /// Notes a row as the file has it, and counts it when the same video, times and words came before.
    pub(crate) fn note(&mut self, video: &VideoId, raw: RawSpan, text: &str) {
        if !self.rows.insert((video.clone(), raw.start.to_bits(), raw.end.to_bits(), text.to_owned())) {
            self.split.rows.count(RowFault::Repeated);
        }
    }

    /// The span of a row under the policy; `None` means that the row is left out.
    ///
    /// # Errors
    /// When a time is not finite, or the policy is to stop.
    pub(crate) fn span(
        &mut self,
        raw: RawSpan,
        duration: Option<f64>,
        place: impl FnOnce(&SpanFault) -> Place,
    ) -> Result<Option<Span>> {
        match self.policy.judge(raw, duration, &mut self.split.rows) {
            Ok(span) => {
                if let Some(fault) = self.split.rows.unplaced() {
                    let (line, _) = place(&SpanFault::Bad { fault, raw, duration });
                    self.split.rows.place(line);
                }
                Ok(span)
            }
            Err(fault) => {
                let (line, field) = place(&fault);
                Err(self.source.bad_row(line, field, fault))
            }
        }
    }

    /// Adds the pair that is number `number` of its file, unless the policy leaves it out.
    ///
    /// # Errors
    /// As [`SplitBuilder::span`].
    pub(crate) fn pair(
        &mut self,
        number: usize,
        video: &Video,
        raw: RawSpan,
        text: String,
        place: impl FnOnce(&SpanFault) -> Place,
    ) -> Result<Option<&mut Truth>> {
        self.source
            .meter()
            .charge(PAIR + 2 * text.len() as u64)
            .map_err(|exceeded| ReadError::memory(self.source.path(), format!("pair {number}"), exceeded))?;
        self.note(&video.id, raw, &text);
        let Some(span) = self.span(raw, video.duration, place)? else { return Ok(None) };
        let query = Query { id: QueryId::new(number.to_string()), text };
        self.push(Truth::single(query, video.clone(), [span]));
        Ok(self.split.queries.last_mut())
    }

    /// Adds a query.
    pub(crate) fn push(&mut self, truth: Truth) {
        self.split.queries.push(truth);
    }

    /// The split.
    pub(crate) fn finish(self) -> Split {
        self.split
    }
}

/// Whether two lists that should go together do.
///
/// # Errors
/// When `name` has another number of entries than `with`.
pub(crate) fn same_length(name: &str, has: usize, with: &str, wanted: usize) -> Result<(), String> {
    if has == wanted { Ok(()) } else { Err(format!("`{name}` has {has} entries and `{with}` {wanted}")) }
}

/// The field that a fault of a row with separate `start` and `end` columns is about.
pub(crate) fn bound_at_fault(fault: &SpanFault, raw: RawSpan) -> &'static str {
    match fault {
        SpanFault::Bad { fault: RowFault::StartsBeforeVideo | RowFault::StartsAfterVideo, .. } => "start",
        SpanFault::NotASpan(_) if !raw.start.is_finite() => "start",
        _ => "end",
    }
}
