//! Label Studio: an export (JSON) of moments that people marked, one task a video or one task a query.
//!
//! `[{"id": 3, "data": {"video": "/data/kitchen.mp4", "query": "…", "duration": 61.0, "fps": 25}, "annotations": [{"result":
//! [{"type": "timelinelabels", "value": {"ranges": [{"start": 126, "end": 150}], "timelinelabels": ["she pours tea"]}}]}]}]`.
//! Ranges are **frames, from 1, both ends inside**, and need `data.fps`; regions of `labels` have `start` and `end` in
//! **seconds**. The sentence is `data.query` (or `text`, `caption`) where the task asks about one, else the region's label:
//! regions with one label are the moments of one query. The query id is `meta.qid` where the region has one, else
//! `TASK` or `TASK-n`. The video is called after its file. Answers that were skipped (`was_cancelled`) are left out; several
//! annotators of one task give several moments.

use cuemark_core::{GradedMoment, Query, QueryId, RawSpan, Split, Truth};
use cuemark_formats::json::Document;
use cuemark_formats::{Result, Source};
use serde::Deserialize;
use serde_json::Value;

use crate::decode;
use crate::split_builder::SplitBuilder;
use crate::{Layout, ReadOptions};

pub(crate) static LAYOUT: Layout = Layout {
    name: "labelstudio",
    about: "Label Studio's export: [{id, data: {video, fps}, annotations: [{result}]}], frames or seconds",
    looks_like: |peek| peek.opens_with("[{") && peek.has(2, "data") && peek.has(2, "annotations"),
    read,
};

#[derive(Deserialize)]
struct Task {
    id: Option<Value>,
    data: Data,
    #[serde(default)]
    annotations: Vec<Annotation>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(alias = "video_url", alias = "url", alias = "audio")]
    video: String,
    #[serde(alias = "text", alias = "caption", alias = "sentence")]
    query: Option<String>,
    duration: Option<f64>,
    #[serde(alias = "frame_rate", alias = "frameRate")]
    fps: Option<f64>,
}

#[derive(Deserialize)]
struct Annotation {
    #[serde(default)]
    was_cancelled: bool,
    #[serde(default)]
    result: Vec<Region>,
}

#[derive(Deserialize)]
struct Region {
    #[serde(default)]
    value: RegionValue,
    #[serde(default)]
    meta: Meta,
}

#[derive(Deserialize, Default)]
struct RegionValue {
    start: Option<f64>,
    end: Option<f64>,
    #[serde(default)]
    ranges: Vec<Range>,
    #[serde(default, alias = "labels")]
    timelinelabels: Vec<String>,
}

#[derive(Deserialize)]
struct Range {
    start: f64,
    end: f64,
}

#[derive(Deserialize, Default)]
struct Meta {
    qid: Option<String>,
}

/// The moments of one query as they are gathered.
struct Gathered {
    label: String,
    qid: Option<String>,
    spans: Vec<(RawSpan, String)>,
}

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let document = Document::read(source)?;
    let members = document.root().elements()?;
    let tasks: Vec<Task> = decode::members(&members)?;
    let mut split = SplitBuilder::new(source, options);
    for (index, (member, task)) in members.iter().zip(tasks).enumerate() {
        let line = member.line();
        let number = match &task.id {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => index.to_string(),
        };
        let name = video_name(&task.data.video);
        let video = split.video(name, task.data.duration, || (line, format!("[{index}].data.duration")))?;
        let queries = gather(source, index, line, &task)?;
        let several = queries.len() > 1 || task.data.query.is_none();
        for (n, gathered) in queries.into_iter().enumerate() {
            let usual = || if several { format!("{number}-{n}") } else { number.clone() };
            let id = QueryId::new(gathered.qid.clone().unwrap_or_else(usual));
            let id = split.query_id(id, line, &format!("[{index}].id"))?;
            let mut truth = Truth::bare(Query { id, text: gathered.label });
            for (raw, field) in gathered.spans {
                split.note(&video.id, raw, &truth.query.text);
                if let Some(span) = split.span(raw, video.duration, |_| (line, field))? {
                    truth.moments.push(GradedMoment::right(video.id.clone(), span));
                }
            }
            truth.video = Some(video.clone());
            split.push(truth);
        }
    }
    Ok(vec![split.finish()])
}

fn gather(source: &Source, index: usize, line: usize, task: &Task) -> Result<Vec<Gathered>> {
    let mut queries: Vec<Gathered> = Vec::new();
    for (at, annotation) in task.annotations.iter().enumerate().filter(|(_, annotation)| !annotation.was_cancelled) {
        for (region, Region { value, meta }) in annotation.result.iter().enumerate() {
            let field = |name: &str| format!("[{index}].annotations[{at}].result[{region}].value.{name}");
            let mut spans: Vec<(RawSpan, String)> = Vec::new();
            if let (Some(start), Some(end)) = (value.start, value.end) {
                spans.push((RawSpan::new(start, end), field("start")));
            }
            for (n, range) in value.ranges.iter().enumerate() {
                let Some(fps) = task.data.fps.filter(|fps| *fps > 0.0 && fps.is_finite()) else {
                    let hint = "Label Studio counts frames on a timeline: add `fps` to the data of every task, or use regions \
                                in seconds";
                    return Err(source.record(line, format!("[{index}].data.fps"), "is missing").with_hint(hint));
                };
                // Frame n is shown from (n - 1) / fps to n / fps.
                spans.push((RawSpan::new((range.start - 1.0) / fps, range.end / fps), field(&format!("ranges[{n}]"))));
            }
            if spans.is_empty() {
                continue;
            }
            let label = task.data.query.clone().or_else(|| value.timelinelabels.first().cloned()).unwrap_or_default();
            let known = queries.iter_mut().find(|query| query.label == label && query.qid == meta.qid);
            match known {
                Some(query) => query.spans.extend(spans),
                None => queries.push(Gathered { label, qid: meta.qid.clone(), spans }),
            }
        }
    }
    Ok(queries)
}

/// `kitchen` for `/data/upload/1/kitchen.mp4?d=3`.
fn video_name(path: &str) -> &str {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let file = path.rsplit(['/', '\\']).next().filter(|file| !file.is_empty()).unwrap_or(path);
    match file.rsplit_once('.') {
        Some((stem, ending))
            if !stem.is_empty()
                && (2..=4).contains(&ending.len())
                && !ending.starts_with(|c: char| c.is_ascii_digit() && ending.len() < 3) =>
        {
            stem
        }
        _ => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Result<Split> {
        let source = Source::in_memory("export.json", text.as_bytes());
        Ok(read(&source, &ReadOptions::default())?.remove(0))
    }

    #[test]
    fn regions_in_frames_and_in_seconds_become_queries() {
        let split = split(
            r#"[{"id": 3, "data": {"video": "/data/kitchen.mp4", "fps": 25, "duration": 61.0}, "annotations": [
                {"was_cancelled": true, "result": [{"value": {"start": 0, "end": 1, "labels": ["no"]}}]},
                {"result": [
                  {"type": "timelinelabels", "value": {"ranges": [{"start": 26, "end": 50}], "timelinelabels": ["pours tea"]}},
                  {"type": "labels", "value": {"start": 5.5, "end": 9.0, "labels": ["sits down"]}},
                  {"type": "labels", "value": {"start": 20.0, "end": 21.0, "labels": ["pours tea"]}},
                  {"type": "choices", "value": {"choices": ["good"]}}]}]}]"#,
        )
        .unwrap();
        assert_eq!(split.queries.len(), 2);
        let [tea, sits] = split.queries.as_slice() else { panic!("two queries") };
        let spans = |truth: &Truth| -> Vec<(f64, f64)> {
            truth.right().map(|moment| (moment.span.start(), moment.span.end())).collect()
        };
        assert_eq!(
            (tea.query.id.as_str(), tea.query.text.as_str(), spans(tea)),
            ("3-0", "pours tea", vec![(1.0, 2.0), (20.0, 21.0)])
        );
        assert_eq!((sits.query.id.as_str(), spans(sits)), ("3-1", vec![(5.5, 9.0)]));
        assert_eq!(tea.video.as_ref().unwrap().id.as_str(), "kitchen");
    }

    #[test]
    fn a_task_about_one_query_keeps_its_number_and_frames_need_a_rate() {
        let one = r#"[{"id": 9, "data": {"video": "a", "query": "she waves"}, "annotations": [{"result": [{"value": {"start": 1, "end": 2}}]}]}]"#;
        let split_one = split(one).unwrap();
        assert_eq!(
            (split_one.queries[0].query.id.as_str(), split_one.queries[0].query.text.as_str()),
            ("9", "she waves")
        );
        let frames = r#"[{"data": {"video": "a"}, "annotations": [{"result": [{"value": {"ranges": [{"start": 1, "end": 2}]}}]}]}]"#;
        assert!(split(frames).unwrap_err().to_string().contains("data.fps`: is missing"));
    }
}
