//! The sound of a film, piece after piece: one channel of 16,000 samples a second.

use std::io;
use std::sync::mpsc::Receiver;

use cuemark_core::Progress;

use crate::frames::{longest_of, too_long};
use crate::program::{Call, Input, Limits, Program};
use crate::running::{Running, signal};
use crate::{Ffmpeg, MediaError, OpenedVideo, Partial, Result, SoundInfo};

/// Samples a second.
pub const SOUND_RATE: usize = 16_000;
/// Samples of one piece: a tenth of a second.
const PIECE: usize = SOUND_RATE / 10;
/// Files round; so many seconds are no loss.
const SLACK: f64 = 1.0;

impl Ffmpeg {
    /// Starts to decode the sound. Pieces are made as they are taken, a few are held; dropping the iterator, or stopping
    /// `progress`, ends ffmpeg. Sample `n` is heard `n / 16000` seconds after the film's first picture: sound before it is left
    /// out, and where none is in the file there is silence.
    ///
    /// # Errors
    /// When the film states a length that cannot be, or `ffmpeg` is missing.
    pub fn sound<'a>(&self, video: &'a OpenedVideo, info: &SoundInfo, progress: &'a Progress) -> Result<Sound<'a>> {
        let longest = longest_of(video.stamp().bytes);
        if let Some(seconds) = info.duration.filter(|seconds| *seconds > longest) {
            return Err(MediaError::video(video.path(), too_long(seconds, longest)));
        }
        // Gaps are filled, so that a damaged stretch does not move what comes after it; the last piece is filled up. Channels are
        // weighed so that none of their sums can pass the loudest sample, as for whole numbers: of floats ffmpeg makes more.
        let filters = format!(
            "asetpts=PTS-({:.6}/TB),aresample={SOUND_RATE}:async=1:first_pts=0:ocl=mono:rematrix_maxval=1.0,apad=pad_len={}",
            info.pictures_begin,
            PIECE - 1
        );
        let map = format!("0:{}", info.stream);
        let after = ["-map", &map, "-vn", "-ac", "1", "-ar", "16000", "-af", &filters, "-f", "f32le", "pipe:1"];
        let mut running = self.start(&Call {
            program: Program::Ffmpeg,
            before: ["-nostdin", "-hide_banner", "-nostats", "-loglevel", "level+error"].map(str::to_owned).into(),
            input: Input::Video(video),
            after: after.into_iter().map(Into::into).collect(),
            limits: Limits::lengthy(info.duration.unwrap_or(longest)),
        })?;
        let pieces = running.pieces(PIECE * size_of::<f32>());
        let stated = info.duration.map(|seconds| (seconds - info.pictures_begin).max(0.0));
        Ok(Sound { video, running, pieces, progress, samples: 0, longest, stated, ended: false })
    }
}

/// The sound of one film, in pieces of a tenth of a second. After the last, [`Sound::finish`] says how it went.
#[derive(Debug)]
pub struct Sound<'a> {
    video: &'a OpenedVideo,
    running: Running,
    pieces: Receiver<io::Result<Vec<u8>>>,
    progress: &'a Progress,
    samples: u64,
    longest: f64,
    stated: Option<f64>,
    ended: bool,
}

impl Iterator for Sound<'_> {
    type Item = Result<Vec<f32>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.read();
        self.ended = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}

impl Sound<'_> {
    fn fault(&self, problem: String) -> MediaError {
        MediaError::video(self.video.path(), problem)
    }

    fn read(&mut self) -> Result<Option<Vec<f32>>> {
        let bytes = match self.running.next(&self.pieces, self.progress)? {
            Some(Ok(bytes)) => bytes,
            Some(Err(error)) => return Err(self.fault(format!("`ffmpeg`: {error}"))),
            None => return Ok(None),
        };
        let (numbers, _) = bytes.as_chunks::<4>();
        // Floating-point sound may hold anything; whoever computes with it wants numbers within reason.
        let sane = |sample: f32| if sample.is_finite() { sample.clamp(-8.0, 8.0) } else { 0.0 };
        let samples: Vec<f32> = numbers.iter().map(|bytes| sane(f32::from_le_bytes(*bytes))).collect();
        self.samples += samples.len() as u64;
        if self.seconds() > self.longest {
            return Err(self.fault(too_long(self.seconds(), self.longest)));
        }
        Ok(Some(samples))
    }

    /// **Seconds** of sound that came out so far.
    pub fn seconds(&self) -> f64 {
        self.samples as f64 / SOUND_RATE as f64
    }

    /// Waits for ffmpeg and says what is missing or damaged; `None` of a whole film.
    ///
    /// # Errors
    /// When the file changed meanwhile, nothing at all could be decoded, or somebody else ended ffmpeg: what it made by then says nothing about the film.
    pub fn finish(mut self) -> Result<Option<Partial>> {
        for piece in self.by_ref() {
            piece?;
        }
        let (status, complaints) = self.running.end(self.progress)?;
        self.video.check_unchanged()?;
        if let Some(signal) = signal(status) {
            return Err(self.fault(format!("`ffmpeg` was ended by signal {signal}")));
        }
        let mut complaint = complaints.first;
        if !status.success() {
            complaint = complaint.or_else(|| Some(format!("`ffmpeg` ended with {status}")));
        }
        if self.samples == 0 && complaint.is_some() {
            return Err(self.fault(format!("its sound cannot be decoded: {}", complaint.unwrap_or_default())));
        }
        let missing = self.stated.is_some_and(|stated| stated - self.seconds() > SLACK);
        let partial = Partial { read_seconds: self.seconds(), stated_seconds: self.stated, complaint };
        Ok((missing || partial.complaint.is_some()).then_some(partial))
    }
}
