//! WebVTT: cues over one video.

use std::fmt::Write as _;

use super::{Clip, by_video};
use crate::{Result, WholeFile};

/// Writes cues in the order of time.
///
/// # Errors
/// When the moments lie in several videos, or the file cannot be written.
pub(super) fn write(clips: &[Clip], out: &mut WholeFile) -> Result<()> {
    let videos = by_video(clips);
    let (video, mut cues) = match videos.as_slice() {
        [] => return out.put(b"WEBVTT\n\n"),
        [(video, cues)] => (*video, cues.clone()),
        several => {
            let problem = format!("cues belong to one video, and these moments lie in {} videos", several.len());
            let hint = cuemark_core::Advice::say("name one with ").set_any("video", "NAME");
            return Err(out.fault(problem).with_hint(hint));
        }
    };
    cues.sort_by(|a, b| a.span.start().total_cmp(&b.span.start()).then(a.span.end().total_cmp(&b.span.end())));
    let mut text = format!("WEBVTT\n\nNOTE {}\n\n", one_line(video.as_str()));
    for (place, cue) in cues.iter().enumerate() {
        let (start, end) = (clock(cue.span.start()), clock(cue.span.end()));
        let name = one_line(&cue.query);
        let _ = write!(text, "{name}-{}\n{start} --> {end}\n{}\n\n", place + 1, one_line(&cue.label()));
    }
    out.put(text.as_bytes())
}

/// `01:02:05.250`
fn clock(seconds: f64) -> String {
    let thousandths = (1e3 * seconds).round().max(0.0) as u64;
    let (hours, minutes) = (thousandths / 3_600_000, thousandths / 60_000 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:03}", thousandths / 1_000 % 60, thousandths % 1_000)
}

/// Without what ends a cue or begins a tag.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
