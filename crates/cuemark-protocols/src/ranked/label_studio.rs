//! Rating tasks for Label Studio, and what people did with them.
//!
//! Each task shows a video with the moment marked on its timeline and asks for a rating. Label Studio counts frames
//! from 1, both ends inside, at the rate that its `Video` tag is told, so every task carries its `framerate`; stars
//! begin at 1, so grade 0 is one star.

use std::collections::HashMap;

use cuemark_core::{QueryId, Span, VideoId};
use cuemark_data::Rating;
use cuemark_formats::{Source, WholeFile, json::Document, json::Member};
use serde::{Deserialize, Serialize};

use super::GRADES;
use super::candidates::Candidate;
use super::frames::{FrameRange, FrameRate};
use crate::{ProtocolError, Result};

/// What to paste into a project's labelling interface.
pub const CONFIG: &str = r#"<View>
  <Header value="$query"/>
  <Video name="video" value="$video" framerate="$framerate"/>
  <TimelineLabels name="moment" toName="video">
    <Label value="moment"/>
  </TimelineLabels>
  <Header value="How well does the moment answer the query? One star: not at all; five stars: in every detail."/>
  <Rating name="relevance" toName="video" maxRating="5" required="true"/>
</View>
"#;

/// Where Label Studio finds a video, and its rate.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoFile {
    /// The address the browser fetches it from.
    pub url: String,
    /// Its frame rate.
    pub rate: FrameRate,
}

#[derive(Serialize)]
struct Task<'a> {
    data: Data<'a>,
    predictions: [Predicted; 1],
}

#[derive(Serialize)]
struct Data<'a> {
    pair_id: u64,
    qid: &'a QueryId,
    query: &'a str,
    video: &'a str,
    video_id: &'a VideoId,
    framerate: FrameRate,
}

#[derive(Serialize)]
struct Predicted {
    result: [Mark; 1],
}

#[derive(Serialize)]
struct Mark {
    id: String,
    from_name: &'static str,
    to_name: &'static str,
    r#type: &'static str,
    value: MarkValue,
}

#[derive(Serialize)]
struct MarkValue {
    ranges: [FrameRange; 1],
    timelinelabels: [&'static str; 1],
}

/// Writes one task per candidate: a JSON list to import into a project whose interface is [`CONFIG`].
///
/// The moment's own description is left out, so that people judge what they see.
///
/// # Errors
/// When a candidate's video is not among `videos`, or the file cannot be written.
pub fn export(candidates: &[Candidate], videos: &HashMap<VideoId, VideoFile>, out: &mut WholeFile) -> Result<()> {
    let mut before = "[\n";
    for candidate in candidates {
        let Some(file) = videos.get(&candidate.video) else {
            let problem = format!("its address and frame rate are not known (pair {})", candidate.pair_id);
            return Err(ProtocolError::Option { option: "videos", value: candidate.video.to_string(), problem });
        };
        let frames = FrameRange::covering(candidate.span, file.rate);
        let mark = Mark {
            id: format!("moment-{}", candidate.pair_id),
            from_name: "moment",
            to_name: "video",
            r#type: "timelinelabels",
            value: MarkValue { ranges: [frames], timelinelabels: ["moment"] },
        };
        let data = Data {
            pair_id: candidate.pair_id,
            qid: &candidate.qid,
            query: &candidate.query,
            video: &file.url,
            video_id: &candidate.video,
            framerate: file.rate,
        };
        out.put(before.as_bytes())?;
        out.put_json(&Task { data, predictions: [Predicted { result: [mark] }] })?;
        before = ",\n";
    }
    Ok(out.put(if candidates.is_empty() { b"[]\n" } else { b"\n]\n" })?)
}

/// A span that a person marked on the timeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MarkedSpan {
    /// The pair whose task it was.
    pub pair_id: u64,
    /// Who marked it.
    pub worker: u64,
    /// What was marked, in seconds.
    pub span: Span,
}

/// What people did in Label Studio.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Import {
    /// Their ratings, in file order.
    pub ratings: Vec<Rating>,
    /// The spans they marked, in file order.
    pub spans: Vec<MarkedSpan>,
    /// Annotations that were skipped with the skip button.
    pub cancelled: usize,
}

#[derive(Deserialize)]
struct DoneTask {
    data: DoneData,
    #[serde(default)]
    annotations: Vec<Annotation>,
}

#[derive(Deserialize)]
struct DoneData {
    pair_id: u64,
    framerate: f64,
}

#[derive(Deserialize)]
struct Annotation {
    completed_by: CompletedBy,
    #[serde(default)]
    was_cancelled: bool,
    #[serde(default)]
    result: Vec<serde_json::Value>,
}

/// Exports give the person's number, or an object that holds it.
#[derive(Deserialize)]
#[serde(untagged)]
enum CompletedBy {
    Id(u64),
    Person { id: u64 },
}

#[derive(Deserialize)]
struct RatingValue {
    rating: u64,
}

#[derive(Deserialize)]
struct RangesValue {
    ranges: Vec<RawRange>,
}

/// Two frame numbers that nobody has judged yet.
#[derive(Deserialize)]
struct RawRange {
    start: u64,
    end: u64,
}

/// Reads Label Studio's JSON export.
///
/// # Errors
/// When it is not such a file, a task is not one of ours, or a rating or range cannot be.
pub fn import(source: &Source) -> Result<Import> {
    let document = Document::read(source)?;
    let mut import = Import::default();
    for task in document.root().elements()? {
        let done: DoneTask = task.decode()?;
        let Some(rate) = FrameRate::new(done.data.framerate) else {
            return Err(task
                .record("data.framerate", format!("{} frames a second cannot be", done.data.framerate))
                .into());
        };
        for (place, annotation) in done.annotations.iter().enumerate() {
            if annotation.was_cancelled {
                import.cancelled += 1;
                continue;
            }
            let worker = match annotation.completed_by {
                CompletedBy::Id(id) | CompletedBy::Person { id } => id,
            };
            for (number, result) in annotation.result.iter().enumerate() {
                let field = format!("annotations[{place}].result[{number}].value");
                import.take(&task, &field, done.data.pair_id, worker, rate, result)?;
            }
        }
    }
    Ok(import)
}

impl Import {
    fn take(
        &mut self,
        task: &Member<'_>,
        field: &str,
        pair_id: u64,
        worker: u64,
        rate: FrameRate,
        result: &serde_json::Value,
    ) -> Result<()> {
        let value = result.get("value").cloned().unwrap_or_default();
        let wrong = |problem: &dyn ToString| ProtocolError::File(task.record(field, problem.to_string()));
        match result.get("type").and_then(serde_json::Value::as_str) {
            Some("rating") => {
                let RatingValue { rating } = serde_json::from_value(value).map_err(|error| wrong(&error))?;
                if !(1..=GRADES as u64).contains(&rating) {
                    return Err(wrong(&format!("{rating} stars are not between 1 and {GRADES}")));
                }
                self.ratings.push(Rating { pair_id, worker, relevance: (rating - 1) as u8 });
            }
            Some("timelinelabels") => {
                let RangesValue { ranges } = serde_json::from_value(value).map_err(|error| wrong(&error))?;
                for RawRange { start, end } in ranges {
                    let Some(span) = FrameRange::new(start, end).and_then(|frames| frames.to_span(rate)) else {
                        return Err(wrong(&format!("frames {start} to {end} cannot be")));
                    };
                    self.spans.push(MarkedSpan { pair_id, worker, span });
                }
            }
            // Other controls of a project that somebody extended are theirs.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use camino::Utf8PathBuf;
    use cuemark_formats::Overwrite;
    use serde_json::{Value, json};

    fn candidate(pair_id: u64, start: f64, end: f64) -> Candidate {
        Candidate {
            pair_id,
            qid: "7".into(),
            query: "a man <opens> \"the\" door".to_owned(),
            video: "v1".into(),
            span: Span::new(start, end).unwrap(),
            duration: Some(60.0),
            caption: "a secret caption".to_owned(),
            similarity: 0.5,
            rank: 1,
            batch: 1,
        }
    }

    fn exported(candidates: &[Candidate], rate: f64) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("tasks.json")).unwrap();
        let file = VideoFile { url: "http://localhost/v1.mp4".to_owned(), rate: FrameRate::new(rate).unwrap() };
        let mut out = WholeFile::create(&path, Overwrite::Never).unwrap();
        export(candidates, &HashMap::from([("v1".into(), file)]), &mut out).unwrap();
        out.finish().unwrap();
        std::fs::read_to_string(&path).unwrap()
    }

    fn imported(text: &str) -> Result<Import> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("export.json")).unwrap();
        std::fs::write(&path, text).unwrap();
        import(&Source::new(path))
    }

    /// What Label Studio exports when worker 3 accepts the marked moment and gives `stars`.
    fn answered(tasks: &str, stars: u64) -> String {
        let mut tasks: Vec<Value> = serde_json::from_str(tasks).unwrap();
        for task in &mut tasks {
            let mark = task["predictions"][0]["result"][0].clone();
            let stars =
                json!({"type": "rating", "from_name": "relevance", "to_name": "video", "value": {"rating": stars}});
            task["annotations"] = json!([{"completed_by": 3, "result": [mark, stars]}]);
        }
        serde_json::to_string(&tasks).unwrap()
    }

    #[test]
    fn a_task_carries_its_frame_rate_and_frames_from_one_but_not_the_caption() {
        let text = exported(&[candidate(4, 1.0, 2.0)], 25.0);
        let tasks: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(tasks[0]["data"]["framerate"], 25.0);
        let ranges = &tasks[0]["predictions"][0]["result"][0]["value"]["ranges"];
        assert_eq!(ranges, &json!([{"start": 26, "end": 50}]));
        assert!(!text.contains("secret"));
        assert_eq!(exported(&[], 25.0), "[]\n");
    }

    #[test]
    fn a_round_trip_gives_the_ratings_and_the_spans_back() {
        let candidates = [candidate(4, 1.0, 2.0), candidate(5, 0.0, 12.48)];
        let import = imported(&answered(&exported(&candidates, 25.0), 1)).unwrap();
        let grades: Vec<_> = import.ratings.iter().map(|r| (r.pair_id, r.worker, r.relevance)).collect();
        assert_eq!(grades, [(4, 3, 0), (5, 3, 0)]);
        assert_eq!(import.spans[0].span, Span::new(1.0, 2.0).unwrap());
        assert_eq!(import.spans[1].span, Span::new(0.0, 12.48).unwrap());
    }

    #[test]
    fn a_skipped_task_rates_nothing_and_people_may_be_objects() {
        let task = json!([{"data": {"pair_id": 1, "framerate": 24}, "annotations": [
            {"completed_by": {"id": 8, "email": "a@b"}, "result": [{"type": "rating", "value": {"rating": 5}}]},
            {"completed_by": 9, "was_cancelled": true, "result": [{"type": "rating", "value": {"rating": 2}}]}]}]);
        let import = imported(&task.to_string()).unwrap();
        assert_eq!(import.ratings, [Rating { pair_id: 1, worker: 8, relevance: 4 }]);
        assert_eq!(import.cancelled, 1);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let with = |result: Value| json!([{"data": {"pair_id": 1, "framerate": 24}, "annotations": [{"completed_by": 1, "result": [result]}]}]);
        let say = |value: &Value| imported(&value.to_string()).unwrap_err().to_string();
        let six = say(&with(json!({"type": "rating", "value": {"rating": 6}})));
        assert!(
            six.ends_with("export.json:1: `annotations[0].result[0].value`: 6 stars are not between 1 and 5"),
            "{six}"
        );
        let zero = with(json!({"type": "timelinelabels", "value": {"ranges": [{"start": 0, "end": 4}]}}));
        assert!(say(&zero).ends_with("frames 0 to 4 cannot be"));
        assert!(say(&json!([{"data": {"pair_id": 1, "framerate": 0}}])).contains("`data.framerate`"));
        assert!(say(&json!([{"data": {"framerate": 24}}])).contains("missing field `pair_id`"));
        assert!(imported("{}").is_err());
    }

    #[test]
    fn a_video_without_a_frame_rate_stops_the_export() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("tasks.json")).unwrap();
        let mut out = WholeFile::create(&path, Overwrite::Never).unwrap();
        assert!(export(&[candidate(4, 1.0, 2.0)], &HashMap::new(), &mut out).is_err());
        drop(out);
        assert!(!path.exists());
    }
}
