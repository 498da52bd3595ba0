//! Where an index reads what is said and written in films.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Line, Progress, RowPolicy, Track};
use cuemark_data::subtitles::read_subtitles;
use cuemark_formats::Source;
use cuemark_media::Stamp;
use cuemark_search::{Lines, LinesError};

/// What the names of subtitle files end in.
const ENDINGS: [&str; 2] = ["srt", "vtt"];
/// Letters of a language in a file's name at most: `film.pt-BR.srt`.
const LANGUAGE: usize = 8;

/// Every source of lines, the preferred of a track first: subtitles that somebody wrote are better than what a recogniser hears.
///
/// A recogniser of speech or a reader of pictures is one more line here.
pub(crate) fn sources() -> Vec<Box<dyn Lines>> {
    vec![Box::new(SubtitleFiles)]
}

/// Subtitle files beside a film: `film.srt`, `film.vtt`, `film.en.srt`.
struct SubtitleFiles;

impl Lines for SubtitleFiles {
    fn track(&self) -> Track {
        Track::Said
    }

    fn source(&self, film: &Utf8Path) -> Option<String> {
        let file = beside(film)?;
        let stamp = Stamp::of(&file).ok()?;
        Some(format!("{}, {} bytes, changed {}", file.file_name()?, stamp.bytes, stamp.modified))
    }

    fn of(&self, film: &Utf8Path, progress: &Progress) -> Result<Vec<Line>, LinesError> {
        let Some(file) = beside(film) else { return Ok(Vec::new()) };
        let read = read_subtitles(&Source::new(file).watched(progress), None, RowPolicy::Skip)?;
        let lines = read.tracks.into_iter().flat_map(|track| track.lines).map(|subtitle| Line {
            span: subtitle.span,
            text: subtitle.text.split_whitespace().collect::<Vec<_>>().join(" "),
            words: Vec::new(),
            confidence: 1.0,
        });
        Ok(lines.filter(|line| !line.text.is_empty()).collect())
    }
}

/// The subtitle file of a film: one without a language before an English one before any other, by name.
fn beside(film: &Utf8Path) -> Option<Utf8PathBuf> {
    let (folder, stem) = (film.parent()?, film.file_stem()?);
    let folder = if folder.as_str().is_empty() { Utf8Path::new(".") } else { folder };
    let mut found: Vec<(usize, Utf8PathBuf)> = Vec::new();
    for entry in folder.read_dir_utf8().ok()?.flatten() {
        let Some(rest) = entry.file_name().strip_prefix(stem).and_then(|rest| rest.strip_prefix('.')) else { continue };
        let (language, ending) = rest.rsplit_once('.').unwrap_or(("", rest));
        let is_language = language.len() <= LANGUAGE && language.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
        let is_one = ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)) && is_language;
        if is_one && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let rank = match language.to_ascii_lowercase().as_str() {
                "" => 0,
                "en" | "eng" | "en-us" | "en-gb" => 1,
                _ => 2,
            };
            found.push((rank, entry.into_path()));
        }
    }
    found.sort();
    found.into_iter().next().map(|(_, file)| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subtitles_of_a_film_are_found_beside_it_and_those_of_another_are_not() {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        let film = folder.join("a film.mp4");
        let write = |name: &str| {
            std::fs::write(folder.join(name), "1\n00:00:01,000 --> 00:00:02,500\n<i>good</i>\nmorning\n").unwrap();
        };
        ["a film 2.srt", "a film.director cut.srt", "a.srt", "a film.txt"].into_iter().for_each(write);
        assert_eq!(SubtitleFiles.source(&film), None);
        assert!(SubtitleFiles.of(&film, &Progress::new()).unwrap().is_empty());
        for name in ["a film.de.srt", "a film.en.vtt", "a film.SRT"] {
            write(name);
            assert!(SubtitleFiles.source(&film).unwrap().starts_with(name), "{name}");
        }
        let lines = SubtitleFiles.of(&film, &Progress::new()).unwrap();
        assert_eq!((lines.len(), lines[0].text.as_str(), lines[0].span.end()), (1, "good morning", 2.5));
    }
}
