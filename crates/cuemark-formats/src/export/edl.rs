//! An edit decision list (CMX 3600): the moments one after the other on the record side.

use std::fmt::Write as _;

use super::{Clip, FrameRate};
use crate::{Result, WholeFile};

/// Writes one event a moment, in the order given.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(clips: &[Clip], rate: FrameRate, out: &mut WholeFile) -> Result<()> {
    let mut text = String::from("TITLE: cuemark\nFCM: NON-DROP FRAME\n\n");
    let mut record = 0;
    for (place, clip) in clips.iter().enumerate() {
        let (start, end) = (rate.frame(clip.span.start()), rate.frame(clip.span.end()));
        let until = record + (end - start.min(end));
        let code = |frames| timecode(frames, rate);
        let _ = write!(
            text,
            "{:03}  AX       V     C        {} {} {} {}\n* FROM CLIP NAME: {}\n* COMMENT: {}\n\n",
            place + 1,
            code(start),
            code(end),
            code(record),
            code(until),
            one_line(clip.video.as_str()),
            one_line(&clip.label())
        );
        record = until;
    }
    out.put(text.as_bytes())
}

/// `00:00:01:10`: hours, minutes, seconds and frames.
fn timecode(frames: u64, rate: FrameRate) -> String {
    let whole = (rate.frames().round() as u64).max(1);
    let (seconds, frame) = (frames / whole, frames % whole);
    format!("{:02}:{:02}:{:02}:{frame:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
