//! What one record of a log may hold. The writer refuses whatever the reader would, so that nothing is ever written that
//! cannot be read again; its limits on tags are narrower still, so that tags that add up never reach the reader's.

use cuemark_core::{Line, Track, VideoId};

use super::log::Meta;
use crate::{Result, SearchError, VideoEntry};

/// The most bytes of JSON in one record: far more than any video's name, path and tags.
pub(super) const DESCRIPTION_BYTES: usize = 1 << 20;
/// The most moments of one video.
pub(super) const MOMENTS: usize = 1 << 22;
/// The most bytes of what is said and written in one video: days of speech with the time of every word.
pub(super) const WORDS_BYTES: usize = 1 << 27;
/// The most lines of one video.
pub(super) const LINES: usize = 1 << 20;
/// The most bytes of one line.
pub(super) const LINE_BYTES: usize = 1 << 16;
/// The most words with a time of their own in one line.
pub(super) const LINE_WORDS: usize = 1 << 14;
/// The most tags of one video.
pub(super) const TAGS: usize = 1_000;
/// The most bytes of one tag.
pub(super) const TAG_BYTES: usize = 512;
/// The most numbers of one embedding.
pub(crate) const WIDTH: usize = 1 << 16;
/// The most records that one commit covers.
pub(super) const COMMITTED: usize = 1_024;
/// The most bytes of `index.json` and `graph.json`.
pub(crate) const MANIFEST_BYTES: u64 = 64 << 20;

/// The most bytes of one file of an encoder that an index keeps.
pub(crate) const KEPT_BYTES: u64 = 16 << 30;

fn too_much(id: &VideoId, what: &'static str, found: usize, most: usize) -> SearchError {
    let video = VideoId::new(id.as_str().chars().take(100).collect::<String>());
    SearchError::Limit { video, what, found, most }
}

/// Refuses tags that could add up to more than a reader takes.
pub(super) fn check_tags(meta: &Meta) -> Result<()> {
    let (Meta::Put(VideoEntry { id, tags, .. }) | Meta::Note { id, tags, .. }) = meta else { return Ok(()) };
    if tags.len() > TAGS {
        return Err(too_much(id, "tags", tags.len(), TAGS));
    }
    match tags.iter().find(|tag| tag.len() > TAG_BYTES) {
        Some(tag) => Err(too_much(id, "bytes in a tag", tag.len(), TAG_BYTES)),
        None => Ok(()),
    }
}

/// Refuses a description that a reader would refuse; `text` is `meta` as it is to be written.
pub(super) fn check_text(meta: &Meta, text: &[u8]) -> Result<()> {
    if text.len() > DESCRIPTION_BYTES {
        return Err(too_much(meta.id(), "bytes of name, path and tags", text.len(), DESCRIPTION_BYTES));
    }
    // The reader itself is asked: JSON has no place for a duration that is no number.
    match serde_json::from_slice::<Meta>(text) {
        Ok(read) if read == *meta => Ok(()),
        _ => Err(SearchError::Question {
            problem: format!("what is said about video `{}` cannot be written down", meta.id()),
            advice: "its duration must be a number of seconds".into(),
        }),
    }
}

/// Refuses more words than a reader takes.
pub(super) fn check_words(meta: &Meta, bytes: usize) -> Result<()> {
    if bytes > WORDS_BYTES {
        return Err(too_much(meta.id(), "bytes of words", bytes, WORDS_BYTES));
    }
    Ok(())
}

/// Refuses lines that a reader would refuse.
pub(super) fn check_lines(id: &VideoId, lines: &[(Track, Line)]) -> Result<()> {
    if lines.len() > LINES {
        return Err(too_much(id, "lines", lines.len(), LINES));
    }
    for (_, line) in lines {
        let longest = line.words.iter().map(|word| word.text.len()).fold(line.text.len(), usize::max);
        if longest > LINE_BYTES {
            return Err(too_much(id, "bytes in a line", longest, LINE_BYTES));
        }
        if line.words.len() > LINE_WORDS {
            return Err(too_much(id, "words in a line", line.words.len(), LINE_WORDS));
        }
    }
    Ok(())
}

/// Refuses more moments than a reader takes.
pub(super) fn check_moments(entry: &VideoEntry, moments: usize) -> Result<()> {
    if moments > MOMENTS {
        return Err(SearchError::Limit { video: entry.id.clone(), what: "moments", found: moments, most: MOMENTS });
    }
    Ok(())
}
