//! What is said in a film and when.
//!
//! Somebody may have written it down: [`subtitles_of`] finds subtitle files beside a film and streams in it, and needs no weights.
//! Else [`Speech`] listens: a voice detector finds where somebody may be speaking, Whisper writes it down window by window, and guards
//! keep what silence, music and noise make it say from being believed. Memory does not grow with the film.

mod activity;
mod align;
mod decode;
mod error;
mod guards;
mod listen;
mod mel;
mod network;
mod numeric;
mod subtitles;
mod transcript;
mod vocabulary;
mod weights;
mod window;

use camino::Utf8Path;
use candle_core::Device;
use cuemark_core::{Line, Progress};
use cuemark_media::{Ffmpeg, OpenedVideo, Partial, SOUND_RATE};

pub use error::{Result, SpeechError};
pub use subtitles::{SubtitleSource, subtitle_files, subtitles_of};
pub use transcript::TranscriptFormat;

use activity::{Detector, Energy, Silero};
use listen::Listener;
use mel::MelBands;
use network::Whisper;
use vocabulary::Vocabulary;
use window::Ear;

/// Where lines come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineSource {
    /// Somebody wrote them down.
    Subtitles(SubtitleSource),
    /// They were heard.
    Speech,
    /// The film has no sound, so there are none.
    NoSound,
}

/// What is said in a film.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The lines, in the order of their times.
    pub lines: Vec<Line>,
    /// Where they come from.
    pub source: LineSource,
    /// What of the sound is missing or damaged; `None` of a whole film, and of one whose sound was not needed.
    pub partial: Option<Partial>,
}

/// Whisper, and what it listens with.
pub struct Speech {
    ear: Ear,
    voice: Option<Silero>,
}

impl Speech {
    /// Builds the network of the Whisper in a folder (`weights pull whisper-tiny-en`, or a release of the model hub), and of the voice
    /// detector in another (`weights pull silero-vad`). Without the second, loudness decides where to listen: as good in silence and
    /// noise, and worse with music.
    ///
    /// # Errors
    /// When files are missing, damaged, or of another network.
    pub fn open(whisper: &Utf8Path, voice: Option<&Utf8Path>, device: &Device) -> Result<Self> {
        let (mut tensors, rules) = weights::read(whisper, device)?;
        let network = Whisper::new(&mut tensors)?;
        let vocabulary = Vocabulary::read(whisper, network.decoder.count())?;
        let bands = MelBands::new(network.encoder.bands(), device)?;
        let voice = voice.map(|folder| Silero::read(&folder.join("silero_vad_16k.safetensors"))).transpose()?;
        Ok(Self { ear: Ear { whisper: network, bands, vocabulary, rules }, voice })
    }

    /// What is said in a film: its subtitles where there are any, else what is heard. Progress counts seconds of sound.
    ///
    /// # Errors
    /// When the film cannot be read at all, or the work was stopped.
    pub fn lines(&self, film: &OpenedVideo, ffmpeg: &Ffmpeg, progress: &Progress) -> Result<Heard> {
        match subtitles_of(film, ffmpeg, progress)? {
            Some((lines, source)) => Ok(Heard { lines, source: LineSource::Subtitles(source), partial: None }),
            None => self.listen(film, ffmpeg, progress),
        }
    }

    /// What is heard in a film, whatever subtitles there are.
    ///
    /// # Errors
    /// As [`Speech::lines`].
    pub fn listen(&self, film: &OpenedVideo, ffmpeg: &Ffmpeg, progress: &Progress) -> Result<Heard> {
        let Some(info) = ffmpeg.streams(film, progress)?.sound else {
            return Ok(Heard { lines: Vec::new(), source: LineSource::NoSound, partial: None });
        };
        progress.phase("listening", info.duration.unwrap_or(0.0).ceil() as usize);
        let mut sound = ffmpeg.sound(film, &info, progress)?;
        let mut listener = self.listener();
        let mut seconds = 0;
        while let Some(piece) = sound.next() {
            listener.push(&piece?, progress)?;
            let now = sound.seconds() as usize;
            progress.advance(now - seconds)?;
            seconds = now;
        }
        let lines = listener.finish(progress)?;
        Ok(Heard { lines, source: LineSource::Speech, partial: sound.finish()? })
    }

    /// What is heard in sound of one channel and 16,000 samples a second.
    ///
    /// # Errors
    /// When the work was stopped, or the device fails.
    pub fn hear(&self, samples: &[f32], progress: &Progress) -> Result<Vec<Line>> {
        let mut listener = self.listener();
        for piece in samples.chunks(SOUND_RATE) {
            listener.push(piece, progress)?;
        }
        listener.finish(progress)
    }

    fn listener(&self) -> Listener<'_> {
        let detector = match &self.voice {
            Some(network) => Detector::Silero(network, Box::default()),
            None => Detector::Energy(Energy::default()),
        };
        Listener::new(&self.ear, detector)
    }
}

impl std::fmt::Debug for Speech {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (layers, heads) = self.ear.whisper.decoder.size();
        f.debug_struct("Speech")
            .field("layers", &layers)
            .field("heads", &heads)
            .field("bands", &self.ear.bands.count())
            .field("voice", &self.voice.is_some())
            .finish()
    }
}
