//! Films that were not made to be watched: damaged ones, and playlists that name somebody else's film.
#![cfg(feature = "models")]
#![allow(clippy::unwrap_used)] // a test may panic

use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_search::media;

fn make(arguments: &[&str], to: &Utf8Path) {
    let output = Command::new("ffmpeg").args(["-v", "error", "-y"]).args(arguments).arg(to).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// D7: ffmpeg has more to complain of than a pipe holds.
#[test]
fn a_film_full_of_faults_does_not_stand_still() {
    let guard = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    let path = root.join("noisy.ts");
    make(&["-f", "lavfi", "-i", "testsrc=s=160x120:r=25:d=60", "-c:v", "libx264", "-pix_fmt", "yuv420p"], &path);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.iter_mut().skip(20_000).step_by(150).for_each(|byte| *byte ^= 0x10);
    std::fs::write(&path, bytes).unwrap();
    let (done, waits) = channel();
    std::thread::spawn(move || {
        let frames = media::WorldFrames::open(&path, 8.0).unwrap();
        let _ = done.send(frames.features(8, cuemark_world::sight::Strength::Weak).map(|features| features.rows()));
    });
    let rows = waits.recv_timeout(Duration::from_secs(60)).expect("ffmpeg and we wait for each other");
    assert!(rows.unwrap() > 10);
}

/// D8: whoever may put a file into the folder would see every film that we may read.
#[test]
fn a_playlist_called_mp4_opens_no_other_film() {
    let guard = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    std::fs::create_dir(root.join("private")).unwrap();
    let private = root.join("private/film.ts");
    make(&["-f", "lavfi", "-i", "testsrc=s=64x48:r=10:d=3", "-c:v", "libx264", "-pix_fmt", "yuv420p"], &private);
    for target in [private.as_str(), "private/film.ts"] {
        let hls = format!("#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3.0,\n{target}\n#EXT-X-ENDLIST\n");
        std::fs::write(root.join("x.mp4"), hls).unwrap();
        assert!(media::probe(&root.join("x.mp4")).is_err(), "{target}");
        assert!(media::thumbnail(&root.join("x.mp4"), 0.0, 64).is_err(), "{target}");
        let ffmpeg = cuemark_features::video::Ffmpeg::on_path();
        assert!(ffmpeg.probe(&root.join("x.mp4")).is_err(), "{target}");
    }
}
