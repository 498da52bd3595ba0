//! Prints what is heard in films as JSON lines: `hear WHISPER_FOLDER SILERO_FOLDER|- FILM…`
#![allow(clippy::print_stdout)] // it is an example's job

use std::error::Error;
use std::time::Instant;

use camino::Utf8Path;
use cuemark_core::Progress;
use cuemark_media::{Ffmpeg, OpenedVideo};
use cuemark_speech::Speech;
use cuemark_tensor::Device;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [whisper, voice, films @ ..] = arguments.as_slice() else { return Err("hear WHISPER SILERO|- FILM…".into()) };
    let voice = Some(Utf8Path::new(voice)).filter(|voice| *voice != "-");
    let speech = Speech::open(Utf8Path::new(whisper), voice, &Device::Cpu)?;
    for film in films {
        let began = Instant::now();
        let heard = speech.listen(&OpenedVideo::open(Utf8Path::new(film))?, &Ffmpeg::on_path(), &Progress::new())?;
        let lines: Vec<serde_json::Value> = heard
            .lines
            .iter()
            .map(|line| {
                let words = line.words.iter().map(|word| serde_json::json!([word.span.start(), word.span.end(), word.text]));
                serde_json::json!({
                    "start": line.span.start(), "end": line.span.end(), "text": line.text, "confidence": line.confidence,
                    "words": words.collect::<Vec<_>>(),
                })
            })
            .collect();
        let seconds = began.elapsed().as_secs_f64();
        println!("{}", serde_json::json!({"film": film, "seconds": seconds, "lines": lines, "partial": heard.partial}));
    }
    Ok(())
}
