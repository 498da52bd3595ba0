//! `cuemark transcribe`: what is said or written in a film.

use cuemark::Transcribe;

use crate::output::{self, Outcome};
use crate::progress::watched;

/// Write down what is said in a film, with times, or what is written in its pictures.
///
/// Subtitles beside the film (`film.srt`, `film.en.vtt`) or in it are taken where there are any; else it is listened to with Whisper
/// (`cuemark weights pull whisper-tiny-en silero-vad`: English). `--written` reads the pictures (`cuemark weights pull pp-ocrv4`).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    transcribe: Transcribe,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let what = if args.transcribe.written { "reading" } else { "listening" };
    let transcript = watched(what, |progress| args.transcribe.run(progress))?;
    let from = transcript.from.as_deref().unwrap_or("nothing: the film has no sound");
    output::say(&format!("note: {} lines from {from}", transcript.lines.len()));
    if let Some(partial) = &transcript.partial {
        output::say(&format!("note: {}: {partial}", transcript.film));
    }
    match &args.transcribe.out {
        Some(out) => {
            output::say(&format!("wrote {out}"));
            Ok(Outcome::ok(""))
        }
        None => Ok(Outcome::ok(transcript.render(args.transcribe.layout())?)),
    }
}
