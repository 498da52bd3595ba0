//! Our side of `cargo xtask bench encode` for clips and videos, on the CPU or a GPU; prints one line of JSON.
//!
//!     encode_clips clips ENCODER WEIGHTS FRAMES COUNT DEVICE [BATCH [f32]]   COUNT clips of noise, BATCH in a call (1);
//!                                                        a GPU rounds to TF32, or does not
//!     encode_clips pipeline ENCODER WEIGHTS VIDEO DEVICE               from a video file to rows
//!
//! WEIGHTS is a name of the registry or a file. `concepts` takes `-`.

#![allow(clippy::print_stdout)] // this is a program

use std::time::Instant;

use camino::Utf8Path;
use cuemark_core::{Progress, Rng};
use cuemark_encoders::extract::extract_rows;
use cuemark_encoders::visual::{self, Clips, EncoderOptions};
use cuemark_encoders::{ClipEncoder, EncodeError};
use cuemark_media::Ffmpeg;
use cuemark_tensor::Precision;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let line = match words.as_slice() {
        ["clips", encoder, weights, frames, count, device, rest @ ..] => {
            let at_once = rest.first().map_or(Ok(1), |batch| batch.parse())?;
            let precision = if rest.get(1) == Some(&"f32") { Precision::F32 } else { Precision::Tf32 };
            let encoder = open(encoder, weights, Some(frames.parse()?), device, precision)?;
            clips(encoder.as_ref(), count.parse()?, at_once)?
        }
        ["pipeline", encoder, weights, video, device] => {
            pipeline(open(encoder, weights, None, device, Precision::Tf32)?.as_ref(), Utf8Path::new(video))?
        }
        _ => {
            return Err(
                "usage: clips ENCODER WEIGHTS FRAMES COUNT DEVICE [BATCH [f32]], or pipeline ENCODER WEIGHTS VIDEO DEVICE"
                    .into(),
            );
        }
    };
    println!("{line}");
    Ok(())
}

fn open(
    name: &str,
    weights: &str,
    frames: Option<usize>,
    device: &str,
    precision: Precision,
) -> Result<Box<dyn ClipEncoder>, Error> {
    let weights = (weights != "-").then(|| weights.into());
    let device = cuemark_tensor::device(device)?;
    Ok(visual::open(name, &EncoderOptions { device, weights, frames, precision, ..EncoderOptions::default() })?)
}

/// Seconds of each call after one that does not count; the first row, and how far a row of a call is from the clip's alone at the most.
fn clips(encoder: &dyn ClipEncoder, count: usize, at_once: usize) -> Result<serde_json::Value, Error> {
    let (sampling, mut rng) = (encoder.sampling(), Rng::new(6));
    let bytes = at_once * sampling.frames * sampling.framing.bytes();
    let rgb: Vec<u8> = (0..bytes).map(|_| (rng.bits32() >> 24) as u8).collect();
    let clips = Clips::from_rgb(sampling.frames, sampling.framing.size(), rgb).ok_or("no clips")?;
    encoder.encode(&clips)?;
    let mut seconds = Vec::new();
    let mut rows = Vec::new();
    for _ in 0..count.div_ceil(at_once) {
        let begin = Instant::now();
        rows = encoder.encode(&clips)?;
        seconds.push(begin.elapsed().as_secs_f64() / at_once as f64);
    }
    let mut apart = 0f32;
    for (row, part) in rows.iter().zip(clips.parts(1)) {
        let alone = Clips::from_rgb(part.frames, part.size, part.rgb.to_vec()).ok_or("no clip")?;
        let alone = encoder.encode(&alone)?.swap_remove(0);
        apart = row.iter().zip(&alone).fold(apart, |apart, (one, other)| apart.max((one - other).abs()));
    }
    Ok(serde_json::json!({ "seconds": seconds, "clips": at_once, "apart": apart, "row": rows.first() }))
}

fn pipeline(encoder: &dyn ClipEncoder, video: &Utf8Path) -> Result<serde_json::Value, Error> {
    let begin = Instant::now();
    let (mut rows, mut sum) = (0, 0f64);
    let decoded = extract_rows(&Ffmpeg::on_path(), video, encoder, &Progress::new(), &mut |made| {
        rows += made.len();
        sum += made.iter().flatten().map(|x| f64::from(*x)).sum::<f64>();
        Ok::<(), EncodeError>(())
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let mean = sum / (rows * encoder.width()).max(1) as f64;
    Ok(serde_json::json!({ "seconds": [seconds], "rows": rows, "video_s": decoded.seconds, "mean": mean }))
}
