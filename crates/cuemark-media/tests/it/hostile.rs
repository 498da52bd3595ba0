//! Films that were not made to be watched, and programs that are interfered with.

use std::process::Command;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Progress;
use cuemark_media::{Ffmpeg, MediaError, OpenedVideo, Rate};

use crate::decoding::{SMALL, decode};
use crate::made::{folder, make, make_film};

/// D7: there is more to complain of than a pipe holds.
#[test]
fn a_film_full_of_faults_does_not_stand_still() {
    let (_guard, root) = folder();
    let path = root.join("noisy.ts");
    make(&["-f", "lavfi", "-i", "testsrc=s=160x120:r=25:d=60", "-c:v", "libx264", "-pix_fmt", "yuv420p"], &path);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.iter_mut().skip(20_000).step_by(150).for_each(|byte| *byte ^= 0x10);
    std::fs::write(&path, bytes).unwrap();
    let info = Ffmpeg::on_path().probe(&OpenedVideo::open(&path).unwrap(), &Progress::new()).unwrap();
    let (done, waits) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(decode(&path, &info, Rate::PerSecond(8.0))));
    let decoded = waits.recv_timeout(Duration::from_secs(60)).expect("ffmpeg and we wait for each other").unwrap();
    assert!(decoded.frames > 100 && decoded.complaints > 500, "{decoded:?}");
    assert!(decoded.partial().unwrap().complaint.is_some());
}

/// D8: whoever may put a file into the folder would see every film that we may read.
#[test]
fn a_playlist_called_mp4_opens_no_other_film() {
    let (_guard, root) = folder();
    std::fs::create_dir(root.join("private")).unwrap();
    make_film(&root.join("private/film.ts"), 3);
    make_film(&root.join("private/film.mp4"), 3);
    let whole = |name: &str| root.join("private").join(name).into_string();
    let hls = |target: &str| format!("#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3.0,\n{target}\n#EXT-X-ENDLIST\n");
    let dash = |target: &str| {
        format!(
            "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" \
             mediaPresentationDuration=\"PT3S\" profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\"><Period>\
             <AdaptationSet mimeType=\"video/mp4\"><Representation id=\"1\" bandwidth=\"1\"><BaseURL>{target}</BaseURL>\
             </Representation></AdaptationSet></Period></MPD>"
        )
    };
    let concat = |target: &str| format!("ffconcat version 1.0\nfile {target}\n");
    let playlists = [
        hls(&whole("film.ts")),
        hls("private/film.ts"),
        dash(&whole("film.mp4")),
        dash("private/film.mp4"),
        concat("private/film.mp4"),
    ];
    let path = root.join("x.mp4");
    for playlist in playlists {
        std::fs::write(&path, &playlist).unwrap();
        let (video, progress) = (OpenedVideo::open(&path).unwrap(), Progress::new());
        assert!(Ffmpeg::on_path().probe(&video, &progress).is_err(), "{playlist}");
        assert!(Ffmpeg::on_path().thumbnail(&video, 0.0, 64, &progress).is_err(), "{playlist}");
        let span = cuemark_core::Span::new(0.0, 1.0).unwrap();
        let cut =
            Ffmpeg::on_path().cut(&video, span, &root.join("c.mp4"), cuemark_formats::Overwrite::Never, &progress);
        assert!(cut.is_err(), "{playlist}");
    }
    // It is the playlists that are refused, not the films.
    let film = OpenedVideo::open(&root.join("private/film.ts")).unwrap();
    assert!(Ffmpeg::on_path().thumbnail(&film, 0.0, 64, &Progress::new()).is_ok());
}

#[cfg(unix)]
#[test]
fn a_pipe_called_mp4_keeps_nobody_waiting() {
    let (_guard, root) = folder();
    let path = root.join("pipe.mp4");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (done, waits) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(OpenedVideo::open(&path).map(|_| ())));
    let opened = waits.recv_timeout(Duration::from_secs(10)).expect("nobody writes into it");
    assert!(opened.unwrap_err().to_string().ends_with("is no regular file"));
}

/// D18: a few kilobytes that would make a million moments.
#[test]
fn ten_frames_in_nine_days_are_no_film() {
    let (_guard, root) = folder();
    let path = root.join("thin.mkv");
    make(
        &["-f", "lavfi", "-i", "testsrc=s=64x48:r=1:d=10,setpts=N*80000/TB", "-fps_mode", "vfr", "-c:v", "libx264"],
        &path,
    );
    let video = OpenedVideo::open(&path).unwrap();
    let info = Ffmpeg::on_path().probe(&video, &Progress::new()).unwrap();
    assert!(info.duration.unwrap() > 700_000.0, "{info:?}");
    let refused = decode(&path, &info, Rate::PerSecond(1.0)).unwrap_err().to_string();
    assert!(refused.contains("a file of its size is believed to hold"), "{refused}");
    // Nor does it help not to say so.
    let silent = cuemark_media::VideoInfo { duration: None, ..info };
    let refused = decode(&path, &silent, Rate::PerSecond(1.0)).unwrap_err().to_string();
    assert!(refused.contains("a file of its size is believed to hold"), "{refused}");
}

/// Odd names are nobody's business but ours: a program never sees them.
#[test]
fn names_are_never_taken_for_options_or_addresses() {
    let (_guard, root) = folder();
    make_film(&root.join("film.mp4"), 1);
    let odd = [
        "-i.mp4",
        "--help.mp4",
        "-",
        "a%d.mp4",
        "%03d.mp4",
        "concat:a|b.mp4",
        "http:x.mp4",
        "file:x.mp4",
        "pipe:0",
        "a b.mp4",
        "a\nb.mp4",
        "a\tb.mp4",
        "'quoted'.mp4",
        "\"double\".mp4",
        "$(touch x).mp4",
        "`x`.mp4",
        "a;b.mp4",
        "a&b.mp4",
        "a*b?.mp4",
        "\u{1b}[31mred.mp4",
        "日本語.mp4",
        "~.mp4",
    ];
    for name in odd {
        let path = root.join(name);
        std::fs::copy(root.join("film.mp4"), &path).unwrap();
        let (video, progress) = (OpenedVideo::open(&path).unwrap(), Progress::new());
        let info = Ffmpeg::on_path().probe(&video, &progress).unwrap();
        let frames = Ffmpeg::on_path().frames(&video, &info, Rate::PerSecond(5.0), SMALL, &progress).unwrap();
        assert_eq!(frames.finish().unwrap().frames, 5, "{name:?}");
    }
}

/// Programs of that name that do what `script` says.
#[cfg(unix)]
fn impostor(root: &Utf8Path, script: &str) -> Ffmpeg {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = root.join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["ffmpeg", "ffprobe"] {
        std::fs::write(folder.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    Ffmpeg::in_folder(folder)
}

fn info() -> cuemark_media::VideoInfo {
    cuemark_media::VideoInfo {
        stream: 0,
        duration: Some(10.0),
        rate: None,
        size: [64, 48],
        rotation: 0,
        codec: "none".to_owned(),
    }
}

/// D27: whoever takes over a decoder finds no secret in it.
#[cfg(target_os = "linux")]
#[test]
fn a_program_gets_no_variable_of_ours() {
    let (_guard, root) = folder();
    let film = root.join("film.mp4");
    std::fs::write(&film, "x").unwrap();
    let ffmpeg = impostor(&root, "echo \"[error] $(env | cut -d= -f1 | tr '\\n' ' ')\" >&2; exit 1");
    let said = ffmpeg.probe(&OpenedVideo::open(&film).unwrap(), &Progress::new()).unwrap_err().to_string();
    assert!(said.contains("PATH"), "{said}");
    // Cargo sets this one for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && !said.contains("CARGO"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_has_limits() {
    let (_guard, root) = folder();
    let film = root.join("film.mp4");
    std::fs::write(&film, "x").unwrap();
    let ffmpeg =
        impostor(&root, "sleep 0.3; echo \"[error] $(ulimit -t) $(ulimit -v) $(ulimit -f) $(ulimit -c)\" >&2; exit 1");
    let said = ffmpeg.probe(&OpenedVideo::open(&film).unwrap(), &Progress::new()).unwrap_err().to_string();
    assert!(said.ends_with("120 8388608 0 0"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_stopped_decoding_leaves_no_process_behind() {
    let (_guard, root) = folder();
    let (film, id) = (root.join("film.mp4"), root.join("id"));
    std::fs::write(&film, "x").unwrap();
    // It says who it is with a picture, and then nothing for ever.
    let ffmpeg = impostor(&root, &format!("printf '%576s' $$; exec sleep 1000 # {id}"));
    let (video, progress) = (OpenedVideo::open(&film).unwrap(), Progress::new());
    let mut frames = ffmpeg.frames(&video, &info(), Rate::PerSecond(1.0), SMALL, &progress).unwrap();
    let first = frames.next().unwrap().unwrap();
    let process: u32 = String::from_utf8(first.rgb).unwrap().trim().parse().unwrap();
    assert!(is_there(process));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            progress.stop();
        });
        let began = Instant::now();
        assert!(matches!(frames.next(), Some(Err(MediaError::Stopped(_)))));
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    });
    drop(frames);
    assert!(!is_there(process), "it is gone, and no zombie");
}

#[cfg(unix)]
fn is_there(process: u32) -> bool {
    Command::new("kill")
        .args(["-0", &process.to_string()])
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap()
        .success()
}

#[cfg(unix)]
#[test]
fn a_decoder_that_somebody_kills_says_nothing_about_the_film() {
    let (_guard, root) = folder();
    let film = root.join("film.mp4");
    std::fs::write(&film, "x").unwrap();
    let ffmpeg = impostor(&root, "printf '%576s' $$; kill -9 $$");
    let (video, progress) = (OpenedVideo::open(&film).unwrap(), Progress::new());
    let frames = ffmpeg.frames(&video, &info(), Rate::PerSecond(1.0), SMALL, &progress).unwrap();
    let said = frames.finish().unwrap_err().to_string();
    assert!(said.ends_with("`ffmpeg` was ended by signal 9"), "{said}");
}

#[test]
fn a_film_that_grows_while_it_is_read_is_not_taken_for_whole() {
    let (_guard, root) = folder();
    let path: Utf8PathBuf = root.join("film.ts");
    make_film(&path, 3);
    let (video, progress) = (OpenedVideo::open(&path).unwrap(), Progress::new());
    let info = Ffmpeg::on_path().probe(&video, &progress).unwrap();
    let mut frames = Ffmpeg::on_path().frames(&video, &info, Rate::PerSecond(10.0), SMALL, &progress).unwrap();
    frames.next().unwrap().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_within(..);
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(frames.finish(), Err(MediaError::Changed { .. })));
}

/// What was looked at is what is decoded, whatever lies under the name by then.
#[cfg(target_os = "linux")]
#[test]
fn a_film_that_is_replaced_while_it_is_read_is_the_one_that_was_opened() {
    let (_guard, root) = folder();
    let (path, other) = (root.join("film.mp4"), root.join("other.mp4"));
    make_film(&path, 3);
    make_film(&other, 7);
    let (video, progress) = (OpenedVideo::open(&path).unwrap(), Progress::new());
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(Ffmpeg::on_path().probe(&video, &progress).unwrap().duration, Some(3.0));
}
