//! What is said or written in a film, as a transcript.

use camino::Utf8PathBuf;
use cuemark_core::{Line, Progress, Track};
use cuemark_encoders::weights;
use cuemark_formats::{Overwrite, WholeFile};
use cuemark_media::{Ffmpeg, OpenedVideo, Partial};
use cuemark_ocr::Reader;
use cuemark_speech::{Speech, SubtitleSource, TranscriptFormat, subtitles_of};
use serde::{Deserialize, Serialize, Serializer};

use super::words::{HEARING, READING, VOICE, is_pulled};
use crate::device::cpu;
use crate::{Error, Result};

/// Writes down what is said in a film, or what is written in its pictures, with times.
///
/// Subtitles beside the film or in it are taken where there are any; else it is listened to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Transcribe {
    /// The film, or any file with sound.
    #[cfg_attr(feature = "clap", arg(value_name = "FILM"))]
    pub film: Utf8PathBuf,
    /// Listen, whatever subtitles there are.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "written"))]
    pub listen: bool,
    /// What is written in the pictures instead of what is said.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub written: bool,
    /// The layout. Default: what the name of the file asks for, else text
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "LAYOUT"))]
    pub to: Option<TranscriptLayout>,
    /// Write it into this file.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub out: Option<Utf8PathBuf>,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
    /// What to compute on: cpu, cuda, cuda:N.
    #[serde(default = "cpu")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DEVICE", default_value = "cpu"))]
    pub device: String,
}

/// How a transcript is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum TranscriptLayout {
    /// A line each, without times. Default.
    #[default]
    Text,
    /// SubRip.
    Srt,
    /// WebVTT.
    Vtt,
    /// One document: the film, where the lines are from, and the lines with their words; seconds.
    Json,
    /// A line of JSON each.
    Jsonl,
}

/// What is said or written in a film.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transcript {
    /// The film.
    pub film: Utf8PathBuf,
    /// `said` or `written`.
    pub track: Track,
    /// Where the lines are from: a file's name, `subtitles in the film`, or the weights that heard or read them; `null` of a
    /// film without sound.
    pub from: Option<String>,
    /// What of the film could not be heard or read; `null` of a whole one.
    pub partial: Option<Partial>,
    /// The lines, by their times; as JSON `start`, `end`, `text`, `confidence`, and `words` as `[start, end, word]`.
    #[serde(serialize_with = "rows")]
    pub lines: Vec<Line>,
}

/// One line as JSON has it; **seconds**.
#[derive(Serialize)]
struct Row<'a> {
    start: f64,
    end: f64,
    text: &'a str,
    confidence: f32,
    words: Vec<(f64, f64, &'a str)>,
}

fn rows<S: Serializer>(lines: &[Line], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(lines.iter().map(|line| Row {
        start: line.span.start(),
        end: line.span.end(),
        text: &line.text,
        confidence: line.confidence,
        words: line.words.iter().map(|word| (word.span.start(), word.span.end(), word.text.as_str())).collect(),
    }))
}

/// Lines, and what became of them.
struct Taken {
    lines: Vec<Line>,
    from: Option<String>,
    partial: Option<Partial>,
}

impl Transcribe {
    /// What is said in `film`, everything else as usual.
    pub fn new(film: impl Into<Utf8PathBuf>) -> Self {
        let (film, device) = (film.into(), cpu());
        Self { film, listen: false, written: false, to: None, out: None, force: false, device }
    }

    /// Reads or hears the film, and writes the file where one was named. `progress` counts seconds of film.
    ///
    /// # Errors
    /// When the file is there already (before anything is opened), the film cannot be read, or weights are not on this machine.
    pub fn run(&self, progress: &Progress) -> Result<Transcript> {
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        if let Some(out) = &self.out {
            overwrite.check(out)?;
        }
        progress.phase("opening", 0);
        let (film, ffmpeg) = (OpenedVideo::open(&self.film)?, Ffmpeg::on_path());
        let taken = if self.written { written(&film, progress)? } else { self.said(&film, &ffmpeg, progress)? };
        let track = if self.written { Track::Written } else { Track::Said };
        let Taken { lines, from, partial } = taken;
        let transcript = Transcript { film: self.film.clone(), track, from, partial, lines };
        if let Some(out) = &self.out {
            let text = transcript.render(self.layout())?;
            WholeFile::write_all_to(out, overwrite, text.as_bytes())?;
        }
        Ok(transcript)
    }

    /// The layout that was asked for, by name or by the name of the file.
    pub fn layout(&self) -> TranscriptLayout {
        let named = || match self.out.as_ref()?.extension()?.to_ascii_lowercase().as_str() {
            "srt" => Some(TranscriptLayout::Srt),
            "vtt" => Some(TranscriptLayout::Vtt),
            "json" => Some(TranscriptLayout::Json),
            "jsonl" => Some(TranscriptLayout::Jsonl),
            _ => None,
        };
        self.to.or_else(named).unwrap_or_default()
    }

    fn said(&self, film: &OpenedVideo, ffmpeg: &Ffmpeg, progress: &Progress) -> Result<Taken> {
        if !self.listen
            && let Some((lines, source)) = subtitles_of(film, ffmpeg, progress)?
        {
            let from = match source {
                SubtitleSource::Beside(path) => path.file_name().unwrap_or_default().to_owned(),
                SubtitleSource::Inside(_) => "subtitles in the film".to_owned(),
            };
            return Ok(Taken { lines, from: Some(from), partial: None });
        }
        if ffmpeg.streams(film, progress)?.sound.is_none() {
            return Ok(Taken { lines: Vec::new(), from: None, partial: None });
        }
        let voice = if is_pulled(VOICE) { Some(weights::locate(VOICE)?) } else { None };
        let voice = voice.as_ref().map(weights::WeightsFolder::path);
        let device = cuemark_tensor::device(&self.device)?;
        let heard = Speech::open(weights::locate(HEARING)?.path(), voice, &device)?.listen(film, ffmpeg, progress)?;
        Ok(Taken { lines: heard.lines, from: Some(HEARING.to_owned()), partial: heard.partial })
    }
}

fn written(film: &OpenedVideo, progress: &Progress) -> Result<Taken> {
    let read = Reader::open(weights::locate(READING)?.path())?.lines(film, progress)?;
    Ok(Taken { lines: read.lines, from: Some(READING.to_owned()), partial: read.partial })
}

impl Transcript {
    /// The transcript in a layout.
    ///
    /// # Errors
    /// When a number of it cannot be written down.
    pub fn render(&self, layout: TranscriptLayout) -> Result<String> {
        Ok(match layout {
            TranscriptLayout::Text => {
                let plain = |line: &Line| line.text.split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
                self.lines.iter().map(plain).collect()
            }
            TranscriptLayout::Json => {
                let text = serde_json::to_string_pretty(self);
                text.map_err(|error| Error::nothing(error.to_string()))? + "\n"
            }
            TranscriptLayout::Srt => TranscriptFormat::Srt.render(&self.lines),
            TranscriptLayout::Vtt => TranscriptFormat::WebVtt.render(&self.lines),
            TranscriptLayout::Jsonl => TranscriptFormat::Jsonl.render(&self.lines),
        })
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Span, Word};

    use super::*;

    fn transcript() -> Transcript {
        let span = |start, end| Span::new(start, end).unwrap();
        let word = |start, end, text: &str| Word { span: span(start, end), text: text.to_owned() };
        let words = vec![word(1.0, 1.5, "good"), word(1.5, 2.5, "morning")];
        let line = Line { span: span(1.0, 2.5), text: "good\nmorning".to_owned(), words, confidence: 0.5 };
        let (film, from) = ("a.mp4".into(), Some("a.srt".to_owned()));
        Transcript { film, track: Track::Said, from, partial: None, lines: vec![line] }
    }

    #[test]
    fn every_layout_has_the_words_and_those_with_times_the_times() {
        let transcript = transcript();
        assert_eq!(transcript.render(TranscriptLayout::Text).unwrap(), "good morning\n");
        let srt = transcript.render(TranscriptLayout::Srt).unwrap();
        assert_eq!(srt, "1\n00:00:01,000 --> 00:00:02,500\ngood morning\n\n");
        assert!(
            transcript.render(TranscriptLayout::Vtt).unwrap().starts_with("WEBVTT\n\n00:00:01.000 --> 00:00:02.500")
        );
        let json: serde_json::Value =
            serde_json::from_str(&transcript.render(TranscriptLayout::Json).unwrap()).unwrap();
        assert_eq!(json["track"], "said");
        assert_eq!(json["lines"][0]["words"][1], serde_json::json!([1.5, 2.5, "morning"]));
    }

    #[test]
    fn the_layout_is_the_one_that_was_named_or_else_the_files() {
        let asked =
            |to, out: Option<&str>| Transcribe { to, out: out.map(Into::into), ..Transcribe::new("a.mp4") }.layout();
        assert_eq!(asked(None, None), TranscriptLayout::Text);
        assert_eq!(asked(None, Some("a.VTT")), TranscriptLayout::Vtt);
        assert_eq!(asked(Some(TranscriptLayout::Json), Some("a.srt")), TranscriptLayout::Json);
    }
}
