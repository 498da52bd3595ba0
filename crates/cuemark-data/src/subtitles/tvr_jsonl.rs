//! TVR's subtitles: JSON lines, `{"vid_name": "…", "sub": [{"text": "…", "start": 0.96, "end": 3.2}, …]}`, seconds.

use cuemark_core::{RawSpan, RowPolicy, VideoId};
use cuemark_formats::{Result, Source};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::{Subtitle, Subtitles, Track};
use crate::decode;

#[derive(Deserialize)]
struct Record {
    vid_name: String,
    sub: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    text: String,
    start: f64,
    end: f64,
}

pub(super) fn read(source: &Source, bad_rows: RowPolicy) -> Result<Subtitles> {
    let mut subtitles = Subtitles::default();
    let mut seen = FxHashMap::default();
    for (line, record) in decode::json_lines::<Record>(source)? {
        let video = VideoId::from(record.vid_name.as_str());
        if let Some(earlier) = seen.insert(video.clone(), line) {
            return Err(source.record(line, "vid_name", format!("`{video}` stands on line {earlier} too")));
        }
        let mut track = Track { video, lines: Vec::with_capacity(record.sub.len()) };
        for (index, Line { text, start, end }) in record.sub.into_iter().enumerate() {
            let judged = bad_rows.judge(RawSpan::new(start, end), None, &mut subtitles.rows);
            let span = judged.map_err(|fault| source.bad_row(line, format!("sub[{index}]"), fault))?;
            track.lines.extend(span.map(|span| Subtitle { span, text }));
        }
        subtitles.tracks.push(track);
    }
    Ok(subtitles)
}
