//! Decoding, on films that are made here: their brightness is their time.

#![allow(clippy::unwrap_used)] // a test may panic

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise as _, Dialect};
use cuemark_features::FeatureError;
use cuemark_features::video::{Ffmpeg, Filter, Framing, Rate};
use tempfile::TempDir;

const SMALL: Framing = Framing::Stretch { width: 16, height: 12, filter: Filter::Bilinear };

fn folder() -> (TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

/// Runs ffmpeg to make a test file.
fn make(arguments: &[&str], to: &Utf8Path) {
    let output = Command::new("ffmpeg").args(["-v", "error", "-y"]).args(arguments).arg(to).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A grey film whose luma is 16 + 40 per second, without loss.
fn film(seconds: u32, more: &str) -> String {
    format!("nullsrc=s=64x48:r=10:d={seconds},geq=lum='16+40*T':cb=128:cr=128{more}")
}

/// The time that a picture's brightness says: full-range grey is (luma - 16) * 255 / 219.
fn seen(rgb: &[u8]) -> f64 {
    let mean = rgb.iter().map(|byte| f64::from(*byte)).sum::<f64>() / rgb.len() as f64;
    mean * 219.0 / 255.0 / 40.0
}

fn times(path: &Utf8Path, rate: Rate) -> Vec<(f64, f64)> {
    let ffmpeg = Ffmpeg::on_path();
    let info = ffmpeg.probe(path).unwrap();
    let frames = ffmpeg.frames(path, &info, rate, SMALL).unwrap();
    frames.map(|frame| frame.map(|frame| (frame.time, seen(&frame.rgb))).unwrap()).collect()
}

const LOSSLESS: [&str; 6] = ["-c:v", "libx264", "-qp", "0", "-pix_fmt", "yuv420p"];

#[test]
fn a_frame_is_the_picture_on_screen_at_its_time() {
    let (_guard, folder) = folder();
    let path = folder.join("film.mp4");
    make(&[["-f", "lavfi", "-i", &film(4, "")].as_slice(), &LOSSLESS].concat(), &path);
    let info = Ffmpeg::on_path().probe(&path).unwrap();
    assert_eq!((info.duration, info.rate, info.size, info.rotation), (Some(4.0), Some(10.0), [64, 48], 0));
    let at_four = times(&path, Rate::PerSecond(4.0));
    assert_eq!(at_four.len(), 16);
    for (n, (time, seen)) in at_four.into_iter().enumerate() {
        assert_eq!(time, n as f64 / 4.0);
        // The frame at 0.25 s is the one that came at 0.2 s.
        let shown = (time * 10.0).floor() / 10.0;
        assert!((seen - shown).abs() < 0.03, "{time}: {seen}, not {shown}");
    }
    let every = times(&path, Rate::EveryFrame);
    assert_eq!(every.len(), 40);
    assert!(
        every
            .iter()
            .enumerate()
            .all(|(n, (time, seen))| { (time - n as f64 / 10.0).abs() < 1e-6 && (seen - time).abs() < 0.03 })
    );
    assert_eq!(times(&path, Rate::PerSecond(20.0)).len(), 80);
    assert_eq!(times(&path, Rate::PerSecond(0.5)).len(), 2);
}

#[test]
fn a_variable_rate_moves_no_frame() {
    let (_guard, folder) = folder();
    let path = folder.join("variable.mkv");
    // No frame comes between seconds 1 and 2.5: the last one stays on screen.
    let gap = film(4, ",select='lt(t,1.05)+gt(t,2.45)'");
    make(&[["-f", "lavfi", "-i", &gap, "-fps_mode", "vfr"].as_slice(), &LOSSLESS].concat(), &path);
    let frames = times(&path, Rate::PerSecond(2.0));
    let shown = [0.0, 0.5, 1.0, 1.0, 1.0, 2.5, 3.0, 3.5];
    assert_eq!(frames.len(), shown.len(), "{frames:?}");
    for ((time, seen), shown) in frames.iter().zip(shown) {
        assert!((seen - shown).abs() < 0.03, "{time}: {seen}, not {shown}");
    }
    let every: Vec<f64> = times(&path, Rate::EveryFrame).iter().map(|(time, _)| *time).collect();
    assert!(every.windows(2).any(|pair| (pair[1] - pair[0] - 1.5).abs() < 0.01), "{every:?}");
}

#[test]
fn the_clock_starts_at_the_first_frame() {
    let (_guard, folder) = folder();
    let path = folder.join("late.mkv");
    let late = film(2, ",setpts=PTS+7/TB");
    make(&[["-f", "lavfi", "-i", &late].as_slice(), &LOSSLESS].concat(), &path);
    let frames = times(&path, Rate::PerSecond(5.0));
    assert_eq!(frames.len(), 10);
    assert!(frames.iter().all(|(time, seen)| (seen - time).abs() < 0.03), "{frames:?}");
}

#[test]
fn pictures_are_turned_cut_and_scaled() {
    let (_guard, folder) = folder();
    let (flat, turned) = (folder.join("flat.mp4"), folder.join("turned.mp4"));
    // 80 x 40, the left half red, the right half blue.
    let halves = "color=red:s=40x40:r=5:d=1[a];color=blue:s=40x40:r=5:d=1[b];[a][b]hstack";
    make(&[["-f", "lavfi", "-i", halves].as_slice(), &LOSSLESS].concat(), &flat);
    make(&["-i", flat.as_str(), "-c", "copy", "-metadata:s:v", "rotate=90"], &turned);
    let ffmpeg = Ffmpeg::on_path();
    let framing = Framing::CentreCrop { short_side: 20, crop: 10, filter: Filter::Bicubic };
    let first = |path: &Utf8Path| {
        let info = ffmpeg.probe(path).unwrap();
        let mut frames = ffmpeg.frames(path, &info, Rate::EveryFrame, framing).unwrap();
        (info, frames.next().unwrap().unwrap().rgb)
    };
    let (info, rgb) = first(&flat);
    assert_eq!((info.size, rgb.len()), ([80, 40], 300));
    let red = |rgb: &[u8], x: usize, y: usize| rgb[(y * 10 + x) * 3] > 150 && rgb[(y * 10 + x) * 3 + 2] < 100;
    assert!(red(&rgb, 0, 0) && red(&rgb, 0, 9) && !red(&rgb, 9, 0) && !red(&rgb, 9, 9));
    let (info, rgb) = first(&turned);
    assert_eq!(info.size, [40, 80]);
    assert_eq!(info.rotation.rem_euclid(180), 90);
    // Left and right have become top and bottom, one way or the other.
    assert_eq!(red(&rgb, 0, 0), red(&rgb, 9, 0));
    assert_ne!(red(&rgb, 0, 0), red(&rgb, 0, 9));
}

#[test]
fn files_without_pictures_say_what_they_are() {
    let (_guard, folder) = folder();
    let (sound, empty, text) = (folder.join("sound.wav"), folder.join("empty.mp4"), folder.join("-i.mp4"));
    make(&["-f", "lavfi", "-i", "sine=d=1"], &sound);
    std::fs::write(&empty, "").unwrap();
    std::fs::write(&text, "not a video").unwrap();
    let cover = folder.join("cover.mp3");
    let picture = ["-f", "lavfi", "-i", "color=red:s=16x16:d=0.1", "-map", "0", "-map", "1", "-frames:v", "1"];
    let attached = ["-c:v", "png", "-disposition:v", "attached_pic"];
    make(&[["-f", "lavfi", "-i", "sine=d=1"].as_slice(), &picture, &attached].concat(), &cover);
    let said = |path: &Utf8Path| Ffmpeg::on_path().probe(path).unwrap_err();
    assert_eq!(said(&sound).to_string(), format!("{sound}: has no pictures, only audio"));
    assert_eq!(said(&empty).to_string(), format!("{empty}: is empty: 0 bytes"));
    assert_eq!(said(&cover).to_string(), format!("{cover}: has no moving pictures, only a cover image"));
    let words = said(&text).to_string();
    assert!(words.contains("moov atom") || words.contains("Invalid data"), "{words}");
    assert!(said(&folder).to_string().ends_with("is a folder"));
    assert!(matches!(said(&folder.join("gone.mp4")), FeatureError::File(_)));
    assert!(said(&text).advice().is_some());
}

#[test]
fn a_cut_or_damaged_file_gives_what_it_has_and_says_what_is_missing() {
    let (_guard, folder) = folder();
    let path = folder.join("whole.ts");
    let moving = ["-f", "lavfi", "-i", "testsrc=s=64x48:r=10:d=8", "-g", "10"];
    make(&[moving.as_slice(), &["-c:v", "libx264", "-pix_fmt", "yuv420p"]].concat(), &path);
    let bytes = std::fs::read(&path).unwrap();
    let ffmpeg = Ffmpeg::on_path();
    let whole = ffmpeg.probe(&path).unwrap();
    let decode = |path: &Utf8Path, info| {
        ffmpeg.frames(path, info, Rate::PerSecond(10.0), SMALL).and_then(cuemark_features::video::Frames::finish)
    };
    let decoded = decode(&path, &whole).unwrap();
    assert_eq!((decoded.frames, decoded.is_partial()), (80, false), "{decoded:?}");
    let cut = folder.join("cut.ts");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let half = decode(&cut, &whole).unwrap();
    assert!(half.frames < 70 && half.missing_seconds > 1.0, "{half:?}");
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 3..bytes.len() / 3 * 2].iter_mut().step_by(7).for_each(|byte| *byte ^= 0x5a);
    std::fs::write(&cut, damaged).unwrap();
    let hurt = decode(&cut, &whole).unwrap();
    assert!(hurt.is_partial() && hurt.complaints > 0 && hurt.first_complaint.is_some(), "{hurt:?}");
    std::fs::write(&cut, vec![0x47; 4000]).unwrap();
    let nothing = decode(&cut, &whole).unwrap_err().to_string();
    assert!(nothing.contains("not one frame could be decoded"), "{nothing}");
}

#[test]
fn a_missing_program_is_named_with_ways_to_get_it() {
    let ffmpeg = Ffmpeg::in_folder("/nowhere");
    let error = ffmpeg.check().unwrap_err();
    assert_eq!(error.to_string(), "cannot run `ffmpeg`: it is not installed");
    assert!(error.advice_in(Dialect::Terminal).unwrap().contains("apt-get install ffmpeg"));
    let (_guard, folder) = folder();
    let path = folder.join("some.mp4");
    std::fs::write(&path, "bytes").unwrap();
    assert!(matches!(ffmpeg.probe(&path), Err(FeatureError::Program { program: "ffprobe", .. })));
}

#[test]
fn a_rate_that_cannot_be_is_refused() {
    let (_guard, folder) = folder();
    let path = folder.join("film.mp4");
    make(&[["-f", "lavfi", "-i", &film(1, "")].as_slice(), &LOSSLESS].concat(), &path);
    let ffmpeg = Ffmpeg::on_path();
    let info = ffmpeg.probe(&path).unwrap();
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert!(ffmpeg.frames(&path, &info, Rate::PerSecond(rate), SMALL).is_err(), "{rate}");
    }
}
