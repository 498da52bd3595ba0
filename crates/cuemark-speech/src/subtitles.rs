//! Lines that somebody wrote down: a file beside the film, or a stream in it.

use std::fs::File;
use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Line, Progress, RowPolicy};
use cuemark_data::subtitles::{SubtitleFormat, Subtitles, read_subtitles};
use cuemark_formats::{Limits, Source};
use cuemark_media::{Ffmpeg, OpenedVideo, SubtitleInfo};

use crate::Result;

/// The largest subtitle file that is read, in bytes: a day of talk is some 3 MB.
const MOST: u64 = 32 << 20;
/// Endings of subtitle files, best first.
const ENDINGS: [&str; 2] = ["vtt", "srt"];
/// Names that say English, as files beside films have them.
const ENGLISH: [&str; 4] = ["en", "eng", "en-us", "en-gb"];

/// Where the lines of a film were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubtitleSource {
    /// A file beside the film: the same name with another ending, perhaps with a language before it.
    Beside(Utf8PathBuf),
    /// A stream of the film itself, by number.
    Inside(usize),
}

/// The lines of a film that somebody wrote down, and where: a file beside it first, then a stream in it; English before other
/// languages. `None` when there are none, or none that can be read: a film is not worse for a broken file beside it.
///
/// # Errors
/// When the film itself cannot be read, or the work was stopped.
pub fn subtitles_of(
    film: &OpenedVideo,
    ffmpeg: &Ffmpeg,
    progress: &Progress,
) -> Result<Option<(Vec<Line>, SubtitleSource)>> {
    for path in subtitle_files(film.path()) {
        match read_file(&path) {
            Ok(lines) if !lines.is_empty() => return Ok(Some((lines, SubtitleSource::Beside(path)))),
            Ok(_) => {}
            Err(problem) => progress.say(format!("{path}: passed over, it cannot be read as subtitles: {problem}")),
        }
    }
    for stream in by_language(ffmpeg.streams(film, progress)?.subtitles) {
        let text = match ffmpeg.subtitle_text(film, &stream, MOST as usize, progress) {
            Ok(text) => text,
            Err(error) if error.is_about_one_video() => {
                progress.say(format!("{error}; passed over"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let source = Source::in_memory(film.path().to_owned(), lossy(&text).into_bytes());
        match read_subtitles(&source, Some(SubtitleFormat::Srt), RowPolicy::Skip) {
            Ok(read) if !lines_of(&read).is_empty() => {
                return Ok(Some((lines_of(&read), SubtitleSource::Inside(stream.stream))));
            }
            Ok(_) => {}
            Err(error) => progress.say(format!("{error}; passed over")),
        }
    }
    Ok(None)
}

/// Subtitle files beside a film, best first: `film.vtt`, `film.en.srt`, then other languages by name.
pub fn subtitle_files(film: &Utf8Path) -> Vec<Utf8PathBuf> {
    let (Some(stem), Some(folder)) = (film.file_stem(), film.parent()) else { return Vec::new() };
    let folder = if folder.as_str().is_empty() { Utf8Path::new(".") } else { folder };
    let Ok(entries) = folder.read_dir_utf8() else { return Vec::new() };
    let mut found: Vec<(usize, Utf8PathBuf)> = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.into_path())) {
        if let Some(rank) = path.file_name().and_then(|name| rank(name, stem)).filter(|_| path.is_file()) {
            found.push((rank, path));
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// How good a name is for subtitles of `stem`, the less the better; `None` of a name for something else.
fn rank(name: &str, stem: &str) -> Option<usize> {
    let rest = name.strip_prefix(stem)?.strip_prefix('.')?;
    let (language, ending) = rest.rsplit_once('.').unwrap_or(("", rest));
    let ending = ENDINGS.iter().position(|known| ending.eq_ignore_ascii_case(known))?;
    let language = language.to_ascii_lowercase();
    // `film.en`, `film.en.forced`; but `film.part two.srt` belongs to another film.
    let plausible = |tag: &str| {
        (2..=8).contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let first = language.split('.').next().unwrap_or_default();
    let language = match first {
        "" => 0,
        _ if !language.split('.').all(plausible) => return None,
        english if ENGLISH.contains(&english) => 1,
        _ => 2,
    };
    Some(language * ENDINGS.len() + ending)
}

/// English first, the order of the file otherwise.
fn by_language(mut streams: Vec<SubtitleInfo>) -> Vec<SubtitleInfo> {
    streams.sort_by_key(|stream| !ENGLISH.contains(&stream.language.to_ascii_lowercase().as_str()));
    streams
}

fn read_file(path: &Utf8Path) -> Result<Vec<Line>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST {
        return Err(format!("it is larger than {} MiB", MOST >> 20));
    }
    let limits = Limits { document: 4 * MOST, ..Limits::default() };
    let source = Source::in_memory(path.to_owned(), lossy(&bytes).into_bytes()).with_limits(limits);
    // By its name, since SRT is whatever nothing else is.
    let format = if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("vtt")) {
        SubtitleFormat::WebVtt
    } else {
        SubtitleFormat::of(&source).map_err(|error| error.to_string())?
    };
    let read = read_subtitles(&source, Some(format), RowPolicy::Skip).map_err(|error| error.to_string())?;
    Ok(lines_of(&read))
}

/// UTF-8, or UTF-16 with its mark, or else Latin-1: old subtitles are, and every byte of it is a letter.
fn lossy(bytes: &[u8]) -> String {
    let sixteen = |from: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].as_chunks::<2>().0.iter().map(|pair| from(*pair)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, ..] => sixteen(u16::from_le_bytes),
        [0xfe, 0xff, ..] => sixteen(u16::from_be_bytes),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().copied().map(char::from).collect(),
        },
    }
}

/// The lines of a file's first track, in the order of their times, on one row each and without empty ones.
fn lines_of(subtitles: &Subtitles) -> Vec<Line> {
    let said = subtitles.tracks.first().map(|track| track.lines.as_slice()).unwrap_or_default();
    let mut lines: Vec<Line> = Vec::with_capacity(said.len());
    for line in said {
        let text = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.chars().any(char::is_alphanumeric) {
            lines.push(Line { span: line.span, text, words: Vec::new(), confidence: 1.0 });
        }
    }
    lines.sort_by(|a, b| a.span.start().total_cmp(&b.span.start()));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beside_a_film_are_ranked() {
        let rank = |name| rank(name, "My Film (2020)");
        assert_eq!(rank("My Film (2020).vtt"), Some(0));
        assert_eq!(rank("My Film (2020).SRT"), Some(1));
        assert_eq!(rank("My Film (2020).en.srt"), Some(3));
        assert_eq!(rank("My Film (2020).en.forced.srt"), Some(3));
        assert_eq!(rank("My Film (2020).de.srt"), Some(5));
        for other in ["My Film (2020).mp4", "My Film (2020) 2.srt", "My Film (2020).part two.srt", "x.srt"] {
            assert_eq!(rank(other), None, "{other}");
        }
    }

    #[test]
    fn old_files_are_read_in_their_own_letters() {
        assert_eq!(lossy("é".as_bytes()), "é");
        assert_eq!(lossy(&[0xe9]), "é");
        assert_eq!(lossy(&[0xff, 0xfe, 0xe9, 0x00]), "é");
        assert_eq!(lossy(&[0xfe, 0xff, 0x00, 0xe9]), "é");
        assert_eq!(lossy(&[0xff, 0xfe, 0xe9]), "");
    }
}
