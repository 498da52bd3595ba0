//! Whisper with its real weights. Skipped where they have not been pulled; speech is made by `espeak-ng` where it is installed.

use std::process::Command;

use camino::Utf8Path;
use cuemark_core::{Line, Progress};
use cuemark_media::{Ffmpeg, OpenedVideo};
use cuemark_speech::{Heard, LineSource, Speech};
use cuemark_tensor::Device;
use cuemark_testkit::weights;

use crate::{folder, make};

fn speech() -> Option<Speech> {
    let of = |name| Some(weights(name)?.join("weights").join(name));
    let (whisper, voice) = (of("whisper-tiny-en"), of("silero-vad"));
    Some(Speech::open(&whisper?, Some(&voice?), &Device::Cpu).unwrap())
}

fn listen(speech: &Speech, film: &Utf8Path) -> Heard {
    speech.listen(&OpenedVideo::open(film).unwrap(), &Ffmpeg::on_path(), &Progress::new()).unwrap()
}

/// Speech of a machine as a sound file; nothing, said loudly, where the program is not installed.
fn say(sentence: &str, to: &Utf8Path) -> bool {
    let said = Command::new("espeak-ng").args(["-v", "en-us", "-s", "140", "-w", to.as_str(), sentence]).output();
    let said = said.is_ok_and(|output| output.status.success());
    if !said {
        // The same words as the testkit's, which `cargo xtask test` looks for.
        #[allow(clippy::print_stderr)]
        {
            eprintln!("SKIPPED (no espeak-ng): {}", std::thread::current().name().unwrap_or_default());
        }
    }
    said
}

fn words(lines: &[Line]) -> Vec<String> {
    let text: String = lines.iter().map(|line| format!("{} ", line.text.to_lowercase())).collect();
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_sentence_is_heard_where_it_is_said_in_the_film() {
    let Some(speech) = speech() else { return };
    let (_guard, root) = folder();
    if !say("The captain opened the heavy wooden door.", &root.join("said.wav")) {
        return;
    }
    let film = root.join("film.mp4");
    let inputs =
        ["-f", "lavfi", "-i", "testsrc=s=64x48:r=10:d=50", "-i", root.join("said.wav").as_str()].map(str::to_owned);
    let mut arguments: Vec<&str> = inputs.iter().map(String::as_str).collect();
    arguments.extend([
        "-af",
        "adelay=40000,apad",
        "-shortest",
        "-c:v",
        "libx264",
        "-pix_fmt",
        "yuv420p",
        "-c:a",
        "aac",
    ]);
    make(&arguments, &film);
    let heard = listen(&speech, &film);
    assert_eq!((heard.source, heard.partial), (LineSource::Speech, None));
    // The smallest network does not understand the machine's "wooden door".
    assert_eq!(words(&heard.lines)[..5], ["the", "captain", "opened", "the", "heavy"]);
    let line = &heard.lines[0];
    assert!((39.6..40.6).contains(&line.span.start()) && (41.5..44.0).contains(&line.span.end()), "{line:?}");
    assert!(line.words.len() >= 6, "{line:?}");
    assert!(line.words.windows(2).all(|pair| pair[0].span.start() <= pair[1].span.start()), "{line:?}");
    let door = line.words.last().unwrap();
    assert!(door.span.start() > line.words[1].span.end() && door.span.len() < 1.5, "{line:?}");
    assert!(line.confidence > 0.3);
}

#[test]
fn silence_music_and_noise_say_nothing() {
    let Some(speech) = speech() else { return };
    let chord = |time: f32, base: f32| -> f32 {
        [1.0, 1.26, 1.5].iter().map(|ratio| (time * base * ratio * std::f32::consts::TAU).sin()).sum::<f32>()
    };
    let music = |time: f32| {
        let beat = time.fract();
        chord(time, [220.0, 174.6, 261.6, 196.0][time as usize % 4])
            * 0.15
            * (-2.0 * beat).exp()
            * (beat * 100.0).min(1.0)
    };
    let noise = |time: f32| ((time * 12_345.6).sin() * 43_758.547).fract() * 0.1;
    let sounds: [(&str, &dyn Fn(f32) -> f32); 3] = [("silence", &|_| 0.0), ("music", &music), ("noise", &noise)];
    for (name, sound) in sounds {
        let samples: Vec<f32> = (0..16_000 * 60).map(|n| sound(n as f32 / 16_000.0)).collect();
        let lines = speech.hear(&samples, &Progress::new()).unwrap();
        assert!(lines.is_empty(), "{name}: {lines:?}");
    }
}

#[test]
fn a_film_without_sound_says_so_and_a_cut_one_is_partial() {
    let Some(speech) = speech() else { return };
    let (_guard, root) = folder();
    make(&["-f", "lavfi", "-i", "testsrc=s=64x48:r=10:d=2", "-c:v", "libx264"], &root.join("mute.mp4"));
    let heard = listen(&speech, &root.join("mute.mp4"));
    assert_eq!((heard.source, heard.lines.len()), (LineSource::NoSound, 0));
    make(&["-f", "lavfi", "-i", "sine=f=300:d=20", "-c:a", "aac"], &root.join("whole.mkv"));
    let bytes = std::fs::read(root.join("whole.mkv")).unwrap();
    std::fs::write(root.join("cut.mkv"), &bytes[..bytes.len() / 2]).unwrap();
    let partial = listen(&speech, &root.join("cut.mkv")).partial.unwrap();
    assert!(partial.read_seconds < 15.0 && partial.stated_seconds.unwrap() > 19.0, "{partial:?}");
}

#[test]
fn work_that_is_stopped_ends() {
    let Some(speech) = speech() else { return };
    let progress = Progress::new();
    progress.stop();
    let tone: Vec<f32> = (0..80_000).map(|n| (n as f32 * 0.05).sin() * 0.3).collect();
    // Nothing to hear in a tone, so nothing to stop; a film's sound is another matter.
    let _ = speech.hear(&tone, &progress);
    let (_guard, root) = folder();
    make(&["-f", "lavfi", "-i", "sine=f=300:d=5", "-c:a", "aac"], &root.join("tone.mkv"));
    let film = OpenedVideo::open(&root.join("tone.mkv")).unwrap();
    let stopped = speech.listen(&film, &Ffmpeg::on_path(), &progress).unwrap_err();
    assert_eq!(stopped.to_string(), "stopped before it was done");
}
