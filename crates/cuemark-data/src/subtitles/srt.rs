//! SubRip: blocks of a number, `00:00:01,000 --> 00:00:04,000` and text, with blank lines between them.
//!
//! The number may be missing; `{\an8}` and tags in angle brackets are mark-up and are left out of the text.

use cuemark_core::RowPolicy;
use cuemark_formats::{Result, Source};

use super::{Subtitles, cue};

pub(super) fn read(source: &Source, bad_rows: RowPolicy) -> Result<Subtitles> {
    let text = source.text()?;
    cue::track(source, cue::blocks(source, &text)?, bad_rows, plain)
}

fn plain(text: &str) -> String {
    let text = cue::without_tags(text);
    // Placement codes stand at the beginning of a cue.
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.strip_prefix("{\\").and_then(|code| code.split_once('}')) {
        rest = after;
    }
    rest.to_owned()
}
