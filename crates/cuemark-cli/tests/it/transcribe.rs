//! `cuemark transcribe` on small films of ffmpeg's making.

use std::process::{Command, Output};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

const SUBTITLES: &str =
    "1\n00:00:01,000 --> 00:00:02,500\ngood <i>morning</i>\n\n2\n00:00:03,000 --> 00:00:03,500\nbye\n";

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    (guard, folder)
}

/// Five seconds of pictures, with a tone or without sound.
fn film(out: &Utf8Path, sound: &[&str]) {
    let pictures = ["-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=5"];
    let made = Command::new("ffmpeg").args(pictures).args(sound).args(["-c:v", "mpeg4", out.as_str()]).status();
    assert!(made.unwrap().success());
}

fn call(folder: &Utf8Path, cache: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cuemark"))
        .arg("transcribe")
        .args(arguments)
        .current_dir(folder)
        .env("CUEMARK_CACHE", cache)
        .output()
        .unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn subtitles_beside_a_film_come_out_in_every_layout_and_need_no_weights() {
    let (_guard, folder) = folder();
    film(&folder.join("a.mp4"), &[]);
    std::fs::write(folder.join("a.srt"), SUBTITLES).unwrap();
    let text = printed(&call(&folder, "no cache", &["a.mp4"]));
    assert_eq!(text, "good morning\nbye\n");
    let srt = printed(&call(&folder, "no cache", &["a.mp4", "--to", "srt"]));
    assert!(srt.starts_with("1\n00:00:01,000 --> 00:00:02,500\ngood morning\n\n2\n"), "{srt}");
    let json: Value = serde_json::from_str(&printed(&call(&folder, "no cache", &["a.mp4", "--to", "json"]))).unwrap();
    assert_eq!((&json["from"], &json["track"]), (&"a.srt".into(), &"said".into()));
    assert_eq!((json["lines"][1]["start"].as_f64(), json["lines"][1]["end"].as_f64()), (Some(3.0), Some(3.5)));

    let written = call(&folder, "no cache", &["a.mp4", "--out", "out.vtt"]);
    assert_eq!(printed(&written), "");
    let vtt = std::fs::read_to_string(folder.join("out.vtt")).unwrap();
    assert!(vtt.starts_with("WEBVTT\n\n00:00:01.000 --> 00:00:02.500\ngood morning\n"), "{vtt}");
    let again = call(&folder, "no cache", &["a.mp4", "--out", "out.vtt"]);
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("--force"));
}

#[test]
fn what_cannot_be_heard_says_why_and_what_to_do() {
    let (_guard, folder) = folder();
    film(&folder.join("silent.mp4"), &[]);
    film(&folder.join("loud.mp4"), &["-f", "lavfi", "-i", "sine=frequency=440:duration=5"]);
    let silent = call(&folder, "no cache", &["silent.mp4"]);
    assert_eq!(printed(&silent), "");
    assert!(String::from_utf8_lossy(&silent.stderr).contains("no sound"));
    for (arguments, weights) in [(["loud.mp4", "--listen"], "whisper-tiny-en"), (["loud.mp4", "--written"], "pp-ocrv4")]
    {
        let refused = call(&folder, "no cache", &arguments);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1));
        assert!(said.contains(&format!("cuemark weights pull {weights}")), "{said}");
    }
}

#[test]
fn a_tone_gives_no_words_with_the_real_weights() {
    let (Some(cache), Some(_)) = (cuemark_testkit::weights("whisper-tiny-en"), cuemark_testkit::weights("silero-vad"))
    else {
        return;
    };
    let (_guard, folder) = folder();
    film(&folder.join("loud.mp4"), &["-f", "lavfi", "-i", "sine=frequency=440:duration=5"]);
    let cache = cache.canonicalize_utf8().unwrap();
    let heard = call(&folder, cache.as_str(), &["loud.mp4", "--listen"]);
    assert_eq!(printed(&heard), "");
}
