//! Lines as files that other programs read: WebVTT, SubRip, JSON lines.

use std::fmt::Write as _;

use camino::Utf8Path;
use cuemark_core::{Line, Span};
use cuemark_formats::{Overwrite, WholeFile};
use serde_json::json;

use crate::Result;

/// A layout of transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptFormat {
    /// WebVTT.
    WebVtt,
    /// SubRip.
    Srt,
    /// One line of JSON each: `start`, `end`, `text`, `confidence`, and `words` as `[start, end, text]`; **seconds**.
    Jsonl,
}

impl TranscriptFormat {
    /// The layout that a file's name asks for: `.vtt`, `.srt` or `.jsonl`.
    pub fn of(path: &Utf8Path) -> Option<Self> {
        match path.extension()?.to_ascii_lowercase().as_str() {
            "vtt" => Some(Self::WebVtt),
            "srt" => Some(Self::Srt),
            "jsonl" => Some(Self::Jsonl),
            _ => None,
        }
    }

    /// The lines in this layout.
    pub fn render(self, lines: &[Line]) -> String {
        let mut text = String::from(if self == Self::WebVtt { "WEBVTT\n\n" } else { "" });
        for (number, line) in (1..).zip(lines) {
            let plain = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
            // Writing to a string does not fail.
            let _ = match self {
                Self::WebVtt => {
                    // What would be taken for mark-up or for the times of another cue.
                    let plain = plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                    write!(text, "{} --> {}\n{plain}\n\n", clock(line.span.start(), '.'), clock(line.span.end(), '.'))
                }
                Self::Srt => {
                    // SubRip has no way to write an arrow in text.
                    let plain = plain.replace("-->", "->");
                    write!(
                        text,
                        "{number}\n{} --> {}\n{plain}\n\n",
                        clock(line.span.start(), ','),
                        clock(line.span.end(), ',')
                    )
                }
                Self::Jsonl => {
                    let of = |span: Span| (rounded(span.start()), rounded(span.end()));
                    let words = line.words.iter().map(|word| json!([of(word.span).0, of(word.span).1, word.text]));
                    let words: Vec<serde_json::Value> = words.collect();
                    let (start, end) = of(line.span);
                    let confidence = rounded(f64::from(line.confidence));
                    let row = json!({"start": start, "end": end, "text": line.text, "confidence": confidence, "words": words});
                    writeln!(text, "{row}")
                }
            };
        }
        text
    }

    /// Writes the lines in this layout, whole or not at all.
    ///
    /// # Errors
    /// When something is there already and may not be replaced, or the file cannot be written.
    pub fn write(self, lines: &[Line], to: &Utf8Path, overwrite: Overwrite) -> Result<()> {
        Ok(WholeFile::write_all_to(to, overwrite, self.render(lines).as_bytes())?)
    }
}

/// To milliseconds.
fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// `01:02:03.456`, with the mark that the layout wants before the fraction.
fn clock(seconds: f64, mark: char) -> String {
    let milliseconds = (seconds * 1_000.0).round() as u64;
    let (seconds, rest) = (milliseconds / 1_000, milliseconds % 1_000);
    format!("{:02}:{:02}:{:02}{mark}{rest:03}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use cuemark_core::{RowPolicy, Word};
    use cuemark_data::subtitles::read_subtitles;
    use cuemark_formats::Source;

    use super::*;

    fn lines() -> Vec<Line> {
        let span = |start, end| Span::new(start, end).unwrap();
        let word = Word { span: span(3_723.456, 3_724.0), text: "Tom".to_owned() };
        vec![
            Line { span: span(0.0, 1.5), text: "Tom & Jerry --> you".to_owned(), words: vec![], confidence: 1.0 },
            Line {
                span: span(3_723.456, 3_725.0),
                text: "Tom\n\nagain".to_owned(),
                words: vec![word],
                confidence: 0.5,
            },
        ]
    }

    #[test]
    fn our_own_readers_read_what_is_written() {
        for (format, first) in
            [(TranscriptFormat::WebVtt, "Tom & Jerry --> you"), (TranscriptFormat::Srt, "Tom & Jerry -> you")]
        {
            let source = Source::in_memory("a", format.render(&lines()).into_bytes());
            let read = read_subtitles(&source, None, RowPolicy::Error).unwrap();
            let said = &read.tracks[0].lines;
            assert_eq!(
                (said.len(), said[0].text.as_str(), said[1].text.as_str()),
                (2, first, "Tom again"),
                "{format:?}"
            );
            assert_eq!((said[1].span.start(), said[1].span.end()), (3_723.456, 3_725.0));
        }
    }

    #[test]
    fn json_lines_have_words_with_times() {
        let text = TranscriptFormat::Jsonl.render(&lines());
        let rows: Vec<serde_json::Value> = text.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
        assert_eq!(rows[1]["words"], json!([[3_723.456, 3_724.0, "Tom"]]));
        assert_eq!(rows[0]["confidence"], json!(1.0));
    }

    #[test]
    fn the_name_of_a_file_says_its_layout() {
        assert_eq!(TranscriptFormat::of("a/b.VTT".into()), Some(TranscriptFormat::WebVtt));
        assert_eq!(TranscriptFormat::of("a/b.txt".into()), None);
    }
}
