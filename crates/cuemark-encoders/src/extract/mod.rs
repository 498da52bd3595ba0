//! From video files to rows.
//!
//! Three things happen at once: ffmpeg decodes, a thread makes clips of frames, the caller's thread encodes them. What waits between
//! them is bounded, and rows leave as they are made, so memory does not grow with the length of a video.

mod clip_maker;
mod store;

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use camino::Utf8Path;
use cuemark_core::Progress;
use cuemark_features::Features;
use cuemark_media::{Decoded, Ffmpeg, Frames, OpenedVideo, Rate, VideoInfo};

pub use store::{DamagedVideo, ExtractOptions, ExtractReport, Failure, Shard, extract_to_store};

use crate::visual::{ClipEncoder, Clips};
use crate::{EncodeError, Result};
use clip_maker::ClipMaker;

/// Calls' worth of clips that may wait to be encoded.
const WAITING: usize = 2;

/// What came of one video.
#[derive(Debug, Clone, PartialEq)]
pub struct Extracted {
    /// One row per clip.
    pub features: Features,
    /// How the decoding went.
    pub decoded: Decoded,
}

/// The rows of one video, in memory. `progress` counts **seconds of film**, in a phase of its own.
///
/// # Errors
/// When the file cannot be decoded at all or changes meanwhile, a clip cannot be encoded, or the work was stopped. A damaged file
/// gives what it has; [`Decoded::partial`] tells.
pub fn extract_video(
    ffmpeg: &Ffmpeg,
    path: &Utf8Path,
    encoder: &dyn ClipEncoder,
    progress: &Progress,
) -> Result<Extracted> {
    let clip = encoder.sampling().clip_len()?.seconds();
    let video = OpenedVideo::open(path)?;
    let info = ffmpeg.probe(&video, progress)?;
    progress.phase("seconds of film", info.duration.unwrap_or(0.0).ceil().max(0.0) as usize);
    let (mut data, mut clips) = (Vec::new(), 0.0);
    let decoded = rows_of(ffmpeg, (&video, &info), encoder, progress, &mut |rows| {
        clips += rows.len() as f64;
        progress.advance((clips * clip) as usize - progress.done().min((clips * clip) as usize))?;
        data.extend(rows.into_iter().flatten());
        Ok(())
    })?;
    let width = encoder.width();
    let rows = data.len() / width.max(1);
    let misshaped = || EncodeError::Sampling { problem: format!("`{}` made rows of another width", encoder.name()) };
    Ok(Extracted { features: Features::new(rows, width, data).ok_or_else(misshaped)?, decoded })
}

/// Hands the rows of one video to `sink`, some at a time, in order.
///
/// # Errors
/// As [`extract_video`], and those of `sink`.
pub fn extract_rows(
    ffmpeg: &Ffmpeg,
    path: &Utf8Path,
    encoder: &dyn ClipEncoder,
    progress: &Progress,
    sink: &mut dyn FnMut(Vec<Vec<f32>>) -> Result<()>,
) -> Result<Decoded> {
    encoder.sampling().clip_len()?;
    let video = OpenedVideo::open(path)?;
    let info = ffmpeg.probe(&video, progress)?;
    rows_of(ffmpeg, (&video, &info), encoder, progress, sink)
}

fn rows_of(
    ffmpeg: &Ffmpeg,
    (video, info): (&OpenedVideo, &VideoInfo),
    encoder: &dyn ClipEncoder,
    progress: &Progress,
    sink: &mut dyn FnMut(Vec<Vec<f32>>) -> Result<()>,
) -> Result<Decoded> {
    let sampling = encoder.sampling();
    let frames = ffmpeg.frames(video, info, Rate::PerSecond(sampling.fps), sampling.framing, progress)?;
    let maker = ClipMaker::new(&sampling, (encoder.pictures_at_once() / sampling.frames).max(1));
    let (send, receive) = sync_channel::<Clips>(WAITING);
    std::thread::scope(|scope| {
        let making = scope.spawn(move || make_clips(frames, maker, |clips| hand_over(&send, clips, progress)));
        // The receiver ends with this closure: after an error here, the other side finds nobody to send to and stops.
        let receive = receive;
        for clips in &receive {
            progress.check()?;
            sink(encoder.encode(&clips)?)?;
        }
        match making.join() {
            Ok(decoded) => Ok(decoded?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Makes clips of frames until there are no more, or nobody wants them.
fn make_clips(
    mut frames: Frames<'_>,
    mut maker: ClipMaker,
    mut send: impl FnMut(Clips) -> bool,
) -> cuemark_media::Result<Decoded> {
    for frame in frames.by_ref() {
        if let Some(clips) = maker.push(frame?.rgb)
            && !send(clips)
        {
            // The other side has an error to report; it need not wait for the end of the film.
            return Ok(Decoded::default());
        }
    }
    maker.finish().into_iter().for_each(|clips| {
        send(clips);
    });
    frames.finish()
}

/// Sends clips, and returns whether anybody wants more. A wait for an encoder that takes its time ends when the work is stopped,
/// so that ffmpeg does not outlive it by more than a moment.
fn hand_over(to: &SyncSender<Clips>, mut clips: Clips, progress: &Progress) -> bool {
    loop {
        clips = match to.try_send(clips) {
            Ok(()) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(_)) if progress.is_stopped() => return false,
            Err(TrySendError::Full(clips)) => clips,
        };
        std::thread::sleep(Duration::from_millis(2));
    }
}
