//! WebVTT: `WEBVTT`, then blocks of an optional name, `00:01.000 --> 00:04.000` with settings, and text.
//!
//! Header, `NOTE`, `STYLE` and `REGION` blocks are passed over; tags and character references are resolved as the
//! standard says.

use cuemark_core::RowPolicy;
use cuemark_formats::{Result, Source};

use super::{Subtitles, cue};

pub(super) fn read(source: &Source, bad_rows: RowPolicy) -> Result<Subtitles> {
    let text = source.text()?;
    let mut blocks = cue::blocks(source, &text)?;
    let is_header = |block: &cue::Block| block.lines.first().is_some_and(|line| line.starts_with("WEBVTT"));
    if !blocks.first().is_some_and(is_header) {
        return Err(source.record(1, "header", "the file does not begin with `WEBVTT`"));
    }
    blocks.remove(0);
    blocks.retain(|block| !is_aside(&block.lines));
    cue::track(source, blocks, bad_rows, plain)
}

fn is_aside(lines: &[&str]) -> bool {
    let first = lines.first().copied().unwrap_or_default();
    let word = first.split_whitespace().next().unwrap_or_default();
    matches!(word, "NOTE" | "STYLE" | "REGION") && !first.contains("-->")
}

fn plain(text: &str) -> String {
    let plain = cue::without_tags(text);
    [("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", "\u{a0}"), ("&lrm;", "\u{200e}"), ("&rlm;", "\u{200f}"), ("&amp;", "&")]
        .into_iter()
        .fold(plain, |text, (reference, character)| text.replace(reference, character))
}
