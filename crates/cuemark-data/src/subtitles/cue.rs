//! Cues: a line with two times, then text until a blank line. What SRT and WebVTT have in common.

use cuemark_core::{RawSpan, RowPolicy, VideoId};
use cuemark_formats::{Result, Source};

use super::{Subtitle, Subtitles, Track};

/// A block of lines between blank ones, with the number of its first line, from 1.
pub(super) struct Block<'a> {
    pub(super) line: usize,
    pub(super) lines: Vec<&'a str>,
}

/// The blocks of a file, counted with what becomes of them.
///
/// # Errors
/// When they would pass the memory budget.
pub(super) fn blocks<'a>(source: &Source, text: &'a str) -> Result<Vec<Block<'a>>> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for (number, line) in (1..).zip(text.split('\n')) {
        let line = line.trim_end_matches('\r');
        if line.trim().is_empty() {
            inside = false;
            continue;
        }
        // A line is copied into the cue's text; a list that grows lies in memory twice.
        let own = if inside { 0 } else { 2 * (size_of::<Block>() + size_of::<Subtitle>()) + 32 };
        source.charge(number, own + 2 * size_of::<&str>() + 2 * line.len())?;
        match blocks.last_mut() {
            Some(block) if inside => block.lines.push(line),
            _ => blocks.push(Block { line: number, lines: vec![line] }),
        }
        inside = true;
    }
    Ok(blocks)
}

/// Reads blocks of which each is a cue (times on its first or second line) into one track, named after the file.
pub(super) fn track(
    source: &Source,
    blocks: Vec<Block<'_>>,
    bad_rows: RowPolicy,
    plain: fn(&str) -> String,
) -> Result<Subtitles> {
    let mut subtitles = Subtitles::default();
    let mut track = Track { video: VideoId::from(source.stem()), lines: Vec::new() };
    for block in blocks {
        let timed = block.lines.iter().take(2).position(|line| line.contains("-->"));
        let Some(at) = timed else {
            return Err(source.record(block.line, "times", "neither of the first two lines has `START --> END`"));
        };
        let line = block.line + at;
        let raw = times(block.lines[at]).map_err(|problem| source.record(line, "times", problem))?;
        let judged = bad_rows.judge(raw, None, &mut subtitles.rows);
        let span = judged.map_err(|fault| source.bad_row(line, "times", fault))?;
        let text = plain(&block.lines[at + 1..].join("\n"));
        track.lines.extend(span.map(|span| Subtitle { span, text }));
    }
    subtitles.tracks.push(track);
    Ok(subtitles)
}

/// `00:01:02,500 --> 00:01:04.000` and whatever settings follow.
fn times(line: &str) -> Result<RawSpan, String> {
    let (start, rest) = line.split_once("-->").unwrap_or((line, ""));
    let end = rest.split_whitespace().next().unwrap_or_default();
    Ok(RawSpan::new(seconds(start.trim())?, seconds(end)?))
}

/// `[hours:]minutes:seconds[,.]fraction` in seconds.
fn seconds(clock: &str) -> Result<f64, String> {
    let wrong = || format!("`{clock}` is no time");
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = clock.split_once([',', '.']).unwrap_or((clock, "0"));
    let parts: Vec<&str> = whole.split(':').collect();
    if !(2..=3).contains(&parts.len()) || !digits(fraction) || !parts.iter().all(|part| digits(part)) {
        return Err(wrong());
    }
    // Seconds and fraction are parsed as one decimal, so that 2,500 is exactly 2.5.
    let (last, first) = parts.split_last().ok_or_else(wrong)?;
    let tail: f64 = format!("{last}.{fraction}").parse().map_err(|_| wrong())?;
    let minutes = first.iter().try_fold(0.0, |minutes, part| Some(minutes * 60.0 + part.parse::<f64>().ok()?));
    Ok(minutes.ok_or_else(wrong)? * 60.0 + tail)
}

/// `text` without what stands between `<` and `>`.
pub(super) fn without_tags(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        plain.push_str(before);
        match tag.split_once('>') {
            Some((_, after)) => rest = after,
            // No tag ends from here on: what is left is text.
            None => {
                plain.push('<');
                plain.push_str(tag);
                return plain;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_read_with_and_without_hours_and_with_either_mark() {
        assert_eq!(seconds("00:01:02,500").unwrap(), 62.5);
        assert_eq!(seconds("01:02.500").unwrap(), 62.5);
        assert_eq!(seconds("10:00:00.1").unwrap(), 36_000.1);
        for wrong in ["", "12", "a:b:c", "1:2:3:4", "00:-1:02,0", "00:00:NaN", "00:00:1,", "1e3:00"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tags_go_and_lone_brackets_stay() {
        assert_eq!(without_tags("<i>Oh</i>, <font color=\"red\">no</font>"), "Oh, no");
        assert_eq!(without_tags("1 < 2"), "1 < 2");
    }
}
