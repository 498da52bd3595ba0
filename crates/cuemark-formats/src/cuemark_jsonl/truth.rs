//! The truth half of our JSON Lines.
//!
//! | field | means |
//! |---|---|
//! | `qid` | the query; required |
//! | `query` | its sentence; empty when left out |
//! | `video`, `duration` | the video it was written for, and its length in seconds |
//! | `spans` | `[start,end]` pairs in that video |
//! | `moments` | `{"video","span":[start,end],"relevance"}`; `video` may be left out for the line's own, `relevance` for "right" |
//! | `pool` | the videos it is searched in |
//! | `kind` | what kind of query it is, in the dataset's own words (TVR: `v`, `t`, `vt`) |
//! | `highlights` | `{"clip_len":2.0,"clips":[3,4],"ratings":[[4,3,4],[2,0,1]]}`: seconds per clip, the rated clips, one grade (0 to 4) per person for each |
//!
//! `spans` is written when it says everything, `moments` otherwise. Ends are judged against `duration` where the video is
//! the line's own. Unknown fields of the line are kept, and those of single moments with them.

use cuemark_core::{
    ClipLen, Extra, GradedMoment, Highlights, Moment, Query, QueryId, RawSpan, Relevance, RowCounts, RowPolicy, Span,
    SpanFault, Split, Truth, Video, VideoId,
};
use rustc_hash::FxHashMap;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::cursor::{Cursor, missing, once};
use crate::fault::{Fault, Walk};
use crate::predicted::Finite;
use crate::records::{self, Scratch, Seen};
use crate::row_extras::{self, RowExtras};
use crate::source::bad_row_advice;
use crate::{Result, Source, WholeFile};

/// Reads a truth file, a block of lines at a time, on all cores. The split is called after the file.
///
/// Its videos are those that lines are about or have moments in, in order; a pool adds none.
///
/// # Errors
/// The first line that is no truth, that repeats the query of an earlier one, or that the policy refuses.
pub fn read_truth(source: &Source, policy: RowPolicy) -> Result<Split> {
    let mut seen = Seen::default();
    let mut videos = VideoList::default();
    let mut queries = Vec::new();
    let rows = records::read(
        source,
        |cursor, scratch| decode(cursor, scratch, policy),
        |line, truth: Truth| {
            seen.note(source, line, &truth.query.id)?;
            videos.note(&truth);
            queries.push(truth);
            Ok(())
        },
    )?;
    let file = source.path().file_name().unwrap_or_default().to_owned();
    Ok(Split { name: source.stem().to_owned(), file, videos: videos.videos, queries, rows })
}

/// Writes one line per query, in order.
///
/// # Errors
/// When the file cannot be written or a duration is not finite.
pub fn write_truth(truths: &[Truth], out: &mut WholeFile) -> Result<()> {
    for truth in truths {
        out.put_json(&Line(truth))?;
        out.put(b"\n")?;
    }
    Ok(())
}

/// Videos in the order in which queries bring them, each once.
#[derive(Default)]
pub(crate) struct VideoList {
    places: FxHashMap<VideoId, usize>,
    pub(crate) videos: Vec<Video>,
}

impl VideoList {
    /// Adds the videos of one query; a duration that a later query states is filled in.
    pub(crate) fn note(&mut self, truth: &Truth) {
        if let Some(video) = &truth.video {
            self.add(&video.id, video.duration);
        }
        for graded in &truth.moments {
            self.add(&graded.moment.video, None);
        }
    }

    /// Adds one video.
    pub(crate) fn add(&mut self, id: &VideoId, duration: Option<f64>) {
        if let Some(video) = self.places.get(id).and_then(|place| self.videos.get_mut(*place)) {
            video.duration = video.duration.or(duration);
        } else {
            self.places.insert(id.clone(), self.videos.len());
            self.videos.push(Video { id: id.clone(), duration });
        }
    }
}

/// One moment as the line gives it.
struct RawMoment {
    at: usize,
    video: Option<VideoId>,
    span: RawSpan,
    relevance: Option<Relevance>,
    fields: Map<String, Value>,
}

fn decode(cursor: &mut Cursor<'_>, scratch: &mut Scratch<'_>, policy: RowPolicy) -> Walk<Truth> {
    let (mut qid, mut text, mut video, mut duration) = (None, None, None, None);
    let (mut pool, mut kind, mut highlights) = (None, None, None);
    let (mut spans, mut moments): (Option<Vec<RawMoment>>, Option<Vec<RawMoment>>) = (None, None);
    let mut fields = Map::new();
    cursor.object(|cursor, key| match key {
        "qid" => {
            let id = QueryId::from(&*cursor.id()?);
            once(cursor, &mut qid, id)
        }
        "query" => {
            let sentence = cursor.string()?.into_owned();
            once(cursor, &mut text, sentence)
        }
        "video" | "vid" => {
            let name = if cursor.null() { None } else { Some(scratch.names.video(&cursor.string()?)) };
            once(cursor, &mut video, name)
        }
        "duration" => {
            let seconds = seconds(cursor)?;
            once(cursor, &mut duration, seconds)
        }
        "spans" => {
            let list = list(cursor, bare_span)?;
            once(cursor, &mut spans, list)
        }
        "moments" => {
            let list = list(cursor, |cursor| moment(cursor, scratch))?;
            once(cursor, &mut moments, list)
        }
        "pool" => {
            let list = list(cursor, |cursor| Ok(scratch.names.video(&cursor.string()?)))?;
            once(cursor, &mut pool, list)
        }
        "kind" => {
            let name = cursor.string()?.into_owned();
            once(cursor, &mut kind, name)
        }
        "highlights" => {
            let ratings = Box::new(read_highlights(cursor)?);
            once(cursor, &mut highlights, ratings)
        }
        _ => cursor.keep(key, &mut fields),
    })?;
    let query = Query { id: qid.ok_or_else(|| missing("qid"))?, text: text.unwrap_or_default() };
    let video = video.flatten().map(|id| Video { id, duration: duration.flatten() });
    if video.is_none() && duration.flatten().is_some() {
        return Err(Fault::new(0, "whose duration it is is not said: `video` is missing").inside_key("duration"));
    }
    let mut judged = Judged { video, policy, moments: Vec::new(), row_extras: RowExtras::default() };
    judged.add("spans", spans, &mut scratch.rows)?;
    judged.add("moments", moments, &mut scratch.rows)?;
    let Judged { video, mut moments, row_extras, .. } = judged;
    row_extras.move_into(&mut fields, "moments", moments.len());
    moments.shrink_to_fit();
    Ok(Truth { query, video, moments, pool, kind, highlights, extra: Extra::new(fields) })
}

/// The moments that the row policy lets through.
struct Judged {
    video: Option<Video>,
    policy: RowPolicy,
    moments: Vec<GradedMoment>,
    row_extras: RowExtras,
}

impl Judged {
    fn add(&mut self, field: &str, list: Option<Vec<RawMoment>>, rows: &mut RowCounts) -> Walk<()> {
        for (index, raw) in list.into_iter().flatten().enumerate() {
            let at = raw.at;
            self.add_one(raw, rows).map_err(|fault| fault.further_by(at).inside_index(index).inside_key(field))?;
        }
        Ok(())
    }

    fn add_one(&mut self, raw: RawMoment, rows: &mut RowCounts) -> Walk<()> {
        let own = self.video.as_ref().filter(|own| raw.video.as_ref().is_none_or(|named| *named == own.id));
        let duration = own.and_then(|own| own.duration);
        let Some(video) = raw.video.or_else(|| own.map(|own| own.id.clone())) else {
            return Err(missing("video"));
        };
        if let Some(span) = self.policy.judge(raw.span, duration, rows).map_err(bad_row)? {
            self.row_extras.set(self.moments.len(), raw.fields);
            self.moments.push(GradedMoment { moment: Moment { video, span }, relevance: raw.relevance });
        }
        Ok(())
    }
}

fn bad_row(fault: SpanFault) -> Box<Fault> {
    Fault::new(0, fault).with_hint(bad_row_advice())
}

fn list<T>(cursor: &mut Cursor<'_>, mut each: impl FnMut(&mut Cursor<'_>) -> Walk<T>) -> Walk<Vec<T>> {
    let mut items = Vec::new();
    cursor.array::<T>(|cursor, _| {
        items.push(each(cursor)?);
        Ok(())
    })?;
    Ok(items)
}

fn bare_span(cursor: &mut Cursor<'_>) -> Walk<RawMoment> {
    let (at, span) = (cursor.at(), raw_span(cursor)?);
    Ok(RawMoment { at, video: None, span, relevance: None, fields: Map::new() })
}

fn raw_span(cursor: &mut Cursor<'_>) -> Walk<RawSpan> {
    let at = cursor.at();
    match cursor.numbers::<2>()? {
        ([start, end], 2) => Ok(RawSpan::new(start, end)),
        _ => Err(Fault::new(at, "a span is a start and an end")),
    }
}

fn moment(cursor: &mut Cursor<'_>, scratch: &mut Scratch<'_>) -> Walk<RawMoment> {
    let (at, mut video, mut span, mut relevance) = (cursor.at(), None, None, None);
    let mut fields = Map::new();
    cursor.object(|cursor, key| match key {
        "video" | "vid" => {
            let name = scratch.names.video(&cursor.string()?);
            once(cursor, &mut video, name)
        }
        "span" => {
            let raw = raw_span(cursor)?;
            once(cursor, &mut span, raw)
        }
        "relevance" => {
            let grade = grade(cursor)?;
            once(cursor, &mut relevance, grade)
        }
        _ => cursor.keep(key, &mut fields),
    })?;
    let span = span.ok_or_else(|| missing("span"))?;
    Ok(RawMoment { at, video, span, relevance: relevance.flatten(), fields })
}

fn grade(cursor: &mut Cursor<'_>) -> Walk<Option<Relevance>> {
    if cursor.null() {
        return Ok(None);
    }
    let at = cursor.at();
    Relevance::try_from(cursor.number()?).map(Some).map_err(|problem| Fault::new(at, problem))
}

fn seconds(cursor: &mut Cursor<'_>) -> Walk<Option<f64>> {
    if cursor.null() {
        return Ok(None);
    }
    let (at, seconds) = (cursor.at(), cursor.number()?);
    if seconds < 0.0 {
        return Err(Fault::new(at, format!("{seconds} s is not a duration")));
    }
    Ok(Some(seconds))
}

fn read_highlights(cursor: &mut Cursor<'_>) -> Walk<Highlights> {
    let (at, mut clip_len, mut clips, mut ratings) = (cursor.at(), None, None, None);
    cursor.object(|cursor, key| match key {
        "clip_len" => {
            let seconds = cursor.number()?;
            let length = ClipLen::new(seconds);
            let length = length.ok_or_else(|| cursor.fault(format!("{seconds} s is not the length of a clip")))?;
            once(cursor, &mut clip_len, length)
        }
        "clips" => {
            let list = list(cursor, |cursor| Ok(cursor.whole()? as usize))?;
            once(cursor, &mut clips, list)
        }
        "ratings" => {
            let lists = list(cursor, |cursor| list(cursor, rating))?;
            once(cursor, &mut ratings, lists)
        }
        _ => Err(cursor.fault("is not a field of `highlights`")),
    })?;
    let clip_len = clip_len.ok_or_else(|| missing("clip_len"))?;
    let (clips, ratings) = (clips.ok_or_else(|| missing("clips"))?, ratings.ok_or_else(|| missing("ratings"))?);
    if clips.len() != ratings.len() {
        return Err(Fault::new(at, format!("{} clips have {} lists of ratings", clips.len(), ratings.len())));
    }
    Ok(Highlights { clip_len, clips, ratings })
}

fn rating(cursor: &mut Cursor<'_>) -> Walk<u8> {
    let (at, grade) = (cursor.at(), cursor.whole()?);
    u8::try_from(grade).ok().filter(|grade| *grade <= 4).ok_or_else(|| Fault::new(at, format!("{grade} is above 4")))
}

const LINE_FIELDS: [&str; 10] =
    ["qid", "query", "video", "vid", "duration", "spans", "moments", "pool", "kind", "highlights"];
const ROW_FIELDS: [&str; 4] = ["video", "vid", "span", "relevance"];

struct Line<'a>(&'a Truth);

impl Line<'_> {
    /// Whether `spans` says everything about the moments.
    fn is_plain(&self) -> bool {
        let Some(video) = &self.0.video else { return false };
        let plain = |graded: &GradedMoment| graded.relevance.is_none() && graded.moment.video == video.id;
        self.0.extra.get("moments").is_none() && self.0.moments.iter().all(plain)
    }
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let truth = self.0;
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("qid", &truth.query.id)?;
        line.serialize_entry("query", &truth.query.text)?;
        if let Some(video) = &truth.video {
            line.serialize_entry("video", &video.id)?;
        }
        if let Some(duration) = truth.duration() {
            line.serialize_entry("duration", &Finite(duration))?;
        }
        if self.is_plain() {
            let spans: Vec<_> = truth.moments.iter().map(|graded| pair(graded.moment.span)).collect();
            line.serialize_entry("spans", &spans)?;
        } else {
            let fields = row_extras::of_rows(&truth.extra, "moments", truth.moments.len());
            let rows: Vec<_> =
                truth.moments.iter().zip(fields).map(|(graded, fields)| Row { graded, fields }).collect();
            line.serialize_entry("moments", &rows)?;
        }
        if let Some(pool) = &truth.pool {
            line.serialize_entry("pool", pool)?;
        }
        if let Some(kind) = &truth.kind {
            line.serialize_entry("kind", kind)?;
        }
        if let Some(highlights) = &truth.highlights {
            line.serialize_entry("highlights", &Ratings(highlights))?;
        }
        for (field, value) in truth.extra.iter().filter(|(field, _)| !LINE_FIELDS.contains(&field.as_str())) {
            line.serialize_entry(field, value)?;
        }
        line.end()
    }
}

fn pair(span: Span) -> [f64; 2] {
    [span.start(), span.end()]
}

struct Row<'a> {
    graded: &'a GradedMoment,
    fields: &'a Map<String, Value>,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let GradedMoment { moment, relevance } = self.graded;
        let mut row = serializer.serialize_map(None)?;
        row.serialize_entry("video", &moment.video)?;
        row.serialize_entry("span", &pair(moment.span))?;
        if let Some(relevance) = relevance {
            row.serialize_entry("relevance", relevance)?;
        }
        for (field, value) in self.fields.iter().filter(|(field, _)| !ROW_FIELDS.contains(&field.as_str())) {
            row.serialize_entry(field, value)?;
        }
        row.end()
    }
}

struct Ratings<'a>(&'a Highlights);

impl Serialize for Ratings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut ratings = serializer.serialize_map(Some(3))?;
        ratings.serialize_entry("clip_len", &self.0.clip_len.seconds())?;
        ratings.serialize_entry("clips", &self.0.clips)?;
        ratings.serialize_entry("ratings", &self.0.ratings)?;
        ratings.end()
    }
}
