//! Films as cameras, crashes and downloads leave them, through `index create` and `index add`: each is indexed, in part where
//! that is all there is, and then it is said; or refused with a reason.

use std::process::{Command, Output};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

fn call(folder: &Utf8Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cuemark")).args(arguments).current_dir(folder).output().unwrap()
}

fn json(folder: &Utf8Path, arguments: &[&str]) -> Value {
    let output = call(folder, &[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("cuemark {arguments:?}: {said}"))
}

fn ffmpeg(folder: &Utf8Path, arguments: &str) {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y"]).args(arguments.split_whitespace()).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "ffmpeg {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A film of eight seconds at ten pictures a second, a key picture every second.
const PICTURES: &str = "-f lavfi -i testsrc=s=96x64:r=10:d=8";
const SOUND: &str = "-f lavfi -i sine=frequency=440:duration=8";
const ENCODED: &str = "-c:v libx264 -g 10 -pix_fmt yuv420p";

fn make_odd_films(films: &Utf8Path) {
    ffmpeg(films, &format!("{PICTURES} {SOUND} {ENCODED} -c:a aac whole.mp4"));
    ffmpeg(films, &format!("{PICTURES} {ENCODED} mute.mp4"));
    ffmpeg(films, &format!("{SOUND} -c:a aac deaf.mp4"));
    ffmpeg(films, &format!("{SOUND} -c:a aac spoken.mp4"));
    std::fs::write(films.join("spoken.srt"), "1\n00:00:01,000 --> 00:00:03,000\nthe budget of Lisbon\n").unwrap();
    ffmpeg(films, &format!("{PICTURES} -frames:v 1 {ENCODED} frame.mp4"));
    // Held upright: stored lying down, with a note to turn it, and the same pictures turned for good.
    ffmpeg(films, "-i mute.mp4 -c copy -metadata:s:v:0 rotate=90 turned.mp4");
    ffmpeg(films, &format!("-i turned.mp4 {ENCODED} -crf 1 upright.mp4"));
    // Four seconds of 30 a second, then four of 5: a telephone in the dark.
    let parts = "[0]trim=0:4[a];[1]trim=0:4,setpts=PTS-STARTPTS[b];[a][b]concat,settb=1/1000[c]";
    let sources = "-f lavfi -i testsrc=s=96x64:r=30:d=4 -f lavfi -i testsrc=s=96x64:r=5:d=4";
    ffmpeg(films, &format!("{sources} -filter_complex {parts} -map [c] -vsync vfr {ENCODED} varying.mp4"));
    // A crash of the recorder: the index of an MP4 stands at its end.
    let whole = std::fs::read(films.join("whole.mp4")).unwrap();
    std::fs::write(films.join("headless.mp4"), &whole[..whole.len() / 2]).unwrap();
    // A bad sector: the middle third is noise.
    ffmpeg(films, "-i mute.mp4 -c copy scratched.ts");
    let mut bytes = std::fs::read(films.join("scratched.ts")).unwrap();
    let third = bytes.len() / 3;
    for (place, byte) in bytes.iter_mut().enumerate().skip(third).take(third) {
        *byte = (place.wrapping_mul(2_654_435_761) >> 7) as u8;
    }
    std::fs::write(films.join("scratched.ts"), bytes).unwrap();
    // A download that broke off.
    ffmpeg(films, "-i mute.mp4 -c copy broken.mkv");
    let bytes = std::fs::read(films.join("broken.mkv")).unwrap();
    std::fs::write(films.join("broken.mkv"), &bytes[..bytes.len() * 6 / 10]).unwrap();
}

#[test]
fn odd_films_are_indexed_in_part_and_said_to_be_or_refused_with_a_reason() {
    let guard = tempfile::tempdir().unwrap();
    let home = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
    let films = home.join("films");
    std::fs::create_dir(&films).unwrap();
    make_odd_films(&films);
    json(&home, &["world", "make", "--out", "world", "--videos", "10", "--seed", "4"]);
    let recipe = cuemark_testkit::fixture("runs/small-mmn.toml").canonicalize_utf8().unwrap();
    json(&home, &["train", recipe.as_str(), "--set", "data.root=world", "--out", "run"]);

    let output = call(&home, &["index", "create", "index", "--encoder", "run", "films", "--json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let added: Value = serde_json::from_slice(&output.stdout).unwrap();
    let added = &added["added"];
    assert_eq!(output.status.code(), Some(1), "something was left out: {said}");
    let of = |name: &str| {
        let videos = added["videos"].as_array().unwrap();
        let is_it = |video: &&Value| {
            let told = Utf8Path::new(video["video"].as_str().unwrap());
            told.file_stem() == Some(name)
        };
        videos.iter().find(is_it).unwrap_or_else(|| panic!("{name} in {added:#}")).clone()
    };
    for name in ["whole", "mute", "frame", "turned", "upright", "varying"] {
        let one = of(name);
        assert!(one["became"] == "new" && one["partial"].is_null() && one["tracks"].is_null(), "{name}: {one:#}");
    }
    // What cannot be read at all is refused, each for its own reason, and nobody is told that it is there.
    for (name, reason) in [("deaf", "no pictures"), ("headless", "moov")] {
        let one = of(name);
        let told = one["reason"].as_str().unwrap_or_default();
        assert!(one["became"] == "failed" && told.contains(reason), "{name}: {one:#}");
        assert!(said.lines().any(|line| line.starts_with("left out: ") && line.contains(name)), "{said}");
    }
    // What can be read in part is, and how much is said.
    for (name, least, most) in [("broken", 2.0, 7.5), ("scratched", 2.0, 8.5)] {
        let one = of(name);
        let seconds = one["partial"]["read_seconds"].as_f64().unwrap_or(0.0);
        assert!(one["became"] == "new" && (least..most).contains(&seconds), "{name}: {one:#}");
        assert!(said.contains(&format!("in part: {name}: ")), "{said}");
    }
    // A film without pictures is found by its words, and it is said that nobody looked at it.
    let spoken = of("spoken");
    let seen = spoken["tracks"].as_array().unwrap().iter().find(|read| read["track"] == "seen").unwrap();
    assert!(spoken["became"] == "new" && seen["problem"].is_string(), "{spoken:#}");
    assert!(said.contains("in part: spoken: not seen"), "{said}");
    let heard = json(&home, &["search", "index", "said: the budget"]);
    assert_eq!(
        (heard["answers"][0]["video"].as_str(), heard["answers"][0]["start"].as_f64()),
        (Some("spoken"), Some(1.0))
    );

    let status = json(&home, &["index", "status", "index", "--videos"]);
    let seconds = |name: &str| {
        let is_it = |video: &&Value| video["id"] == name;
        status["videos"].as_array().unwrap().iter().find(is_it).map(|video| video["duration"].as_f64().unwrap())
    };
    assert_eq!((seconds("deaf"), seconds("headless")), (None, None), "what was left out is not there");
    for (name, expected) in [("whole", 8.0), ("mute", 8.0), ("turned", 8.0), ("varying", 8.0), ("frame", 0.1)] {
        let found = seconds(name).unwrap();
        // The last picture of a varying film has no length that ffmpeg could state.
        assert!((found - expected).abs() < 0.6, "{name} lasts {expected} s and not {found}");
    }
    // A film that is to be turned is seen turned.
    let best = |video: &str| {
        let found = json(&home, &["search", "index", "seen: a red ball spins", "--least", "0", "--video", video]);
        found["answers"][0]["score"].as_f64().unwrap_or_else(|| panic!("{video}: {found:#}"))
    };
    let (turned, upright, lying) = (best("turned"), best("upright"), best("mute"));
    assert!((turned - upright).abs() < (turned - lying).abs().max(1e-3), "{turned} {upright} {lying}");

    // The same again changes nothing, and asks nobody to look at what was refused as if it were new.
    let again = json(&home, &["index", "add", "index", "films"]);
    assert_eq!((&again["added"]["new"], &again["added"]["failed"]), (&0.into(), &2.into()), "{again:#}");
}
