//! Where an index reads what is said and written in films.

use std::sync::{Mutex, OnceLock, PoisonError};

use camino::Utf8Path;
use cuemark_core::{Line, Progress, Track};
use cuemark_encoders::weights::{self, Cache};
use cuemark_media::{Ffmpeg, MediaError, OpenedVideo, Stamp};
use cuemark_ocr::Reader;
use cuemark_search::encoder::JointEncoder;
use cuemark_search::{Lines, LinesError};
use cuemark_speech::{Speech, subtitle_files, subtitles_of};
use cuemark_tensor::Device;

/// The weights that hear, and those that tell speech from other sound.
pub(super) const HEARING: &str = "whisper-tiny-en";
pub(super) const VOICE: &str = "silero-vad";
/// The weights that read.
pub(super) const READING: &str = "pp-ocrv4";

/// The sources of lines for an index of `encoder`.
///
/// Subtitles always. What takes networks of its own, and as long as looking does, goes with the encoders for anybody's films, where its
/// weights have been pulled: an index of a trained run is about that run's dataset.
pub(crate) fn sources(encoder: &str) -> Vec<Box<dyn Lines>> {
    if JointEncoder::is_one(encoder) {
        return vec![Box::new(Said::heard()), Box::new(Written::default())];
    }
    vec![Box::new(Said::only_read())]
}

/// Whether weights are there, as far as their sizes tell; they are held to their checksums when they are opened.
pub(super) fn is_pulled(name: &str) -> bool {
    weights::find(name).and_then(|card| Cache::of_user()?.locate(card)).is_ok()
}

/// What is said: subtitles beside a film or in it before what a recogniser hears.
struct Said {
    listens: bool,
    speech: OnceLock<Speech>,
    /// The film that was looked at last: it is read next, and need not be looked at again.
    looked_at: Mutex<Option<OpenedVideo>>,
}

impl Said {
    fn heard() -> Self {
        Self { listens: true, speech: OnceLock::new(), looked_at: Mutex::new(None) }
    }

    /// Subtitles and nothing else.
    fn only_read() -> Self {
        Self { listens: false, speech: OnceLock::new(), looked_at: Mutex::new(None) }
    }

    fn can_listen(&self) -> bool {
        self.listens && is_pulled(HEARING)
    }

    /// A film as it was looked at, unless it is another by now.
    fn opened(&self, film: &Utf8Path) -> Result<OpenedVideo, MediaError> {
        let looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stamp = Stamp::of(film)?;
        match looked_at.filter(|opened| opened.path() == film && opened.stamp() == stamp) {
            Some(opened) => Ok(opened),
            None => OpenedVideo::open(film),
        }
    }

    fn speech(&self) -> Result<&Speech, LinesError> {
        if let Some(open) = self.speech.get() {
            return Ok(open);
        }
        let voice = if is_pulled(VOICE) { Some(weights::locate(VOICE)?) } else { None };
        let voice = voice.as_ref().map(weights::WeightsFolder::path);
        let speech = Speech::open(weights::locate(HEARING)?.path(), voice, &Device::Cpu)?;
        Ok(self.speech.get_or_init(|| speech))
    }
}

impl Lines for Said {
    fn track(&self) -> Track {
        Track::Said
    }

    fn source(&self, film: &Utf8Path) -> Option<String> {
        if let Some(file) = subtitle_files(film).first() {
            let stamp = Stamp::of(file).ok()?;
            return Some(format!("{}, {} bytes, changed {}", file.file_name()?, stamp.bytes, stamp.modified));
        }
        let opened = OpenedVideo::open(film).ok()?;
        let streams = Ffmpeg::on_path().streams(&opened, &Progress::new()).ok()?;
        *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        if !streams.subtitles.is_empty() {
            return Some("subtitles in the film".to_owned());
        }
        (streams.sound.is_some() && self.can_listen()).then(|| HEARING.to_owned())
    }

    fn of(&self, film: &Utf8Path, progress: &Progress) -> Result<Vec<Line>, LinesError> {
        let (opened, ffmpeg) = (self.opened(film)?, Ffmpeg::on_path());
        if let Some((lines, _)) = subtitles_of(&opened, &ffmpeg, progress)? {
            return Ok(lines);
        }
        if !self.can_listen() {
            return Ok(Vec::new());
        }
        let heard = self.speech()?.listen(&opened, &ffmpeg, progress)?;
        if let Some(partial) = heard.partial {
            progress.say(format!("{film}: its sound could only be heard in part: {partial}"));
        }
        Ok(heard.lines)
    }
}

/// What is written in the pictures.
#[derive(Default)]
struct Written {
    reader: OnceLock<Reader>,
}

impl Written {
    fn reader(&self) -> Result<&Reader, LinesError> {
        if let Some(open) = self.reader.get() {
            return Ok(open);
        }
        let reader = Reader::open(weights::locate(READING)?.path())?;
        Ok(self.reader.get_or_init(|| reader))
    }
}

impl Lines for Written {
    fn track(&self) -> Track {
        Track::Written
    }

    fn source(&self, _film: &Utf8Path) -> Option<String> {
        is_pulled(READING).then(|| READING.to_owned())
    }

    fn of(&self, film: &Utf8Path, progress: &Progress) -> Result<Vec<Line>, LinesError> {
        // That a film is damaged is told once, by those who look at it.
        Ok(self.reader()?.lines(&OpenedVideo::open(film)?, progress)?.lines)
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

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
        assert_eq!(Said::only_read().source(&film), None);
        for name in ["a film.de.srt", "a film.en.srt", "a film.SRT"] {
            write(name);
            assert!(Said::only_read().source(&film).unwrap().starts_with(name), "{name}");
        }
    }

    #[test]
    fn a_film_that_was_looked_at_is_read_as_it_was_unless_it_has_changed() {
        let guard = tempfile::tempdir().unwrap();
        let film = Utf8PathBuf::from_path_buf(guard.path().join("a film.mp4")).unwrap();
        std::fs::write(&film, "pictures").unwrap();
        let said = Said::only_read();
        let look = || *said.looked_at.lock().unwrap() = Some(OpenedVideo::open(&film).unwrap());
        look();
        std::fs::rename(&film, film.with_extension("old")).unwrap();
        assert!(said.opened(&film).is_err(), "it is gone");
        std::fs::rename(film.with_extension("old"), &film).unwrap();
        look();
        assert_eq!(said.opened(&film).unwrap().stamp().bytes, 8);
        assert!(said.looked_at.lock().unwrap().is_none(), "it is held no longer than until it is read");
        look();
        std::fs::write(&film, "other pictures").unwrap();
        assert_eq!(said.opened(&film).unwrap().stamp().bytes, 14);
    }
}
